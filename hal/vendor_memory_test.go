package hal_test

import (
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

func TestCopyUsesMemoryOfAnotherLibrary(t *testing.T) {
	rt, v := openVendor(t)
	s, drv := v.stream(t, rt, hal.StreamOptions{})
	d := s.Device()
	b, err := d.Alloc(nil, 256)
	require.NoError(t, err)
	other, err := v.devices[1].Alloc(256) // the library's, not the runtime's
	require.NoError(t, err)
	far, err := rt.Device(1)
	require.NoError(t, err)
	_, err = s.Copy(nil, hal.CopySpec{Dst: b.Start, Src: other, Width: 256})
	require.ErrorIs(t, err, hal.ErrInvalidValue, "neither the runtime nor the library reports it")

	v.foreign = []foreign{{driver.OnDevice, other, 256, 1}}
	p, err := s.Copy(nil, hal.CopySpec{Dst: b.Start, Src: other, Width: 256})
	require.NoError(t, err)
	require.Nil(t, p, "it is not pageable memory")
	require.Equal(t, []any{driver.OnDevice, 0, driver.OnDevice, 1},
		[]any{drv.lastCopy.To, drv.lastCopy.DstDevice, drv.lastCopy.From, drv.lastCopy.SrcDevice})
	_, err = s.Copy(nil, hal.CopySpec{Dst: other + 200, Src: b.Start, Width: 57})
	require.ErrorIs(t, err, hal.ErrInvalidValue)
	require.ErrorContains(t, err, "ends 1 bytes behind its block of 256 bytes")
	require.NoError(t, s.Fill(nil, other, 1, 1, 256))
	require.ErrorIs(t, rt.Free(nil, other), hal.ErrInvalidValue, "the runtime did not allocate it")
	require.Zero(t, far.PoolStats().Used)

	v.foreign[0].size, v.foreign[0].where = 100, driver.Pinned
	require.NoError(t, s.Fill(nil, other, 1, 1, 100))
	v.foreign[0].where = driver.Pageable
	require.ErrorIs(t, s.Fill(nil, other, 1, 1, 100), hal.ErrInvalidValue)
	synchronized(t, s)

	before := v.probes.Load()
	_, err = s.Copy(nil, hal.CopySpec{Dst: b.Start, Src: b.Start + 128, Width: 128})
	require.NoError(t, err)
	require.Equal(t, before, v.probes.Load(), "the library is not queried for blocks of the runtime")
	synchronized(t, s)
	require.NoError(t, rt.Free(nil, b.Start))
}

func TestFreedMemoryIsNotTakenForAnotherLibrarys(t *testing.T) {
	rt, v := openVendor(t)
	s, _ := v.stream(t, rt, hal.StreamOptions{NonBlocking: true})
	d := s.Device()
	pooled, err := s.AllocAsync(nil, 512)
	require.NoError(t, err)
	dying, err := d.Alloc(nil, 256)
	require.NoError(t, err)
	gate, err := s.Gate(nil)
	require.NoError(t, err)
	require.NoError(t, s.Fill(nil, dying.Start, 0, 1, 256))
	require.NoError(t, s.FreeAsync(nil, pooled.Start))
	require.NoError(t, rt.Free(nil, dying.Start))
	// The library still has both: one is kept in the pool, the other in use.
	v.foreign = []foreign{{driver.OnDevice, pooled.Start, 512, 0}, {driver.OnDevice, dying.Start, 256, 0}}
	for _, addr := range []uint64{pooled.Start, dying.Start + 255} {
		err := s.Fill(nil, addr, 0, 1, 1)
		require.ErrorIs(t, err, hal.ErrInvalidValue)
		require.ErrorContains(t, err, "freed or never allocated")
	}
	gate.Open()
	synchronized(t, s)
}

func TestSmallPageableSourceIsStagedByTheDevice(t *testing.T) {
	rt, v := openVendor(t)
	s, drv := v.stream(t, rt, hal.StreamOptions{})
	b, err := s.Device().Alloc(nil, 256)
	require.NoError(t, err)
	mine := programMemory(t, 256)
	p, err := s.Copy(nil, hal.CopySpec{Dst: b.Start, Src: mine, Width: 256})
	require.NoError(t, err)
	require.Nil(t, p)
	require.Equal(t, driver.Pinned, drv.lastCopy.From)
	require.Equal(t, drv.lastCopy.Src, drv.lastCopy.Release)
	require.Equal(t, map[uint64]bool{drv.lastCopy.Release: true}, v.devices[0].staged)

	drv.refuse = driver.Errorf(driver.Unknown, "copy", "refused")
	_, err = s.Copy(nil, hal.CopySpec{Dst: b.Start, Src: mine, Width: 256})
	require.ErrorContains(t, err, "refused")
	require.Len(t, v.devices[0].staged, 1, "the buffer of a refused copy is freed")
	drv.refuse = nil

	p, err = s.Copy(nil, hal.CopySpec{Dst: mine, Src: b.Start, Width: 256})
	require.NoError(t, err)
	require.IsType(t, own{}, p, "the backend's point is the one to wait for")
	require.True(t, p.Wait(int64(10*time.Second)))
	require.Equal(t, driver.Pageable, drv.lastCopy.To)
	require.Equal(t, -1, drv.lastCopy.DstDevice)
	require.NoError(t, rt.Free(nil, b.Start))
}

// programMemory returns the address of pageable memory.
func programMemory(t *testing.T, n int) uint64 {
	t.Helper()
	b := make([]byte, n)
	t.Cleanup(func() { clear(b) }) // alive until then
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// TestCopyRejectsReservedAddresses copies from and to pages that are mapped without
// access, as drivers map the addresses of devices.
func TestCopyRejectsReservedAddresses(t *testing.T) {
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

func TestRefreshFindsCompletedWork(t *testing.T) {
	rt, v := openVendor(t)
	s, drv := v.stream(t, rt, hal.StreamOptions{NonBlocking: true})
	h, err := rt.AllocHost(nil, 256)
	require.NoError(t, err)
	gate, err := s.Gate(nil)
	require.NoError(t, err)
	require.NoError(t, s.Fill(nil, h.Start, 1, 1, 256))
	require.Equal(t, 1, drv.kept, "FreeHost needs an exact answer for pinned memory")
	require.ErrorIs(t, rt.FreeHost(nil, h.Start, false), hal.ErrNotReady)
	gate.Open()
	synchronized(t, s)
	require.NoError(t, rt.FreeHost(nil, h.Start, false), "one call finds that the fill is done")

	d := s.Device()
	a, err := d.Alloc(nil, 600<<10)
	require.NoError(t, err)
	require.NoError(t, s.Fill(nil, a.Start, 1, 1, 16))
	require.Equal(t, 1, drv.kept, "device memory needs no exact answer")
	synchronized(t, s)
	require.NoError(t, rt.Free(nil, a.Start))
	b, err := d.Alloc(nil, 600<<10)
	require.NoError(t, err, "the call finds that the memory is free")
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
