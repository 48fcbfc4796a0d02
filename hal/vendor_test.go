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

// vendor is the host backend with the properties of a vendor's library: it finds
// memory of other libraries, learns of completed work only in Refresh, stages copies,
// and its streams have handles.
type vendor struct {
	*host.Driver
	foreign   []foreign // what Probe finds
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
	staged   map[uint64]bool // addresses; true if a copy uses the buffer
	next     uint64
	lost     *driver.Error
	external int
	streams  []*vendorStream
}

type vendorStream struct {
	*host.Stream
	dev      *vendorDevice
	handle   uint64
	known    uint64 // the place up to which Reached is true
	asked    bool   // Reached was false since the latest Refresh
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

func (v *vendor) AwaitsHost() bool { return false }

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

// own is a point type that only this backend returns.
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

// The tests use none of what follows.

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
