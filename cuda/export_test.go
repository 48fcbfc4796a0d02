package cuda

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda/fakectl"
	"halstream/hal/driver"
)

// NewFake returns the look-alike driver in its first state. It waits for the calls that an earlier
// test has left behind in the driver: what they give back there belongs to the state before.
func NewFake(t testing.TB) *fakectl.Fake {
	t.Helper()
	require.Eventually(t, func() bool { return open.Load() == 0 }, 10*time.Second, time.Millisecond,
		"an earlier test has left a device open")
	f, err := fakectl.Open(fakectl.Path())
	require.NoError(t, err)
	require.NoError(t, f.Control("reset"))
	return f
}

// fakeDevice returns the look-alike driver in its first state, device 0 of it, and a stream. Its backend is closed
// with the test.
func fakeDevice(t testing.TB) (*fakectl.Fake, *Device, driver.Stream) {
	t.Helper()
	f := NewFake(t)
	drv, err := Open(f.Path)
	require.NoError(t, err)
	t.Cleanup(drv.Close)
	opened, err := drv.Open(0)
	require.NoError(t, err)
	dev := opened.(*Device)
	require.NoError(t, dev.usable("test"))
	s, err := dev.NewStream(driver.StreamOptions{ID: 7})
	require.NoError(t, err)
	return f, dev, s
}
