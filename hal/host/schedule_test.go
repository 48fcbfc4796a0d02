package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

func TestMain(m *testing.M) {
	host.ShortenUnattendedTick()
	goleak.VerifyTestMain(m)
}

// limitNS is how long a wait of these tests may take.
const limitNS = int64(10 * time.Second)

// scheduled is a runtime under a schedule, with streams a, b, c that take no
// part in the legacy order.
type scheduled struct {
	*testing.T
	rt      *hal.Runtime
	me      *hal.Thread
	dev     *hal.Device
	a, b, c *hal.Stream
}

// opened returns a runtime of one host device, which is closed when the test ends.
func opened(t *testing.T) (*hal.Runtime, *hal.Device) {
	t.Helper()
	drv, err := host.Open(host.Options{Devices: 1})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 4)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	dev, err := rt.Device(0)
	require.NoError(t, err)
	return rt, dev
}

func under(t *testing.T, schedule string, caller driver.Caller) *scheduled {
	t.Helper()
	rt, dev := opened(t)
	k := &scheduled{T: t, rt: rt, dev: dev, me: hal.NewThread()}
	var err error
	for _, s := range []**hal.Stream{&k.a, &k.b, &k.c} {
		*s, err = k.dev.NewStream(k.me, hal.StreamOptions{NonBlocking: true})
		require.NoError(t, err)
	}
	require.NoError(t, rt.SetSchedule(k.me, schedule, caller))
	return k
}

func (k *scheduled) nops(streams ...*hal.Stream) {
	for _, s := range streams {
		require.NoError(k, s.Nop(k.me))
	}
}

func (k *scheduled) event() *hal.Event {
	e, err := k.rt.NewEvent(k.me, k.dev, hal.EventOptions{Timing: true})
	require.NoError(k, err)
	return e
}

func (k *scheduled) sync(s *hal.Stream) {
	k.Helper()
	done, err := s.Synchronize(k.me, limitNS)
	require.NoError(k, err)
	require.True(k, done, "it waits for ever: %s", s.Describe())
}

// order is what happened: operations as "stream.number", calls left out.
func (k *scheduled) order() string {
	var parts []string
	for _, s := range k.rt.Run().Steps {
		if s.Call == 0 {
			parts = append(parts, fmt.Sprintf("%d.%d", s.Stream, s.Op))
		}
	}
	return strings.Join(parts, " ")
}

// program enqueues two operations on each of two streams and waits for the second.
func (k *scheduled) program() string {
	k.nops(k.a, k.b, k.a, k.b)
	k.sync(k.b)
	k.sync(k.a)
	return k.order()
}

func TestX2_each_schedule_does_what_its_name_says(t *testing.T) {
	for _, c := range []struct{ schedule, want, why string }{
		{"fifo", "1.1 2.1 1.2 2.2", "in the order of the calls"},
		{"latest", "2.1 2.2 1.1 1.2", "b was waited for first, and a not needed for it"},
		{"starve 1", "2.1 2.2 1.1 1.2", "a runs when nothing else can"},
		{"starve 2", "1.1 1.2 2.1 2.2", "b runs when nothing else can"},
		{"holds 1.1>2.2", "2.1 2.2 1.1 1.2", "a is held until b is done"},
		{"holds 2.1>1.2,1.2>h4", "1.1 1.2 2.1 2.2", "operations held for one another and for a call"},
		{"holds 1.1>2.2,1.1>2.1", "2.1 2.2 1.1 1.2", "a is held until both have run, whichever is named last"},
		{"holds 1.1>2.9", "2.1 2.2 1.1 1.2", "what it is held for never comes"},
	} {
		t.Run(c.schedule, func(t *testing.T) {
			require.Equal(t, c.want, under(t, c.schedule, driver.Caller{}).program(), c.why)
		})
	}
}

func TestX2_fifo_keeps_the_order_of_the_calls_among_what_can_run(t *testing.T) {
	k := under(t, "fifo", driver.Caller{})
	g, err := k.c.Gate(k.me)
	require.NoError(t, err)
	e := k.event()
	require.NoError(t, k.c.Record(k.me, e))
	for _, s := range []*hal.Stream{k.a, k.b, k.a} {
		require.NoError(t, s.Wait(k.me, e))
		k.nops(s)
	}
	g.Open()
	k.sync(k.a)
	require.Equal(t, "1.1 1.2 2.1 2.2 3.1 3.2 2.3 2.4", k.order())
}

