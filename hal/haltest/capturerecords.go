package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// recorder records events in captures as a caller does that has a list for them.
type recorder struct {
	*capturer
	number uint64 // of the latest record
}

// record gives a record to the runtime, and returns the number of the stream.
func (c *recorder) record(s *hal.Stream) (lane int) {
	c.k.T.Helper()
	c.number++
	lane, _, captured, err := s.CaptureRecord(c.k.Me, c.number, &c.list)
	require.NoError(c.k, err)
	require.True(c.k, captured)
	return lane
}

// note records without a call of the runtime, and returns the number of the record.
func (c *recorder) note(lane int) uint64 {
	c.k.T.Helper()
	c.number++
	require.True(c.k, c.list.Add(hal.CapturedCall{Token: c.number, Lane: uint32(lane) | hal.RecordCall}))
	return c.number
}

// wait waits for a record without a call of the runtime.
func (c *recorder) wait(lane int, number uint64) {
	c.k.T.Helper()
	require.True(c.k, c.list.Add(hal.CapturedCall{Token: number, Lane: uint32(lane) | hal.WaitCall}))
}

// event makes the event of a record.
func (c *recorder) event(s *hal.Stream, capture, number uint64) *hal.Event {
	c.k.T.Helper()
	e, err := c.k.RT.NewCapturedEvent(c.k.Me, s.Device(), hal.EventOptions{}, capture, number)
	require.NoError(c.k, err)
	c.k.T.Cleanup(func() { _ = e.Close(c.k.Me) })
	return e
}

// comesAfter asserts of each node of a graph which nodes it comes after, in any order.
func (k *Kit) comesAfter(g *hal.Graph, want [][]int) {
	k.T.Helper()
	nodes := g.Nodes()
	require.Len(k, nodes, len(want))
	for i, n := range nodes {
		before := []int{}
		for _, m := range n.After() {
			before = append(before, m.Index())
		}
		require.ElementsMatch(k, want[i], before, "node %d", i)
	}
}

