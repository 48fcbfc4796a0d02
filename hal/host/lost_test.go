package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// calling is a native call that a test defines.
type calling func() *driver.Error

func (c calling) Run() *driver.Error { return c() }

func (calling) Drop() {}

func (calling) Title() string { return "a call" }

// TestD8_work_of_before_cannot_lose_a_device_again has an operation run while the device is lost and made to work again, and
// another one that is enqueued by a call which had not seen the loss.
func TestD8_work_of_before_cannot_lose_a_device_again(t *testing.T) {
	drv, err := Open(Options{Devices: 1, Engines: 2})
	require.NoError(t, err)
	defer drv.Close()
	opened, err := drv.Open(0)
	require.NoError(t, err)
	d := opened.(*Device)
	failing := func() *driver.Error { return driver.Errorf(driver.DeviceLost, "call", "it failed") }
	var streams [2]driver.Stream
	for i := range streams {
		streams[i], err = d.NewStream(driver.StreamOptions{ID: uint64(i + 1)})
		require.NoError(t, err)
	}
	began, leave := make(chan struct{}), make(chan struct{})
	require.NoError(t, streams[0].Native(driver.Native{Call: calling(func() *driver.Error {
		close(began)
		<-leave
		return failing()
	})}))
	<-began
	require.NoError(t, streams[0].Native(driver.Native{Call: calling(failing)})) // it is dropped with the loss
	require.NoError(t, streams[1].Native(driver.Native{Call: calling(failing)}))
	require.Eventually(t, func() bool { return d.Lost() != nil }, 10*time.Second, time.Millisecond)
	require.NoError(t, streams[0].Native(driver.Native{Call: calling(failing)}))
	d.Recover()
	close(leave)
	for _, s := range streams {
		require.True(t, s.Point().Wait(int64(10*time.Second)))
	}
	require.Nil(t, d.Lost())
	require.NoError(t, streams[0].Native(driver.Native{Call: calling(failing)}))
	require.True(t, streams[0].Point().Wait(int64(10*time.Second)))
	require.NotNil(t, d.Lost(), "a failure of afterwards counts")
}