func TestX2_earliest_takes_the_most_urgent_of_what_can_run(t *testing.T) {
	k := under(t, "earliest", driver.Caller{})
	urgent, err := k.dev.NewStream(k.me, hal.StreamOptions{NonBlocking: true, Priority: -5})
	require.NoError(t, err)
	g, err := k.c.Gate(k.me)
	require.NoError(t, err)
	e := k.event()
	require.NoError(t, k.c.Record(k.me, e))
	require.NoError(t, k.a.Wait(k.me, e))
	require.NoError(t, urgent.Wait(k.me, e))
	g.Open()
	k.sync(k.a)
	require.Equal(t, "1.1 1.2 3.1 2.1", k.order(), "the gate, the record, and then the urgent stream though it came last")
}

func TestX2_latest_runs_only_what_is_needed(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	e := k.event()
	k.nops(k.a, k.b)
	require.NoError(t, k.a.Record(k.me, e))
	k.nops(k.a)
	require.NoError(t, k.c.Wait(k.me, e))
	require.Empty(t, k.order(), "a call that does not wait runs nothing")
	k.sync(k.c)
	require.Equal(t, "1.1 1.2 3.1", k.order(), "neither b nor what a has behind the record")
	k.sync(k.a)
	k.sync(k.b)
}

func TestX2_random_and_pct_depend_on_their_numbers_alone(t *testing.T) {
	for _, kind := range []string{"random %d", "pct %d 3 20"} {
		orders := map[string]int{}
		for seed := range 20 {
			schedule := fmt.Sprintf(kind, seed)
			one := under(t, schedule, driver.Caller{}).program()
			require.Equal(t, one, under(t, schedule, driver.Caller{}).program(), schedule)
			orders[one]++
		}
		require.Greater(t, len(orders), 2, "%s: twenty seeds gave the same few orders", kind)
	}
}

func TestX2_pct_finds_a_fault_of_depth_one_at_its_rate(t *testing.T) {
	// With two streams and the host, n is 3: an order of two operations comes
	// up with at least one in three.
	first := 0
	const runs = 300
	for seed := range runs {
		k := under(t, fmt.Sprintf("pct %d 1 10", seed), driver.Caller{})
		k.nops(k.a, k.b)
		k.sync(k.a)
		k.sync(k.b)
		if k.order() == "2.1 1.1" {
			first++
		}
	}
	require.GreaterOrEqual(t, first*3, runs*3/4, "%d of %d", first, runs)
}

func TestX1_nothing_moves_between_two_calls(t *testing.T) {
	k := under(t, "random 7", driver.Caller{})
	k.nops(k.a, k.b, k.c)
	before := len(k.rt.Run().Steps)
	time.Sleep(20 * time.Millisecond) // every chance to move, were there a thread that moves
	require.Len(t, k.rt.Run().Steps, before)
	k.sync(k.a)
	k.sync(k.b)
	k.sync(k.c)
}

func TestX3_a_stream_that_is_asked_again_and_again_goes_on(t *testing.T) {
	for _, schedule := range []string{"latest", "starve 1", "pct 1 1 1", "holds 1.1>9.9"} {
		k := under(t, schedule, driver.Caller{})
		k.nops(k.a, k.a)
		asked := 0
		for done := false; !done; asked++ {
			require.Less(t, asked, 200, "%s: it is starved", schedule)
			var err error
			done, err = k.a.Query(k.me)
			require.NoError(t, err)
		}
		e := k.event()
		require.NoError(t, k.b.Record(k.me, e))
		for done := false; !done; asked++ {
			require.Less(t, asked, 400, "%s: the event is starved", schedule)
			var err error
			done, err = e.Query(k.me)
			require.NoError(t, err)
		}
	}
}

func TestX4_time_is_virtual(t *testing.T) {
	k := under(t, "fifo", driver.Caller{})
	start, end := k.event(), k.event()
	require.NoError(t, k.a.Record(k.me, start))
	require.NoError(t, k.a.Delay(k.me, int64(time.Hour)))
	require.NoError(t, k.a.Record(k.me, end))
	k.sync(k.a)
	ms, err := start.Elapsed(k.me, end)
	require.NoError(t, err)
	require.InDelta(t, 3_600_000, ms, 1, "an hour has passed, and nobody has slept")
}

