package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var observeCases = []testCase{
	{"O1_listeners_see_what_is_enqueued", 0, func(k *Kit) {
		s, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		var seen []string
		var versions []uint64
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Host {
				return
			}
			require.Same(k, k.Me, o.Thread)
			seen = append(seen, o.Kind)
			versions = append(versions, o.Version)
		})
		require.NoError(k, s.Nop(k.Me))
		k.Record(s, e)
		k.Wait(b, e)
		k.Record(s, e)
		require.NoError(k, b.WaitStream(k.Me, s))
		k.Call(b, func() {})
		stop()
		require.NoError(k, s.Nop(k.Me))
		k.Sync(s, b)
		require.Equal(k, []string{"nop", "record", "wait", "record", "wait stream", "call"}, seen)
		require.Equal(k, []uint64{0, 1, 1, 2, 0, 0}, versions)
	}},
	{"O2_a_stream_says_what_it_waits_for", Gates, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		require.Contains(k, a.Describe(), "idle")
		g, err := a.Gate(k.Me)
		require.NoError(k, err)
		e := k.Event(hal.EventOptions{})
		k.Record(a, e)
		k.Wait(b, e)
		require.Contains(k, b.Describe(), "a wait for event")
		require.Contains(k, b.Describe(), "which nobody has opened")
		g.Open()
		k.Sync(b)
	}},
	{"O3_a_gate_holds_its_stream_until_it_is_opened", Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		g, err := s.Gate(k.Me)
		require.NoError(k, err)
		again, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Pending(s, "the gate is closed")
		require.False(k, g.Opened())
		again.Open()
		k.Pending(s, "the first gate is closed")
		g.Open()
		g.Open()
		require.True(k, g.Opened())
		k.Sync(s)
	}},
	{"O4_interprocess_events_have_no_timing", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		e := k.Event(hal.EventOptions{Interprocess: true})
		k.Record(s, e)
		k.Sync(s)
		both := k.Event(hal.EventOptions{Interprocess: true, Timing: true})
		require.ErrorIs(k, s.Record(k.Me, both), hal.ErrInvalidValue)
	}},
}
