// Package haltest is the conformance suite: it tells when a backend is done.
//
// A backend's test is one short file that calls Run. Cases are named by the
// clause of the contract (package hal) that they prove. Nothing here sleeps to
// make an order happen: streams are held and released, and every wait has a
// limit whose passing fails with the stacks of all goroutines.
package haltest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// Limit is how long a wait may take before it counts as never ending, on a machine with much else to do.
const Limit = 30 * time.Second

// Ability is something a backend may have or not.
type Ability uint

// The abilities.
const (
	// Gates: streams can be held without a host function.
	Gates Ability = 1 << iota
	// Delays: streams can be kept busy for a time.
	Delays
	// Contexts: Ascend's contexts and event kinds.
	Contexts
	// Memory: device and pinned memory, copies, fills and native functions.
	Memory
	// Follows: the backend tells when operations ran.
	Follows
	// RealTime: work takes the machine's time and goes on between two calls.
	RealTime
	// Aborts: work that has not started can be dropped.
	Aborts
	// Kernels: programs of the vendor's run on streams.
	Kernels
	// Ranked: of ready operations the most urgent stream's goes first, always.
	// To some vendors a priority is a hint.
	Ranked
	// Explains: a stream tells what its head operation waits for.
	Explains
	// Exact: memory figures count each byte, and only what this runtime takes.
	Exact
	// Unbounded: any number of streams may be held at once. Hardware has few
	// queues, and streams that share one hold each other up.
	Unbounded
	// Grows: memory can be allocated, given back and counted while streams are held. A
	// driver may wait until the device is idle for that.
	Grows
	// FourQueues, EightQueues: streams of a priority share no fewer hardware queues. What is in the
	// queue of a held stream has to wait for it.
	FourQueues
	EightQueues
	// Handles: the vendor's library knows the streams by numbers.
	Handles
	// Values: streams write values in memory and wait for them.
	Values
	// Graphs: streams can be captured, and graphs run.
	Graphs
	// Conditions: nodes of graphs run others if or while a word of memory is not 0.
	Conditions
	// HostBodies: among these others are functions of the host.
	HostBodies
	// Pair: there are two devices. Run finds that out itself.
	Pair
	// Loses: a device can be made to fail for good. Run finds that out itself.
	Loses
	// Recovers: a native function can make a device lost, and it can be used again.
	Recovers
)

// Reasons maps a case, or all cases of a clause, to why it does not pass.
type Reasons map[string]string

func (r Reasons) of(c testCase) string {
	if why := r[c.name]; why != "" {
		return why
	}
	return r[c.clause()]
}

// Backend describes what is tested.
type Backend struct {
	Name string
	// Open opens the backend. An ErrAbsent skips the suite, unless the
	// environment variable HAL_REQUIRE names the backend.
	Open func() (*hal.Runtime, error)
	Has  Ability
	// Never lists what the backend cannot do; Broken what it fails for now,
	// which still runs, and whose success is a failure.
	Never, Broken Reasons
	// Lose makes a device fail for good; nil where that cannot be done on purpose.
	Lose func(ordinal int) error
}

// testCase is one case of the suite.
type testCase struct {
	name  string
	needs Ability
	run   func(k *Kit)
}

func (c testCase) clause() string { return c.name[:strings.IndexByte(c.name, '_')] }

func cases() []testCase {
	var all []testCase
	for _, part := range [][]testCase{streamCases, eventCases, hostFuncCases, lifetimeCases, deviceCases, observeCases, sequenceCases, contextCases,
		memoryCases, sharedCases, valueCases, tensorCases, poolCases, reuseCases, blockingCases, copyCases, workCases, nativeFuncCases, kernelCases, packedCases, vendorCases, lostCases,
		noticeCases, captureCases, externalEventCases, ownCaptureCases, graphCases, graphBuildCases, graphMemoryCases, graphThreadCases, conditionCases, deviceConditionCases} {
		all = append(all, part...)
	}
	return all
}