func TestX4_a_limit_passes_in_virtual_time(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	require.NoError(t, k.a.Delay(k.me, int64(time.Hour)))
	done, err := k.a.Synchronize(k.me, int64(time.Minute))
	require.NoError(t, err)
	require.False(t, done, "a minute is less than an hour")
	done, err = k.a.Synchronize(k.me, int64(time.Hour))
	require.NoError(t, err)
	require.True(t, done, "a minute of it had passed already")
}

// dispatcher runs functions as a program's threads would, until the test ends.
func (k *scheduled) dispatcher(functions map[uint64]func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t := hal.NewThread()
		k.rt.Funcs.Start()
		for {
			task, _ := k.rt.Funcs.Next(t, int64(time.Second))
			if task.End {
				return
			}
			if task.Token != 0 {
				functions[task.Token]()
				k.rt.Funcs.Done(t, false, nil)
			}
		}
	}()
	k.Cleanup(func() {
		k.rt.Funcs.Close()
		<-ended
	})
}

func TestX1_a_function_ends_before_anything_else_runs(t *testing.T) {
	k := under(t, "fifo", driver.Caller{})
	var seen []string
	k.dispatcher(map[uint64]func(){1: func() { seen = append(seen, "a") }, 2: func() { seen = append(seen, "b") }})
	require.NoError(t, k.a.HostFunc(k.me, 1))
	require.NoError(t, k.b.HostFunc(k.me, 2))
	assert.Equal(t, []string{"a", "b"}, seen, "both have run when the calls return")
	k.sync(k.b)
}

func TestX5_a_function_that_waits_for_the_host_is_left_to_itself(t *testing.T) {
	for _, way := range []string{"stuck", "slow"} {
		t.Run(way, func(t *testing.T) {
			caller := driver.Caller{}
			if way == "slow" {
				t.Setenv("HALSTREAM_STALL_S", "0.03")
			} else {
				t.Setenv("HALSTREAM_STALL_S", "3600")
				caller.Stuck = func(token uint64) (bool, bool) { return token == 1, false }
			}
			k := under(t, "fifo", caller)
			free := make(chan struct{})
			k.dispatcher(map[uint64]func(){1: func() { <-free }})
			returned := make(chan error, 1)
			go func() { returned <- k.a.HostFunc(k.me, 1) }()
			select {
			case err := <-returned:
				require.NoError(t, err)
			case <-time.After(time.Duration(limitNS)):
				close(free)
				t.Fatal("the call waits for a function that cannot end")
			}
			k.nops(k.b)
			k.sync(k.b)
			done, err := k.a.Query(k.me)
			require.NoError(t, err)
			require.False(t, done)
			close(free)
			k.sync(k.a)
		})
	}
}

func TestX5_the_device_goes_on_where_the_program_waits_for_it_outside(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	ran := make(chan struct{})
	k.dispatcher(map[uint64]func(){1: func() { close(ran) }})
	require.NoError(t, k.a.HostFunc(k.me, 1))
	select {
	case <-ran:
	case <-time.After(time.Duration(limitNS)):
		t.Fatal("the function never ran")
	}
	k.sync(k.a)
}

func TestX1_a_blocked_thread_goes_on_when_another_opens_the_gate(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	g, err := k.a.Gate(k.me)
	require.NoError(t, err)
	blocked := make(chan error, 1)
	go func() {
		done, err := k.a.Synchronize(hal.NewThread(), limitNS)
		if err == nil && !done {
			err = fmt.Errorf("it was not woken")
		}
		blocked <- err
	}()
	require.Eventually(t, func() bool { return len(k.rt.Run().Calls) == 2 }, time.Duration(limitNS), time.Millisecond,
		"the gate was enqueued, and then the other thread waits")
	g.Open()
	require.NoError(t, <-blocked)
}

