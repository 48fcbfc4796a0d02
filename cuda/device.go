package cuda

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal/addrmap"
	"halstream/hal/driver"
)

// Device is one GPU. Its primary context, which all libraries of the process
// share, is retained at the first use: a context takes memory on the device.
type Device struct {
	drv     *Driver
	ordinal int
	dev     C.CUdevice
	name    string
	legacy  *Stream

	live    atomic.Pointer[live]
	lost    atomic.Pointer[driver.Error]
	ended   atomic.Bool // the driver was closed
	marks   [eventFlavours]marks
	slots   slots
	streams registry
	spares  spareStreams
	// The addresses of blocks that were allocated here and freed since. Memory of other libraries may lie between
	// them, in the same mapping of the driver.
	freed   addrmap.Ranges
	sizes   sync.Map // of the blocks in use, by address
	plain   sync.Map // addresses of blocks, and of slabs to be freed, that are of no pool
	pooled  addrmap.Ranges
	slabs   slabs
	staged  staged
	unfreed unfreed
	working atomic.Int64 // tasks on host threads that are in flight
	calling atomic.Int64 // functions of the program that run and hold their streams
	modules modules
	endings endings

	apartCalls atomic.Int64 // calls of the driver that another thread makes
}

// Open implements driver.Driver.
func (d *Driver) Open(ordinal int) (driver.Device, error) {
	dev := &Device{drv: d, ordinal: ordinal}
	const room = 256
	name := (*C.char)(C.malloc(room))
	defer C.free(unsafe.Pointer(name))
	if err := check(C.hs_device(C.int(ordinal), &dev.dev, name, room), "open device"); err != nil {
		return nil, err
	}
	dev.name = C.GoString(name)
	dev.legacy = &Stream{dev: dev, h: legacyHandle, level: driver.Levels - 1}
	dev.streams.add(dev.legacy)
	d.devices[ordinal] = dev
	return dev, nil
}

// usable refuses calls on a device that was lost, and starts one that was not used.
func (d *Device) usable(doing string) error {
	if d.lost.Load() != nil {
		return d.lostError(doing)
	}
	if d.live.Load() == nil {
		return d.start(doing)
	}
	return nil
}

// unusable reports whether the driver answers no call about the device any more.
func (d *Device) unusable() bool { return d.lost.Load() != nil || d.ended.Load() }

func (d *Device) state() *live     { return d.live.Load() }
func (d *Device) ctx() C.CUcontext { return d.live.Load().ctx }
func (d *Device) memops() bool     { return d.live.Load().memops.Load() }
func (d *Device) base() *mark      { return d.live.Load().base }
func (d *Device) opened() bool     { return d.live.Load() != nil && d.lost.Load() == nil }
func (d *Device) title() string    { return fmt.Sprintf("device %d (%s)", d.ordinal, d.name) }
func (d *Device) probe() error {
	_, err := d.answer(C.hs_stream_query(d.ctx(), d.state().internal), "look at device")
	return err
}

// Name implements driver.Device.
func (d *Device) Name() string { return d.name }

// Legacy implements driver.Device.
func (d *Device) Legacy() driver.Stream { return d.legacy }

// Priorities implements driver.VendorDevice. The driver reports its range only within
// a context, which this does not create; it clamps priorities outside of the range.
func (d *Device) Priorities() int {
	if d.attribute(attributePriorities) == 0 {
		return 1
	}
	return 6 // as many as drivers distinguish
}

// spin is for how many nanoseconds a host thread that waits polls without a pause.
func (d *Device) spin(flags uint8) int64 {
	if flags&eventBlockingSync != 0 {
		return 0
	}
	return 30_000
}

// Point implements driver.Device. It covers all work of the context, that of other
// libraries included, if the driver has cuCtxRecordEvent; else that of the streams
// of this process that halstream knows.
func (d *Device) Point() driver.Point {
	const doing = "synchronize device"
	if !d.opened() {
		return reachedPoint{}
	}
	if C.hs_has(C.HS_cuCtxRecordEvent) != 0 {
		if m, err := d.newMark(eventDisableTiming, doing); err == nil {
			covered := d.pendingPlaces() // before the record, which is behind them
			s := C.hs_record_context(d.ctx(), m.event)
			if s == 0 {
				return &point{mark: m, covered: covered, spin: d.spin(m.flags)}
			}
			m.release()
			_ = d.check(s, doing)
		}
	}
	var ps driver.Points
	var captured *Stream
	for _, s := range d.streams.all() {
		if !s.borrowed() && s.Captured() {
			captured = s // its marks would become nodes, and never be reached
			continue
		}
		if p := s.behind(); p != nil {
			ps = append(ps, p)
		} else {
			ps = append(ps, s.Point())
		}
	}
	if captured != nil {
		return refusedPoint{ps, captured.capturedWait(doing)}
	}
	return ps
}

// capturedWait is the error of a wait for work that another library's capture has taken.
func (s *Stream) capturedWait(doing string) *driver.Error {
	e := driver.Errorf(driver.Capture, doing, "another library captures stream %d of device %d, and nothing that is captured "+
		"runs before that ends; end that capture first", s.id, s.dev.ordinal)
	e.Code = C.HS_CAPTURE_UNSUPPORTED
	return e
}

// refusedPoint is a point beside a capture of another library. Its wait leaves out what that has taken.
type refusedPoint struct {
	driver.Points
	cause *driver.Error
}

