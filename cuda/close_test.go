package cuda_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/hal"
	"halstream/hal/driver"
)

func openDevices(t *testing.T, path string) []driver.Device {
	t.Helper()
	drv, err := cuda.Open(path)
	require.NoError(t, err)
	t.Cleanup(drv.Close)
	var devices []driver.Device
	for i := range drv.DeviceCount() {
		d, err := drv.Open(i)
		require.NoError(t, err)
		devices = append(devices, d)
	}
	return devices
}

func TestCloseOnTheLookAlike(t *testing.T) {
	t.Run("L3_a_stream_is_destroyed_after_the_calls_that_enqueue_on_it", closeUnderACall)
	t.Run("L3_close_may_race_with_every_enqueue", closeInARace)
}

// The driver gives the handle of a destroyed stream to the next one, so a call
// in progress must not use it any more.
func closeUnderACall(t *testing.T) {
	f := fake(t)
	dev := openDevices(t, f.Path)[0]
	s, err := dev.NewStream(driver.StreamOptions{ID: 1})
	require.NoError(t, err)
	require.NoError(t, s.Nop(0))
	require.NoError(t, f.Control("slow cuEventRecord 100000"))
	enqueued := make(chan error, 1)
	go func() { enqueued <- s.Nop(0) }()
	require.Eventually(t, func() bool { return f.Count("sleeping") == 1 }, 10*time.Second, time.Millisecond)
	handle := s.(driver.VendorStream).Handle()
	s.Close()
	require.NotEqual(t, handle, newStream(t, dev, 2).(driver.VendorStream).Handle(), "the handle is in use")
	require.NoError(t, <-enqueued, "the stream was destroyed under the call")
	require.NoError(t, f.Control("slow cuEventRecord 0"))
	require.ErrorIs(t, s.Nop(0), hal.ErrClosed)
	require.True(t, s.Point().Wait(int64(10*time.Second)))
}

func closeInARace(t *testing.T) {
	dev := openDevices(t, fake(t).Path)[0]
	event, err := dev.NewEvent(driver.EventOptions{ID: 1})
	require.NoError(t, err)
	other, err := dev.NewStream(driver.StreamOptions{ID: 9999})
	require.NoError(t, err)
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for i := range rounds {
		s, err := dev.NewStream(driver.StreamOptions{ID: uint64(i + 1)})
		require.NoError(t, err)
		calls := []func() error{
			func() error { return s.Nop(0) },
			func() error { return s.Record(event, 0) },
			func() error { return s.Wait(event, driver.Forever, 0) },
			func() error { return s.WaitStream(other, 0) },
			func() error { return other.WaitStream(s, 0) },
		}
		var started, ended sync.WaitGroup
		for _, call := range calls {
			started.Add(1)
			ended.Add(1)
			go func() {
				defer ended.Done()
				started.Done()
				for range 20 {
					if err := call(); err != nil {
						assert.True(t, errors.Is(err, hal.ErrClosed), "%v", err)
						return
					}
				}
			}()
		}
		started.Wait()
		s.Close()
		ended.Wait()
		require.True(t, s.Point().Wait(int64(10*time.Second)))
	}
}
