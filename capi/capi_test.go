package capi_test

import (
	gocontext "context"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/bindings/python"
	capi "halstream/capi/capitest"
	"halstream/hal"
	"halstream/pybuild"
)

// apiLimit is how long a wait may take before it counts as never ending.
const apiLimit = int64(20 * time.Second)

// openForAPI opens the runtime, and makes the test's goroutine one thread of the system:
// the interface tells threads apart.
func openForAPI(t *testing.T) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	_, err := pybuild.Backend()
	require.NoError(t, err)
}

// number returns what a function of pybuild has returned, which did not fail.
func number(t *testing.T) func(int64, error) int64 {
	return func(n int64, err error) int64 {
		t.Helper()
		require.NoError(t, err)
		return n
	}
}

// finding is what the tests read of a finding of the checker.
type finding struct {
	First, Second struct{ Kind, Operation string }
	Memory        string
}

func findings(t *testing.T) (found []finding) {
	t.Helper()
	text, err := pybuild.CheckTake(1)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(text), &found))
	return found
}

func done(t *testing.T, r capi.Result) {
	t.Helper()
	require.Equal(t, capi.Result{}, r)
}

func TestC1_numbers_and_threads_through_the_interface(t *testing.T) {
	openForAPI(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			runtime.LockOSThread() // and ends the thread with the goroutine
			for range 50 {
				s, r := capi.StreamNew(0)
				assert.Equal(t, capi.Result{}, r)
				e, r := capi.EventNew(0)
				assert.Equal(t, capi.Result{}, r)
				o := capi.NewOutcome(false, 0)
				assert.Equal(t, capi.Result{}, capi.Enqueue(s, "op", nil, o))
				assert.Equal(t, capi.Result{}, capi.EventRecord(e, s))
				assert.Equal(t, capi.Result{}, capi.StreamWaitEvent(s, e))
				assert.Equal(t, capi.Result{}, capi.EventSynchronize(e, apiLimit))
				runs, releases := o.Counts()
				assert.Equal(t, []int{1, 1}, []int{runs, releases})
				assert.Equal(t, capi.InHostFunction, o.Inside(), "a function may not call")
				assert.Equal(t, capi.Result{}, capi.EventClose(e))
				assert.Equal(t, capi.Result{}, capi.StreamClose(s))
			}
		})
	}
	all.Wait()
}

func TestC5_a_number_that_is_given_up_is_closed(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	e, r := capi.EventNew(0)
	done(t, r)
	require.Equal(t, capi.InvalidHandle, capi.EventRecord(s, e).Code)
	require.Equal(t, capi.InvalidHandle, capi.StreamSynchronize(12345, 0).Code)
	done(t, capi.EventRecord(e, s))
	_, err := pybuild.Close(e)
	require.NoError(t, err)
	require.Equal(t, capi.Result{Code: capi.Closed, Text: "record: the event is closed; create a new one"}, capi.EventRecord(e, s))
	done(t, capi.StreamClose(s))
	done(t, capi.StreamClose(s))
	_, r = capi.StreamQuery(s)
	require.Equal(t, capi.Closed, r.Code)
}

// The functions for Python and those of halstream.h see each other's records.
func TestC5_a_record_is_seen_through_both_interfaces(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	e, r := capi.EventNew(0)
	done(t, r)
	other, r := capi.StreamNew(0)
	done(t, r)
	number := number(t)
	version := func(id capi.ID) uint64 {
		known, err := python.EventNamed(int64(id), "query records")
		require.NoError(t, err)
		return known.Version()
	}
	for range 3 {
		before := version(e)
		done(t, capi.EventRecord(e, s))
		require.Equal(t, before+1, version(e))
		gate, r := capi.GateNew(s)
		done(t, r)
		number(pybuild.StreamRecord(s, e))
		require.Zero(t, number(pybuild.EventQuery(e)))
		require.Equal(t, capi.Timeout, capi.EventSynchronize(e, 1000).Code)
		done(t, capi.StreamWaitEvent(other, e))
		idle, r := capi.StreamQuery(other)
		done(t, r)
		require.False(t, idle, "it waits for the record that Python made, not for the one before")
		done(t, capi.GateOpen(gate))
		done(t, capi.StreamSynchronize(s, apiLimit))
		done(t, capi.StreamSynchronize(other, apiLimit))
		require.EqualValues(t, 1, number(pybuild.EventQuery(e)))
	}
	done(t, capi.EventClose(e))
	done(t, capi.StreamClose(other))
	done(t, capi.StreamClose(s))
}

