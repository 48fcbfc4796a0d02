package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"slices"
	"sort"
	"sync"

	"halstream/hal/driver"
)

// Alloc implements driver.Device. The memory comes from a pool of our own, in
// the order of a stream that nothing ever holds: the plain calls may wait for
// all work of the device, and that may wait for the caller.
func (d *Device) Alloc(size uint64) (uint64, error) {
	const doing = "allocate"
	if err := d.usable(doing); err != nil {
		return 0, err
	}
	l := d.at()
	d.freeAgain()
	var addr C.CUdeviceptr
	allocate := func() C.hs_status {
		if l.pool == 0 {
			return C.hs_alloc(l.ctx, C.uint64_t(size), &addr)
		}
		return C.hs_alloc_pool(l.ctx, C.uint64_t(size), l.pool, l.internal, &addr)
	}
	s := allocate()
	if C.hs_code(s) == codeOutOfMemory && l.pool != 0 {
		// What was freed may not be back yet, and what is may be kept in pieces.
		if err := d.settleInternal(doing); err != nil {
			return 0, err
		}
		C.hs_pool_trim(l.ctx, l.pool)
		s = allocate()
	}
	if C.hs_code(s) == codeOutOfMemory {
		free, total, _ := d.Info() // for the text; the driver's own words stand there, too
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
	}
	d.past.remove(uint64(addr), size)
	d.sizes.Store(uint64(addr), size)
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

// Free implements driver.Device.
func (d *Device) Free(addr uint64) {
	if !d.opened() {
		return // with the device its memory is lost
	}
	if size, ok := d.sizes.LoadAndDelete(addr); ok {
		d.past.add(addr, size.(uint64))
	}
	if d.at().pool == 0 {
		d.refused.add(addr)
		d.freeAgain()
		return
	}
	d.freeAgain()
	if d.free(addr) != nil && d.opened() {
		d.refused.add(addr)
	}
}

func (d *Device) free(addr uint64) error {
	l := d.at()
	if l.pool == 0 {
		return d.check(C.hs_free(l.ctx, C.CUdeviceptr(addr)), "free")
	}
	return d.check(C.hs_free_pool(l.ctx, C.CUdeviceptr(addr), l.internal), "free")
}

// refused is memory that the driver did not take back, or was not asked to: without
// pools the call waits for all work of the device, and that may wait for the caller.
type refused struct {
	mu   sync.Mutex
	list []uint64
}

func (u *refused) add(addr uint64) {
	u.mu.Lock()
	u.list = append(u.list, addr)
	u.mu.Unlock()
}

func (u *refused) empty() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.list) == 0
}

// freeAgain offers it once more.
func (d *Device) freeAgain() {
	if d.refused.empty() || d.at().pool == 0 && d.Pending() > 0 {
		return
	}
	d.refused.mu.Lock()
	list := d.refused.list
	d.refused.list = nil
	d.refused.mu.Unlock()
	for _, addr := range list {
		if d.opened() && d.free(addr) != nil {
			d.refused.add(addr)
		}
	}
}

// Info implements driver.Device. What the pool keeps for later is free.
func (d *Device) Info() (free, total uint64, err error) {
	const doing = "memory info"
	if err := d.usable(doing); err != nil {
		return 0, 0, err
	}
	l := d.at()
	var unused, all, kept C.uint64_t
	if err := d.check(C.hs_info(l.ctx, &unused, &all), doing); err != nil {
		return 0, 0, err
	}
	if l.pool != 0 {
		if err := d.settleInternal(doing); err != nil {
			return 0, 0, err
		}
		s := C.hs_pool_kept(l.ctx, l.pool, &kept)
		if C.hs_code(s) == codeNotSupported {
			s, kept = 0, 0 // what the pool keeps counts as taken then
		}
		if err := d.check(s, doing); err != nil {
			return 0, 0, err
		}
	}
	return uint64(unused + kept), uint64(all), nil
}

// Owns implements driver.Device: what is in use, hal knows itself.
func (d *Device) Owns(addr uint64) bool { return d.past.has(addr) }

// past is where memory of ours was that is free now. What other libraries have
// beside it is not ours, though the driver maps both at once.
type past struct {
	mu   sync.Mutex
	list []stretch // by address; none touches the next
}

type stretch struct{ start, end uint64 }

// mostPast bounds the list: beyond it the oldest addresses may be taken for
// memory of nobody.
const mostPast = 1 << 14

// at returns the first stretch that ends behind addr.
func (p *past) at(addr uint64) int {
	return sort.Search(len(p.list), func(i int) bool { return p.list[i].end > addr })
}

// add notes that a range was freed.
func (p *past) add(start, size uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := start + size
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].end >= start })
	j := i
	for ; j < len(p.list) && p.list[j].start <= end; j++ {
		start, end = min(start, p.list[j].start), max(end, p.list[j].end)
	}
	p.list = slices.Replace(p.list, i, j, stretch{start, end})
	if len(p.list) > mostPast {
		p.list = slices.Delete(p.list, 0, 1)
	}
}

// remove notes that a range is in use again.
func (p *past) remove(start, size uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := start + size
	i := p.at(start)
	j := i
	var rest []stretch
	for ; j < len(p.list) && p.list[j].start < end; j++ {
		if s := p.list[j]; s.start < start {
			rest = append(rest, stretch{s.start, start})
		}
		if s := p.list[j]; s.end > end {
			rest = append(rest, stretch{end, s.end})
		}
	}
	p.list = slices.Replace(p.list, i, j, rest...)
}

func (p *past) has(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.at(addr)
	return i < len(p.list) && p.list[i].start <= addr
}

// The driver's kinds of memory.
const (
	memoryHost   = 1
	memoryDevice = 2
)

// Probe implements driver.VendorDriver. Of memory from a pool of ours that is alive hal
// knows itself: to others it is none, whatever the driver still keeps there.
func (d *Driver) Probe(addr uint64) (where driver.Where, start, size uint64, ordinal int, known bool) {
	pools := map[C.CUmemoryPool]bool{}
	var any *Device
	for _, dev := range d.devices {
		if dev.opened() {
			any = dev
			pools[dev.at().pool] = true
		}
	}
	if any == nil || d.pinned.owns(addr) {
		return 0, 0, 0, -1, false
	}
	var kind C.uint32_t
	var on C.int
	var from, bytes C.uint64_t
	var pool C.CUmemoryPool
	s := C.hs_probe(any.ctx(), C.CUdeviceptr(addr), &kind, &on, &from, &bytes, &pool)
	if any.check(s, "look at memory") != nil || pool != 0 && pools[pool] {
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
