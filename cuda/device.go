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
	plain   sync.Map // addresses of blocks that are of no pool
	staged  staged
	unfreed unfreed
	working atomic.Int64 // tasks on host threads that are in flight
	calling atomic.Int64 // functions of the program that run and hold their streams
	modules modules
	endings endings

	apartCalls atomic.Int64 // calls of the driver that another thread makes
}

// live is what a device has from its first use on.
type live struct {
	ctx      C.CUcontext
	greatest int         // priority of the most urgent streams
	memops   atomic.Bool // whether streams write and wait for words, as far as is known
	guard    *C.hs_guard // of functions on the driver's thread
	pool     C.CUmemoryPool
	internal C.CUstream  // on which memory is allocated and freed
	blocked  atomic.Bool // whether it did not go on when it was last waited for
	base     *mark       // the zero of the events' times
	delay    atomic.Pointer[driver.Function]
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

// start retains the primary context and what the backend needs in it. Threads
// that call at the same time each do it, and all but the first undo theirs: none
// may wait for another here, since it may hold Python's lock.
func (d *Device) start(doing string) error {
	if d.ended.Load() {
		return driver.Errorf(driver.Closed, doing, "the backend was closed; use the one that replaced it")
	}
	l := &live{guard: C.hs_guard_new()}
	if err := check(C.hs_retain(d.dev, &l.ctx), doing); err != nil {
		return d.undoStart(l, err)
	}
	var least, greatest C.int
	if err := check(C.hs_priorities(l.ctx, &least, &greatest), doing); err != nil {
		return d.undoStart(l, err)
	}
	l.greatest = int(greatest)
	if err := check(C.hs_stream_new(l.ctx, nonBlockingStream, greatest, &l.internal), doing); err != nil {
		return d.undoStart(l, err)
	}
	l.base = &mark{dev: d}
	l.base.refs.Store(1)
	if err := check(C.hs_event_new(l.ctx, 0, &l.base.event), doing); err != nil {
		return d.undoStart(l, err)
	}
	if err := check(C.hs_record(l.ctx, l.base.event, l.internal), doing); err != nil {
		return d.undoStart(l, err)
	}
	// Older drivers and some devices have no pools; memory comes from cuMemAlloc then.
	if d.attribute(attributePools) != 0 && hasPools() {
		if s := C.hs_pool_new(d.dev, l.ctx, &l.pool); s != 0 {
			l.pool = 0
			if err := check(s, doing); lasting(err.Code) {
				return d.undoStart(l, err)
			}
		}
	}
	l.memops.Store(C.hs_has(C.HS_cuStreamBatchMemOp_v2) != 0)
	if !d.live.CompareAndSwap(nil, l) {
		_ = d.undoStart(l, nil)
		return nil
	}
	d.prepare(doing)
	return nil
}

// hasPools reports whether the driver has all that memory from a pool needs.
func hasPools() bool {
	return C.hs_has(C.HS_cuMemPoolCreate) != 0 && C.hs_has(C.HS_cuMemPoolDestroy) != 0 &&
		C.hs_has(C.HS_cuMemAllocFromPoolAsync) != 0 && C.hs_has(C.HS_cuMemFreeAsync) != 0
}

// undoStart releases what a start has acquired so far.
func (d *Device) undoStart(l *live, cause *driver.Error) error {
	// A call that failed for a passing reason succeeds the second time.
	if l.pool != 0 && C.hs_pool_destroy(l.ctx, l.pool) != 0 {
		C.hs_pool_destroy(l.ctx, l.pool)
	}
	if l.base != nil && l.base.event != 0 {
		C.hs_event_destroy(l.ctx, l.base.event)
	}
	if l.internal != 0 {
		C.hs_stream_destroy(l.ctx, l.internal)
	}
	if l.ctx != 0 && C.hs_release(d.dev) != 0 {
		C.hs_release(d.dev)
	}
	if cause == nil {
		return nil
	}
	if lasting(cause.Code) {
		return d.lose(cause)
	}
	return cause
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
			s := C.hs_record_context(d.ctx(), m.event)
			if s == 0 {
				return &point{mark: m, spin: d.spin(m.flags)}
			}
			m.release()
			_ = d.check(s, doing)
		}
	}
	var ps driver.Points
	for _, s := range d.streams.all() {
		if p := s.behind(); p != nil {
			ps = append(ps, p)
		} else {
			ps = append(ps, s.Point())
		}
	}
	return ps
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
		d.live.Store(nil)
		return
	}
	d.modules.unload(d)
	for _, s := range d.streams.all() {
		s.forget()
	}
	d.destroySpares()
	d.staged.drain(d)
	d.trimMarks(0)
	d.retryFrees()
	d.slots.mu.Lock()
	d.slots.released = true
	d.slots.mu.Unlock()
	C.hs_guard_close(d.state().guard)
	for _, addr := range d.slots.slabs {
		C.hs_host_free(d.ctx(), C.uint64_t(addr))
	}
}

// releaseContext releases the context.
func (d *Device) releaseContext() {
	d.ended.Store(true)
	if l := d.live.Swap(nil); l != nil {
		_ = d.undoStart(l, nil)
	}
}
