package hal_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

// vendor is the host backend with what a vendor's library adds to one: it knows
// memory of others, has to be asked how far its streams are, stages copies, and
// its streams have handles.
type vendor struct {
	*host.Driver
	foreign   []foreign // what Probe knows
	probes    atomic.Int32
	refreshes atomic.Int32
	devices   []*vendorDevice
}

type foreign struct {
	where       driver.Where
	start, size uint64
	ordinal     int
}

type vendorDevice struct {
	*host.Device
	of       *vendor
	staged   map[uint64]bool // whether it was taken by a copy
	next     uint64
	lost     *driver.Error
	external int
	streams  []*vendorStream
}

type vendorStream struct {
	*host.Stream
	dev      *vendorDevice
	handle   uint64
	known    uint64 // what Reached answers from
	asked    bool
	kept     int
	lastCopy driver.Copy
	refuse   error
}

func openVendor(t *testing.T) (*hal.Runtime, *vendor) {
	t.Helper()
	h, err := host.Open(host.Options{Devices: 2, Memory: 1 << 20})
	require.NoError(t, err)
	v := &vendor{Driver: h}
	rt, err := hal.Open(v, 1)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	return rt, v
}

func (v *vendor) Open(ordinal int) (driver.Device, error) {
	d, err := v.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	made := &vendorDevice{Device: d.(*host.Device), of: v, staged: map[uint64]bool{}, next: 0x1000 * uint64(ordinal+1)}
	v.devices = append(v.devices, made)
	return made, nil
}

func (v *vendor) Probe(addr uint64) (driver.Where, uint64, uint64, int, bool) {
	v.probes.Add(1)
	for _, f := range v.foreign {
		if addr-f.start < f.size {
			return f.where, f.start, f.size, f.ordinal, true
		}
	}
	return driver.Pageable, 0, 0, -1, false
}

func (v *vendor) Refresh() {
	v.refreshes.Add(1)
	for _, d := range v.devices {
		for _, s := range d.streams {
			if s.asked {
				s.asked = false
				s.known = s.doneNow()
			}
		}
	}
}

func (d *vendorDevice) Priorities() int { return 3 }

func (d *vendorDevice) Lost() *driver.Error { return d.lost }

func (d *vendorDevice) Legacy() driver.Stream {
	return &vendorStream{Stream: d.Device.Legacy().(*host.Stream), dev: d, handle: 1}
}

func (d *vendorDevice) NewStream(o driver.StreamOptions) (driver.Stream, error) {
	s, err := d.Device.NewStream(o)
	if err != nil {
		return nil, err
	}
	d.next += 16
	made := &vendorStream{Stream: s.(*host.Stream), dev: d, handle: d.next}
	d.streams = append(d.streams, made)
	return made, nil
}

func (d *vendorDevice) External(handle uint64) (driver.Stream, error) {
	if handle != 0xabc0 {
		return nil, driver.Errorf(driver.InvalidHandle, "use external stream", "no stream has it")
	}
	d.external++
	s, err := d.Device.NewStream(driver.StreamOptions{Level: 1})
	return &vendorStream{Stream: s.(*host.Stream), dev: d, handle: handle}, err
}

func (d *vendorDevice) Stage(size uint64) (uint64, error) {
	addr, err := d.of.AllocHost(size)
	if err == nil {
		d.staged[addr] = false
	}
	return addr, err
}

func (d *vendorDevice) Unstage(addr uint64) {
	d.of.FreeHost(addr)
	delete(d.staged, addr)
}

func (s *vendorStream) Handle() uint64 { return s.handle }

func (s *vendorStream) Made() driver.StreamOptions { return driver.StreamOptions{Level: 1} }

func (s *vendorStream) Keep() { s.kept++ }

func (s *vendorStream) doneNow() uint64 {
	for place := s.Last(); ; place-- {
		if s.Stream.Reached(place) {
			return place
		}
	}
}

func (s *vendorStream) Reached(place uint64) bool {
	s.asked = s.asked || s.known < place
	return s.known >= place
}

