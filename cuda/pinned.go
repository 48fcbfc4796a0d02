package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"math/bits"
	"sort"
	"sync"

	"halstream/hal/driver"
)

// pinned is a pool of page-locked host memory, which devices access in stream order.
// Freed blocks are kept for later allocations: the driver's call to free one may wait
// for all work of the device, and that work may wait for the caller.
type pinned struct {
	mu    sync.Mutex
	slabs []slab // by address
	spare map[uint64][]uint64

	reserve slab   // memory that was allocated early, and is in no slab yet
	whole   uint64 // where it began, 0 if there is none
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
	done = p.whole != 0
	if !done {
		p.whole, p.reserve = uint64(addr), slab{uint64(addr), reserveSize}
	}
	p.mu.Unlock()
	if done {
		C.hs_host_free(ctx, addr) // two devices were opened at once
	}
}

// carve takes memory from the reserve; p.mu is held. 0 means that it has too little.
func (p *pinned) carve(n uint64) uint64 {
	if p.reserve.size < n {
		return 0
	}
	addr := p.reserve.start
	p.reserve = slab{addr + n, p.reserve.size - n}
	p.insert(slab{addr, n})
	return addr
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

// leastSlab is the smallest size that is allocated from the driver, in bytes.
const leastSlab = 4 << 10

// room rounds a size up, so that freed blocks fit later requests: at most an eighth
// more, in whole pages.
func room(size uint64) uint64 {
	if size <= leastSlab {
		return leastSlab
	}
	step := max(leastSlab, uint64(1)<<(bits.Len64(size-1)-3))
	return (size + step - 1) / step * step
}

// anyDevice returns a device whose context can be used for calls about host memory.
func (d *Driver) anyDevice(doing string) (*Device, error) {
	for _, dev := range d.devices {
		if dev != nil && dev.opened() {
			return dev, nil
		}
	}
	for _, dev := range d.devices {
		if dev != nil && dev.lost.Load() == nil {
			return dev, dev.usable(doing)
		}
	}
	return d.devices[0], d.devices[0].usable(doing)
}

// AllocHost implements driver.Driver.
func (d *Driver) AllocHost(size uint64) (uint64, error) {
	const doing = "allocate pinned memory"
	n := room(size)
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
	var addr C.uint64_t
	s := C.hs_host_alloc(dev.ctx(), C.uint64_t(n), &addr)
	if C.hs_code(s) == codeOutOfMemory {
		p.drain(d)
		s = C.hs_host_alloc(dev.ctx(), C.uint64_t(n), &addr)
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
	return ok
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
	if p.spare == nil {
		p.spare = map[uint64][]uint64{}
	}
	p.spare[s.size] = append(p.spare[s.size], addr)
}

// OwnsHost implements driver.Driver.
func (d *Driver) OwnsHost(addr uint64) bool { return d.pinned.owns(addr) }

// drain frees the unused blocks. It may block until the devices' work is done.
func (p *pinned) drain(d *Driver) {
	p.mu.Lock()
	var removed []uint64
	kept := map[uint64][]uint64{}
	for n, list := range p.spare {
		for _, addr := range list {
			if p.reserved(addr) {
				kept[n] = append(kept[n], addr)
			} else {
				removed = append(removed, addr)
			}
		}
	}
	p.spare = kept
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
	return dev.check(C.hs_register(dev.ctx(), C.uint64_t(addr), C.uint64_t(size)), doing)
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
		failed = dev.check(C.hs_unregister(dev.ctx(), C.uint64_t(addr)), doing)
		if failed == nil {
			return nil
		}
	}
	return failed
}
