package cuda

/*
#include <stdlib.h>
#include "calls.h"
#include "gil.h"
*/
import "C"

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"halstream/hal/addrmap"
	"halstream/hal/driver"
	"halstream/hal/park"
	"halstream/hal/vendor"
)

// Device is one GPU. Its primary context, which all libraries of the process
// share, is retained at the first use: a context takes memory on the device.
type Device struct {
	drv     *Driver
	ordinal int
	dev     C.CUdevice
	name    string
	legacy  *Stream

	vendor.Device
	started atomic.Pointer[deviceState] // nil before the first use, and when the driver was closed
	// fenceEvents are unused events of the driver, by their flags.
	fenceEvents [eventFlavours]vendor.FenceEvents
	slots       slots
	streams     vendor.Streams[*Stream]
	spares      spareStreams
	// The addresses of blocks that were allocated here and freed since. Memory of other libraries may lie between
	// them, in the same mapping of the driver.
	freed    addrmap.Ranges
	sizes    sync.Map // of the blocks in use, by address
	plain    sync.Map // addresses of blocks, and of slabs to be freed, that are of no pool
	pooled   addrmap.Ranges
	slabs    slabs
	staged   vendor.Staged
	unfreed  unfreed
	calling  atomic.Int64 // functions of the program that run and hold their streams
	modules  modules
	launches pendingLaunches

	callsElsewhere atomic.Int64 // calls of the driver that another thread makes
}

// deviceCalls is what hal/vendor asks of a device.
type deviceCalls struct{ d *Device }

func (deviceCalls) Pause() bool { return pause() }

// Enter implements vendor.DeviceCalls.
func (c deviceCalls) Enter() vendor.Context {
	l := c.d.state()
	if l == nil || !l.refs.Hold() {
		return nil
	}
	return l
}

// DropBlocked drops the operations that need the host, and ends the launches of graphs.
func (c deviceCalls) DropBlocked() {
	c.d.drv.poller.dropBlockers(c.d)
	c.d.launches.endAll()
}

// usable refuses calls on a device that was lost, and starts one that was not used.
func (d *Device) usable(doing string) error {
	if d.IsLost() {
		return d.LostError(doing)
	}
	if d.state() == nil {
		return d.start(doing)
	}
	return nil
}

func (d *Device) state() *deviceState { return d.started.Load() }

func (d *Device) ctx() C.CUcontext { return d.state().ctx }

func (d *Device) memops() bool { return d.state().memops.Load() }

func (d *Device) base() *vendor.FenceEvent { return d.state().base }

func (d *Device) opened() bool { return d.state() != nil && !d.IsLost() }

