package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// slot is a pair of words in pinned memory that the host and one stream share, with
// the value that the next use writes there. Values only grow, so the value of an
// earlier use is never taken for that of the present one.
type slot struct {
	p     *C.hs_slot
	dev   C.CUdeviceptr
	value uint32
}

// slots holds the unused slots of a device.
type slots struct {
	mu    sync.Mutex
	spare []*slot
	slabs []uint64
	// released says that the memory of the slots was freed with the device's.
	released bool
}

// slabSlots is how many slots are allocated at once.
const slabSlots = 1024

func (p *slots) give(s *slot) {
	p.mu.Lock()
	p.spare = append(p.spare, s)
	p.mu.Unlock()
}

// slotAt converts an address outside of Go's heap to a pointer.
func slotAt(addr uintptr) *C.hs_slot { return *(**C.hs_slot)(unsafe.Pointer(&addr)) }

// memopsLimit is how long the test of stream memory operations may take on a device that
// is known to do other work meanwhile.
const memopsLimit = 3 * time.Second

// blocker is an operation on a stream that needs the host: a function of the program,
// a gate, or work during which the driver would block the caller. The stream writes
// that it has reached the operation and, unless that is HS_PASS, waits until the
// host has completed it. The poller runs it.
type blocker struct {
	vendor.Blocker
	s     *Stream
	what  C.int // HS_HOLD, HS_PASS or HS_GATE
	slot  *slot
	value uint32

	inFlight bool // its call of the driver has not returned; guarded by the poller
	opened   atomic.Bool
}

// block enqueues h. If it fails neither run nor drop is called.
func (s *Stream) block(h *blocker, doing string) error {
	d := s.dev
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	slot, err := d.takeSlot(doing)
	if err != nil {
		return err
	}
	slot.value++
	h.s, h.slot, h.value = s, slot, slot.value
	p := d.drv.poller
	p.add(h)
	enqueue := func(guard *C.hs_guard) C.hs_status {
		return C.hs_hold(d.ctx(), s.h, guard, h.what, slot.p, slot.dev, C.uint32_t(h.value))
	}
	var status C.hs_status
	if d.memops() {
		status = enqueue(nil)
	}
	if !d.memops() || C.hs_code(status) == codeNotSupported {
		// There is no attribute for it, so the first failed call tells. From then on
		// functions on the driver's thread hold the streams.
		d.state().memops.Store(false)
		status = enqueue(d.state().guard)
	}
	err = d.check(status, doing)
	if err == nil {
		s.countOne()
	}
	if p.added(h, err == nil) {
		return nil // run was called, or will be
	}
	if err == nil {
		err = d.usable(doing) // lost while the call was in flight
	}
	return err
}

// open lets the stream continue. A function may end after its device was closed.
func (h *blocker) open() {
	p := &h.s.dev.slots
	p.mu.Lock()
	if !p.released {
		C.hs_open(h.slot.p, C.uint32_t(h.value))
	}
	p.mu.Unlock()
}

// end lets the stream continue and releases the slot; h must not be used afterwards.
func (h *blocker) end() {
	h.open()
	h.s.dev.slots.give(h.slot)
}

// task enqueues work that runs on a thread of this package while the stream waits, and
// that may use memory of the program.
func (s *Stream) task(doing, title string, work, drop func()) error {
	h := &blocker{what: C.HS_HOLD}
	h.Blocker = vendor.NewTask(&s.dev.Device, title, work, drop, h.end)
	return s.block(h, doing)
}

// HostFunc implements driver.Stream.
func (s *Stream) HostFunc(f driver.HostFunc) (err error) {
	op := s.follow(f.Tag, nil)
	defer func() { op.End(err) }()
	h := &blocker{what: C.HS_HOLD}
	if f.Passing {
		h.what = C.HS_PASS
	}
	h.Blocker = vendor.NewFunction(f, s.level, func() driver.Completer {
		if f.Passing {
			s.dev.slots.give(h.slot)
			return nil
		}
		if f.Report {
			s.dev.drv.reports.Add(1)
		}
		s.function.Store(f.Token)
		s.dev.calling.Add(1)
		return vendor.NewCompleter(&s.Progress, func() {
			if f.Report {
				s.dev.drv.reports.Add(-1)
			}
			s.function.Store(0)
			s.dev.calling.Add(-1)
			h.end()
		})
	})
	return s.block(h, "call")
}

// Gate implements driver.Stream.
func (s *Stream) Gate(id uint64, tag driver.Tag) (_ driver.Gate, err error) {
	f := s.follow(tag, nil)
	defer func() { f.End(err) }()
	s.dev.prepareKernels()
	h := &blocker{what: C.HS_GATE, Blocker: vendor.Blocker{Title: fmt.Sprintf("gate %d", id), Run: func() {}, Drop: func() {}}}
	if err := s.block(h, "gate"); err != nil {
		return nil, err
	}
	return gate{h, id}, nil
}

type gate struct {
	h  *blocker
	id uint64
}

// Number returns the gate's number, for reports.
func (g gate) Number() uint64 { return g.id }

// Open implements driver.Gate.
func (g gate) Open() {
	if !g.h.opened.Swap(true) {
		g.h.open()
		g.h.s.dev.drv.poller.opened(g.h)
	}
}

// Opened implements driver.Gate.
func (g gate) Opened() bool { return g.h.opened.Load() }

// word is a number in pinned memory that streams set and wait for. Its slot is
// not used again, since it is not known when the last stream has stopped waiting.
type word struct {
	dev  *Device
	slot *slot
}
