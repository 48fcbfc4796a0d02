package host

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/prio"
	"halstream/ptx"
)

// Device is one host device.
type Device struct {
	eng      *engine
	ordinal  int
	default_ *Stream
	last     *epoch  // of the legacy order, the one that takes new work
	active   *Stream // list of streams with work
	busy     int     // workers that are not idle
	looking  int     // how many of these have ended their work, and take some of the backlog next
	idle     []*worker
	memory   memory
	pinned   memory              // of the driver
	backlog  prio.Queue[*Stream] // streams whose operation waits for a worker
	// lost is the error of the function that made the device useless, nil while it works.
	lost atomic.Pointer[driver.Error]
}

// Name implements driver.Device.
func (d *Device) Name() string {
	return fmt.Sprintf("host device %d (%s, %d processors)", d.ordinal, runtime.GOARCH, runtime.NumCPU())
}

// Legacy implements driver.Device.
func (d *Device) Legacy() driver.Stream { return d.default_ }

// NewStream implements driver.Device.
func (d *Device) NewStream(o driver.StreamOptions) (driver.Stream, error) {
	s := &Stream{eng: d.eng, dev: d}
	s.id, s.level, s.ordered = o.ID, o.Level, o.Ordered
	return s, nil
}

// NewEvent implements driver.Device.
func (d *Device) NewEvent(o driver.EventOptions) (driver.Event, error) {
	return &Event{eng: d.eng, dev: d, opts: o}, nil
}

// Alloc implements driver.Device.
func (d *Device) Alloc(size uint64) (uint64, error) { return d.memory.provide(d.eng, size) }

// Free implements driver.Device.
func (d *Device) Free(addr uint64) { d.memory.release(addr) }

// Info implements driver.Device.
func (d *Device) Info() (free, total uint64, err error) {
	free, total = d.memory.info()
	return free, total, nil
}

// Owns implements driver.Device.
func (d *Device) Owns(addr uint64) bool { return d.memory.owns(addr) }

// Share implements driver.SharingDevice.
func (d *Device) Share(addr, size uint64) (driver.SharedMemory, error) {
	return d.memory.of(addr).share(addr, size)
}

// Provide implements driver.SharingDevice.
func (d *Device) Provide(size uint64) (uint64, driver.SharedMemory, error) {
	return provideShared(size)
}

// Withdraw implements driver.SharingDevice.
func (d *Device) Withdraw(m driver.SharedMemory) { withdrawShared(m) }

// Map implements driver.SharingDevice.
func (d *Device) Map(m driver.SharedMemory) (uint64, error) { return mapShared(m) }

// Unmap implements driver.SharingDevice.
func (d *Device) Unmap(addr, size uint64) { unmapShared(addr, size) }

// Runs implements driver.SharingDevice.
func (d *Device) Runs(process int, started uint64) bool { return isRunning(process, started) }

// Point implements driver.Device.
func (d *Device) Point() driver.Point {
	d.eng.Lock()
	defer d.eng.Unlock()
	if !d.eng.parallel.Load() {
		return d.all()
	}
	var ps driver.Points
	for s := d.active; s != nil; s = s.next {
		ps = append(ps, point{d.eng, fence{s, s.submitted.Load()}})
	}
	return ps
}

// all is the point of a device under a deterministic schedule: a wait for it is one call
// of the program, whatever is pending. The lock is held.
func (d *Device) all() driver.Point {
	a := &deviceAll{dev: d}
	for s := d.active; s != nil; s = s.next {
		a.fences = append(a.fences, fence{s, s.submitted.Load()})
	}
	return a
}

// deviceAll is reached when the fences of all streams that had work are.
type deviceAll struct {
	dev    *Device
	fences []fence
}

func (a *deviceAll) reached() bool {
	for _, at := range a.fences {
		if !at.reached() {
			return false
		}
	}
	return true
}

