package hal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

func TestPrioritiesAreClampedToTheDevice(t *testing.T) {
	rt, v := openVendor(t)
	d, err := rt.Device(0)
	require.NoError(t, err)
	require.Equal(t, -2, d.GreatestPriority())
	s, _ := v.stream(t, rt, hal.StreamOptions{Priority: -7})
	require.Equal(t, -2, s.Options().Priority)
}

func TestExternalFindsOwnAndForeignStreams(t *testing.T) {
	rt, v := openVendor(t)
	s, drv := v.stream(t, rt, hal.StreamOptions{})
	d := s.Device()
	far, err := rt.Device(1)
	require.NoError(t, err)
	own, err := d.External(nil, drv.handle)
	require.NoError(t, err)
	require.Same(t, s, own)
	_, err = far.External(nil, drv.handle)
	require.ErrorIs(t, err, hal.ErrWrongDevice)
	live := rt.Live()
	a, err := d.External(nil, 0xabc0)
	require.NoError(t, err)
	b, err := d.External(nil, 0xabc0)
	require.NoError(t, err)
	require.NotSame(t, a, b, "each is closed by its own owner")
	require.True(t, a.External())
	require.Equal(t, hal.StreamOptions{Priority: -1, NonBlocking: true}, a.Options())
	require.Equal(t, live+2, rt.Live())
	require.NoError(t, a.Close(nil))
	require.NoError(t, b.Nop(nil))
	synchronized(t, b)
	require.NoError(t, b.Close(nil))
	require.NoError(t, s.Close(nil))
	_, err = d.External(nil, drv.handle)
	require.ErrorIs(t, err, hal.ErrInvalidHandle, "a closed stream has no handle any more")
}

func TestSynchronizeFailsOnALostDevice(t *testing.T) {
	rt, v := openVendor(t)
	s, _ := v.stream(t, rt, hal.StreamOptions{})
	d := s.Device()
	e, err := rt.NewEvent(nil, d, hal.EventOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Record(nil, e))
	synchronized(t, s)
	v.devices[0].lost = driver.Errorf(driver.DeviceLost, "record", "the device fell off")
	limit := int64(time.Second)
	_, stream := s.Synchronize(nil, limit)
	_, device := d.Synchronize(nil, limit)
	_, event := e.Synchronize(nil, limit)
	for _, err := range []error{stream, device, event, d.Lost()} {
		require.ErrorIs(t, err, hal.ErrDeviceLost)
		require.ErrorContains(t, err, "fell off")
	}
	other, err := rt.Device(1)
	require.NoError(t, err)
	done, err := other.Synchronize(nil, limit)
	require.NoError(t, err, "the other device was not lost")
	require.True(t, done)
	require.NoError(t, e.Close(nil))
}
