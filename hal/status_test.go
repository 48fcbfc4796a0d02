package hal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/host"
	"halstream/hal/status"
)

func openStatus(t *testing.T) (*hal.Runtime, *hal.Device) {
	t.Helper()
	drv, err := host.Open(host.Options{Devices: 1})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	d, err := rt.Device(0)
	require.NoError(t, err)
	return rt, d
}

func newStream(t *testing.T, d *hal.Device, o hal.StreamOptions) *hal.Stream {
	t.Helper()
	s, err := d.NewStream(nil, o)
	require.NoError(t, err)
	return s
}

func TestO1_the_word_of_a_runtime_says_that_listeners_are_notified_and_that_a_stream_captures(t *testing.T) {
	rt, d := openStatus(t)
	word := rt.Status()
	require.Zero(t, word.Load())
	first, second := rt.Listen(func(hal.Operation) {}), rt.Listen(func(hal.Operation) {})
	require.EqualValues(t, status.Listened, word.Load())
	first()
	require.EqualValues(t, status.Listened, word.Load())
	second()
	require.Zero(t, word.Load())
	s := newStream(t, d, hal.StreamOptions{})
	require.NoError(t, s.BeginCapture(nil, hal.GlobalMode))
	require.EqualValues(t, status.Captured, word.Load())
	g, err := s.EndCapture(nil)
	require.NoError(t, err)
	require.NoError(t, g.Close(nil))
	require.Zero(t, word.Load())
}