// Run runs all cases against a backend.
func Run(t *testing.T, b Backend) {
	rt, err := b.Open()
	if errors.Is(err, hal.ErrAbsent) {
		if os.Getenv("HAL_REQUIRE") == b.Name {
			t.Fatalf("HAL_REQUIRE=%s: %v", b.Name, err)
		}
		t.Skip(err)
	}
	require.NoError(t, err)
	served := serve(rt)
	defer func() {
		rt.Close()
		served.stop(t)
	}()
	for _, reasons := range []Reasons{b.Never, b.Broken} {
		for clause, why := range reasons {
			require.NotEmpty(t, why, "%s needs a reason", clause)
		}
	}
	if b.Has &^= Pair; rt.Devices() > 1 {
		b.Has |= Pair
	}
	if b.Has &^= Loses; b.Lose != nil || b.Has&Recovers != 0 {
		b.Has |= Loses
	}
	var passed, lacking, never, broken int
	for _, c := range cases() {
		switch {
		case b.Never.of(c) != "":
			never++
			continue
		case c.needs&^b.Has != 0:
			lacking++
			continue
		case b.Broken.of(c) != "":
			broken++
		default:
			passed++
		}
		t.Run(c.name, func(t *testing.T) {
			k := &Kit{T: t, RT: rt, open: b.Open, Me: hal.NewThread(), served: served, has: b.Has, lose: b.Lose, broken: b.Broken.of(c) != ""}
			k.run(c.run)
		})
	}
	t.Logf("%s: %d cases run, %d not applicable, %d never, %d broken", b.Name, passed, lacking, never, broken)
}

// Kit is what a case works with.
type Kit struct {
	*testing.T
	RT     *hal.Runtime
	Me     *hal.Thread // the case's own host thread
	open   func() (*hal.Runtime, error)
	served *server
	has    Ability
	lose   func(ordinal int) error
	broken bool
	holds  []*Held
	last   *hal.Stream
}

// failure is what a broken case panics with instead of failing the test.
type failure struct{ text string }

func (k *Kit) run(f func(*Kit)) {
	defer func() {
		for _, h := range k.holds {
			h.Release()
		}
		k.Me.Retire()
		if k.broken {
			if r := recover(); r == nil {
				k.T.Fatal("this case is listed as broken and passes: take it off the list")
			} else if _, ok := r.(failure); !ok {
				panic(r)
			}
		}
	}()
	f(k)
}

// Errorf implements require.TestingT.
func (k *Kit) Errorf(format string, args ...any) {
	if !k.broken {
		k.T.Helper()
		k.T.Errorf(format, args...)
	}
}

// FailNow implements require.TestingT.
func (k *Kit) FailNow() {
	if k.broken {
		panic(failure{"broken as listed"})
	}
	k.T.FailNow()
}

// Has reports whether the backend has all of some abilities.
func (k *Kit) Has(a Ability) bool { return k.has&a == a }

// Far returns the ordinal of another device than 0, or 0 if there is none.
func (k *Kit) Far() int { return min(1, k.RT.Devices()-1) }

// Device returns a device of the backend.
func (k *Kit) Device(ordinal int) *hal.Device {
	d, err := k.RT.Device(ordinal)
	require.NoError(k, err)
	return d
}

// Stream makes a stream on device 0.
func (k *Kit) Stream(o hal.StreamOptions) *hal.Stream { return k.StreamOn(0, o) }

// StreamOn makes a stream on a device.
func (k *Kit) StreamOn(ordinal int, o hal.StreamOptions) *hal.Stream {
	s, err := k.Device(ordinal).NewStream(k.Me, o)
	require.NoError(k, err)
	k.T.Cleanup(func() { _ = s.Close(nil) })
	return s
}

// Event makes an event that takes the device of its first record.
func (k *Kit) Event(o hal.EventOptions) *hal.Event {
	e, err := k.RT.NewEvent(k.Me, nil, o)
	require.NoError(k, err)
	k.T.Cleanup(func() { _ = e.Close(nil) })
	return e
}

// Record records an event.
func (k *Kit) Record(s *hal.Stream, e *hal.Event) {
	k.T.Helper()
	require.NoError(k, s.Record(k.Me, e))
}

// Wait makes a stream wait for an event.
func (k *Kit) Wait(s *hal.Stream, e *hal.Event) {
	k.T.Helper()
	require.NoError(k, s.Wait(k.Me, e))
}

// Call enqueues a function.
func (k *Kit) Call(s *hal.Stream, f func()) {
	k.T.Helper()
	require.NoError(k, k.TryCall(s, f))
}

// TryCall enqueues a function and returns the error.
func (k *Kit) TryCall(s *hal.Stream, f func()) error {
	return k.served.call(k.Me, s, func(*hal.Thread) error { f(); return nil })
}

// Done asserts that a stream's work is done.
func (k *Kit) Done(s *hal.Stream, why string) {
	k.T.Helper()
	done, err := s.Query(k.Me)
	require.NoError(k, err)
	require.True(k, done, "%s; %s", why, s.Describe())
}

