package haltest

import (
	"runtime"
	"sync"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var timed = hal.EventOptions{Timing: true}

var eventCases = []testCase{
	{"E1_an_unrecorded_event_is_complete", 0, func(k *Kit) {
		s, e := k.Stream(ordinary), k.Event(hal.EventOptions{})
		k.EventDone(e, true, "never recorded")
		done, err := e.Synchronize(k.Me, 0)
		require.NoError(k, err)
		require.True(k, done)
		k.Wait(s, e)
		k.Done(s, "waiting for an event that was never recorded does nothing")
	}},
	{"E2_a_wait_does_not_block_the_host_and_crosses_devices", Pair, func(k *Kit) {
		a, b := k.Stream(ordinary), k.StreamOn(1, ordinary)
		h := Hold(k, a).Started()
		e := k.Event(hal.EventOptions{})
		k.Record(a, e)
		ran := make(chan int, 1)
		k.Wait(b, e)
		k.Pending(b, "a wait is work")
		k.Call(b, func() { ran <- 1 })
		k.Pending(b, "the event is pending")
		Empty(k, ran, "the stream did not wait")
		h.Release()
		k.Sync(b)
		Receive(k, ran, "the waiting stream never went on")
	}},
	{"E3_wait_uses_the_last_record_before_it", FourQueues, func(k *Kit) {
		// Probe C: the waiter is released at the first record.
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		first := Hold(k, a).Started()
		k.Record(a, e)
		k.Wait(b, e)
		second := Hold(k, a)
		k.Record(a, e)
		k.Pending(b, "the first record is pending")
		first.Release()
		k.Sync(b)
		k.EventDone(e, false, "the second record is pending")
		second.Release()
		k.Sync(a)
	}},
	{"E3_a_record_on_another_stream_does_not_move_a_wait", RealTime | FourQueues, func(k *Kit) {
		a, b, c := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		h := Hold(k, a).Started()
		k.Record(a, e)
		k.Wait(b, e)
		k.Record(c, e)
		k.Sync(c)
		k.EventDone(e, true, "its latest record is on a stream that is done")
		k.Pending(b, "it waits for the first record")
		h.Release()
		k.Sync(b)
	}},
	{"E3_ping_pong_with_one_event_ends", 0, func(k *Kit) {
		// Probe D.
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		var order []int
		for i := range 200 {
			k.Call(a, func() { order = append(order, 2*i) })
			k.Record(a, e)
			k.Wait(b, e)
			k.Call(b, func() { order = append(order, 2*i+1) })
			k.Record(b, e)
			k.Wait(a, e)
		}
		k.Sync(a, b)
		require.Len(k, order, 400)
		for i, v := range order {
			require.Equal(k, i, v)
		}
	}},
	{"E4_record_overwrites", 0, func(k *Kit) {
		// Probe B: asked between the two completions.
		s := k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		first := Hold(k, s).Started()
		k.Record(s, e)
		second := Hold(k, s)
		k.Record(s, e)
		k.EventDone(e, false, "both records are pending")
		first.Release()
		second.Started()
		k.EventDone(e, false, "the first record is done, the second is not")
		done, err := e.Synchronize(k.Me, 1000)
		require.NoError(k, err)
		require.False(k, done, "synchronize looked at an older record")
		second.Release()
		k.Sync(s)
		k.EventDone(e, true, "the second record is done")
	}},
	{"E5_elapsed_is_in_milliseconds", Delays | RealTime, func(k *Kit) {
		s := k.Stream(ordinary)
		start, end := k.Event(timed), k.Event(timed)
		k.Record(s, start)
		require.NoError(k, s.Delay(k.Me, 20e6))
		k.Record(s, end)
		_, err := start.Elapsed(k.Me, end)
		require.ErrorIs(k, err, hal.ErrNotReady)
		k.Sync(s)
		ms, err := start.Elapsed(k.Me, end)
		require.NoError(k, err)
		require.GreaterOrEqual(k, ms, 19.9)
		back, err := end.Elapsed(k.Me, start)
		require.NoError(k, err)
		require.InDelta(k, -ms, back, 0.001)
	}},
	{"E5_elapsed_names_each_error", Pair, func(k *Kit) {
		s, far := k.Stream(ordinary), k.StreamOn(1, ordinary)
		a, b, plain := k.Event(timed), k.Event(timed), k.Event(hal.EventOptions{})
		_, err := a.Elapsed(k.Me, b)
		require.ErrorIs(k, err, hal.ErrUnrecorded)
		k.Record(s, a)
		_, err = a.Elapsed(k.Me, b)
		require.ErrorIs(k, err, hal.ErrUnrecorded)
		k.Record(s, plain)
		_, err = a.Elapsed(k.Me, plain)
		require.ErrorIs(k, err, hal.ErrTiming)
		_, err = plain.Elapsed(k.Me, a)
		require.ErrorIs(k, err, hal.ErrTiming)
		k.Record(far, b)
		_, err = a.Elapsed(k.Me, b)
		require.ErrorIs(k, err, hal.ErrWrongDevice)
	}},
	{"E6_many_threads_synchronize_one_event", 0, func(k *Kit) {
		s, e := k.Stream(ordinary), k.Event(hal.EventOptions{})
		h := Hold(k, s).Started()
		k.Record(s, e)
		var group sync.WaitGroup
		done := make(chan bool, 8)
		for range cap(done) {
			group.Add(1)
			go func() {
				defer group.Done()
				ok, err := e.Synchronize(hal.NewThread(), int64(Limit))
				done <- ok && err == nil
			}()
		}
		Empty(k, done, "a thread did not wait")
		h.Release()
		for range cap(done) {
			require.True(k, Receive(k, done, "a thread never returned"))
		}
		group.Wait()
	}},
	{"E7_an_event_is_recorded_on_one_device", Pair, func(k *Kit) {
		near, far := k.Stream(ordinary), k.StreamOn(1, ordinary)
		e := k.Event(hal.EventOptions{})
		require.Nil(k, e.Device())
		k.Record(far, e)
		require.Same(k, k.Device(1), e.Device())
		require.ErrorIs(k, near.Record(k.Me, e), hal.ErrWrongDevice)
		require.Equal(k, uint64(1), e.Version(), "a refused record counts")
		bound, err := k.RT.NewEvent(k.Me, k.Device(0), hal.EventOptions{})
		require.NoError(k, err)
		require.ErrorIs(k, far.Record(k.Me, bound), hal.ErrWrongDevice)
		require.NoError(k, bound.Close(k.Me))
	}},
	{"E8_waiting_on_the_recording_stream_does_nothing", 0, func(k *Kit) {
		s, e := k.Stream(ordinary), k.Event(hal.EventOptions{})
		h := Hold(k, s).Started()
		k.Record(s, e)
		k.Wait(s, e)
		ran := make(chan int, 1)
		k.Call(s, func() { ran <- 1 })
		h.Release()
		k.Sync(s)
		Receive(k, ran, "the stream waits for itself")
	}},
	{"E10_an_event_that_other_processes_have_is_recorded_and_waited_for_as_before", 0, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e, err := k.RT.NewEvent(k.Me, nil, hal.EventOptions{Interprocess: true})
		require.NoError(k, err)
		handle, err := e.Share(k.Me, k.Device(0))
		if k.RT.Name() != "host" || runtime.GOOS != "linux" {
			require.ErrorIs(k, err, hal.ErrNotSupported)
			return
		}
		require.NoError(k, err)
		again, err := e.Share(k.Me, k.Device(0))
		require.NoError(k, err)
		require.Equal(k, handle, again)
		_, err = k.RT.OpenEvent(k.Me, handle)
		require.ErrorIs(k, err, hal.ErrWrongContext)
		hold := Hold(k, a).Started()
		require.NoError(k, a.Record(k.Me, e))
		require.NoError(k, b.Wait(k.Me, e))
		for _, done := range []func() (bool, error){
			func() (bool, error) { return e.Query(k.Me) },
			func() (bool, error) { return b.Query(k.Me) },
			func() (bool, error) { return e.Synchronize(k.Me, 0) },
		} {
			is, err := done()
			require.NoError(k, err)
			require.False(k, is)
		}
		hold.Release()
		k.Sync(b)
		is, err := e.Query(k.Me)
		require.NoError(k, err)
		require.True(k, is)
		require.NoError(k, e.Close(k.Me))
	}},
}
