package haltest

import (
	"sync"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// recordingEvent returns an executable that records an event, with a branch beside it that a function holds.
func recordingEvent(k *Kit, s, side *hal.Stream, e *hal.Event, held func()) *hal.GraphExec {
	k.T.Helper()
	k.Capture(s)
	require.NoError(k, side.WaitStream(k.Me, s))
	require.NoError(k, s.RecordExternal(k.Me, e))
	if held != nil {
		k.Call(side, held)
	}
	require.NoError(k, s.WaitStream(k.Me, side))
	return k.Executable(k.EndCapture(s))
}

var externalEventCases = []testCase{
	{"G14_an_event_made_as_external_is_so_in_every_capture", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		e := k.Event(hal.EventOptions{External: true})
		k.Capture(s)
		k.Record(s, e)
		require.NoError(k, s.Wait(k.Me, e))
		g := k.EndCapture(s)
		var kinds []string
		for _, n := range g.Nodes() {
			kinds = append(kinds, n.Kind().String())
		}
		require.Equal(k, []string{"record", "wait"}, kinds)
		k.Record(s, e)
		require.NoError(k, s.Wait(k.Me, e))
		k.Sync(s)
	}},
	{"G7_external_events_are_recorded_and_waited_for_by_nodes", Graphs | Gates | FourQueues, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		in, out := k.Event(hal.EventOptions{}), k.Event(hal.EventOptions{})
		k.Capture(s)
		require.NoError(k, s.WaitExternal(k.Me, in))
		require.NoError(k, s.RecordExternal(k.Me, out))
		x := k.Executable(k.EndCapture(s))
		for range 2 {
			gate, err := o.Gate(k.Me)
			require.NoError(k, err)
			k.Record(o, in)
			k.Launch(x, s)
			for range 8 { // each round lets what is ready move on
				k.Pending(s, "the graph waits for the record on the other stream")
			}
			gate.Open()
			k.Sync(s)
			k.EventDone(out, true, "the graph has recorded it")
		}
		require.EqualValues(k, 2, out.Version())
	}},
	{"G7_an_event_is_recorded_from_the_call_that_launches_on", Graphs | Gates | EightQueues, func(k *Kit) {
		s, o, side := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		x := recordingEvent(k, s, side, e, nil)
		for range 2 { // the second time the event was recorded before
			gate, err := s.Gate(k.Me)
			require.NoError(k, err)
			k.Launch(x, s)
			k.Wait(o, e)
			k.EventDone(e, false, "the launch has not begun")
			k.Pending(o, "it waits for the record of a launch that has not begun")
			gate.Open()
			done, err := e.Synchronize(k.Me, int64(Limit))
			require.NoError(k, err)
			require.True(k, done)
			k.Sync(s, o)
		}
	}},
	{"G7_a_launch_waits_for_the_record_that_was_the_latest_at_the_call", Graphs | Gates | EightQueues, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		k.Capture(s)
		require.NoError(k, s.WaitExternal(k.Me, e))
		x := k.Executable(k.EndCapture(s))
		before, err := o.Gate(k.Me)
		require.NoError(k, err)
		k.Record(o, e)
		first, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, s)
		later, err := o.Gate(k.Me)
		require.NoError(k, err)
		k.Record(o, e)
		before.Open()
		first.Open()
		k.Sync(s) // though the later record is pending
		k.EventDone(e, false, "its stream is held")
		later.Open()
		k.Sync(o)
	}},
	{"G7_a_record_of_a_launch_does_not_wait_for_its_other_branches", Graphs | EightQueues, func(k *Kit) {
		s, o, side := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		release := make(chan struct{})
		open := sync.OnceFunc(func() { close(release) })
		defer open()
		x := recordingEvent(k, s, side, e, func() { <-release })
		k.Launch(x, s)
		k.Wait(o, e)
		k.Sync(o) // though the other branch is held
		k.Launch(x, s)
		k.Wait(o, e)
		k.Pending(o, "the record is that of the second launch, which waits for the first one")
		open()
		k.Sync(o, s)
	}},
	{"G7_a_launch_that_was_dropped_holds_nobody_who_waits_for_its_record", Graphs | Gates | EightQueues | Aborts, func(k *Kit) {
		s, t, o, side := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		x := recordingEvent(k, s, side, e, nil)
		gates := make([]driver.Gate, 2)
		for i, on := range []*hal.Stream{s, t} {
			gate, err := on.Gate(k.Me)
			require.NoError(k, err)
			gates[i] = gate
		}
		k.Launch(x, s, t, o) // the second one is dropped, the third one comes after both
		_, err := t.Abort(k.Me)
		require.NoError(k, err)
		waits := k.Stream(ordinary)
		k.Wait(waits, e)
		k.Pending(waits, "the record is that of the third launch, which comes after the first one")
		k.Pending(o, "the first launch has not begun")
		gates[0].Open()
		k.Sync(s, o, waits)
		k.EventDone(e, true, "every launch has ended")
		held, err := t.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, t)
		k.Wait(o, e)
		k.Pending(o, "the launch has not begun")
		_, err = t.Abort(k.Me)
		require.NoError(k, err)
		k.Sync(o)
		held.Open()
		k.Launch(x, s)
		k.Wait(o, e)
		k.Sync(s, o)
	}},
}