// Pending asserts that a stream's work is pending, and stays so: all that is
// ready, and not a function, has run before it looks.
func (k *Kit) Pending(s *hal.Stream, why string) {
	k.T.Helper()
	if k.last == nil {
		// The least urgent stream comes after everything that is ready.
		k.last = k.Stream(ordinary)
	}
	require.NoError(k, k.last.Nop(k.Me))
	k.Sync(k.last)
	done, err := s.Query(k.Me)
	require.NoError(k, err)
	require.False(k, done, "%s", why)
}

// EventDone asserts that an event's latest record is done.
func (k *Kit) EventDone(e *hal.Event, want bool, why string) {
	k.T.Helper()
	done, err := e.Query(k.Me)
	require.NoError(k, err)
	require.Equal(k, want, done, "%s; %s", why, e.Describe())
}

// Sync waits for streams and fails if one does not end.
func (k *Kit) Sync(streams ...*hal.Stream) {
	k.T.Helper()
	for _, s := range streams {
		done, err := s.Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		if !done {
			k.stuck(s.Describe())
		}
	}
}

// Close closes streams before the end of a case that makes many: the more streams there
// are, the more of them share a hardware queue.
func (k *Kit) Close(streams ...*hal.Stream) {
	k.T.Helper()
	for _, s := range streams {
		require.NoError(k, s.Close(nil))
	}
}

// Receive waits for a value.
func Receive[T any](k *Kit, c <-chan T, what string) (v T) {
	k.T.Helper()
	select {
	case v = <-c:
	case <-time.After(Limit):
		k.stuck(what)
	}
	return v
}

// Eventually waits until f is true, for what nobody can wait for otherwise.
func (k *Kit) Eventually(f func() bool, what string) {
	k.T.Helper()
	for limit := time.Now().Add(Limit); !f(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(limit) {
			k.stuck(what)
		}
	}
}

// Empty asserts that no value has come.
func Empty[T any](k *Kit, c <-chan T, why string) {
	k.T.Helper()
	select {
	case <-c:
		require.Fail(k, why)
	default:
	}
}

func (k *Kit) stuck(what string) {
	k.T.Helper()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	require.Fail(k, fmt.Sprintf("not done within %v: %s", Limit, what), string(stacks))
}

// Held is a stream that is held by a function that blocks.
type Held struct {
	k       *Kit
	started chan struct{}
	release chan struct{}
	open    bool
}

// Hold enqueues a function that blocks until Release. Like every function on a
// stream it touches nothing of the runtime.
func Hold(k *Kit, s *hal.Stream) *Held {
	k.T.Helper()
	h := &Held{k: k, started: make(chan struct{}), release: make(chan struct{})}
	k.holds = append(k.holds, h)
	k.Call(s, func() {
		close(h.started)
		<-h.release
	})
	return h
}

// Started waits until the function runs.
func (h *Held) Started() *Held {
	h.k.T.Helper()
	Receive(h.k, h.started, "the function that holds the stream never started")
	return h
}

// Release lets the stream go on; again does nothing.
func (h *Held) Release() {
	if !h.open {
		h.open = true
		close(h.release)
	}
}

// handedIn is what an operation has handed in.
type handedIn struct {
	id       uint32
	accesses hal.Accesses
	kernel   hal.KernelReport
}

// HandedIn returns what operations that listeners have seen hand in from now on.
func (k *Kit) HandedIn() (seen func() []handedIn) {
	var mu sync.Mutex
	var all []handedIn
	announced := map[uint32]bool{}
	stop := k.RT.Listen(func(o hal.Operation) {
		mu.Lock()
		defer mu.Unlock()
		announced[o.ID] = o.HandsIn
		if o.Kind == hal.OpLaunchGraph {
			for i := range o.Nodes.All() {
				announced[o.NodeID(i)] = o.HandsIn && o.Nodes.Node(i).HandsIn()
			}
		}
	})
	kernels := map[uint32]hal.KernelReport{}
	k.RT.SetInspector(&hal.Inspector{HandedIn: func(id uint32, reads, writes []hal.Range) {
		mu.Lock()
		defer mu.Unlock()
		require.True(k, announced[id])
		all = append(all, handedIn{id, hal.Accesses{Reads: reads, Writes: writes}, kernels[id]})
	}, KernelRan: func(id uint32, r hal.KernelReport) {
		mu.Lock()
		defer mu.Unlock()
		kernels[id] = r
	}})
	k.Cleanup(func() {
		k.RT.SetInspector(nil)
		stop()
	})
	return func() []handedIn {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}
