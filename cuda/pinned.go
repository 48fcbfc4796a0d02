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
	"halstream/hal/vendor"
)

// pinned is a pool of page-locked host memory, which devices access in stream order.
// Freed blocks are kept for later allocations: the driver's call to free one may wait
// for all work of the device, and that work may wait for the caller.
type pinned struct {
	mu    sync.Mutex
	slabs []slab // by address
	spare map[uint64][]uint64

	whole uint64 // where the memory begins that was allocated early, 0 if there is none
	free  []slab // the parts of it that are in no slab, by address; none touches the next
}

type slab struct{ start, size uint64 }

// reserveSize is how many bytes are pinned when the first device is opened. The driver may
// wait for the device before it pins memory, and what holds the device may wait for the
// caller, so small requests are met without it.
const reserveSize = 4 << 20

// early reserves memory, once. Without it each request goes to the driver.
func (p *pinned) early(ctx C.CUcontext) {
	p.mu.Lock()
	done := p.whole != 0
	p.mu.Unlock()
	var addr C.uint64_t
	if done || C.hs_host_alloc(ctx, reserveSize, &addr) != 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whole == 0 {
		p.whole, p.free = uint64(addr), []slab{{uint64(addr), reserveSize}}
		return
	}
	p.insert(slab{uint64(addr), reserveSize}) // two devices were opened at once; a free would wait for their work
	p.keep(slab{uint64(addr), reserveSize})
}

// keep keeps a block for later requests of its size; p.mu is held.
func (p *pinned) keep(s slab) {
	if p.spare == nil {
		p.spare = map[uint64][]uint64{}
	}
	p.spare[s.size] = append(p.spare[s.size], s.start)
}

// carve takes memory from the reserve; p.mu is held. 0 means that it has too little.
func (p *pinned) carve(n uint64) uint64 {
	i := slices.IndexFunc(p.free, func(s slab) bool { return s.size >= n })
	if i < 0 {
		return 0
	}
	addr := p.free[i].start
	if p.free[i].size == n {
		p.free = slices.Delete(p.free, i, i+1)
	} else {
		p.free[i] = slab{addr + n, p.free[i].size - n}
	}
	p.insert(slab{addr, n})
	return addr
}

// restore gives a slab back to the reserve, so that requests of any size can have it;
// p.mu is held.
func (p *pinned) restore(s slab) {
	i := p.index(s.start) - 1
	p.slabs = slices.Delete(p.slabs, i, i+1)
	i = sort.Search(len(p.free), func(i int) bool { return p.free[i].start > s.start })
	p.free = slices.Insert(p.free, i, s)
	if i+1 < len(p.free) && s.start+s.size == p.free[i+1].start {
		p.free[i].size += p.free[i+1].size
		p.free = slices.Delete(p.free, i+1, i+2)
	}
	if i > 0 && p.free[i-1].start+p.free[i-1].size == s.start {
		p.free[i-1].size += p.free[i].size
		p.free = slices.Delete(p.free, i, i+1)
	}
}

// reserved reports whether a slab is part of the reserve, which is freed as a whole.
func (p *pinned) reserved(addr uint64) bool {
	return p.whole != 0 && addr-p.whole < reserveSize
}

func (p *pinned) insert(s slab) {
	i := p.index(s.start)
	p.slabs = append(p.slabs, slab{})
	copy(p.slabs[i+1:], p.slabs[i:])
	p.slabs[i] = s
}

// anyDevice returns a device whose context can be used for calls about host memory.
func (d *Driver) anyDevice(doing string) (*Device, error) {
	for _, dev := range d.devices {
		if dev != nil && dev.opened() {
			return dev, nil
		}
	}
	for _, dev := range d.devices {
		if dev != nil && !dev.IsLost() {
			return dev, dev.usable(doing)
		}
	}
	return d.devices[0], d.devices[0].usable(doing)
}