// Wait implements driver.Point.
func (a *deviceAll) Wait(limit int64) bool {
	e := a.dev.eng
	e.Lock()
	defer e.Unlock()
	s := a.dev.default_
	if len(a.fences) > 0 {
		s = a.fences[0].on
	}
	e.point(sched.Blocked, s, a.reached, limit)
	return a.reached()
}

// Announce implements driver.Announced.
func (a *deviceAll) Announce() (end func()) {
	points := make(driver.Points, len(a.fences))
	for i, at := range a.fences {
		points[i] = point{a.dev.eng, at}
	}
	return points.Announce()
}

// Missing implements driver.FencedPoint.
func (a *deviceAll) Missing() []driver.Fence {
	a.dev.eng.Lock()
	defer a.dev.eng.Unlock()
	var fences []driver.Fence
	for _, at := range a.fences {
		if !at.reached() {
			fences = append(fences, at.named())
		}
	}
	return fences
}

// Pending implements driver.Device.
func (d *Device) Pending() int {
	d.eng.Lock()
	defer d.eng.Unlock()
	n := 0
	for s := d.active; s != nil; s = s.next {
		if s.parent() == nil { // a launch counts once
			n += int(s.pending())
		}
	}
	return n
}

// Lost implements driver.LosableDevice.
func (d *Device) Lost() *driver.Error { return d.lost.Load() }

// Recover implements driver.RecoverableDevice.
func (d *Device) Recover() {
	d.eng.Lock()
	defer d.eng.Unlock()
	for _, s := range d.activeStreams() { // with what runs, and what was enqueued by calls that had not seen the loss
		s.forgiven = s.submitted.Load()
	}
	d.lost.Store(nil)
}

// activate adds a stream to the list of those with work. The lock is held.
func (d *Device) activate(s *Stream) {
	if e := d.eng; e.pending != nil { // once after each call of WorkPending
		close(e.pending)
		e.pending = nil
	}
	s.prev, s.next = nil, d.active
	if d.active != nil {
		d.active.prev = s
	}
	d.active = s
}