// While somebody listens no call is answered without the core.
func TestC4_listeners_see_every_call(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	e, r := capi.EventNew(0)
	done(t, r)
	block, address, r := capi.BlockNew(s, 4096)
	done(t, r)
	var kinds []string
	var reads []hal.Range
	stop := python.Current().Listen(func(o hal.Operation) {
		kinds = append(kinds, o.Kind.String()+o.Name)
		reads = append(reads, o.Reads...)
	})
	done(t, capi.EventRecord(e, s))
	done(t, capi.StreamWaitEvent(s, e))
	done(t, capi.Enqueue(s, "aten::add", []capi.Range{{Start: address, Bytes: 4, Rows: 2, Pitch: 8, Access: 1}}, capi.NewOutcome(false, 0)))
	done(t, capi.StreamSynchronize(s, apiLimit))
	stop()
	require.Equal(t, []string{"record", "wait", "nativeaten::add", "synchronize stream"}, kinds)
	require.Equal(t, []hal.Range{{Start: address, Size: 4}, {Start: address + 8, Size: 4}}, reads)
	done(t, capi.BlockFree(block))
	require.Equal(t, capi.Closed, capi.BlockFree(block).Code)
	done(t, capi.EventClose(e))
	done(t, capi.StreamClose(s))
}

func TestV9_a_drain_waits_and_orders_nothing(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	gate, r := capi.GateNew(s)
	done(t, r)
	require.Equal(t, capi.Timeout, capi.StreamDrain(s, int64(time.Millisecond)).Code)
	o := capi.NewOutcome(true, 0)
	done(t, capi.Enqueue(s, "fails", nil, o))
	done(t, capi.GateOpen(gate))
	var kinds []string
	stop := python.Current().Listen(func(o hal.Operation) { kinds = append(kinds, o.Kind.String()) })
	done(t, capi.StreamDrain(s, apiLimit))
	stop()
	runs, _ := o.Counts()
	require.Equal(t, 1, runs)
	require.Empty(t, kinds)
	require.Equal(t, capi.FunctionFailed, capi.StreamSynchronize(s, apiLimit).Code, "the error was kept")
	done(t, capi.StreamClose(s))
}

func TestC11_an_operation_may_lose_its_device(t *testing.T) {
	openForAPI(t)
	d, err := python.Current().Device(0)
	require.NoError(t, err)
	s, r := capi.StreamNew(0)
	done(t, r)
	text, r := capi.DeviceFailure(0)
	done(t, r)
	require.Empty(t, text)
	o := capi.NewOutcome(true, 0).LosesDevice()
	done(t, capi.Enqueue(s, "aten::add", nil, o))
	require.Equal(t, capi.DeviceLost, capi.CodeOfSynchronize(s, apiLimit))
	text, r = capi.DeviceFailure(0)
	done(t, r)
	require.Equal(t, "aten::add: wrong", text)
	require.NotNil(t, d.UnreportedLoss(), "nobody has asked for the text")
	idle, r := capi.StreamQuery(s)
	require.Equal(t, capi.Result{Code: capi.DeviceLost, Text: "aten::add: wrong"}, r)
	require.False(t, idle)
	require.Nil(t, d.UnreportedLoss())
	other := capi.NewOutcome(false, 0)
	require.Equal(t, capi.DeviceLost, capi.Enqueue(s, "aten::mul", nil, other).Code)
	runs, releases := other.Counts()
	require.Zero(t, runs+releases)
	_, err = d.Recover(nil)
	require.NoError(t, err)
	done(t, capi.Enqueue(s, "aten::mul", nil, other))
	done(t, capi.StreamSynchronize(s, apiLimit))
	done(t, capi.StreamClose(s))
}

