package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
)

// slot is words of pinned memory that the host and one stream share, and the
// value that the next use writes there. Values only grow, so that what an
// earlier use left behind is never taken for an answer.
type slot struct {
	p     *C.hs_slot
	dev   C.CUdeviceptr
	value uint32
}

// slots are those of a device that nobody uses.
type slots struct {
	mu    sync.Mutex
	spare []*slot
	slabs []uint64
	gone  bool // with the device's memory
}

// slabSlots is how many slots are made at once.
const slabSlots = 1024

func (p *slots) give(s *slot) {
	p.mu.Lock()
	p.spare = append(p.spare, s)
	p.mu.Unlock()
}

// takeSlot returns a slot that nobody uses. A stream may still have to pass the
// gate that it was last: its value is less than any that comes.
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

// slotAt makes a pointer of an address that is not Go's.
func slotAt(addr uintptr) *C.hs_slot { return *(**C.hs_slot)(unsafe.Pointer(&addr)) }

// held is a place on a stream that the host takes part in: a function of the
// program, a gate, work that the driver would make the caller wait for. The
// stream writes that it got there and, unless it only passes, stays until the
// host has done its part.
type held struct {
	s     *Stream
	what  C.int // HS_HOLD, HS_PASS or HS_GATE
	slot  *slot
	value uint32
	// run is called once when the stream got there, by the poller: it may not
	// block. drop is called instead when the stream never will.
	run, drop func()
	// title says what it is, for texts.
	title string

	flying bool // its call of the driver is under way; guarded by the poller
	opened atomic.Bool
}

// hold enqueues h. If it fails neither run nor drop is called.
func (s *Stream) hold(h *held, doing string) error {
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
	enqueue := func(door *C.hs_door) C.hs_status {
		return C.hs_hold(d.ctx(), s.h, door, h.what, slot.p, slot.dev, C.uint32_t(h.value))
	}
	var status C.hs_status
	if d.memops() {
		status = enqueue(nil)
	}
	if !d.memops() || C.hs_code(status) == codeNotSupported {
		// Not every device can, and none tells: the driver's thread does it then.
		d.at().memops.Store(false)
		status = enqueue(d.at().door)
	}
	err = d.check(status, doing)
	if err == nil {
		s.counted()
	}
	if p.landed(h, err == nil) {
		return nil // its run is called, or was
	}
	if err == nil {
		err = d.usable(doing) // lost while the call was under way
	}
	return err
}

// open lets the stream go on. A function may end after its device was closed.
func (h *held) open() {
	p := &h.s.dev.slots
	p.mu.Lock()
	if !p.gone {
		C.hs_open(h.slot.p, C.uint32_t(h.value))
	}
	p.mu.Unlock()
}

// end lets the stream go on. h is not used any more.
func (h *held) end() {
	h.open()
	h.s.dev.slots.give(h.slot)
}

// task enqueues work of the host's own, which runs on a thread of ours.
func (s *Stream) task(doing, title string, work, drop func()) error {
	h := &held{what: C.HS_HOLD, title: title, drop: drop}
	d := s.dev
	h.run = func() {
		d.working.Add(1)
		if d.lost.Load() != nil {
			// Whoever waited may have been told already.
			d.working.Add(-1)
			drop()
			return
		}
		go func() {
			work()
			h.end()
			d.working.Add(-1)
		}()
	}
	return s.hold(h, doing)
}

// HostFunc implements driver.Stream.
func (s *Stream) HostFunc(f driver.HostFunc) (err error) {
	op := s.follow(f.Tag, nil)
	defer func() { op.end(s.dev.drv, err) }()
	h := &held{what: C.HS_HOLD, title: fmt.Sprintf("function %d", f.Token)}
	if f.Passing {
		h.what = C.HS_PASS
	}
	h.run = func() {
		var c driver.Completer
		if f.Passing {
			s.dev.slots.give(h.slot)
		} else {
			c = ending{h}
		}
		if w := f.Sink.Ready(f.Token, s.level, c); w != nil {
			w.Unpark()
		}
	}
	h.drop = func() {
		if w := f.Sink.Drop(f.Token); w != nil {
			w.Unpark()
		}
	}
	return s.hold(h, "call")
}

// ending tells a stream that the function it is held by has ended.
type ending struct{ h *held }

// Complete implements driver.Completer.
func (e ending) Complete(err *driver.Error) (kept bool) {
	if err != nil {
		kept = e.h.s.fail(err)
	}
	e.h.end()
	return kept
}

// Gate implements driver.Stream.
func (s *Stream) Gate(id uint64, tag driver.Tag) (_ driver.Gate, err error) {
	f := s.follow(tag, nil)
	defer func() { f.end(s.dev.drv, err) }()
	h := &held{what: C.HS_GATE, title: fmt.Sprintf("gate %d", id), run: func() {}, drop: func() {}}
	if err := s.hold(h, "gate"); err != nil {
		return nil, err
	}
	return gate{h, id}, nil
}

type gate struct {
	h  *held
	id uint64
}

// Number is the gate's, for reports.
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
// not used again: nobody can tell when the last of them has passed.
type word struct {
	dev  *Device
	slot *slot
}

// newWord returns one that is 0.
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
