package haltest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var hostFuncCases = []testCase{
	{"H1_each_function_runs_once", 0, func(k *Kit) {
		const streams, each = 8, 250
		var runs [streams * each]atomic.Int32
		var all []*hal.Stream
		for i := range streams {
			s := k.Stream(ordinary)
			all = append(all, s)
			for j := range each {
				k.Call(s, func() { runs[i*each+j].Add(1) })
			}
		}
		k.Sync(all...)
		for i := range runs {
			require.EqualValues(k, 1, runs[i].Load())
		}
	}},
	{"H2_a_failing_function_is_counted_and_later_work_runs", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		require.NoError(k, k.served.call(k.Me, s, func(*hal.Thread) error { return errors.New("broken") }))
		ran := make(chan int, 1)
		k.Call(s, func() { ran <- 1 })
		done, err := s.Synchronize(k.Me, int64(Limit))
		require.True(k, done)
		require.ErrorIs(k, err, hal.ErrHostFunction)
		Receive(k, ran, "later work did not run")
		require.EqualValues(k, 1, s.Failures())
	}},
	{"H7_the_stream_of_an_abandoned_function_goes_on", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		held := Hold(k, s).Started()
		ran := make(chan int, 2)
		k.Call(s, func() { ran <- 1 })
		require.Equal(k, 1, k.RT.Funcs.Abandon())
		Receive(k, ran, "work behind the abandoned function did not run")
		done, err := s.Synchronize(k.Me, int64(Limit))
		require.True(k, done)
		require.ErrorIs(k, err, hal.ErrAborted)
		require.Zero(k, k.RT.Funcs.Abandon(), "it is abandoned once")
		second := Hold(k, s).Started()
		held.Release()
		k.Call(s, func() { ran <- 2 })
		query, err := s.Query(k.Me)
		require.NoError(k, err)
		require.False(k, query, "the late end of the first function has ended another one")
		second.Release()
		Receive(k, ran, "the stream does not work any more")
		k.Sync(s)
	}},
	{"H2_an_error_that_no_call_can_return_is_handed_back_once", 0, func(k *Kit) {
		before := k.served.unreported.Load() // by other cases on this runtime
		handedBack := func(n int32, why string) {
			require.Eventually(k, func() bool { return k.served.unreported.Load()-before == n }, Limit, time.Millisecond, why)
		}
		s := k.Stream(ordinary)
		for range 3 {
			require.NoError(k, k.served.call(k.Me, s, func(*hal.Thread) error { return errors.New("broken") }))
		}
		done, err := s.Synchronize(k.Me, int64(Limit))
		require.True(k, done)
		require.ErrorIs(k, err, hal.ErrHostFunction)
		handedBack(2, "the stream keeps the first of three errors")

		require.NoError(k, k.served.call(k.Me, s, func(*hal.Thread) error { return errors.New("kept") }))
		last := k.Stream(ordinary)
		require.NoError(k, last.WaitStream(k.Me, s))
		k.Sync(last)
		require.NoError(k, s.Close(k.Me))
		handedBack(3, "closing the stream hands back the error that it kept")

		closed := k.Stream(ordinary)
		h := Hold(k, closed).Started()
		require.NoError(k, k.served.call(k.Me, closed, func(*hal.Thread) error { return errors.New("late") }))
		require.NoError(k, closed.Close(k.Me))
		h.Release()
		handedBack(4, "nobody can ask a closed stream for the error of a function that ends later")
	}},
	{"H3_a_function_may_not_call_the_runtime", 0, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		errs := make(chan []error, 1)
		require.NoError(k, k.served.call(k.Me, s, func(t *hal.Thread) error {
			_, query := other.Query(t)
			_, sync := s.Synchronize(t, int64(Limit))
			_, eventSync := e.Synchronize(t, int64(Limit))
			_, device := s.Device().Synchronize(t, int64(Limit))
			_, made := s.Device().NewStream(t, hal.StreamOptions{})
			_, event := k.RT.NewEvent(t, nil, hal.EventOptions{})
			errs <- []error{query, sync, eventSync, device, made, event, other.Record(t, e), other.Wait(t, e),
				other.WaitStream(t, s), other.Nop(t), other.HostFunc(t, 1), other.Close(t), e.Close(t)}
			return nil
		}))
		for i, err := range Receive(k, errs, "a call from inside a function never returned") {
			require.ErrorIs(k, err, hal.ErrInHostFunction, "call %d", i)
		}
		k.Sync(s)
		require.False(k, other.Closed() || e.Closed())
	}},
	{"H3_a_function_may_not_take_a_report", Contexts, func(k *Kit) {
		s, subscribed := k.Stream(ordinary), k.Stream(ordinary)
		q := hal.NewReportQueue()
		require.NoError(k, subscribed.Subscribe(k.Me, q))
		require.NoError(k, subscribed.Report(k.Me, q, 7, true, hal.Accesses{}))
		k.Eventually(func() bool { return q.Waiting() == 1 }, "the stream gets to its report")
		errs := make(chan error, 1)
		require.NoError(k, k.served.call(k.Me, s, func(t *hal.Thread) error {
			_, err := q.Next(t, int64(Limit))
			errs <- err
			return nil
		}))
		require.ErrorIs(k, Receive(k, errs, "a call from inside a function never returned"), hal.ErrInHostFunction)
		k.Sync(s)
		takeContext(k, q, 7)
		q.Done(k.Me, false, nil)
		k.Sync(subscribed)
	}},
	{"H3_a_function_may_open_a_gate", Gates, func(k *Kit) {
		held, s := k.Stream(ordinary), k.Stream(ordinary)
		g, err := held.Gate(k.Me)
		require.NoError(k, err)
		k.Call(s, g.Open)
		k.Sync(s, held)
	}},
	{"H4_pending_functions_run_after_close", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		ran := make(chan int, 1)
		k.Call(s, func() { ran <- 1 })
		require.NoError(k, s.Close(k.Me))
		Empty(k, ran, "it ran too early")
		h.Release()
		Receive(k, ran, "a function of a closed stream never ran")
	}},
	{"H5_there_is_a_thread_for_the_next_function_below_the_limit", EightQueues, func(k *Kit) {
		for range Threads - 1 {
			Hold(k, k.Stream(ordinary)).Started()
		}
		s := k.Stream(ordinary)
		k.Call(s, func() {})
		k.Sync(s)
	}},
	{"H5_at_the_limit_the_most_urgent_goes_first_and_holders_are_named", RealTime | Unbounded, func(k *Kit) {
		var holds []*Held
		for range Threads {
			holds = append(holds, Hold(k, k.Stream(ordinary)).Started())
		}
		order := make(chan int, 3)
		var late []*hal.Stream
		greatest := k.Device(0).GreatestPriority()
		require.Less(k, greatest, -1, "three priorities are needed")
		for _, p := range []int{0, -1, greatest} {
			s := k.Stream(hal.StreamOptions{NonBlocking: true, Priority: p})
			k.Call(s, func() { order <- p })
			late = append(late, s)
		}
		k.Eventually(func() bool { return k.RT.Funcs.Waiting() == len(late) }, "the streams get to their functions")
		require.Contains(k, late[0].Describe(), "threads for functions are busy")
		Empty(k, order, "more functions ran than there may be threads")
		holds[0].Release()
		k.Sync(late...)
		require.Equal(k, []int{greatest, -1, 0}, []int{<-order, <-order, <-order})
	}},
	{"H6_what_is_enqueued_between_functions_comes_between_them", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		e := k.Event(hal.EventOptions{})
		ran := make(chan int, 1)
		k.Call(s, func() { ran <- 1 })
		k.Record(s, e)
		last := Hold(k, s)
		k.EventDone(e, false, "the function before it has not run")
		h.Release()
		done, err := e.Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.True(k, done, "the event waits for a function behind it")
		require.Len(k, ran, 1)
		last.Release()
		k.Sync(s)
	}},
	{"H6_each_function_counts_as_pending_and_is_dropped_by_an_abort", Gates | Aborts, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		ran := make(chan int, 9)
		for i := range 9 {
			k.Call(s, func() { ran <- i })
		}
		require.Contains(k, s.Describe(), "10 operation(s) pending")
		n, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 9, n)
		h.Release()
		k.Sync(s)
		Empty(k, ran, "a function ran that was dropped")
	}},
	{"H6_a_more_urgent_function_comes_before_the_next_one_of_the_stream", RealTime | Unbounded, func(k *Kit) {
		var holds []*Held
		for range Threads - 1 {
			holds = append(holds, Hold(k, k.Stream(ordinary)).Started())
		}
		calm := k.Stream(ordinary)
		urgent := k.Stream(hal.StreamOptions{NonBlocking: true, Priority: k.Device(0).GreatestPriority()})
		last := Hold(k, calm).Started() // on the last thread
		order := make(chan string, 3)
		for range 2 {
			k.Call(calm, func() { order <- "calm" })
		}
		k.Call(urgent, func() { order <- "urgent" })
		k.Eventually(func() bool { return k.RT.Funcs.Waiting() == 1 }, "the urgent stream gets to its function")
		last.Release()
		k.Sync(calm, urgent)
		require.Equal(k, []string{"urgent", "calm", "calm"}, []string{<-order, <-order, <-order})
		for _, h := range holds {
			h.Release()
		}
	}},
}

// Threads is how many threads a runtime under test may have for functions.
const Threads = 6