func TestC12_an_operation_hands_in_what_it_accesses(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	type accesses struct{ reads, writes []hal.Range }
	handed := make(chan accesses, 2)
	rt := python.Current()
	stop := rt.Listen(func(hal.Operation) {})
	rt.SetInspector(&hal.Inspector{HandedIn: func(_ uint32, reads, writes []hal.Range) { handed <- accesses{reads, writes} }})
	t.Cleanup(func() {
		rt.SetInspector(nil)
		stop()
	})
	most := capi.Range{Start: 4096, Bytes: 64, Access: 3}
	some := capi.Range{Start: 4096, Bytes: 4, Rows: 2, Pitch: 8, Access: 2}
	for _, flagged := range []bool{true, false} {
		o := capi.NewOutcome(false, 0).HandsIn(some, flagged)
		done(t, capi.Enqueue(s, "index", []capi.Range{most}, o))
		if flagged {
			done(t, capi.StreamSynchronize(s, apiLimit))
			require.Zero(t, o.Inside())
			require.Equal(t, accesses{nil, []hal.Range{{Start: 4096, Size: 4}, {Start: 4104, Size: 4}}}, <-handed)
		} else {
			require.Equal(t, capi.FunctionFailed, capi.StreamSynchronize(s, apiLimit).Code)
			require.NotZero(t, o.Inside(), "it may hand in nothing")
		}
	}
	done(t, capi.StreamClose(s))
}

func TestC10_a_captured_function_runs_in_each_launch(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	capture, r := capi.StreamCapture(s)
	done(t, r)
	require.Zero(t, capture)
	_, err := pybuild.StreamBeginCapture(int64(s), int64(hal.RelaxedMode), false)
	require.NoError(t, err)
	capture, r = capi.StreamCapture(s)
	done(t, r)
	require.NotZero(t, capture)
	_, r = capi.StreamCapture(s + 1000)
	require.Equal(t, capi.InvalidHandle, r.Code)
	o := capi.NewOutcome(false, 0)
	done(t, capi.Enqueue(s, "captured", nil, o))
	graph, err := pybuild.StreamEndCapture(int64(s))
	require.NoError(t, err)
	capture, r = capi.StreamCapture(s)
	done(t, r)
	require.Zero(t, capture)
	executable, err := pybuild.GraphInstantiate(graph)
	require.NoError(t, err)
	for range 3 {
		_, err = pybuild.ExecutableLaunch(executable, int64(s))
		require.NoError(t, err)
	}
	done(t, capi.StreamSynchronize(s, apiLimit))
	runs, releases := o.Counts()
	require.Equal(t, []int{3, 0}, []int{runs, releases})
	_, err = pybuild.Close(executable)
	require.NoError(t, err)
	_, err = pybuild.Close(graph)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, n := o.Counts(); return n == 1 }, 10*time.Second, time.Millisecond)
	done(t, capi.StreamClose(s))
}

// It ends the runtime, so it does so in a process of its own.
func TestC6_after_the_end_every_call_is_refused(t *testing.T) {
	if os.Getenv("HALSTREAM_TEST_END") != "1" {
		ctx, cancel := gocontext.WithTimeout(gocontext.Background(), 20*time.Second)
		defer cancel()
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), "HALSTREAM_TEST_END=1")
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS")
		return
	}
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	gate, r := capi.GateNew(s)
	done(t, r)
	waits, ended := make(chan struct{}), make(chan capi.Result)
	go func() {
		runtime.LockOSThread()
		close(waits)
		ended <- capi.StreamSynchronize(s, -1)
	}()
	<-waits
	_, err := pybuild.Shutdown(int64(time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, capi.ShutDown, (<-ended).Code)
	for _, r := range []capi.Result{capi.StreamSynchronize(s, -1), capi.GateOpen(gate), capi.EventRecord(16, s),
		capi.StreamClose(s), capi.Enqueue(s, "op", nil, capi.NewOutcome(false, 0))} {
		require.Equal(t, capi.ShutDown, r.Code)
		require.Contains(t, r.Text, "shut down")
	}
}