func TestX1_a_context_waits_for_its_streams_in_the_order_in_which_they_were_made(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	c, err := k.dev.NewContext(k.me) // it is current now
	require.NoError(t, err)
	defer c.End()
	for range 8 {
		s, err := c.NewStream(k.me, hal.StreamOptions{})
		require.NoError(t, err)
		k.nops(s)
	}
	p, err := c.Point(k.me)
	require.NoError(t, err)
	require.True(t, p.Wait(limitNS))
	var enqueued, waited []uint32
	for _, call := range k.rt.Run().Calls {
		switch call.Kind {
		case "nop":
			enqueued = append(enqueued, call.Stream)
		case "synchronize":
			if call.Stream != 0 && slices.Contains(enqueued, call.Stream) {
				waited = append(waited, call.Stream)
			}
		}
	}
	require.Equal(t, enqueued, waited)
}

// switchSchedules changes the schedule until done is closed. A refusal because
// another thread has work pending is part of the game.
func switchSchedules(rt *hal.Runtime, done <-chan struct{}) (changed int, err error) {
	t := hal.NewThread()
	for {
		for _, schedule := range []string{"fifo", "parallel", "latest", "random 1"} {
			select {
			case <-done:
				return changed, nil
			default:
			}
			if err := rt.SetSchedule(t, schedule, driver.Caller{}); err == nil {
				changed++
			} else if !errors.Is(err, hal.ErrNotReady) {
				return changed, err
			}
		}
	}
}

func TestX6_a_schedule_begins_with_no_work_pending(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	k.nops(k.a)
	err := k.rt.SetSchedule(k.me, "fifo", driver.Caller{})
	require.ErrorIs(t, err, hal.ErrNotReady)
	require.ErrorContains(t, err, "stream 1 of device 0 has 1 operation(s) pending")
	require.Equal(t, "latest", k.rt.Schedule())
	k.sync(k.a)
	require.NoError(t, k.rt.SetSchedule(k.me, "parallel", driver.Caller{}))
	require.Empty(t, k.rt.Run().Steps)
}

func TestX6_a_text_that_is_no_schedule_is_refused(t *testing.T) {
	k := under(t, "parallel", driver.Caller{})
	for text, why := range map[string]string{
		"":              "choose parallel",
		"lifo":          "choose parallel",
		"fifo 1":        "fifo takes 0",
		"random":        "random takes 1",
		"random x":      "x is not a whole number",
		"pct 1 0 5":     "the depth is 1 to 64",
		"pct 1 65 5":    "the depth is 1 to 64",
		"starve 0":      "numbered from 1",
		"holds 1.1":     "is not of the form",
		"holds 1.1>h0":  "is not of the form",
		"holds 0.1>1.1": "is not of the form",
	} {
		err := k.rt.SetSchedule(k.me, text, driver.Caller{})
		require.ErrorIs(t, err, hal.ErrInvalidValue, text)
		require.ErrorContains(t, err, why, text)
	}
	t.Setenv("HALSTREAM_STALL_S", "soon")
	require.ErrorContains(t, k.rt.SetSchedule(k.me, "fifo", driver.Caller{}), "HALSTREAM_STALL_S")
}

func TestX21_operations_run_in_the_order_of_the_calls_while_that_is_asked_for(t *testing.T) {
	k := under(t, "parallel", driver.Caller{})
	order := func(on bool) string {
		require.NoError(t, k.rt.OrderCalls(k.me, on, driver.Caller{}))
		return k.rt.Schedule()
	}
	require.Equal(t, driver.Unlogged, order(true))
	require.True(t, k.rt.Deterministic())
	k.nops(k.a)
	done, err := k.a.Query(k.me)
	require.NoError(t, err)
	require.True(t, done, "the operation ran at its call")
	require.Equal(t, "parallel", order(false))

	require.NoError(t, k.rt.SetSchedule(k.me, "latest", driver.Caller{}))
	require.Equal(t, "latest", order(true), "a schedule that is in force stays")
	require.Equal(t, "latest", order(false))

	require.NoError(t, k.rt.SetSchedule(k.me, "parallel", driver.Caller{}))
	gate, err := k.a.Gate(k.me)
	require.NoError(t, err)
	require.Equal(t, "parallel", order(true), "work is pending, and waits for the program")
	gate.Open()
	require.Equal(t, driver.Unlogged, order(true), "it ends meanwhile")
	gate, err = k.a.Gate(k.me)
	require.NoError(t, err)
	require.Equal(t, driver.Unlogged, order(false))
	gate.Open()
	require.Equal(t, "parallel", order(false))
}