var capturedRecordCases = []testCase{
	{"G15_records_added_to_a_capture_stand_for_what_was_captured_before_them", Graphs, func(k *Kit) {
		a, b, late := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		k.Capture(a)
		id := a.CaptureID()
		lane := c.record(a) // before the first node
		begin := c.number
		require.True(k, c.add(lane, func() {})) // 0
		first := c.note(lane)
		require.True(k, c.add(lane, func() {})) // 1
		second := c.note(lane)
		require.NoError(k, a.Nop(k.Me)) // 2
		require.NoError(k, b.WaitCaptured(k.Me, id, first))
		require.True(k, b.Captures(), "a wait for a part of the capture pulls a stream in")
		require.NoError(k, b.Nop(k.Me)) // 3
		require.NoError(k, b.WaitCaptured(k.Me, id, second))
		require.NoError(k, b.Nop(k.Me)) // 4
		k.Wait(late, c.event(a, id, begin))
		require.NoError(k, late.Nop(k.Me)) // 5
		other := c.record(late)
		joined := c.note(other)
		k.Wait(b, c.event(late, id, joined))
		require.NoError(k, a.WaitStream(k.Me, b))
		require.NoError(k, a.Nop(k.Me)) // 6
		g := k.EndCapture(a)

		after := [][]int{{}, {0}, {1}, {0}, {3, 1}, {}, {2, 4, 5}}
		k.comesAfter(g, after)
		k.Launch(k.Executable(g), a)
		k.Sync(a)
	}},
	{"G15_waits_added_to_a_capture_order_the_nodes_behind_them", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		k.Capture(a)
		require.NoError(k, b.WaitStream(k.Me, a))
		one, two := c.record(a), c.record(b)
		require.True(k, c.add(one, func() {})) // 0
		first := c.note(one)
		require.True(k, c.add(two, func() {})) // 1
		require.True(k, c.add(one, func() {})) // 2
		c.note(one)
		c.wait(two, first)
		require.True(k, c.add(two, func() {})) // 3
		c.wait(two, first)
		second := c.note(two)
		c.wait(one, second)
		c.wait(one, second)
		require.NoError(k, a.Nop(k.Me)) // 4
		g := k.EndCapture(a)
		after := [][]int{{}, {}, {0}, {0, 1}, {2, 3, 0}}
		k.comesAfter(g, after)
		require.NoError(k, g.Close(k.Me))
	}},
	{"G15_a_stream_is_joined_by_a_wait_that_was_added", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		k.Capture(a)
		require.NoError(k, b.WaitStream(k.Me, a))
		one, two := c.record(a), c.record(b)
		require.True(k, c.add(two, func() {}))
		c.wait(one, c.note(two))
		g := k.EndCapture(a)
		k.comesAfter(g, [][]int{{}})
		require.NoError(k, g.Close(k.Me))
	}},
	{"G15_a_wait_for_which_a_list_has_no_room_makes_room_in_it", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		k.Capture(a)
		id := a.CaptureID()
		require.NoError(k, b.WaitStream(k.Me, a))
		one, two := c.record(a), c.record(b)
		require.True(k, c.add(one, func() {})) // 0
		first := c.note(one)
		require.True(k, c.add(one, func() {})) // 1
		second := c.note(one)
		for c.list.Add(hal.CapturedCall{Token: first, Lane: uint32(two) | hal.WaitCall}) {
		}
		lane, fresh, captured, err := b.CaptureWait(k.Me, id, second, &c.list)
		require.NoError(k, err)
		require.True(k, captured)
		require.False(k, fresh, "the numbers of the streams are still valid")
		require.Equal(k, two, lane)
		require.True(k, c.add(lane, func() {})) // 2
		c.wait(one, c.note(two))
		require.NoError(k, a.Nop(k.Me)) // 3
		g := k.EndCapture(a)
		k.comesAfter(g, [][]int{{}, {0}, {0, 1}, {1, 2}})
		require.NoError(k, g.Close(k.Me))
	}},
	{"G15_a_wait_that_is_to_be_refused_is_left_to_its_caller", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		left := func(s *hal.Stream, capture, number uint64, why string) {
			k.T.Helper()
			_, _, captured, err := s.CaptureWait(k.Me, capture, number, &c.list)
			require.NoError(k, err)
			require.False(k, captured, why)
		}
		left(a, 1, 1, "the stream does not capture")
		k.Capture(a)
		number := c.note(c.record(a))
		left(b, a.CaptureID(), number, "the stream is not in the capture yet")
		left(a, a.CaptureID(), number+1, "there is no such record")
		k.Capture(b)
		left(b, a.CaptureID(), number, "the stream is in another capture")
		_, err := a.Query(k.Me)
		k.CaptureFails(err, 900)
		_, _, captured, err := a.CaptureWait(k.Me, a.CaptureID(), number, &c.list)
		require.True(k, captured)
		k.CaptureFails(err, 901)
		k.invalidated(a, "query")
		require.NoError(k, k.EndCapture(b).Close(k.Me))
	}},
	{"G15_a_list_has_the_number_of_the_capture_that_it_was_lent_to_last", Graphs, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		k.Capture(s)
		k.Capture(o)
		for _, on := range []*hal.Stream{s, o, s} {
			c.record(on)
			require.Equal(k, on.CaptureID(), c.list.Capture)
		}
		for _, on := range []*hal.Stream{o, s} {
			require.NoError(k, k.EndCapture(on).Close(k.Me))
		}
		k.Capture(s)
		c.record(s)
		require.Equal(k, s.CaptureID(), c.list.Capture)
		require.NoError(k, k.EndCapture(s).Close(k.Me))
	}},
	{"G15_a_record_of_a_capture_that_has_ended_is_refused_as_any_other", Graphs, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		k.Capture(s)
		id := s.CaptureID()
		number := c.note(c.record(s))
		require.NoError(k, k.EndCapture(s).Close(k.Me))
		e := c.event(s, id, number)
		_, err := e.Query(k.Me)
		k.CaptureFails(err, 907)
		require.ErrorContains(k, err, "a capture of stream")
		k.CaptureFails(other.Wait(k.Me, e), 905)
		k.CaptureFails(other.WaitCaptured(k.Me, id, number), 905)
		require.False(k, other.Captures())

		k.Capture(other)
		k.CaptureFails(other.WaitCaptured(k.Me, id, number), 905)
		k.invalidated(other, "wait event")

		k.Record(s, e) // outside of a capture it is as any other
		k.Sync(s)
		k.EventDone(e, true, "it was recorded again")
	}},
	{"G4_an_event_has_the_same_handle_in_a_capture", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		require.False(k, e.WasRecorded())
		k.Record(s, e)
		k.Sync(s)
		before, err := e.Handle(k.Me)
		require.NoError(k, err)
		k.Capture(s)
		k.Record(s, e)
		inside, err := e.Handle(k.Me)
		require.NoError(k, err)
		require.Equal(k, before, inside)
		require.True(k, e.WasRecorded())
		fresh := k.Event(hal.EventOptions{})
		k.Record(s, fresh)
		require.True(k, fresh.WasRecorded())
		_, err = fresh.Handle(k.Me)
		require.NoError(k, err)
		require.NoError(k, k.EndCapture(s).Close(k.Me)) // it was not invalidated
		after, err := e.Handle(k.Me)
		require.NoError(k, err)
		require.Equal(k, before, after)
	}},
	{"G7_an_external_record_takes_the_place_of_an_earlier_one_in_the_capture", Graphs, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		k.Capture(s)
		require.False(k, e.WasRecorded())
		k.Record(s, e)
		require.NoError(k, s.Nop(k.Me))
		require.NoError(k, s.RecordExternal(k.Me, e))
		require.True(k, e.WasRecorded())
		require.NoError(k, o.WaitStream(k.Me, s))
		k.CaptureFails(o.Wait(k.Me, e), 905)
		k.invalidated(s, "wait event")
	}},
	{"G4_a_device_says_whether_a_wait_for_it_would_invalidate_a_capture", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		require.False(k, s.Device().Captures())
		k.Capture(s)
		require.True(k, s.Device().Captures())
		require.NoError(k, k.EndCapture(s).Close(k.Me))
		require.False(k, s.Device().Captures())
	}},
	{"G15_a_record_of_one_capture_is_none_of_another", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		k.Capture(a)
		k.Capture(b)
		id := a.CaptureID()
		number := c.note(c.record(a))
		k.CaptureFails(b.WaitCaptured(k.Me, id, number), 902)
		k.invalidated(a, "wait event")
		k.invalidated(b, "wait event")
	}},
	{"G15_no_record_is_added_to_a_capture_that_was_invalidated", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		c := &recorder{capturer: &capturer{k: k}}
		k.Capture(s)
		id, lane := s.CaptureID(), c.record(s)
		_, err := s.Query(k.Me)
		k.CaptureFails(err, 900)
		k.CaptureFails(s.WaitCaptured(k.Me, id, c.number), 901)
		require.False(k, c.list.Add(hal.CapturedCall{Token: 9, Lane: uint32(lane) | hal.RecordCall}))
		_, _, _, err = s.CaptureRecord(k.Me, 10, &c.list)
		k.CaptureFails(err, 901)
		k.invalidated(s, "query")
	}},
	{"G15_a_record_on_a_stream_that_does_not_capture_is_left_to_its_caller", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		var list hal.CapturedCalls
		_, _, captured, err := s.CaptureRecord(k.Me, 1, &list)
		require.NoError(k, err)
		require.False(k, captured)
	}},
}
