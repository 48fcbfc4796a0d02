package haltest

import (
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

var future = hal.EventOptions{Kind: hal.Future, Timing: true}

// newContext makes a context that is current on the case's thread.
func newContext(k *Kit) *hal.Context {
	c, err := k.Device(0).NewContext(k.Me)
	require.NoError(k, err)
	k.T.Cleanup(c.End)
	return c
}

func contextStream(k *Kit, c *hal.Context) *hal.Stream {
	s, err := c.NewStream(k.Me, hal.StreamOptions{})
	require.NoError(k, err)
	return s
}

var contextCases = []testCase{
	{"A1_streams_take_work_only_where_their_context_is_current", Contexts, func(k *Kit) {
		a := newContext(k)
		s := contextStream(k, a)
		require.NoError(k, s.Nop(k.Me))
		b := newContext(k)
		require.ErrorIs(k, s.Nop(k.Me), hal.ErrWrongContext)
		require.ErrorIs(k, s.Nop(hal.NewThread()), hal.ErrNoContext)
		_, err := s.Query(k.Me)
		require.NoError(k, err, "asking needs no context")
		require.NoError(k, k.Me.SetContext(a))
		require.NoError(k, s.Nop(k.Me))
		h := Hold(k, s).Started()
		require.NoError(k, k.TryCall(a.DefaultStream(), func() {}))
		k.Sync(a.DefaultStream())
		h.Release()
		k.Sync(s)
		a.End()
		_, err = k.Me.Context()
		require.ErrorIs(k, err, hal.ErrNoContext)
		require.ErrorIs(k, k.Me.SetContext(a), hal.ErrClosed)
		require.True(k, s.Closed())
		require.NoError(k, k.Me.SetContext(b))
	}},
	{"A1_synchronizing_a_context_waits_for_its_own_streams", Contexts | FourQueues, func(k *Kit) {
		other := contextStream(k, newContext(k))
		held := Hold(k, other).Started()
		c := newContext(k)
		s := contextStream(k, c)
		h := Hold(k, s).Started()
		p, err := c.Point(k.Me)
		require.NoError(k, err)
		require.False(k, p.Wait(int64(time.Millisecond)), "it did not wait for its stream")
		h.Release()
		require.True(k, p.Wait(int64(Limit)), "it waits for another context")
		held.Release()
		k.Sync(other)
	}},
	{"A2_a_wait_for_a_future_event_waits_for_the_next_record", Contexts | FourQueues, func(k *Kit) {
		a, b, c := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(future)
		k.Wait(b, e)
		k.Pending(b, "nobody has recorded the event")
		k.Record(a, e)
		k.Sync(b)
		k.Wait(c, e)
		k.Sync(c)
	}},
	{"A3_a_wait_before_the_first_record_fails", Contexts, func(k *Kit) {
		s := k.Stream(ordinary)
		e := k.Event(hal.EventOptions{Kind: hal.Recorded})
		require.ErrorIs(k, s.Wait(k.Me, e), hal.ErrUnrecorded)
		k.Record(s, e)
		k.Wait(s, e)
		unable := k.Event(hal.EventOptions{NotWaitable: true})
		k.Record(s, unable)
		require.ErrorIs(k, s.Wait(k.Me, unable), hal.ErrNotSupported)
		k.Sync(s)
	}},
	{"A4_reset_clears_in_stream_order", Contexts, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(future)
		k.Record(a, e)
		h := Hold(k, a).Started()
		require.NoError(k, a.Reset(k.Me, e))
		k.Wait(b, e)
		k.Sync(b)
		h.Release()
		k.Sync(a)
		k.Wait(b, e)
		k.Pending(b, "the event was reset")
		k.Record(a, e)
		k.Sync(b)
		require.ErrorIs(k, a.Reset(k.Me, k.Event(hal.EventOptions{})), hal.ErrNotSupported)
	}},
	{"A5_other_kinds_are_pending_before_the_first_record", Contexts, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, kind := range []hal.EventKind{hal.Future, hal.Recorded} {
			e := k.Event(hal.EventOptions{Kind: kind})
			k.EventDone(e, false, "never recorded")
			done, err := e.Synchronize(k.Me, 0)
			require.NoError(k, err)
			require.True(k, done, "synchronize returns at once")
		}
		e := k.Event(future)
		k.Wait(s, e)
		n, err := e.WaitsPending(k.Me)
		require.NoError(k, err)
		require.Equal(k, 1, n)
		other := k.Stream(ordinary)
		k.Record(other, e)
		k.Sync(s)
		n, err = e.WaitsPending(k.Me)
		require.NoError(k, err)
		require.Zero(k, n)
		_, err = k.Event(hal.EventOptions{}).WaitsPending(k.Me)
		require.ErrorIs(k, err, hal.ErrNotSupported)
	}},
	{"A6_a_limited_wait_lets_the_stream_go_on_with_an_error", Contexts, func(k *Kit) {
		s := k.Stream(ordinary)
		e := k.Event(future)
		require.NoError(k, s.WaitLimited(k.Me, e, int64(5*time.Millisecond)))
		ran := make(chan int, 1)
		k.Call(s, func() { ran <- 1 })
		Receive(k, ran, "the stream never went on")
		done, err := s.Synchronize(k.Me, int64(Limit))
		require.True(k, done)
		require.ErrorIs(k, err, hal.ErrTimeout)
		require.ErrorContains(k, err, "event")
		k.Sync(s)
	}},
	{"A6_a_limit_that_does_not_pass_changes_nothing", Contexts | RealTime | FourQueues, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		h := Hold(k, a).Started()
		k.Record(a, e)
		require.NoError(k, b.WaitLimited(k.Me, e, int64(time.Hour)))
		k.Pending(b, "the event is pending")
		h.Release()
		k.Sync(b)
	}},
	{"A6_the_limit_begins_when_the_stream_comes_to_the_wait", Contexts | Gates | Delays, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		require.NoError(k, other.Delay(k.Me, 1)) // the first one may load a program, for which no stream may be held
		inTime := func(limit time.Duration) bool {
			e := k.Event(future)
			g, err := s.Gate(k.Me)
			require.NoError(k, err)
			before := k.Event(hal.EventOptions{})
			k.Record(s, before)
			require.NoError(k, s.WaitLimited(k.Me, e, int64(limit)))
			done, err := s.Synchronize(k.Me, int64(limit+limit/10))
			require.NoError(k, err)
			require.False(k, done, "the gate is closed")
			g.Open()
			done, err = before.Synchronize(k.Me, int64(Limit))
			require.NoError(k, err)
			require.True(k, done)
			// The limit is over since the call, and most of it is left since the head.
			require.NoError(k, other.Delay(k.Me, int64(limit/10)))
			k.Record(other, e)
			done, err = s.Synchronize(k.Me, int64(Limit))
			require.True(k, done)
			if err != nil {
				require.ErrorIs(k, err, hal.ErrTimeout)
			}
			return err == nil
		}
		// On a machine that is busy the record may be late for a short limit.
		for limit := 200 * time.Millisecond; !inTime(limit); limit *= 5 {
			require.Less(k, limit, 4*time.Second, "the limit began before")
		}
	}},
	{"A7_a_timed_event_has_a_timestamp", Contexts, func(k *Kit) {
		s := k.Stream(ordinary)
		e, later := k.Event(timed), k.Event(timed)
		_, err := e.Time(k.Me)
		require.ErrorIs(k, err, hal.ErrUnrecorded)
		h := Hold(k, s).Started()
		k.Record(s, e)
		_, err = e.Time(k.Me)
		require.ErrorIs(k, err, hal.ErrNotReady)
		h.Release()
		k.Record(s, later)
		k.Sync(s)
		first, err := e.Time(k.Me)
		require.NoError(k, err)
		second, err := later.Time(k.Me)
		require.NoError(k, err)
		require.GreaterOrEqual(k, second, first)
		plain := k.Event(hal.EventOptions{})
		k.Record(s, plain)
		_, err = plain.Time(k.Me)
		require.ErrorIs(k, err, hal.ErrTiming)
	}},
	{"A8_abort_drops_what_has_not_started", Contexts | Aborts, func(k *Kit) {
		s, other := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		h := Hold(k, s).Started()
		ran := make(chan int, 1)
		k.Call(s, func() { ran <- 1 })
		k.Record(s, e)
		k.Wait(other, e)
		k.Call(k.Device(0).DefaultStream(), func() {})
		k.Call(s, func() { ran <- 2 })
		blocked := make(chan error, 1)
		waits := make(chan int)
		go func() {
			me := hal.NewThread()
			p, err := s.Point(me)
			close(waits)
			if err == nil && p.Wait(int64(Limit)) {
				err = s.Failure()
			}
			blocked <- err
		}()
		Receive(k, waits, "the waiting thread never began")
		n, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 3, n)
		h.Release()
		_ = Receive(k, blocked, "a synchronize of an aborted stream never returned")
		k.Sync(other, k.Device(0).DefaultStream())
		Empty(k, ran, "a dropped function ran")
		_ = s.Failure()
		k.Call(s, func() { ran <- 3 })
		k.Sync(s)
		require.Equal(k, 3, Receive(k, ran, "the stream cannot be used after an abort"))
	}},
	{"A8_abort_frees_a_blocked_stream", Contexts | Gates | Aborts, func(k *Kit) {
		s := k.Stream(ordinary)
		_, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Call(s, func() {})
		n, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 2, n)
		k.Sync(s)
	}},
	{"A8_abort_reaches_a_thread_between_two_parts_of_its_wait", Contexts | Gates | Aborts, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, pending := range []bool{true, false} {
			g, err := s.Gate(k.Me)
			require.NoError(k, err)
			p, err := s.Point(k.Me)
			require.NoError(k, err)
			end := driver.Announce(p)
			if !pending {
				g.Open()
				k.Sync(s)
			}
			_, err = s.Abort(k.Me)
			require.NoError(k, err)
			if pending {
				require.ErrorIs(k, s.Failure(), hal.ErrAborted, "the thread was not in a call of Wait")
			} else {
				require.NoError(k, s.Failure(), "what the thread waits for was done before")
			}
			end()
		}
		g, err := s.Gate(k.Me)
		require.NoError(k, err)
		_, err = s.Abort(k.Me)
		require.NoError(k, err)
		require.NoError(k, s.Failure(), "nobody waits any more")
		g.Open()
		k.Sync(s)
	}},
	{"A9_the_primary_context_is_shared_by_counting", Contexts, func(k *Kit) {
		d, other := k.Device(0), hal.NewThread()
		a, err := d.UsePrimary(k.Me)
		require.NoError(k, err)
		b, err := d.UsePrimary(other)
		require.NoError(k, err)
		require.Same(k, a, b)
		last, err := d.ReleasePrimary(k.Me, false)
		require.NoError(k, err)
		require.Nil(k, last)
		require.ErrorIs(k, a.CheckDestroy(k.Me), hal.ErrInvalidValue)
		last, err = d.ReleasePrimary(k.Me, false)
		require.NoError(k, err)
		require.Same(k, a, last)
		last.End()
		_, err = other.Context()
		require.ErrorIs(k, err, hal.ErrNoContext)
		_, err = d.ReleasePrimary(k.Me, true)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
	}},
	{"A10_reports_go_to_the_queue_of_their_stream", Contexts, func(k *Kit) {
		s := k.Stream(ordinary)
		q := hal.NewReportQueue()
		require.ErrorIs(k, s.Report(k.Me, q, 1, true, hal.Accesses{}), hal.ErrNotSubscribed)
		require.NoError(k, s.Subscribe(k.Me, q))
		require.ErrorIs(k, s.Subscribe(k.Me, q), hal.ErrNotSubscribed)
		require.Same(k, q, s.ReportQueue())
		require.ErrorIs(k, s.UseRuntimeThreads(k.Me), hal.ErrNotSubscribed)
		require.NoError(k, k.TryCall(s, func() {}), "a function that is no report")
		k.Sync(s)
		require.NoError(k, s.Report(k.Me, q, 7, true, hal.Accesses{}))
		require.NoError(k, s.Report(k.Me, q, 8, false, hal.Accesses{}))
		k.Pending(s, "nobody has processed the report")
		takeContext(k, q, 7)
		task, err := q.Next(hal.NewThread(), 0)
		require.NoError(k, err)
		require.Zero(k, task.Token, "the second report came before the first had ended")
		k.Pending(s, "the report has not ended")
		q.Done(k.Me, false, nil)
		k.Sync(s)
		takeContext(k, q, 8)
		q.Done(k.Me, false, nil)
		require.NoError(k, s.Unsubscribe(k.Me, q))
		require.ErrorIs(k, s.Unsubscribe(k.Me, q), hal.ErrNotSubscribed)
	}},
	{"A10_a_stream_has_one_kind_of_threads", Contexts, func(k *Kit) {
		s, q := k.Stream(ordinary), hal.NewReportQueue()
		require.NoError(k, s.UseRuntimeThreads(k.Me))
		require.NoError(k, s.UseRuntimeThreads(k.Me))
		require.ErrorIs(k, s.Subscribe(k.Me, q), hal.ErrNotSubscribed)
		require.Nil(k, s.ReportQueue())
		require.True(k, q.Unused())
	}},
	{"A10_a_closed_stream_leaves_its_queue", Contexts, func(k *Kit) {
		s, q := k.Stream(ordinary), hal.NewReportQueue()
		require.NoError(k, s.Subscribe(k.Me, q))
		require.NoError(k, s.Report(k.Me, q, 7, false, hal.Accesses{}))
		k.Sync(s)
		require.NoError(k, s.Close(k.Me))
		require.False(k, q.Unused(), "a report was not taken")
		takeContext(k, q, 7)
		q.Done(k.Me, false, nil)
		require.True(k, q.Unused())
	}},
	{"A10_a_queue_is_in_use_until_its_reports_have_ended", Contexts | Gates, func(k *Kit) {
		s, q := k.Stream(ordinary), hal.NewReportQueue()
		for _, block := range []bool{false, true} {
			require.NoError(k, s.Subscribe(k.Me, q))
			g, err := s.Gate(k.Me)
			require.NoError(k, err)
			require.NoError(k, s.Report(k.Me, q, 7, block, hal.Accesses{}))
			require.NoError(k, s.Unsubscribe(k.Me, q))
			require.ErrorIs(k, s.Report(k.Me, q, 8, block, hal.Accesses{}), hal.ErrNotSubscribed)
			require.False(k, q.Unused(), "the stream has not come to the report")
			g.Open()
			takeContext(k, q, 7)
			require.False(k, q.Unused(), "the report runs")
			q.Done(k.Me, false, nil)
			require.True(k, q.Unused(), "the report has ended, and the refused one was never enqueued")
			k.Sync(s)
		}
	}},
	{"A10_a_dropped_report_leaves_its_queue", Contexts | Gates | Aborts, func(k *Kit) {
		s, q := k.Stream(ordinary), hal.NewReportQueue()
		require.NoError(k, s.Subscribe(k.Me, q))
		_, err := s.Gate(k.Me)
		require.NoError(k, err)
		require.NoError(k, s.Report(k.Me, q, 7, true, hal.Accesses{}))
		require.NoError(k, s.Unsubscribe(k.Me, q))
		_, err = s.Abort(k.Me)
		require.NoError(k, err)
		require.False(k, q.Unused(), "nobody has disposed of the dropped report")
		task, err := q.Next(k.Me, int64(Limit))
		require.NoError(k, err)
		require.Equal(k, hal.Task{Token: 7, Drop: true}, task)
		require.True(k, q.Unused())
	}},
	{"A10_a_report_may_take_reports_itself", Contexts | FourQueues, func(k *Kit) {
		q := hal.NewReportQueue()
		streams := []*hal.Stream{k.Stream(ordinary), k.Stream(ordinary)}
		for i, s := range streams {
			require.NoError(k, s.Subscribe(k.Me, q))
			require.NoError(k, s.Report(k.Me, q, uint64(i+1), true, hal.Accesses{}))
		}
		first, err := q.Next(k.Me, int64(Limit))
		require.NoError(k, err)
		takeContext(k, q, 3-first.Token)
		outer, inner := streams[first.Token-1], streams[2-first.Token]
		q.Done(k.Me, false, nil)
		k.Sync(inner)
		k.Pending(outer, "the report that took the other one has not ended")
		q.Done(k.Me, false, nil)
		k.Sync(outer)
	}},
}

// takeContext takes the next report, which must have this token.
func takeContext(k *Kit, q *hal.Queue, token uint64) {
	k.T.Helper()
	task, err := q.Next(k.Me, int64(Limit))
	require.NoError(k, err)
	require.Equal(k, token, task.Token)
}