// grown returns how many bytes of the heap a function leaves behind.
func grown(f func()) int64 {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	f()
	return heap() - before
}

func TestX21_a_run_without_a_log_keeps_nothing_of_what_is_done(t *testing.T) {
	k := under(t, driver.Unlogged, driver.Caller{})
	const operations, streams = 200_000, 5_000
	require.Less(t, grown(func() {
		for range operations / 2 {
			k.nops(k.a)
			_, err := k.b.Query(k.me)
			require.NoError(t, err)
		}
	}), int64(operations), "a byte for each operation")
	require.Less(t, grown(func() {
		for range streams {
			s, err := k.dev.NewStream(k.me, hal.StreamOptions{NonBlocking: true})
			require.NoError(t, err)
			k.nops(s)
			k.sync(s)
			require.NoError(t, s.Close(k.me))
		}
	}), int64(streams*64), "64 bytes for each stream")
	require.Empty(t, k.rt.Run().Steps)
	require.Empty(t, k.rt.Run().Calls)
	require.Greater(t, k.rt.Run().Moves, operations)
}

func TestX6_other_threads_may_call_while_the_schedule_changes(t *testing.T) {
	rt, dev := opened(t)
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	done := make(chan struct{})
	var callers sync.WaitGroup
	for range 2 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			me := hal.NewThread()
			s, err := dev.NewStream(me, hal.StreamOptions{NonBlocking: true})
			if !assert.NoError(t, err) {
				return
			}
			for range rounds {
				if _, err := s.Query(me); !assert.NoError(t, err) {
					return
				}
				if !assert.NoError(t, s.Nop(me)) {
					return
				}
				ended, err := s.Synchronize(me, limitNS)
				if !assert.NoError(t, err) || !assert.True(t, ended, "the stream stopped: %s", s.Describe()) {
					return
				}
			}
		}()
	}
	go func() { callers.Wait(); close(done) }()
	changed, err := switchSchedules(rt, done)
	require.NoError(t, err)
	require.Positive(t, changed, "the schedule was never changed while the other threads called")
}

func TestX6_a_change_of_the_schedule_leaves_no_parker_behind(t *testing.T) {
	k := under(t, "parallel", driver.Caller{})
	k.nops(k.a)
	k.sync(k.a)
	before := park.Made()
	const changes = 100
	for range changes {
		for _, schedule := range []string{"fifo", "parallel"} {
			require.NoError(t, k.rt.SetSchedule(k.me, schedule, driver.Caller{}))
			k.nops(k.a)
			k.sync(k.a)
		}
	}
	require.Less(t, park.Made()-before, uint64(changes/2), "each change of the schedule keeps a parker")
}

func TestX7_a_schedule_begins_with_an_empty_pool(t *testing.T) {
	rt, dev := opened(t)
	me := hal.NewThread()
	for run := range 3 {
		require.NoError(t, rt.SetSchedule(me, "latest", driver.Caller{}))
		s, err := dev.NewStream(me, hal.StreamOptions{NonBlocking: true})
		require.NoError(t, err)
		g, err := s.Gate(me)
		require.NoError(t, err)
		// Behind the gate nothing of this run has written yet.
		b, err := s.AllocAsync(me, 8)
		require.NoError(t, err)
		addr := b.Start
		value := **(**uint64)(unsafe.Pointer(&addr)) // the memory is not Go's, so its address may be a number
		assert.Equal(t, uint64(1<<64-1), value, "run %d reads what an earlier one left", run)
		require.NoError(t, s.Fill(me, b.Start, 7, 4, 2))
		require.NoError(t, s.FreeAsync(me, b.Start))
		g.Open()
		_, err = s.Synchronize(me, driver.Forever)
		require.NoError(t, err)
		require.NoError(t, s.Close(me))
		require.NoError(t, rt.SetSchedule(me, "parallel", driver.Caller{}))
	}
}

