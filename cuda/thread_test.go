package cuda_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/hal/driver"
)

// A thread that waits for another thread's own stream is not let go because that
// thread enqueues more.
func TestAnotherThreadsStreamStaysPending(t *testing.T) {
	f := fake(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	drv, err := cuda.Open(f.Path)
	require.NoError(t, err)
	defer drv.Close()
	for i := range drv.DeviceCount() {
		_, err := drv.Open(i)
		require.NoError(t, err)
	}
	dev, err := drv.Open(0)
	require.NoError(t, err)
	s, err := dev.(driver.VendorDevice).PerThread(driver.StreamOptions{ID: 1})
	require.NoError(t, err)
	defer s.Close()
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	defer gate.Open()
	require.NoError(t, s.Nop(0))

	points := make(chan driver.Point, 1)
	go func() { points <- s.Point() }() // this thread is taken, so it runs on another
	before := <-points
	require.False(t, before.Wait(0))
	go func() { points <- s.Point() }()
	unseen := <-points
	require.NoError(t, s.Nop(0))
	require.False(t, before.Wait(0), "the gate is closed")
	require.False(t, unseen.Wait(0), "the gate is closed")
	gate.Open()
	require.True(t, before.Wait(int64(10*time.Second)))
	require.True(t, unseen.Wait(int64(10*time.Second)))
}