// AllocHost implements driver.Driver.
func (d *Driver) AllocHost(size uint64) (uint64, error) {
	const doing = "allocate pinned memory"
	n := vendor.PinnedSize(size)
	p := &d.pinned
	p.mu.Lock()
	if list := p.spare[n]; len(list) > 0 {
		addr := list[len(list)-1]
		p.spare[n] = list[:len(list)-1]
		p.mu.Unlock()
		return addr, nil
	}
	p.mu.Unlock()
	dev, err := d.anyDevice(doing)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	early := p.carve(n)
	p.mu.Unlock()
	if early != 0 {
		return early, nil
	}
	ctx := dev.ctx()
	var addr C.uint64_t
	allocate := func() (C.hs_status, error) {
		var found C.uint64_t // the call may run on after this
		s, err := dev.callInterruptibly("cuMemHostAlloc", doing,
			func() C.hs_status { return C.hs_host_alloc(ctx, C.uint64_t(n), &found) },
			func() { C.hs_host_free(ctx, found) })
		if err == nil {
			addr = found
		}
		return s, err
	}
	s, err := allocate()
	if err == nil && outOfMemory(s) {
		var drained bool
		_, drained, err = dev.callWithLimit("cuMemFreeHost", doing, func() C.hs_status { p.drain(d); return 0 }, nil)
		if err == nil && drained {
			s, err = allocate()
		}
	}
	if err != nil {
		return 0, err
	}
	if C.hs_code(s) == codeOutOfMemory {
		e := failed(s, doing)
		e.Text = driver.Errorf(e.Kind, doing, "%d bytes cannot be pinned: %s", size, e.Text).Text
		return 0, e
	}
	if err := dev.check(s, doing); err != nil {
		return 0, err
	}
	p.mu.Lock()
	p.insert(slab{uint64(addr), n})
	p.mu.Unlock()
	return uint64(addr), nil
}

// index returns where the first slab behind addr is, or would be.
func (p *pinned) index(addr uint64) int {
	return sort.Search(len(p.slabs), func(i int) bool { return p.slabs[i].start > addr })
}

// at returns the slab that holds addr.
func (p *pinned) at(addr uint64) (slab, bool) {
	if i := p.index(addr); i > 0 && addr-p.slabs[i-1].start < p.slabs[i-1].size {
		return p.slabs[i-1], true
	}
	return slab{}, false
}

func (p *pinned) owns(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.at(addr)
	return ok || p.reserved(addr)
}

// FreeHost implements driver.Driver.
func (d *Driver) FreeHost(addr uint64) {
	p := &d.pinned
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.at(addr)
	if !ok {
		return
	}
	if p.reserved(addr) {
		p.restore(s)
		return
	}
	p.keep(s)
}

// OwnsHost implements driver.Driver.
func (d *Driver) OwnsHost(addr uint64) bool { return d.pinned.owns(addr) }

// drain frees the unused blocks. It may block until the devices' work is done.
func (p *pinned) drain(d *Driver) {
	p.mu.Lock()
	var removed []uint64
	for _, list := range p.spare {
		removed = append(removed, list...)
	}
	p.spare = nil
	for _, addr := range removed {
		i := p.index(addr) - 1
		p.slabs = append(p.slabs[:i], p.slabs[i+1:]...)
	}
	p.mu.Unlock()
	if len(removed) == 0 {
		return // without this a driver of which no device could be opened would fail
	}
	dev, err := d.anyDevice("free pinned memory")
	if err != nil {
		return
	}
	for _, addr := range removed {
		_ = dev.check(C.hs_host_free(dev.ctx(), C.uint64_t(addr)), "free pinned memory")
	}
}

// end frees everything at the end, when no stream uses it any more.
func (p *pinned) end(d *Driver) {
	if d.left.Load() {
		return // work that still runs may use it
	}
	p.drain(d)
	if p.whole == 0 {
		return
	}
	if dev, err := d.anyDevice("free pinned memory"); err == nil {
		_ = dev.check(C.hs_host_free(dev.ctx(), C.uint64_t(p.whole)), "free pinned memory")
	}
}

// Register implements driver.Driver.
func (d *Driver) Register(addr, size uint64) error {
	const doing = "register memory"
	dev, err := d.anyDevice(doing)
	if err != nil {
		return err
	}
	ctx := dev.ctx()
	s, err := dev.callInterruptibly("cuMemHostRegister", doing,
		func() C.hs_status { return C.hs_register(ctx, C.uint64_t(addr), C.uint64_t(size)) },
		func() { C.hs_unregister(ctx, C.uint64_t(addr)) })
	if err != nil {
		return err
	}
	return dev.check(s, doing)
}

// Unregister implements driver.Driver. A call that failed is tried once more, on
// another device if the first was lost: there is no later occasion, and the memory
// of the program would stay pinned.
func (d *Driver) Unregister(addr uint64) error {
	const doing = "unregister memory"
	var failed error
	for range 2 {
		dev, err := d.anyDevice(doing)
		if err != nil {
			return err
		}
		ctx, result := dev.ctx(), make(chan error, 1)
		dev.callToGiveBack("cuMemHostUnregister", int64(drainLimit), func() {
			result <- dev.check(C.hs_unregister(ctx, C.uint64_t(addr)), doing)
		})
		select {
		case failed = <-result:
		default: // another thread is in the call still
			return nil
		}
		if failed == nil {
			return nil
		}
	}
	return failed
}