func TestX7_memory_that_is_given_out_holds_nothing_of_before(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	const size = 3000
	junk := bytes.Repeat([]byte{0xff}, size)
	// The memory is not Go's, so its address may be a number.
	at := func(addr uint64) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size) }
	device, err := k.dev.Alloc(k.me, size)
	require.NoError(t, err)
	assert.Equal(t, junk, at(device.Start))
	pinned, err := k.rt.AllocHost(k.me, size)
	require.NoError(t, err)
	assert.Equal(t, junk, at(pinned.Start))
	for range 2 { // taken from the device, and then from what the pool keeps
		b, err := k.a.AllocAsync(k.me, size)
		require.NoError(t, err)
		clear(at(b.Start))
		before := k.order()
		k.sync(k.a)
		assert.NotEqual(t, before, k.order(), "it is an operation of the stream")
		assert.Equal(t, junk, at(b.Start))
		require.NoError(t, k.a.FreeAsync(k.me, b.Start))
	}
}

// lazy is the least helpful scheduler: a stream moves only while a host thread
// waits for something, and then the last one that became ready goes first.
type lazy struct {
	r     sched.Runner
	ready []sched.Stream
	seen  []sched.Reason
}

func (l *lazy) Attach(r sched.Runner) { l.r = r }

func (l *lazy) Ready(s sched.Stream) { l.ready = append(l.ready, s) }

func (l *lazy) Unlocking() bool { return false }

func (l *lazy) Unlocked() {}

func (l *lazy) Close() {}

func (l *lazy) Added(sched.Stream, string) {}

func (l *lazy) Numbered(sched.Stream) {}

func (l *lazy) Parallel() bool { return false }

func (l *lazy) Run() driver.Run { return driver.Run{} }

func (l *lazy) Clock(real sched.Clock) sched.Clock { return real }

func (l *lazy) Point(why sched.Reason, _ sched.Stream, done func() bool, _ int64) {
	l.seen = append(l.seen, why)
	if why != sched.Blocked {
		return
	}
	for len(l.ready) > 0 && !done() {
		last := len(l.ready) - 1
		s := l.ready[last]
		l.ready = l.ready[:last]
		l.r.Run(s)
	}
}

// frozen is a clock that only a test moves.
type frozen struct {
	now    int64
	mu     sync.Mutex // timers are started by whichever thread moves a stream
	timers []*frozenTimer
}

func (f *frozen) Now() int64 { return f.now }

func (f *frozen) After(ns int64, call func()) sched.Timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &frozenTimer{ns: ns, call: call}
	f.timers = append(f.timers, t)
	return t
}

// count is how many timers were ever started.
func (f *frozen) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers)
}

func (f *frozen) timer(i int) *frozenTimer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.timers[i]
}

// frozenTimer is a timer that only a test fires.
type frozenTimer struct {
	ns      int64
	call    func()
	stopped atomic.Bool
}

func (t *frozenTimer) Stop() bool { return !t.stopped.Swap(true) }

func (t *frozenTimer) isStopped() bool { return t.stopped.Load() }

func TestASchedulerAndAClockDecideWhatMovesAndWhen(t *testing.T) {
	scheduler, clock := &lazy{}, &frozen{}
	drv, err := host.Open(host.Options{Devices: 1, Scheduler: scheduler, Clock: clock})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	defer rt.Close()
	d, err := rt.Device(0)
	require.NoError(t, err)
	me := hal.NewThread()
	a, err := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	b, err := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	start, err := rt.NewEvent(me, d, hal.EventOptions{Timing: true})
	require.NoError(t, err)
	end, err := rt.NewEvent(me, d, hal.EventOptions{Timing: true})
	require.NoError(t, err)

	require.NoError(t, a.Record(me, start))
	done, err := a.Query(me)
	require.NoError(t, err)
	require.False(t, done, "not even a record runs by itself")
	done, err = a.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, a.Nop(me))
	require.NoError(t, a.Record(me, end))
	require.NoError(t, b.Nop(me))
	for _, s := range []*hal.Stream{a, b} {
		done, err := s.Query(me)
		require.NoError(t, err)
		require.False(t, done, "a query moves nothing under this scheduler")
	}
	clock.now = 5_000_000
	done, err = b.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	done, err = a.Query(me)
	require.NoError(t, err)
	require.False(t, done, "the scheduler ran more than was waited for")
	done, err = a.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	ms, err := start.Elapsed(me, end)
	require.NoError(t, err)
	require.Equal(t, 5.0, ms, "time comes from the clock")
	require.Contains(t, scheduler.seen, sched.Enqueued)
	require.Contains(t, scheduler.seen, sched.Queried)
}
