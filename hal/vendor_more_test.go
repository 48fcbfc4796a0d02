package hal_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// programMemory returns the address of memory that the runtime knows nothing of.
func programMemory(t *testing.T, n int) uint64 {
	t.Helper()
	b := make([]byte, n)
	t.Cleanup(func() { clear(b) }) // alive until then
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// Drivers reserve addresses for devices: such pages are there and cannot be used.
func TestReservedAddressesAreNoMemory(t *testing.T) {
	rt, v := openVendor(t)
	s, _ := v.stream(t, rt, hal.StreamOptions{})
	b, err := s.Device().Alloc(nil, 256)
	require.NoError(t, err)
	pages, err := syscall.Mmap(-1, 0, 2<<12, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(pages)) }()
	addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(pages))))
	for _, c := range []hal.CopySpec{{Dst: b.Start, Src: addr, Width: 1}, {Dst: addr, Src: b.Start, Width: 256}} {
		_, err = s.Copy(nil, c)
		require.ErrorIs(t, err, hal.ErrInvalidValue)
		require.ErrorContains(t, err, "memory of this process")
	}
	require.NoError(t, syscall.Mprotect(pages[:1<<12], syscall.PROT_READ))
	_, err = s.Copy(nil, hal.CopySpec{Dst: b.Start, Src: addr + 1<<12 - 8, Width: 8})
	require.NoError(t, err)
	_, err = s.Copy(nil, hal.CopySpec{Dst: b.Start, Src: addr + 1<<12 - 8, Width: 9})
	require.ErrorIs(t, err, hal.ErrInvalidValue, "its last byte cannot be read")
	synchronized(t, s)
}

func TestABackendIsAskedHowFarItsStreamsAre(t *testing.T) {
	rt, v := openVendor(t)
	s, drv := v.stream(t, rt, hal.StreamOptions{NonBlocking: true})
	h, err := rt.AllocHost(nil, 256)
	require.NoError(t, err)
	gate, err := s.Gate(nil)
	require.NoError(t, err)
	require.NoError(t, s.Fill(nil, h.Start, 1, 1, 256))
	require.Equal(t, 1, drv.kept, "it is pinned memory: the answer must be exact")
	require.ErrorIs(t, rt.FreeHost(nil, h.Start, false), hal.ErrNotReady)
	gate.Open()
	synchronized(t, s)
	require.NoError(t, rt.FreeHost(nil, h.Start, false), "one call finds out that the fill is done")

	d := s.Device()
	a, err := d.Alloc(nil, 600<<10)
	require.NoError(t, err)
	require.NoError(t, s.Fill(nil, a.Start, 1, 1, 16))
	require.Equal(t, 1, drv.kept, "of a device's memory nobody asks for an exact answer")
	synchronized(t, s)
	require.NoError(t, rt.Free(nil, a.Start))
	b, err := d.Alloc(nil, 600<<10)
	require.NoError(t, err, "the room is found within the call")
	require.NoError(t, rt.Free(nil, b.Start))

	other, _ := v.stream(t, rt, hal.StreamOptions{NonBlocking: true})
	c, err := s.AllocAsync(nil, 512)
	require.NoError(t, err)
	require.NoError(t, s.Fill(nil, c.Start, 1, 1, 16))
	require.NoError(t, s.FreeAsync(nil, c.Start))
	synchronized(t, s)
	again, err := other.AllocAsync(nil, 512)
	require.NoError(t, err)
	require.Equal(t, c.Start, again.Start)
	require.NoError(t, other.FreeAsync(nil, again.Start))
	d.TrimPool(0)
	require.Zero(t, d.PoolStats().Reserved)
}

func TestPrioritiesAreThoseOfTheDevice(t *testing.T) {
	rt, v := openVendor(t)
	d, err := rt.Device(0)
	require.NoError(t, err)
	require.Equal(t, -2, d.GreatestPriority())
	s, _ := v.stream(t, rt, hal.StreamOptions{Priority: -7})
	require.Equal(t, -2, s.Options().Priority)
}

func TestHandlesOfOthersAndOfOurs(t *testing.T) {
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
	require.NotSame(t, a, b, "each has an owner who closes it")
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

func TestNobodyTakesALostDeviceForSuccess(t *testing.T) {
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

func TestAutoSaysWhatItPassed(t *testing.T) {
	rt, err := hal.OpenBackend("auto", 1)
	require.NoError(t, err)
	defer rt.Close()
	name := fmt.Sprintf("passed %p", t) // names stay registered
	before := len(rt.Skipped())
	hal.Register(name, 2, func() (driver.Driver, error) {
		return nil, driver.Errorf(driver.BackendAbsent, "open", "it is not installed")
	})
	again, err := hal.OpenBackend("auto", 1)
	require.NoError(t, err)
	defer again.Close()
	require.Len(t, again.Skipped(), before+1)
	require.Contains(t, again.Skipped(), name+": it is not installed")
	explicit, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer explicit.Close()
	require.Empty(t, explicit.Skipped())
}