// deactivate removes a stream from that list. The lock is held.
func (d *Device) deactivate(s *Stream) {
	if s.prev == nil {
		d.active = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

// activeStreams returns the streams with work, as a copy: streams that move change
// the list of the device.
func (d *Device) activeStreams() []*Stream {
	var streams []*Stream
	for s := d.active; s != nil; s = s.next {
		streams = append(streams, s)
	}
	return streams
}

// firstOrdered returns a stream with work that a synchronize of the legacy default
// stream would wait for, nil if s is another stream.
func (d *Device) firstOrdered(s *Stream) *Stream {
	if !s.legacy {
		return nil
	}
	for t := d.active; t != nil; t = t.next {
		if t.ordered {
			return t
		}
	}
	return nil
}

// abort drops what has not started. The lock is held.
func (d *Device) abort() (n int) {
	for _, s := range d.activeStreams() {
		n += s.abort()
	}
	return n
}

// An epoch is a sequence of enqueued operations that lie between two barriers of the
// legacy order: either work of the legacy default stream, or work of the streams that
// are ordered with it. The epochs of a device form a list; one opens when all before
// it are done. So the cost of a barrier does not depend on the number of streams.
type epoch struct {
	legacy  bool
	open    bool
	pending int
	blocked []*Stream // streams whose head operation waits for this epoch
	next    *epoch
}

// join returns the epoch that a new operation of s belongs to. A nil result
// means that s takes no part in the legacy order.
func (d *Device) join(s *Stream) *epoch {
	if !s.ordered {
		return nil
	}
	last := d.last
	if last.legacy == s.legacy {
		return last
	}
	if last.pending == 0 && last.open {
		last.legacy = s.legacy // no work to wait for: use the same epoch for the other side
		return last
	}
	last.next = &epoch{legacy: s.legacy}
	d.last = last.next
	return d.last
}

// unorderedWork reports whether ordered streams may have pending work behind the latest
// operation of the legacy default stream. Under a deterministic schedule the answer is
// always true: which operations there are must not depend on the order in which they run.
func (d *Device) unorderedWork() bool {
	last := d.last
	return !d.eng.parallel.Load() || !last.legacy && (last.pending > 0 || !last.open)
}

// ordersNext reports whether the next operation of s may have to wait for work of other streams by the legacy order. Under
// a deterministic schedule it does if there was such work at all: see unorderedWork.
func (d *Device) ordersNext(s *Stream) bool {
	switch last := d.last; {
	case !s.ordered:
		return false
	case s.legacy:
		return d.unorderedWork()
	case !d.eng.parallel.Load():
		return s.legacySeen != d.default_.submitted.Load()
	default:
		return !last.open || last.legacy && last.pending > 0
	}
}

// leave counts an operation of ep as done, and opens the epochs behind it.
func (d *Device) leave(ep *epoch) {
	ep.pending--
	for ep.pending == 0 && ep.open && ep.next != nil {
		ep = ep.next
		ep.open = true
		blocked := ep.blocked
		ep.blocked = nil
		for _, s := range blocked {
			d.eng.advance(s)
		}
	}
}

// capability is the compute capability of which a host device is: what package ptx executes.
var capability = [2]int{8, 0}

// warp is how many threads of a block are a warp.
const warp = 32

// attribute returns an attribute by the number of the CUDA driver (CUdevice_attribute), as far as kernels depend on it:
// what the executor takes, and otherwise the figures of a device of this capability. Source: CUDA driver API,
// cuDeviceGetAttribute; CUDA C++ Programming Guide, Compute Capabilities.
func (d *Device) attribute(number int) (int, bool) {
	switch number {
	case 1: // MAX_THREADS_PER_BLOCK
		return ptx.MaxThreads, true
	case 2, 3, 4: // MAX_BLOCK_DIM_X and on
		return ptx.MaxBlock[number-2], true
	case 5, 6, 7: // MAX_GRID_DIM_X and on
		return ptx.MaxGrid[number-5], true
	case 8: // MAX_SHARED_MEMORY_PER_BLOCK, for a launch that asks for no more
		return 48 << 10, true
	case 9: // TOTAL_CONSTANT_MEMORY
		return 64 << 10, true
	case 10: // WARP_SIZE
		return warp, true
	case 12, 82: // MAX_REGISTERS_PER_BLOCK, MAX_REGISTERS_PER_MULTIPROCESSOR
		return 64 << 10, true
	case 16: // MULTIPROCESSOR_COUNT
		return d.eng.engines, true
	case 39: // MAX_THREADS_PER_MULTIPROCESSOR
		return 2 * ptx.MaxThreads, true
	case 75, 76: // COMPUTE_CAPABILITY_MAJOR and MINOR
		return capability[number-75], true
	case 81: // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
		return ptx.MaxShared + reservedShared, true
	case 95: // COOPERATIVE_LAUNCH: blocks take turns, so that each may wait for all others
		return 1, true
	case 97: // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
		return ptx.MaxShared, true
	case 106: // MAX_BLOCKS_PER_MULTIPROCESSOR
		return 32, true
	case 111: // RESERVED_SHARED_MEMORY_PER_BLOCK
		return reservedShared, true
	}
	return 0, false
}

// reservedShared is what a driver takes of the shared memory of a block.
const reservedShared = 1 << 10

// Fact implements driver.FactDevice.
func (d *Device) Fact(name string) (string, error) {
	number, known := map[string]int{"major": 75, "minor": 76, "processors": 16, "warp": 10}[name]
	if text, cut := strings.CutPrefix(name, "attribute:"); cut {
		n, err := strconv.Atoi(text)
		number, known = n, err == nil
	}
	if value, ok := d.attribute(number); known && ok {
		return strconv.Itoa(value), nil
	}
	return "", driver.Errorf(driver.NotSupported, "device fact", "%q is none that a host device has", name)
}