func (s *vendorStream) WaitStream(o driver.Stream, tag driver.Tag) error {
	return s.Stream.WaitStream(o.(*vendorStream).Stream, tag)
}

func (s *vendorStream) Copy(c driver.Copy) (driver.Point, error) {
	s.lastCopy = c
	if s.refuse != nil {
		return nil, s.refuse
	}
	if c.Release != 0 { // kept until the test ends: the host backend would give it to C's free
		s.dev.staged[c.Release] = true
		c.Release = 0
	}
	if c.Waited {
		_, err := s.Stream.Copy(c)
		return own{s.Stream.Point()}, err
	}
	return s.Stream.Copy(c)
}

// own is a point that only this backend makes.
type own struct{ driver.Point }

func (v *vendor) stream(t *testing.T, rt *hal.Runtime, o hal.StreamOptions) (*hal.Stream, *vendorStream) {
	t.Helper()
	d, err := rt.Device(0)
	require.NoError(t, err)
	s, err := d.NewStream(nil, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(nil) })
	list := v.devices[0].streams
	return s, list[len(list)-1]
}

func synchronized(t *testing.T, s *hal.Stream) {
	t.Helper()
	done, err := s.Synchronize(nil, int64(10*time.Second))
	require.NoError(t, err)
	require.True(t, done)
}

func TestMemoryOfOthersIsAskedForAndUsed(t *testing.T) {
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
	require.ErrorIs(t, err, hal.ErrInvalidValue, "nobody knows it")

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
	require.ErrorIs(t, rt.Free(nil, other), hal.ErrInvalidValue, "it is not the runtime's to give back")
	require.Zero(t, far.PoolStats().Used)

	v.foreign[0].size, v.foreign[0].where = 100, driver.Pinned
	require.NoError(t, s.Fill(nil, other, 1, 1, 100))
	v.foreign[0].where = driver.Pageable
	require.ErrorIs(t, s.Fill(nil, other, 1, 1, 100), hal.ErrInvalidValue)
	synchronized(t, s)

	before := v.probes.Load()
	_, err = s.Copy(nil, hal.CopySpec{Dst: b.Start, Src: b.Start + 128, Width: 128})
	require.NoError(t, err)
	require.Equal(t, before, v.probes.Load(), "what the runtime knows it does not ask for")
	synchronized(t, s)
	require.NoError(t, rt.Free(nil, b.Start))
}

func TestMemoryThatWasGivenBackIsNotTakenForThatOfOthers(t *testing.T) {
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

func TestSmallPageableSourcesAreStagedByTheDevice(t *testing.T) {
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
	require.Len(t, v.devices[0].staged, 1, "what was staged for a copy that was refused is given back")
	drv.refuse = nil

	p, err = s.Copy(nil, hal.CopySpec{Dst: mine, Src: b.Start, Width: 256})
	require.NoError(t, err)
	require.IsType(t, own{}, p, "the backend's point is the one to wait for")
	require.True(t, p.Wait(int64(10*time.Second)))
	require.Equal(t, driver.Pageable, drv.lastCopy.To)
	require.Equal(t, -1, drv.lastCopy.DstDevice)
	require.NoError(t, rt.Free(nil, b.Start))
}

// What the tests do not use of a vendor's library is absent.

func absent(doing string) error {
	return driver.Errorf(driver.NotSupported, doing, "the imitated library has none")
}

func (v *vendor) CanAccess(int, int) (bool, error) { return false, nil }

func (v *vendor) Enable(int, int) error { return absent("enable peer access") }

func (d *vendorDevice) PerThread(o driver.StreamOptions) (driver.Stream, error) {
	return d.NewStream(o)
}

func (d *vendorDevice) Fact(string) (string, error) { return "", absent("device fact") }

func (d *vendorDevice) Load([]byte) (driver.Module, error) { return nil, absent("load module") }

func (s *vendorStream) Launch(driver.Launch) error { return absent("launch") }
