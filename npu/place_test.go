package npu_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
	"halstream/npu"
)

// What is enqueued while another thread looks how far a stream is does not count as done with what was before.
// The look and the gate meet by chance, in about 3 of 10,000 rounds: one run finds the fault less than every second
// time, and never reports one that is not there.
func TestO3_a_look_at_a_stream_does_not_take_in_later_work(t *testing.T) {
	f := fake(t)
	drv, err := npu.Open(f.Path)
	require.NoError(t, err)
	defer drv.Close()
	d, err := drv.Open(0)
	require.NoError(t, err)
	s, err := d.NewStream(driver.StreamOptions{Level: 3})
	require.NoError(t, err)
	require.NoError(t, s.Nop(0))
	var over atomic.Bool
	var looks sync.WaitGroup
	for range 8 {
		looks.Go(func() {
			for !over.Load() {
				drv.Refresh()
			}
		})
	}
	wrong := 0
	for i := range 2000 {
		require.NoError(t, s.Nop(0))
		s.Reached(s.Last()) // what the looks are for
		for range i % 64 {
			runtime.Gosched()
		}
		g, err := s.Gate(1, 0)
		require.NoError(t, err)
		place := s.Last()
		time.Sleep(100 * time.Microsecond) // makes it likelier that a look which began before has ended; no order depends on it
		if s.Reached(place) {
			wrong++
		}
		g.Open()
	}
	over.Store(true)
	looks.Wait()
	require.Zero(t, wrong, "a gate that is closed counts as passed")
}
