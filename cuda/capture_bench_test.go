package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// BenchmarkCaptureFills captures fills, instantiates the graph and closes it.
func BenchmarkCaptureFills(b *testing.B) {
	rt, err := open(fake(b).Path)()
	require.NoError(b, err)
	defer rt.Close()
	d, err := rt.Device(0)
	require.NoError(b, err)
	s, err := d.NewStream(nil, hal.StreamOptions{NonBlocking: true})
	require.NoError(b, err)
	block, err := d.Alloc(nil, 4096)
	require.NoError(b, err)
	t := hal.NewThread()
	for b.Loop() {
		require.NoError(b, s.BeginCapture(t, hal.RelaxedMode))
		for range 100 {
			require.NoError(b, s.Fill(t, block.Start, 0, 1, 4096))
		}
		g, err := s.EndCapture(t)
		require.NoError(b, err)
		x, err := g.Instantiate(t)
		require.NoError(b, err)
		require.NoError(b, x.Close(t))
		require.NoError(b, g.Close(t))
	}
}

// BenchmarkCaptureNothing begins and ends captures.
func BenchmarkCaptureNothing(b *testing.B) {
	rt, err := open(fake(b).Path)()
	require.NoError(b, err)
	defer rt.Close()
	d, err := rt.Device(0)
	require.NoError(b, err)
	s, err := d.NewStream(nil, hal.StreamOptions{})
	require.NoError(b, err)
	t := new(hal.Thread)
	for b.Loop() {
		_ = s.BeginCapture(t, hal.RelaxedMode)
		g, err := s.EndCapture(t)
		if err != nil {
			b.Fatal(err)
		}
		_ = g.Close(t)
	}
}
