package haltest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var ownCaptureCases = []testCase{
	{"G1_the_own_default_stream_of_a_framework_can_be_captured", Graphs, func(k *Kit) {
		s, ordered, legacy := k.Stream(hal.StreamOptions{NonBlocking: true}), k.Stream(hal.StreamOptions{}), k.Device(0).DefaultStream()
		k.CaptureFails(legacy.BeginCapture(k.Me, hal.RelaxedMode), 900)
		var seq sequence
		require.NoError(k, legacy.BeginOwnCapture(k.Me, hal.RelaxedMode))
		k.state(legacy, hal.Capturing)
		k.CaptureFails(legacy.BeginOwnCapture(k.Me, hal.RelaxedMode), 401)
		k.Call(legacy, seq.note("first"))
		require.NoError(k, s.WaitStream(k.Me, legacy))
		k.Call(s, seq.note("side"))
		require.NoError(k, legacy.WaitStream(k.Me, s))
		k.Call(legacy, seq.note("last"))
		require.NoError(k, ordered.Nop(k.Me), "a stream that is not part of it")
		k.Sync(ordered)
		k.Capture(ordered) // another capture
		require.NoError(k, legacy.Nop(k.Me))
		require.Empty(k, k.EndCapture(ordered).Nodes())
		g := k.EndCapture(legacy)
		k.state(legacy, hal.NotCapturing)
		require.Len(k, g.Nodes(), 4)
		require.Empty(k, seq.take(), "nothing that is captured runs")
		k.Launch(k.Executable(g), legacy)
		k.Sync(legacy)
		require.Equal(k, []string{"first", "side", "last"}, seq.take())
	}},
	{"G1_the_own_default_stream_does_not_capture_beside_an_ordered_one", Graphs, func(k *Kit) {
		s, legacy := k.Stream(hal.StreamOptions{}), k.Device(0).DefaultStream()
		k.Capture(s)
		k.CaptureFails(legacy.BeginOwnCapture(k.Me, hal.RelaxedMode), 906)
		require.Empty(k, k.EndCapture(s).Nodes(), "the refusal does not invalidate it")
		require.NoError(k, legacy.BeginOwnCapture(k.Me, hal.RelaxedMode))
		require.NoError(k, s.WaitStream(k.Me, legacy))
		k.CaptureFails(s.BeginCapture(k.Me, hal.RelaxedMode), 401)
		_, err := legacy.Query(k.Me)
		k.CaptureFails(err, 900)
		k.invalidated(legacy, "query")
		k.Sync(s)
	}},
	{"G4_the_end_of_a_capture_whose_first_stream_was_closed_says_so_once", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		k.Capture(a)
		require.NoError(k, b.WaitStream(k.Me, a))
		require.NoError(k, a.Close(k.Me))
		k.state(b, hal.NotCapturing)
		_, err := a.EndCapture(k.Me)
		k.CaptureFails(err, 901)
		require.ErrorContains(k, err, "was closed; close it after the end of the capture")
		_, err = a.EndCapture(k.Me)
		k.CaptureFails(err, 401)
		k.Sync(b)
	}},
	{"G4_a_stream_that_takes_part_is_named_with_the_place_that_pulled_it_in", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		line := uint32(1)
		k.RT.SetSites(func() uint32 { return line })
		defer k.RT.SetSites(nil)
		k.RT.SetPlaces(func(site uint32) string { return fmt.Sprintf("app:%d", site) })
		defer k.RT.SetPlaces(func(uint32) string { return "" })
		k.Capture(a)
		line = 2
		require.NoError(k, b.WaitStream(k.Me, a))
		line = 3
		err := b.BeginCapture(k.Me, hal.RelaxedMode)
		k.CaptureFails(err, 401)
		require.ErrorContains(k, err, "since its begin at app:1), as it was pulled in at app:2; end that capture first")
		require.Empty(k, k.EndCapture(a).Nodes(), "the refusal does not invalidate it")
	}},
	{"G5_a_record_is_no_node_unless_it_is_external", Graphs, func(k *Kit) {
		g, e := newGraph(k), k.Event(hal.EventOptions{})
		_, err := g.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error { return s.Record(k.Me, e) })
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "record_external")
		n, err := g.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error { return s.RecordExternal(k.Me, e) })
		require.NoError(k, err)
		err = g.AddEdge(k.Me, n, n)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "after itself")
	}},
}
