package haltest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// loop is the event loop of a case: it counts how often it was called.
type loop struct {
	*hal.Notices
	rang chan struct{}
	shut chan struct{}
}

func newLoop(k *Kit) *loop {
	l := &loop{rang: make(chan struct{}, 1000), shut: make(chan struct{}, 2)}
	l.Notices = hal.NewNotices(func() { l.rang <- struct{}{} }, func() { l.shut <- struct{}{} })
	k.T.Cleanup(l.Close)
	return l
}

// await begins a wait for a stream that must be pending.
func (l *loop) await(k *Kit, s *hal.Stream, number uint64) {
	k.T.Helper()
	pending, err := s.Notify(k.Me, l.Notices, number)
	require.NoError(k, err)
	require.True(k, pending, "the stream is held")
}

// takeFromPool returns the waits that may end, and ends them; none of them gives an error.
func (l *loop) take(k *Kit) []uint64 {
	k.T.Helper()
	ended, others := l.Take()
	for _, number := range others {
		done, err := l.End(number)
		require.NoError(k, err)
		require.True(k, done, "the notice of this wait has come")
	}
	return append(ended, others...)
}

var noticeCases = []testCase{
	{"Z1_what_is_done_is_answered_at_once", 0, func(k *Kit) {
		l, s, e := newLoop(k), k.Stream(ordinary), k.Event(hal.EventOptions{})
		k.Record(s, e)
		k.Sync(s)
		pending, err := s.Notify(k.Me, l.Notices, 1)
		require.NoError(k, err)
		require.False(k, pending)
		pending, err = e.Notify(k.Me, l.Notices, 2)
		require.NoError(k, err)
		require.False(k, pending)
		pending, err = k.Event(hal.EventOptions{}).Notify(k.Me, l.Notices, 3)
		require.NoError(k, err)
		require.False(k, pending, "an event that was never recorded is complete")
		require.Zero(k, l.Len())
	}},
	{"Z1_a_wait_keeps_to_the_work_at_its_begin", RealTime, func(k *Kit) {
		l, s, e := newLoop(k), k.Stream(ordinary), k.Event(hal.EventOptions{})
		first := Hold(k, s).Started()
		k.Record(s, e)
		l.await(k, s, 1)
		pending, err := e.Notify(k.Me, l.Notices, 2)
		require.NoError(k, err)
		require.True(k, pending)
		second := Hold(k, s)
		k.Record(s, e) // the waits are for what was before
		first.Release()
		second.Started()
		k.Eventually(func() bool { done, _ := l.End(1); return done }, "the wait for the work before has not ended")
		k.Eventually(func() bool { done, _ := l.End(2); return done }, "the wait for the record before has not ended")
		k.EventDone(e, false, "the second record is behind a function that runs")
	}},
	{"Z1_the_wait_does_not_move_after_work_of_the_default_stream", RealTime, func(k *Kit) {
		l, s := newLoop(k), k.Stream(hal.StreamOptions{}) // ordered with the default stream
		require.NoError(k, k.Device(0).Legacy().Nop(k.Me))
		done, err := k.Device(0).Synchronize(k.Me, int64(Limit)) // a backend learns from it that the work is done
		require.NoError(k, err)
		require.True(k, done)
		first := Hold(k, s).Started()
		l.await(k, s, 1)
		second := Hold(k, s)
		first.Release()
		second.Started()
		k.Eventually(func() bool { done, _ := l.End(1); return done }, "the wait for the work before has not ended")
	}},
	{"Z2_one_call_for_all_that_ended", RealTime | FourQueues, func(k *Kit) {
		const n = 50
		l, s := newLoop(k), k.Stream(ordinary)
		h := Hold(k, s).Started()
		for i := range n {
			l.await(k, s, uint64(i))
		}
		Empty(k, l.rang, "the loop was called while nothing has ended")
		h.Release()
		Receive(k, l.rang, "the loop was not called")
		seen := map[uint64]bool{}
		k.Eventually(func() bool { // those that were not taken yet make one more call
			for _, number := range l.take(k) {
				require.False(k, seen[number], "wait %d is named twice", number)
				seen[number] = true
			}
			return len(seen) == n
		}, "not every wait was named")
		require.LessOrEqual(k, len(l.rang), n-1)
		require.Zero(k, l.Len())
	}},
	{"Z2_no_second_call_before_the_first_was_taken", RealTime, func(k *Kit) {
		l, s := newLoop(k), k.Stream(ordinary)
		for i := range uint64(3) {
			h := Hold(k, s).Started()
			l.await(k, s, i)
			h.Release()
			// Before End, after which nothing is left to call the loop for.
			k.Eventually(func() bool { return len(l.rang) > 0 }, "the loop was not called")
			k.Eventually(func() bool { done, _ := l.End(i); return done }, "the wait has not ended")
		}
		require.Len(k, l.rang, 1)
	}},
	{"Z3_the_end_gives_the_error_once", RealTime, func(k *Kit) {
		l, s := newLoop(k), k.Stream(ordinary)
		h := Hold(k, s).Started()
		require.NoError(k, k.served.call(k.Me, s, func(*hal.Thread) error { return errors.New("it failed") }))
		l.await(k, s, 1)
		l.await(k, s, 2)
		h.Release()
		Receive(k, l.rang, "the loop was not called")
		ended, _ := l.Take()
		require.Empty(k, ended, "a wait with an error to give is ended by who gets it")
		var failures []error
		for number := range uint64(2) {
			k.Eventually(func() bool {
				done, err := l.End(number + 1)
				if err != nil {
					failures = append(failures, err)
				}
				return done
			}, "the wait has not ended")
		}
		require.Len(k, failures, 1)
		require.ErrorIs(k, failures[0], hal.ErrHostFunction)
		k.Sync(s) // and it is reported no more
	}},
	{"Z3_the_end_counts_as_a_synchronize", RealTime, func(k *Kit) {
		l, s := newLoop(k), k.Stream(ordinary)
		kinds := make(chan string, 100)
		h := Hold(k, s).Started()
		stop := k.RT.Listen(func(o hal.Operation) { kinds <- o.Kind.String() })
		defer stop()
		l.await(k, s, 1)
		h.Release()
		Receive(k, l.rang, "the loop was not called")
		Empty(k, kinds, "listeners were notified before the program has taken notice")
		require.Equal(k, []uint64{1}, l.take(k))
		require.Equal(k, "synchronize stream", Receive(k, kinds, "the end was not notified"))
	}},
	{"Z4_a_wait_that_is_given_up_is_not_named", RealTime | FourQueues, func(k *Kit) {
		l, a, b := newLoop(k), k.Stream(ordinary), k.Stream(ordinary)
		h, other := Hold(k, a).Started(), Hold(k, b).Started()
		l.await(k, a, 1)
		l.await(k, b, 2)
		l.Drop(1)
		l.Drop(1)
		require.Equal(k, 1, l.Len())
		h.Release()
		k.Sync(a)
		other.Release()
		Receive(k, l.rang, "the loop was not called for the wait that is left")
		require.Equal(k, []uint64{2}, l.take(k))
	}},
	{"Z4_closed_waits_are_not_named", RealTime, func(k *Kit) {
		l, s := newLoop(k), k.Stream(ordinary)
		h := Hold(k, s).Started()
		l.await(k, s, 1)
		l.Close()
		Receive(k, l.shut, "the end of the calls was not said")
		l.Close()
		_, err := s.Notify(k.Me, l.Notices, 2)
		require.ErrorIs(k, err, hal.ErrClosed)
		h.Release()
		k.Sync(s)
		Empty(k, l.rang, "the loop was called after its waits were closed")
		Empty(k, l.shut, "the end of the calls was said twice")
	}},
}
