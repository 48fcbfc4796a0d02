package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"sync"

	"halstream/hal/driver"
)

// Alloc implements driver.Memory. The memory comes from a pool of our own, in
// the order of a stream that nothing ever holds: the plain calls may wait for
// all work of the device, and that may wait for the caller.
func (d *Device) Alloc(size uint64) (uint64, error) {
	const doing = "allocate"
	if err := d.usable(doing); err != nil {
		return 0, err
	}
	l := d.at()
	var addr C.CUdeviceptr
	allocate := func() C.hs_status {
		if l.pool == 0 {
			return C.hs_alloc(l.ctx, C.uint64_t(size), &addr)
		}
		return C.hs_alloc_pool(l.ctx, C.uint64_t(size), l.pool, l.internal, &addr)
	}
	s := allocate()
	if C.hs_code(s) == codeOutOfMemory && l.pool != 0 {
		C.hs_pool_trim(l.ctx, l.pool) // it may keep what does not fit this size
		s = allocate()
	}
	if C.hs_code(s) == codeOutOfMemory {
		free, total := d.Info()
		e := failed(s, doing)
		e.Text = driver.Errorf(e.Kind, doing, "%d bytes do not fit: %d of %d free on %s (%s)",
			size, free, total, d.title(), e.Text).Text
		return 0, e
	}
	if err := d.check(s, doing); err != nil {
		return 0, err
	}
	if l.pool != 0 {
		if err := d.settleInternal(doing); err != nil {
			C.hs_free_pool(l.ctx, addr, l.internal)
			return 0, err
		}
		d.pages.note(uint64(addr), size)
	}
	return uint64(addr), nil
}

// settleInternal waits until the internal stream has done what it was told: from
// then on any stream may use the memory.
func (d *Device) settleInternal(doing string) error {
	l := d.at()
	for {
		s := C.hs_stream_query(l.ctx, l.internal)
		if done, err := d.answer(s, doing); done || err != nil {
			return err
		}
		C.hs_breathe()
	}
}

// Free implements driver.Memory.
func (d *Device) Free(addr uint64) {
	if !d.opened() {
		return // with the device its memory is lost
	}
	l := d.at()
	if l.pool == 0 {
		_ = d.check(C.hs_free(l.ctx, C.CUdeviceptr(addr)), "free")
		return
	}
	_ = d.check(C.hs_free_pool(l.ctx, C.CUdeviceptr(addr), l.internal), "free")
}

// Info implements driver.Memory. What the pool keeps for later is free.
func (d *Device) Info() (free, total uint64) {
	if d.usable("memory info") != nil {
		return 0, 0
	}
	l := d.at()
	var unused, all, kept C.uint64_t
	if d.check(C.hs_info(l.ctx, &unused, &all), "memory info") != nil {
		return 0, 0
	}
	if l.pool != 0 {
		if d.settleInternal("memory info") != nil || d.check(C.hs_pool_kept(l.ctx, l.pool, &kept), "memory info") != nil {
			kept = 0
		}
	}
	return uint64(unused + kept), uint64(all)
}

// Owns implements driver.Memory.
func (d *Device) Owns(addr uint64) bool { return d.pages.has(addr) }

// pages are those that memory of our pool was seen on. The pool shares none with
// other libraries.
type pages struct {
	mu   sync.Mutex
	seen map[uint64]struct{}
}

// pageShift is the logarithm of the size in which the driver maps memory.
const pageShift = 21

func (p *pages) note(addr, size uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[uint64]struct{}{}
	}
	for n := addr >> pageShift; n <= (addr+size-1)>>pageShift; n++ {
		p.seen[n] = struct{}{}
	}
}

func (p *pages) has(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.seen[addr>>pageShift]
	return ok
}

// The driver's kinds of memory.
const (
	memoryHost   = 1
	memoryDevice = 2
)

// Probe implements driver.Prober.
func (d *Driver) Probe(addr uint64) (where driver.Where, start, size uint64, ordinal int, known bool) {
	var any *Device
	for _, dev := range d.devices {
		if dev.opened() {
			any = dev
			if dev.Owns(addr) {
				return 0, 0, 0, -1, false // what is alive there, hal knows
			}
		}
	}
	if any == nil || d.pinned.owns(addr) {
		return 0, 0, 0, -1, false
	}
	var kind C.uint32_t
	var on C.int
	var from, bytes C.uint64_t
	if any.check(C.hs_probe(any.ctx(), C.CUdeviceptr(addr), &kind, &on, &from, &bytes), "look at memory") != nil {
		return 0, 0, 0, -1, false
	}
	switch kind {
	case memoryHost:
		return driver.Pinned, uint64(from), uint64(bytes), -1, true
	case memoryDevice:
		return driver.OnDevice, uint64(from), uint64(bytes), int(on), true
	}
	return 0, 0, 0, -1, false
}
