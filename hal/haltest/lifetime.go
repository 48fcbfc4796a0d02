package haltest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var lifetimeCases = []testCase{
	{"A6_a_limited_wait_keeps_an_event_that_was_closed", Contexts | RealTime | FourQueues, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(future)
		h := Hold(k, a).Started()
		k.Record(a, e)
		require.NoError(k, b.WaitLimited(k.Me, e, int64(time.Hour)))
		k.Pending(b, "the event is pending")
		require.NoError(k, e.Close(k.Me))
		k.Pending(b, "the event is pending still")
		h.Release()
		k.Sync(b)
	}},
	{"L1_closing_twice_does_nothing", 0, func(k *Kit) {
		s, e := k.Stream(ordinary), k.Event(hal.EventOptions{})
		live := k.RT.Live()
		for range 2 {
			require.NoError(k, s.Close(k.Me))
			require.NoError(k, e.Close(k.Me))
		}
		require.Equal(k, live-2, k.RT.Live())
		require.ErrorIs(k, k.Device(0).DefaultStream().Close(k.Me), hal.ErrInvalidValue)
	}},
	{"L2_closing_lets_pending_work_finish", FourQueues, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		h := Hold(k, a).Started()
		k.Record(a, e)
		k.Wait(b, e)
		require.NoError(k, e.Close(k.Me))
		require.NoError(k, a.Close(k.Me))
		k.Pending(b, "the closed stream's work is held")
		h.Release()
		k.Sync(b)
	}},
	{"L3_a_closed_object_refuses", 0, func(k *Kit) {
		s, open := k.Stream(ordinary), k.Stream(ordinary)
		e, live := k.Event(hal.EventOptions{}), k.Event(hal.EventOptions{})
		require.NoError(k, s.Close(k.Me))
		require.NoError(k, e.Close(k.Me))
		_, query := s.Query(k.Me)
		_, sync := s.Synchronize(k.Me, 0)
		_, eventQuery := e.Query(k.Me)
		_, eventSync := e.Synchronize(k.Me, 0)
		_, elapsed := e.Elapsed(k.Me, live)
		for i, err := range []error{query, sync, eventQuery, eventSync, elapsed, s.Nop(k.Me), s.Record(k.Me, live),
			s.Wait(k.Me, live), s.WaitStream(k.Me, open), open.WaitStream(k.Me, s), open.Record(k.Me, e),
			open.Wait(k.Me, e), s.HostFunc(k.Me, 1)} {
			require.ErrorIs(k, err, hal.ErrClosed, "call %d", i)
		}
		k.Done(open, "refused calls enqueue nothing")
	}},
	{"L4_an_event_outlives_its_stream", 0, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(timed)
		k.Record(a, e)
		k.Sync(a)
		require.NoError(k, a.Close(k.Me))
		k.EventDone(e, true, "its stream is closed")
		k.Wait(b, e)
		k.Sync(b)
		k.Record(b, e)
		k.Sync(b)
	}},
	{"L5_nothing_is_left_after_many_rounds", 0, func(k *Kit) {
		rounds := 1000
		if testing.Short() {
			rounds = 100
		}
		live := k.RT.Live()
		var group sync.WaitGroup
		for range 8 {
			group.Add(1)
			go func() {
				defer group.Done()
				me := hal.NewThread()
				defer me.Retire()
				for range rounds {
					s, err := k.Device(0).NewStream(me, hal.StreamOptions{})
					assert.NoError(k, err)
					e, err := k.RT.NewEvent(me, nil, hal.EventOptions{})
					assert.NoError(k, err)
					assert.NoError(k, s.Nop(me))
					assert.NoError(k, s.Record(me, e))
					assert.NoError(k, s.Wait(me, e))
					assert.NoError(k, s.Close(me))
					done, err := e.Synchronize(me, int64(Limit))
					assert.True(k, done && err == nil)
					assert.NoError(k, e.Close(me))
				}
			}()
		}
		group.Wait()
		require.Equal(k, live, k.RT.Live())
		k.Eventually(func() bool { return k.RT.Pending() == 0 }, "work behind the last event ends, too")
		require.Zero(k, k.served.left(), "functions that neither ran nor were dropped")
	}},
	{"L6_closing_the_runtime_waits_for_work_that_runs", Memory | RealTime, func(k *Kit) {
		rt, err := k.open()
		require.NoError(k, err)
		dev, err := rt.Device(0)
		require.NoError(k, err)
		running, err := dev.NewStream(k.Me, ordinary)
		require.NoError(k, err)
		door := newDoor()
		defer door.free()
		require.NoError(k, running.Native(k.Me, nativeBlock, door.address(), hal.Accesses{}))
		k.Entered(door)
		// Behind the function, so it has not started when the runtime is closed.
		source, err := rt.AllocHost(k.Me, small)
		require.NoError(k, err)
		require.NoError(k, running.Fill(k.Me, source.Start, 1, 1, small))
		closed := make(chan int, 1)
		go func() {
			rt.Close()
			closed <- 1
		}()
		select {
		case <-closed:
			require.Fail(k, "closed while a native function ran")
		case <-time.After(50 * time.Millisecond): // a Close that does not wait has returned by now
		}
		door.Open()
		Receive(k, closed, "Close never returned")
		rt.Close()
		require.ErrorIs(k, running.Nop(k.Me), hal.ErrClosed)
	}},
}
