package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// A record that the core is told of afterwards takes the place of one in a capture.
func TestG2_a_record_without_a_call_ends_what_a_capture_has_recorded(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer rt.Close()
	me := hal.NewThread()
	d, err := rt.Device(0)
	require.NoError(t, err)
	a, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	b, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	e, err := rt.NewEvent(me, d, hal.EventOptions{})
	require.NoError(t, err)
	require.NoError(t, a.BeginCapture(me, hal.RelaxedMode))
	require.NoError(t, a.Record(me, e))
	g, err := a.EndCapture(me)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close(me)) }()
	gate, err := a.Gate(me)
	require.NoError(t, err)
	w := a.Status()
	require.NoError(t, e.NoteRecorded(d, a, w, w.Submitted.Load()))
	require.NoError(t, b.Wait(me, e), "it is an event of the stream again")
	done, err := e.Query(me)
	require.NoError(t, err)
	require.False(t, done)
	gate.Open()
	done, err = b.Synchronize(me, limitNS)
	require.NoError(t, err)
	require.True(t, done)
}