func TestC7_a_wait_with_a_limit_names_what_is_pending(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	gate, r := capi.GateNew(s)
	done(t, r)
	r = capi.StreamSynchronize(s, int64(time.Millisecond))
	require.Equal(t, capi.Timeout, r.Code)
	require.Contains(t, r.Text, "gate")
	// A function on another stream may open it.
	other, r := capi.StreamNew(0)
	done(t, r)
	o := capi.NewOutcome(false, gate)
	done(t, capi.Enqueue(other, "opens", nil, o))
	done(t, capi.StreamSynchronize(s, apiLimit))
	done(t, capi.StreamSynchronize(other, apiLimit))
	require.Equal(t, capi.OK, o.Inside())
	done(t, capi.StreamClose(s))
	done(t, capi.StreamClose(other))
}

func TestC8_a_block_is_given_out_again_on_its_own_stream(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	other, r := capi.StreamNew(0)
	done(t, r)
	gate, r := capi.GateNew(s)
	done(t, r)
	first, at, r := capi.BlockNew(s, 12345)
	done(t, r)
	done(t, capi.BlockFree(first))
	elsewhere, there, r := capi.BlockNew(other, 12345)
	done(t, r)
	second, again, r := capi.BlockNew(s, 12345)
	done(t, r)
	require.Equal(t, at, again)
	require.NotEqual(t, at, there)
	done(t, capi.GateOpen(gate))
	done(t, capi.BlockFree(second))
	done(t, capi.BlockFree(elsewhere))
	done(t, capi.StreamSynchronize(s, apiLimit))
	done(t, capi.StreamClose(s))
	done(t, capi.StreamClose(other))
}

// What another stream may still use is compared with the free of a block that is freed in
// order, and with what the memory of the others is given out for next.
func TestC8_only_a_free_in_order_is_an_access(t *testing.T) {
	openForAPI(t)
	number := number(t)
	for _, inOrder := range []bool{false, true} {
		s, r := capi.StreamNew(0)
		done(t, r)
		side, r := capi.StreamNew(0)
		done(t, r)
		alloc := capi.BlockNew
		if inOrder {
			alloc = capi.BlockNewInOrder
		}
		number(pybuild.CheckStart(0))
		block, at, r := alloc(s, 4096)
		done(t, r)
		o := capi.NewOutcome(false, 0)
		e, r := capi.EventNew(0)
		done(t, r)
		done(t, capi.EventRecord(e, s))
		done(t, capi.StreamWaitEvent(side, e))
		done(t, capi.Enqueue(side, "reader", []capi.Range{{Start: at, Bytes: 4096, Access: 1}}, o))
		done(t, capi.BlockFree(block))
		found := findings(t)
		if inOrder {
			require.Len(t, found, 1)
			require.Equal(t, "free", found[0].Second.Kind)
		} else {
			require.Empty(t, found)
			again, there, r := alloc(s, 4096)
			done(t, r)
			require.Equal(t, at, there)
			require.Empty(t, findings(t))
			writer := capi.NewOutcome(false, 0)
			done(t, capi.Enqueue(s, "writer", []capi.Range{{Start: at, Bytes: 4096, Access: 2}}, writer))
			found = findings(t)
			require.Len(t, found, 1)
			require.Equal(t, "reader", found[0].First.Operation)
			require.Equal(t, "given out again while in use", found[0].Memory)
			done(t, capi.BlockFree(again))
		}
		number(pybuild.CheckStop())
		done(t, capi.StreamSynchronize(s, apiLimit))
		done(t, capi.StreamSynchronize(side, apiLimit))
		done(t, capi.EventClose(e))
		done(t, capi.StreamClose(s))
		done(t, capi.StreamClose(side))
	}
}

func TestC9_there_is_one_version(t *testing.T) {
	require.True(t, capi.Has(1))
	require.False(t, capi.Has(0))
	require.False(t, capi.Has(2))
}

func TestC2_errors_of_functions_through_the_interface(t *testing.T) {
	openForAPI(t)
	s, r := capi.StreamNew(0)
	done(t, r)
	o := capi.NewOutcome(true, 0)
	done(t, capi.Enqueue(s, "aten::div", nil, o))
	require.Equal(t, capi.Result{Code: capi.FunctionFailed, Text: "aten::div: wrong"}, capi.StreamSynchronize(s, apiLimit))
	done(t, capi.StreamSynchronize(s, apiLimit))
	runs, releases := o.Counts()
	require.Equal(t, []int{1, 1}, []int{runs, releases})
	done(t, capi.StreamClose(s))
}
