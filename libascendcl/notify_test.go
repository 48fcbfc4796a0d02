package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// A wait may be refused in the middle, after another thread's wait has come behind it.
func TestN3_a_refused_wait_for_a_notify_lets_no_record_end_two_waits(t *testing.T) {
	const limit = int64(20 * time.Second)
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer rt.Close()
	d, err := rt.Device(0)
	require.NoError(t, err)
	me := hal.NewThread()
	made := func() *hal.Stream {
		s, err := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
		require.NoError(t, err)
		return s
	}
	event := func() *hal.Event {
		e, err := rt.NewEvent(me, d, hal.EventOptions{Kind: hal.Future})
		require.NoError(t, err)
		return e
	}
	done := func(s *hal.Stream) bool {
		ended, err := s.Query(me)
		require.NoError(t, err)
		return ended
	}
	for _, first := range []bool{true, false} { // whether there is a wait before the refused one
		n := &notify{Event: event()}
		early, refused, late, records := made(), made(), made(), made()
		if first {
			next := event()
			require.NoError(t, n.waitBehind(me, early, n.follow(next), next, 0))
		}
		require.NoError(t, refused.Close(me))
		next := event()
		before := n.follow(next)
		require.Equal(t, first, before != nil)
		behind := event()
		require.NoError(t, n.waitBehind(me, late, n.follow(behind), behind, 0))
		require.ErrorIs(t, n.waitBehind(me, refused, before, next, 0), hal.ErrClosed)
		require.False(t, n.withdraw(before, next), "the later wait would wait for ever")
		n.pass(me, d, before, next)
		if first {
			require.NoError(t, records.Record(me, n.Event))
			ended, err := early.Synchronize(me, limit)
			require.NoError(t, err)
			require.True(t, ended, "the first wait")
			_, err = d.Synchronize(me, int64(50*time.Millisecond)) // as far as everything goes
			require.NoError(t, err)
			require.False(t, done(late), "one record has ended two waits")
		}
		require.False(t, done(late))
		require.NoError(t, records.Record(me, n.Event))
		ended, err := late.Synchronize(me, limit)
		require.NoError(t, err)
		require.True(t, ended, "the wait behind the refused one")
	}
}

// Without a wait behind it a refused one leaves the notify as it was.
func TestN3_a_refused_wait_for_a_notify_is_withdrawn(t *testing.T) {
	n := &notify{turn: new(hal.Event)}
	first, next := n.turn, new(hal.Event)
	require.Same(t, first, n.follow(next))
	require.True(t, n.withdraw(first, next))
	require.Same(t, first, n.turn)
}