func (d *Device) title() string { return fmt.Sprintf("device %d (%s)", d.ordinal, d.name) }

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
func spin(flags uint8) int64 {
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
		return vendor.ReachedFence()
	}
	if C.hs_has(C.HS_cuCtxRecordEvent) != 0 {
		if m, err := d.newFenceEvent(eventDisableTiming, doing); err == nil {
			covered := d.pendingOperations() // before the record, which is behind them
			s := C.hs_record_context(d.ctx(), C.CUevent(m.Event))
			if s == 0 {
				return vendor.NewDeviceFence(m, covered)
			}
			m.Release()
			_ = d.check(s, doing)
		}
	}
	var ps driver.Points
	var captured *Stream
	for _, s := range d.streams.All() {
		if !s.borrowed() && s.Captured() {
			captured = s // its fence events would become nodes, and never be reached
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

// Refused implements driver.RefusedPoint.
func (p refusedPoint) Refused() *driver.Error { return p.cause }

// pendingOperations returns the latest operation of each stream that is not known to be done.
func (d *Device) pendingOperations() (all []vendor.Sequence) {
	for _, s := range d.streams.All() {
		if seq := s.Last(); s.Done() < seq {
			all = append(all, vendor.Sequence{Stream: &s.Progress, Number: seq})
		}
	}
	return all
}

// Pending implements driver.Device.
func (d *Device) Pending() int {
	if !d.opened() {
		return 0
	}
	n := 0
	for _, s := range d.streams.All() {
		if s.pending() {
			n += s.AtMost()
		}
	}
	return n
}

// Describe implements driver.Device.
func (d *Device) Describe() string {
	if cause := d.Cause(); cause != nil {
		return d.title() + " is lost: " + cause.Error()
	}
	var parts []string
	if d.opened() {
		for _, s := range d.streams.All() {
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
	if d.state() == nil {
		return
	}
	if !d.awaitCallsElsewhere(closeLimit) || !d.AwaitTasks(closeLimit) || !d.AwaitIdle(d.Pending, closeLimit) {
		// A native function still runs, or a stream waits for a value that nothing writes:
		// their memory must not go from under them, and freeing it would wait for the stream.
		d.drv.left.Store(true)
		d.End()
		l := d.started.Swap(nil)
		l.left.Store(true)
		l.Leave()
		return
	}
	d.modules.unload(d)
	for _, s := range d.streams.All() {
		s.forget()
	}
	d.destroySpares()
	d.staged.Collect(math.MaxInt, d.Unstage)
	d.trimFenceEvents(d.state(), 0)
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

// deviceState is what a device has from its first use on. It implements vendor.Context.
type deviceState struct {
	dev      *Device
	ctx      C.CUcontext
	greatest int         // priority of the most urgent streams
	memops   atomic.Bool // whether streams write and wait for words, as far as is known
	guard    *C.hs_guard // of functions on the driver's thread
	pool     C.CUmemoryPool
	internal C.CUstream         // on which memory is allocated and freed
	dealt    uint64             // by which turn the driver has dealt out its hardware queue, of the greatest priority
	blocked  atomic.Bool        // whether it did not go on when it was last waited for
	stalled  atomic.Bool        // whether it did not when a call had no other memory, and work waited for the host
	drains   atomic.Bool        // whether the driver did not return from a call for memory, while work waited for the host
	base     *vendor.FenceEvent // the zero of the events' times
	delay    atomic.Pointer[driver.Function]
	// condition is the kernel that tells the driver a condition.
	condition atomic.Pointer[driver.Function]
	// refs are the device's own reference and one of each call that may still be in the driver when the
	// device is closed. Who gives up the last one releases the context.
	refs vendor.References
	left atomic.Bool // it stays, with what is in it, until the process ends
}

// Await implements vendor.Context.
func (l *deviceState) Await(m *vendor.FenceEvent, limit int64, doing string) (bool, *driver.Error) {
	var s C.hs_status
	if limit == 0 {
		s = C.hs_event_query(l.ctx, C.CUevent(m.Event))
	} else {
		s = C.hs_await(l.ctx, C.CUevent(m.Event), C.int64_t(limit), C.int64_t(spin(m.Kind())))
	}
	return l.waited(s, doing)
}

// waited converts the result of a wait as Await does.
func (l *deviceState) waited(s C.hs_status, doing string) (bool, *driver.Error) {
	if s == 0 || C.hs_code(s) == codeNotReady {
		return s == 0, nil
	}
	e := failed(s, doing)
	if lasting(e.Code) {
		_ = l.dev.Lose(e)
	}
	return false, e
}

// Leave gives a reference up. Who gives up the last one releases the context.
func (l *deviceState) Leave() {
	if !l.refs.Release() {
		return
	}
	if !l.left.Load() {
		l.dev.trimFenceEvents(l, 0) // those that were in use when the device was closed
		_ = l.dev.undoStart(l, nil)
	}
	open.Add(-1)
}

// start retains the primary context and what the backend needs in it. Threads
// that call at the same time each do it, and all but the first undo theirs: none
// may wait for another here, since it may hold Python's lock.
func (d *Device) start(doing string) error {
	if d.Ended() {
		return driver.Errorf(driver.Closed, doing, "the backend was closed; use the one that replaced it")
	}
	l := &deviceState{dev: d, guard: C.hs_guard_new()}
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
	internal := spareStream{}
	d.spares.number(&internal, uint8(d.Priorities()-1))
	l.dealt = internal.dealt
	var base C.CUevent
	err := check(C.hs_event_new(l.ctx, 0, &base), doing)
	l.base = &vendor.FenceEvent{Event: uintptr(base)}
	if err != nil {
		return d.undoStart(l, err)
	}
	if err := check(C.hs_record(l.ctx, C.CUevent(l.base.Event), l.internal), doing); err != nil {
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
	l.refs.Set(1)
	open.Add(1)
	if !d.started.CompareAndSwap(nil, l) {
		_ = d.undoStart(l, nil) // the spare fence events are those of the thread that was faster
		open.Add(-1)
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
func (d *Device) undoStart(l *deviceState, cause *driver.Error) error {
	// A call that failed for a passing reason succeeds the second time.
	if l.pool != 0 && C.hs_pool_destroy(l.ctx, l.pool) != 0 {
		C.hs_pool_destroy(l.ctx, l.pool)
	}
	if l.base != nil && l.base.Event != 0 {
		C.hs_event_destroy(l.ctx, C.CUevent(l.base.Event))
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
		return d.Lose(cause)
	}
	return cause
}

// releaseContext releases the context, unless a call in the driver still needs it: then that call does.
func (d *Device) releaseContext() {
	d.End()
	if l := d.started.Swap(nil); l != nil {
		l.Leave()
	}
}

// External implements driver.VendorDevice.
func (d *Device) External(handle uint64) (driver.Stream, error) {
	const doing = "use external stream"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	if handle == 0 || handle == legacyHandle {
		return d.legacy, nil
	}
	if handle == perThreadHandle {
		return nil, driver.Errorf(driver.InvalidHandle, doing,
			"2 means another stream on each thread; ask for the per-thread default stream on the thread that uses it")
	}
	if d.spares.has(C.CUstream(handle)) {
		return nil, driver.Errorf(driver.InvalidHandle, doing,
			"the stream with the handle %#x was closed; use handles only while their streams are open", handle)
	}
	if C.hs_mapped(C.uint64_t(handle)) == 0 {
		// A driver does not check what it is given: it reads the memory that the handle points to.
		return nil, driver.Errorf(driver.InvalidHandle, doing,
			"handle %#x is no stream of this process that is alive: no memory of the process is there", handle)
	}
	var of C.CUcontext
	var flags C.uint32_t
	var priority C.int
	s := C.hs_stream_facts(d.ctx(), C.CUstream(handle), &of, &flags, &priority)
	if err := d.check(s, doing); err != nil {
		e := err.(*driver.Error)
		if !d.IsLost() && e.Code != codeNotSupported {
			e.Kind = driver.InvalidHandle
			e.Text = fmt.Sprintf("handle %#x is no stream of this process that is alive; its owner may have destroyed it (%s)",
				handle, e.Text)
		}
		return nil, e
	}
	if of != d.ctx() {
		return nil, driver.Errorf(driver.WrongDevice, doing,
			"stream %#x belongs to another device or context than device %d", handle, d.ordinal)
	}
	level := min(max(0, int(priority)-d.state().greatest), d.Priorities()-1)
	return d.add(&Stream{h: C.CUstream(handle), level: uint8(level), external: true,
		ordered: flags&nonBlockingStream == 0}), nil
}

// PerThread implements driver.VendorDevice. The handle means another stream on
// each thread, so other threads query a fence event that is recorded behind its work.
func (d *Device) PerThread(o driver.StreamOptions) (driver.Stream, error) {
	if err := d.usable("per-thread default stream"); err != nil {
		return nil, err
	}
	return d.add(&Stream{h: perThreadHandle, id: o.ID, level: o.Level, ordered: true, external: true, owner: C.hs_self()}), nil
}

// waitWithin waits for a point, and counts one as not reached whose query has not
// answered when the limit has passed: the query may wait for a lock of the driver's whose
// holder waits for the stream that this wait holds. Such a query may return after the device
// was closed, so it keeps what it uses, the point included, which is given up by release.
func (d *Device) waitWithin(at driver.Point, limit int64, release func()) bool {
	if p, ok := at.(*wordPoint); ok {
		return p.Wait(limit) // it reads a word, and calls no driver
	}
	l := d.state()
	if l == nil || !l.refs.Hold() {
		return false // the device was closed
	}
	answer := make(chan bool, 1)
	go func() {
		defer l.Leave()
		answer <- at.Wait(limit)
		release()
	}()
	late := time.NewTimer(time.Duration(limit + graceNS))
	defer late.Stop()
	select {
	case done := <-answer:
		return done
	case <-late.C:
		return false
	}
}

// NewEvent implements driver.Device. It calls nothing: the driver's event is
// taken at the first record.
func (d *Device) NewEvent(o driver.EventOptions) (driver.Event, error) {
	if err := d.usable("create event"); err != nil {
		return nil, err
	}
	return &Event{dev: d, opts: o}, nil
}

// answer converts the result of a query: whether the work is done, or an error.
func (d *Device) answer(s C.hs_status, doing string) (bool, error) {
	if C.hs_code(s) == codeNotReady {
		return false, nil
	}
	err := d.check(s, doing)
	return err == nil, err
}

// between returns the nanoseconds from one fence event to another.
func (d *Device) between(a, b *vendor.FenceEvent, doing string) (int64, error) {
	if err := d.usable(doing); err != nil {
		return 0, err
	}
	if a == nil || b == nil {
		return 0, driver.Errorf(driver.Unrecorded, doing, "an event was never recorded; record both events first")
	}
	var ms C.float
	s := C.hs_elapsed(d.ctx(), C.CUevent(a.Event), C.CUevent(b.Event), &ms)
	if C.hs_code(s) == codeNotReady {
		return 0, driver.Errorf(driver.NotReady, doing, "an event is still pending; synchronize it first")
	}
	if err := d.check(s, doing); err != nil {
		return 0, err
	}
	return int64(math.Round(float64(ms) * 1e6)), nil
}

// newFenceEvent returns an event of the driver with one reference.
func (d *Device) newFenceEvent(flags uint8, doing string) (*vendor.FenceEvent, error) {
	return d.fenceEvents[flags].New(func() (uintptr, error) {
		event, err := d.makeEvent(flags, doing)
		return uintptr(event), err
	})
}

func (d *Device) makeEvent(flags uint8, doing string) (C.CUevent, error) {
	ctx := d.ctx()
	var event C.CUevent
	s, err := d.callInterruptibly("cuEventCreate", doing,
		func() C.hs_status { return C.hs_event_new(ctx, C.uint32_t(flags), &event) },
		func() { C.hs_event_destroy(ctx, event) })
	if err != nil {
		return 0, err
	}
	return event, d.check(s, doing)
}

// trimFenceEvents destroys the unused events of the driver beyond most of each set of flags.
func (d *Device) trimFenceEvents(l *deviceState, most int) {
	for i := range d.fenceEvents {
		for _, m := range d.fenceEvents[i].Surplus(most) {
			_ = d.check(C.hs_event_destroy(l.ctx, C.CUevent(m.Event)), "close event")
		}
	}
}

// takeSlot returns an unused slot. A stream may still be waiting for the gate that
// used it last: any later value opens that gate as well.
func (d *Device) takeSlot(doing string) (*slot, error) {
	p := &d.slots
	p.mu.Lock()
	if n := len(p.spare); n > 0 {
		s := p.spare[n-1]
		p.spare = p.spare[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	const size = slabSlots * C.sizeof_hs_slot
	var addr C.uint64_t
	if err := d.check(C.hs_host_alloc(d.ctx(), size, &addr), doing); err != nil {
		return nil, err
	}
	C.hs_host_fill(addr, size, 0, 1)
	dev := C.CUdeviceptr(addr) // the same where addresses are unified
	if s := C.hs_host_device(d.ctx(), addr, &dev); s != 0 && C.hs_code(s) != codeNotSupported {
		C.hs_host_free(d.ctx(), addr)
		return nil, d.check(s, doing)
	}
	fresh := make([]*slot, slabSlots)
	for i := range fresh {
		offset := uintptr(i) * C.sizeof_hs_slot
		fresh[i] = &slot{p: slotAt(uintptr(addr) + offset), dev: dev + C.CUdeviceptr(offset)}
	}
	p.mu.Lock()
	p.slabs = append(p.slabs, uint64(addr))
	p.spare = append(p.spare, fresh[1:]...)
	p.mu.Unlock()
	return fresh[0], nil
}

// testMemops lets a stream write a word and wait for one that is set already: some systems
// have these operations and do nothing, as virtual machines may. Then functions on the
// driver's thread hold the streams. It reports whether the slot may be used again.
func (d *Device) testMemops(s *slot, doing string) bool {
	if !d.memops() {
		return true
	}
	ctx, stream := d.ctx(), d.state().internal
	s.value++
	value := C.uint32_t(s.value)
	C.hs_open(s.p, value)
	before, err := d.newFenceEvent(eventDisableTiming, doing)
	if err != nil {
		return true
	}
	defer before.Release()
	if C.hs_record(ctx, C.CUevent(before.Event), stream) != 0 {
		return true
	}
	if status := C.hs_hold(ctx, stream, nil, C.HS_HOLD, s.p, s.dev, value); status != 0 {
		if C.hs_code(status) == codeNotSupported {
			d.state().memops.Store(false)
		}
		return true // nothing was enqueued
	}
	for began := time.Now(); C.hs_reached(s.p) != value; time.Sleep(20 * time.Microsecond) {
		if time.Since(began) < memopsLimit {
			continue
		}
		// A device that does not come to the operation, since others use it, says nothing.
		if done, err := d.answer(C.hs_event_query(ctx, C.CUevent(before.Event)), doing); done && err == nil {
			d.state().memops.Store(false)
		}
		return false
	}
	return true
}

// newWord returns a word with the value 0. It fails with NotSupported.
func (d *Device) newWord(doing string) (*word, error) {
	if !d.memops() {
		return nil, driver.Errorf(driver.NotSupported, doing,
			"events that are set and reset need stream memory operations, which this driver has not (CUDA 11.7 has them)")
	}
	s, err := d.takeSlot(doing)
	if err != nil {
		return nil, err
	}
	s.p.reached = 0
	return &word{d, s}, nil
}

// queueLoads returns how many streams of a level are open in each hardware queue. The driver does not
// tell which queue a stream is in: it is taken to deal them out in turn, the first one of the ordinary
// level to the legacy default stream. The first one of the greatest level is in use for memory.
func (d *Device) queueLoads(level uint8) []int {
	loads := make([]int, queueCount())
	if d.isOrdinary(level) {
		loads[0]++
	}
	if level == 0 {
		loads[d.state().dealt%uint64(len(loads))]++
	}
	for _, s := range d.streams.All() {
		if s.level == level && s.nth != 0 { // the driver has made it for this runtime
			loads[s.dealt%uint64(len(loads))]++
		}
	}
	return loads
}

// sweep removes the closed streams whose work is done.
func (d *Device) sweep() {
	for _, s := range d.streams.All() {
		if tail := s.end(); tail != nil && tail.Wait(0) && d.streams.Remove(s) {
			s.QueryCached()
		}
	}
}

func (d *Device) isOrdinary(level uint8) bool { return int(level) == d.Priorities()-1 }

// takeStream returns a stream of the driver without work, in a hardware queue of its own if one is
// free: work of a stream that shares one with a held stream has to wait.
func (d *Device) takeStream(kind streamKind, doing string) (spareStream, error) {
	defer d.refillStreams(kind, doing)
	d.sweep() // closed streams count as long as they have work
	loads := d.queueLoads(kind.level)
	best, found := d.spares.take(kind, loads)
	if found && best.load(loads) == 0 {
		return best, nil
	}
	// The driver deals all queues out before one comes again. It may wait for the device to make
	// a stream, so no more than needed are made while one is held.
	tries := len(loads)
	if d.hostHolds() || !slices.Contains(loads, 0) {
		tries = 1
		if found {
			return best, nil
		}
	}
	for range tries {
		s, err := d.makeStream(kind, doing)
		switch {
		case err != nil && found:
			return best, nil
		case err != nil:
			return s, err
		case !found:
			best, found = s, true
		case s.load(loads) < best.load(loads):
			best, s = s, best
			d.giveStream(s)
		default:
			d.giveStream(s)
		}
		if best.load(loads) == 0 {
			break
		}
	}
	return best, nil
}

func (d *Device) makeStream(kind streamKind, doing string) (spareStream, error) {
	flags := nonBlockingStream
	if kind.ordered {
		flags = 0
	}
	ctx, ordinary := d.ctx(), uint8(d.Priorities()-1)
	made := spareStream{kind: kind}
	priority := d.state().greatest + int(kind.level)
	s, err := d.callInterruptibly("cuStreamCreateWithPriority", doing,
		func() C.hs_status {
			s := C.hs_stream_new(ctx, C.uint32_t(flags), C.int(priority), &made.h)
			if s == 0 {
				d.spares.number(&made, ordinary)
			}
			return s
		},
		func() { d.spares.put(made) })
	if err == nil {
		err = d.check(s, doing)
	}
	if err != nil {
		return spareStream{}, err
	}
	return made, nil
}

// refillStreams makes streams of a kind ready for later, while the device is idle: the driver
// may wait for it to make one.
func (d *Device) refillStreams(kind streamKind, doing string) {
	most := spareOfKind
	if d.isOrdinary(kind.level) {
		most = spareOfOrdinary
	}
	for d.spares.lacks(kind, most) && d.Pending() == 0 {
		s, err := d.makeStream(kind, doing)
		if err != nil {
			return // it is made when it is needed, and the error is reported then
		}
		d.giveStream(s)
	}
}

// giveStream keeps a stream of the driver for later. What is too many is destroyed while the
// host holds no stream: the driver may wait for the device to do it.
func (d *Device) giveStream(s spareStream) {
	if d.Unusable() {
		return
	}
	d.spares.put(s)
	if d.hostHolds() {
		return
	}
	for _, s := range d.spares.Surplus(maxSpareStreams) {
		_ = d.check(C.hs_stream_destroy(d.ctx(), s.h), "close stream")
	}
}

// prepare makes what calls of the driver that may wait for the device would be needed
// for later. What fails here is made when it is needed.
func (d *Device) prepare(doing string) {
	if s, err := d.takeSlot(doing); err == nil && d.testMemops(s, doing) {
		d.slots.give(s)
	}
	for _, ordered := range []bool{true, false} {
		d.refillStreams(streamKind{ordered, uint8(d.Priorities() - 1)}, doing)
	}
	var early []*vendor.FenceEvent
	for flags, n := range earlyFenceEvents {
		for range n {
			m, err := d.newFenceEvent(uint8(flags), doing)
			if err != nil {
				break
			}
			early = append(early, m)
		}
	}
	for _, m := range early {
		m.Release()
	}
	d.drv.pinned.early(d.ctx())
}

// destroySpares destroys the streams that are kept, when the device is closed.
func (d *Device) destroySpares() {
	for _, s := range d.spares.All() {
		_ = d.check(C.hs_stream_destroy(d.ctx(), s.h), "close stream")
	}
}

// Load implements driver.VendorDevice.
func (d *Device) Load(image []byte) (driver.Module, error) {
	const doing = "load module"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	m := &module{dev: d}
	ctx, text := d.ctx(), ""
	load := func() C.hs_status {
		// The driver reads text up to a NUL, and an image may come without one.
		code := C.CBytes(append(slices.Clip(image), 0))
		defer C.free(code)
		log := (*C.char)(C.calloc(1, logSize))
		defer C.free(unsafe.Pointer(log))
		s := C.hs_module_load(ctx, code, &m.h, log, logSize)
		text = strings.TrimSpace(C.GoString(log))
		return s
	}
	s, err := d.callInterruptibly("cuModuleLoadDataEx", doing, load, func() { C.hs_module_unload(ctx, m.h) })
	if err != nil {
		return nil, err
	}
	if err := d.check(s, doing); err != nil {
		e := *err.(*driver.Error)
		if text != "" {
			e.Text += "\n" + text
		}
		return nil, &e
	}
	d.modules.mu.Lock()
	if d.modules.list == nil {
		d.modules.list = map[*module]struct{}{}
	}
	d.modules.list[m] = struct{}{}
	d.modules.mu.Unlock()
	return m, nil
}

// prepareKernels loads the kernels of this package before a gate holds a stream, since a driver may
// wait for the device when it loads one: until the gate opens. For that reason nothing is loaded
// while work is pending. What needs a kernel that is not there loads it, or says why it cannot.
func (d *Device) prepareKernels() {
	if d.usable("delay") != nil {
		return
	}
	if l := d.state(); (l.delay.Load() == nil || l.condition.Load() == nil) && d.Pending() == 0 {
		_, _ = d.delayFunction()
		_, _ = d.conditionFunction()
	}
}

func (d *Device) delayFunction() (driver.Function, error) {
	if err := d.usable("delay"); err != nil {
		return nil, err
	}
	return d.ownFunction(&d.state().delay, delayPTX, "halstream_delay")
}

// ownFunction loads a kernel of this package at its first use. Threads that call at the same time
// may each load it; one of the modules is used.
func (d *Device) ownFunction(loaded *atomic.Pointer[driver.Function], ptx, name string) (driver.Function, error) {
	if f := loaded.Load(); f != nil {
		return *f, nil
	}
	m, err := d.Load([]byte(ptx))
	if err != nil {
		return nil, err
	}
	f, err := m.Function(name)
	if err != nil {
		m.Close()
		return nil, err
	}
	if !loaded.CompareAndSwap(nil, &f) {
		m.Close()
	}
	return *loaded.Load(), nil
}

// drainLimit is after how long a call of the driver is reported that may wait until the
// device is idle, while streams are held.
var drainLimit = 2 * time.Second

// drainReports takes the reports. The thread in question may hold Python's lock, and the
// caller cannot get an error as long as the driver does not return.
var drainReports io.Writer = os.Stderr

// mayDrain begins a call of the driver that may wait until the device is idle, and
// returns what ends it. What holds the device may wait for the caller; no signal ends
// the call, so a report says which call it is and what it waits for.
func (d *Device) mayDrain(call string) (end func()) {
	if !d.hostHolds() {
		return func() {}
	}
	timer := time.AfterFunc(drainLimit, func() {
		names := d.holders(4)
		if len(names) == 0 {
			return
		}
		fmt.Fprintf(drainReports, "halstream: %s has not returned for %v. A driver may wait there until device %d is idle, "+
			"and these streams wait for the host: %s. Let another thread release them, or call what needs %s before a "+
			"stream is held (see \"Calls that may wait for the device\" in docs/backends.md).\n",
			call, drainLimit, d.ordinal, strings.Join(names, "; "), call)
	})
	return func() { timer.Stop() }
}

// hostHolds reports whether streams of the device wait for the host.
func (d *Device) hostHolds() bool { return d.calling.Load() > 0 || d.drv.poller.blocked(d) > 0 }

// holders describes the streams that wait for the host, at most most of them. It calls no driver.
func (d *Device) holders(most int) (names []string) {
	more := 0
	for _, s := range d.streams.All() {
		what := s.heldFor()
		if what == "" {
			continue
		}
		if len(names) == most {
			more++
			continue
		}
		names = append(names, fmt.Sprintf("stream %d for %s", s.id, what))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return names
}

// Calls of the driver that may wait until the device is idle. While a device may wait for the host,
// maybe for the calling thread, they are made on another thread: no signal ends a call of the driver.

// signalSlice is for how many nanoseconds a thread that waits for such a call does not look for
// signals that have not ended its sleep.
const signalSlice = 50_000_000

// What has become of a call that another thread makes.
const (
	callPending int32 = iota
	callReturned
	callLeft // by who waited for it
)

// pythonLock is what a call does with Python's lock; tests replace it.
var pythonLock = struct {
	unlock      func() unsafe.Pointer
	relock      func(unsafe.Pointer)
	interrupted func(*unsafe.Pointer) bool
}{
	func() unsafe.Pointer { return C.hs_unlock() },
	func(lock unsafe.Pointer) { C.hs_relock(lock) },
	func(lock *unsafe.Pointer) bool { return C.hs_interrupted(lock) != 0 },
}

// callInterruptibly makes a call of the driver that may wait until the device is idle, and returns its status.
// A thread of Python's can be interrupted there by a handler of a signal that raises: then the error
// is of the kind Interrupted, and when the call returns, undo gives back what it has made. do keeps
// what it has made in variables of its own, as it may run on after this call.
func (d *Device) callInterruptibly(call, doing string, do func() C.hs_status, undo func()) (C.hs_status, error) {
	if !d.drv.stalls() {
		return do(), nil
	}
	lock := pythonLock.unlock()
	if lock == nil {
		defer d.mayDrain(call)()
		return do(), nil
	}
	status, _, err := d.awaitCall(lock, forever, call, doing, do, undo)
	return status, err
}

// forever is no limit.
const forever = -1

// callWithLimit is callInterruptibly for a call that needs memory or gives it back, and reports whether it has returned. While a
// device may wait for the host it waits stallMost at most: the work that the driver waits for may wait for the caller.
func (d *Device) callWithLimit(call, doing string, do func() C.hs_status, undo func()) (C.hs_status, bool, error) {
	if !d.drv.stalls() {
		return do(), true, nil
	}
	limit := stallMost
	if l := d.state(); l != nil && l.drains.Load() {
		limit = min(limit, giveBackLimit) // no call waits as long again
	}
	status, returned, err := d.awaitCall(pythonLock.unlock(), limit, call, doing, do, undo)
	if l := d.state(); l != nil && err == nil {
		l.drains.Store(!returned)
	}
	return status, returned, err
}

// awaitCall lets another thread make a call, for at most limit nanoseconds, and takes Python's lock back if lock is one.
func (d *Device) awaitCall(lock unsafe.Pointer, limit int64, call, doing string, do func() C.hs_status,
	undo func()) (status C.hs_status, returned bool, err error) {
	var answer C.hs_status
	w := d.callOnOtherThread(call, func() bool { answer = do(); return answer == 0 }, undo)
	for clock := vendor.Stopwatch(); ; {
		slice := int64(signalSlice)
		if limit != forever {
			slice = max(0, min(slice, limit-clock()))
		}
		if w.wait(slice) {
			w.end()
			status, returned = answer, true
			break
		}
		if lock != nil && pythonLock.interrupted(&lock) {
			w.leave(d)
			return 0, false, driver.Errorf(driver.Interrupted, doing,
				"a handler of a signal raised while the driver was in %s", call)
		}
		if limit != forever && clock() >= limit {
			w.leave(d)
			break
		}
	}
	if lock != nil {
		pythonLock.relock(lock)
	}
	return status, returned, nil
}

// giveBackLimit is for how many nanoseconds a thread waits for a call that gives something back.
const giveBackLimit = 20_000_000

// callToGiveBack makes a call of the driver that gives something back, and may wait until the device is idle.
// If it does so while the device may wait for the host, it is left to another thread.
func (d *Device) callToGiveBack(call string, limit int64, do func()) {
	if !d.drv.stalls() {
		do()
		return
	}
	w := d.callOnOtherThread(call, func() bool { do(); return false }, nil)
	lock := pythonLock.unlock()
	if w.wait(limit) {
		w.end()
	} else {
		w.leave(d)
	}
	pythonLock.relock(lock)
}

// callElsewhere is a call that another thread makes.
type callElsewhere struct {
	call   string
	parker *park.Parker
	state  atomic.Int32
	undo   func()
	made   bool // whether there is something to undo; read after callReturned
}

// callOnOtherThread begins a call on another thread; do reports whether there is something to undo.
func (d *Device) callOnOtherThread(call string, do func() bool, undo func()) *callElsewhere {
	w := &callElsewhere{call: call, parker: park.Get(), undo: undo}
	d.callsElsewhere.Add(1)
	l := d.state()
	kept := l != nil && l.refs.Hold()
	go func() {
		defer func() {
			d.callsElsewhere.Add(-1)
			if kept {
				l.Leave()
			}
		}()
		end := d.mayDrain(call)
		w.made = do()
		end()
		if w.state.CompareAndSwap(callPending, callReturned) {
			w.parker.Unpark()
			return
		}
		w.discard()
	}()
	return w
}

// wait reports whether the call has returned within limit nanoseconds. A signal may end it early.
func (w *callElsewhere) wait(limit int64) bool {
	driver.EndWaitsOnSignal(true)
	defer driver.EndWaitsOnSignal(false)
	returned := w.parker.Park(limit, 0)
	if returned {
		w.state.Load() // what the call has written is seen behind this
	}
	return returned
}

// end is for who has seen the call return.
func (w *callElsewhere) end() { park.Put(w.parker) }

// leave is for who waits no longer. What the call makes is given back, on another thread: that may wait, too.
func (w *callElsewhere) leave(d *Device) {
	if !w.state.CompareAndSwap(callPending, callLeft) {
		w.parker.Park(-1, 0) // it has returned just now
		d.callOnOtherThread("what undoes "+w.call, func() bool { w.discard(); return false }, nil).leave(d)
	}
	park.Put(w.parker)
}

func (w *callElsewhere) discard() {
	if w.made && w.undo != nil {
		w.undo()
	}
}

// awaitCallsElsewhere waits until no other thread is in a call of the driver for the device any more. It
// reports false after limit nanoseconds.
func (d *Device) awaitCallsElsewhere(limit int64) bool {
	end := time.Now().Add(time.Duration(limit))
	for d.callsElsewhere.Load() > 0 {
		if time.Now().After(end) {
			return false
		}
		pause()
	}
	return true
}

// check is like the function check, and makes the device lost if the error is lasting.
func (d *Device) check(s C.hs_status, doing string) error {
	if s == 0 {
		return nil
	}
	e := failed(s, doing)
	if lasting(e.Code) {
		return d.Lose(e)
	}
	return e
}

// NewStream implements driver.Device.
func (d *Device) NewStream(o driver.StreamOptions) (driver.Stream, error) {
	const doing = "create stream"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	made, err := d.takeStream(streamKind{o.Ordered, o.Level}, doing)
	if err != nil {
		return nil, err
	}
	return d.add(&Stream{h: made.h, nth: made.nth, dealt: made.dealt, id: o.ID, level: o.Level, ordered: o.Ordered}), nil
}

// add lists a stream of the device.
func (d *Device) add(s *Stream) *Stream {
	s.dev = d
	s.Init(&d.Device, func() { d.launches.collect(s) })
	d.streams.Add(s)
	return s
}