// Refused implements driver.RefusedPoint.
func (p refusedPoint) Refused() *driver.Error { return p.cause }

// pendingPlaces returns the latest place of each stream that is not known to be reached.
func (d *Device) pendingPlaces() (places []streamPlace) {
	for _, s := range d.streams.all() {
		if place := s.enqueued.Load(); s.reached.Load() < place {
			places = append(places, streamPlace{s, place})
		}
	}
	return places
}

// Pending implements driver.Device.
func (d *Device) Pending() int {
	if !d.opened() {
		return 0
	}
	n := 0
	for _, s := range d.streams.all() {
		if s.pending() {
			n += max(1, int(s.enqueued.Load()-s.reached.Load()))
		}
	}
	return n
}

// Describe implements driver.Device.
func (d *Device) Describe() string {
	if cause := d.lost.Load(); cause != nil {
		return d.title() + " is lost: " + cause.Error()
	}
	var parts []string
	if d.opened() {
		for _, s := range d.streams.all() {
			if s.pending() {
				parts = append(parts, s.Describe())
			}
		}
	}
	if len(parts) == 0 {
		return d.title() + " has no pending work"
	}
	return strings.Join(parts, "; ")
}

// Numbers of the driver's attributes.
const (
	attributeWarp       = C.HS_ATTRIBUTE_WARP
	attributeClock      = C.HS_ATTRIBUTE_CLOCK
	attributeProcessors = C.HS_ATTRIBUTE_PROCESSORS
	attributeUnified    = C.HS_ATTRIBUTE_UNIFIED
	attributeMajor      = C.HS_ATTRIBUTE_MAJOR
	attributePriorities = C.HS_ATTRIBUTE_PRIORITIES
	attributeMinor      = C.HS_ATTRIBUTE_MINOR
	attributePools      = C.HS_ATTRIBUTE_POOLS
	attributeClusters   = C.HS_ATTRIBUTE_CLUSTERS
)

// attribute returns one, 0 for those that the driver does not know.
func (d *Device) attribute(number int) int {
	var v C.int
	if C.hs_attribute(d.dev, C.int(number), &v) != 0 {
		return 0
	}
	return int(v)
}

// Fact implements driver.VendorDevice.
func (d *Device) Fact(name string) (string, error) {
	numbers := map[string]int{
		"major": attributeMajor, "minor": attributeMinor, "processors": attributeProcessors,
		"warp": attributeWarp, "clock_khz": attributeClock, "unified": attributeUnified, "pools": attributePools,
	}
	const doing = "ask for a fact"
	number, ok := numbers[name]
	if text, cut := strings.CutPrefix(name, "attribute:"); cut {
		n, err := strconv.Atoi(text)
		number, ok = n, err == nil
	}
	switch {
	case ok:
		var v C.int
		if err := d.check(C.hs_attribute(d.dev, C.int(number), &v), doing); err != nil {
			return "", err
		}
		return strconv.Itoa(int(v)), nil
	case name == "driver":
		return strconv.Itoa(d.drv.version), nil
	case name == "memops":
		if err := d.usable(doing); err != nil {
			return "", err
		}
		return map[bool]string{true: "1", false: "0"}[d.memops()], nil
	case name == "memory":
		var bytes C.uint64_t
		err := d.check(C.hs_total(d.dev, &bytes), doing)
		return strconv.FormatUint(uint64(bytes), 10), err
	case name == "uuid":
		var raw [16]C.uchar
		if err := d.check(C.hs_uuid(d.dev, &raw[0]), doing); err != nil {
			return "", err
		}
		u := C.GoBytes(unsafe.Pointer(&raw[0]), 16)
		return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
	case name == "pci":
		const room = 32
		id := (*C.char)(C.malloc(room))
		defer C.free(unsafe.Pointer(id))
		if err := d.check(C.hs_bus(d.dev, id, room), doing); err != nil {
			return "", err
		}
		return C.GoString(id), nil
	}
	return "", driver.Errorf(driver.NotSupported, doing, "%q is none that the cuda backend knows", name)
}

// closeLimit is how long closing waits for work of the host's, nanoseconds.
const closeLimit = 2_000_000_000

// close ends what the device has, but for its context and pinned memory. The
// streams and events of the program are closed already.
func (d *Device) close() {
	if d.live.Load() == nil {
		return
	}
	if !d.awaitApart(closeLimit) || !d.awaitTasks(closeLimit) || !d.awaitIdle(closeLimit) {
		// A native function still runs, or a stream waits for a value that nothing writes:
		// their memory must not go from under them, and freeing it would wait for the stream.
		d.drv.left.Store(true)
		d.ended.Store(true)
		l := d.live.Swap(nil)
		l.left.Store(true)
		l.release(d)
		return
	}
	d.modules.unload(d)
	for _, s := range d.streams.all() {
		s.forget()
	}
	d.destroySpares()
	d.staged.drain(d)
	d.trimMarks(d.state(), 0)
	d.retryFrees(false)
	for _, start := range d.slabs.clear() {
		_ = d.check(C.hs_free(d.ctx(), C.CUdeviceptr(start)), "free")
	}
	d.slots.mu.Lock()
	d.slots.released = true
	d.slots.mu.Unlock()
	C.hs_guard_close(d.state().guard)
	for _, addr := range d.slots.slabs {
		C.hs_host_free(d.ctx(), C.uint64_t(addr))
	}
}
