package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"math"
	"sync"

	"halstream/hal/addrmap"
	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// alignment is that of the blocks that hal promises; the library's documentation has 64.
const alignment = 256

// blocks are the blocks in use, and those whose free has failed.
type blocks struct {
	mu      sync.Mutex
	list    map[uint64]block // by the address that hal knows
	unfreed []uint64
}

// block is an allocation of the library.
type block struct{ raw, size uint64 }

// all returns the addresses of all allocations.
func (b *blocks) all() []uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	raws := b.unfreed
	for _, at := range b.list {
		raws = append(raws, at.raw)
	}
	return raws
}

// Alloc implements driver.Device.
func (d *Device) Alloc(size uint64) (uint64, error) {
	const doing = "allocate"
	if err := d.usable(doing); err != nil {
		return 0, err
	}
	d.retryFrees()
	raw, err := d.alloc(size, doing)
	if err != nil {
		return 0, err
	}
	addr := raw
	if raw%alignment != 0 {
		d.giveBack(raw)
		if raw, err = d.alloc(size+alignment, doing); err != nil {
			return 0, err
		}
		addr = (raw + alignment - 1) / alignment * alignment
	}
	d.freed.Remove(addr, size)
	d.blocks.mu.Lock()
	if d.blocks.list == nil {
		d.blocks.list = map[uint64]block{}
	}
	d.blocks.list[addr] = block{raw, size}
	d.blocks.mu.Unlock()
	return addr, nil
}

func (d *Device) alloc(size uint64, doing string) (uint64, error) {
	var raw C.uint64_t
	err := d.check(C.na_alloc(d.ctx(), C.uint64_t(size), &raw), doing)
	if e, ok := err.(*driver.Error); ok && e.Kind == driver.OutOfMemory {
		free, total, _ := d.Info() // for the text; the library's own words stand there, too
		e.Text = driver.Errorf(e.Kind, doing, "%d bytes do not fit: %d of %d free on %s (%s)",
			size, free, total, d.title(), e.Text).Text
	}
	return uint64(raw), err
}

// Free implements driver.Device.
func (d *Device) Free(addr uint64) {
	d.blocks.mu.Lock()
	b, ok := d.blocks.list[addr]
	delete(d.blocks.list, addr)
	d.blocks.mu.Unlock()
	if !ok || !d.opened() {
		return // with the device its memory is lost
	}
	d.freed.Add(addr, b.size)
	d.giveBack(b.raw)
}

func (d *Device) giveBack(raw uint64) {
	if d.check(C.na_free(d.ctx(), C.uint64_t(raw)), "free") != nil {
		d.blocks.mu.Lock()
		d.blocks.unfreed = append(d.blocks.unfreed, raw)
		d.blocks.mu.Unlock()
	}
}

// retryFrees frees again what could not be freed.
func (d *Device) retryFrees() {
	d.blocks.mu.Lock()
	list := d.blocks.unfreed
	d.blocks.unfreed = nil
	d.blocks.mu.Unlock()
	for _, raw := range list {
		d.giveBack(raw)
	}
}

// Info implements driver.Device.
func (d *Device) Info() (free, total uint64, err error) {
	const doing = "memory info"
	if err := d.usable(doing); err != nil {
		return 0, 0, err
	}
	var unused, all C.uint64_t
	err = d.check(C.na_info(d.ctx(), &unused, &all), doing)
	return uint64(unused), uint64(all), err
}

// Owns implements driver.Device for freed memory: hal keeps the blocks in use.
func (d *Device) Owns(addr uint64) bool { return d.freed.Has(addr) }

// pinned is a pool of pinned host memory. Freed blocks are kept for later, so that their addresses
// are not taken for memory of the program.
type pinned struct {
	mu    sync.Mutex
	sizes map[uint64]uint64 // of all blocks, by address
	spare map[uint64][]uint64
	owned addrmap.Ranges
}

// AllocHost implements driver.Driver.
func (d *Driver) AllocHost(size uint64) (uint64, error) {
	const doing = "allocate pinned memory"
	n, p := vendor.PinnedSize(size), &d.pinned
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
	var addr C.uint64_t
	s := C.na_host_alloc(dev.ctx(), C.uint64_t(n), &addr)
	if kinds[int(s.code)] == driver.OutOfMemory {
		code(s)
		p.drain(d)
		s = C.na_host_alloc(dev.ctx(), C.uint64_t(n), &addr)
	}
	if err := dev.check(s, doing); err != nil {
		if e := err.(*driver.Error); e.Kind == driver.OutOfMemory {
			e.Text = driver.Errorf(e.Kind, doing, "%d bytes cannot be pinned: %s", size, e.Text).Text
		}
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sizes == nil {
		p.sizes, p.spare = map[uint64]uint64{}, map[uint64][]uint64{}
	}
	p.sizes[uint64(addr)] = n
	p.owned.Add(uint64(addr), n)
	return uint64(addr), nil
}

// FreeHost implements driver.Driver.
func (d *Driver) FreeHost(addr uint64) {
	p := &d.pinned
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok := p.sizes[addr]; ok {
		p.spare[n] = append(p.spare[n], addr)
	}
}

// OwnsHost implements driver.Driver.
func (d *Driver) OwnsHost(addr uint64) bool { return d.pinned.owned.Has(addr) }

// end gives all blocks back to the library when no stream uses them any more. A block is in use until then where the
// end of the copy that it was for could not be seen.
func (p *pinned) end(d *Driver) {
	p.mu.Lock()
	clear(p.spare)
	for addr, n := range p.sizes {
		p.spare[n] = append(p.spare[n], addr)
	}
	p.mu.Unlock()
	p.drain(d)
}

// drain gives the unused blocks back to the library.
func (p *pinned) drain(d *Driver) {
	p.mu.Lock()
	var removed []uint64
	for n, list := range p.spare {
		for _, addr := range list {
			delete(p.sizes, addr)
			p.owned.Remove(addr, n)
		}
		removed = append(removed, list...)
		delete(p.spare, n)
	}
	p.mu.Unlock()
	if len(removed) == 0 {
		return
	}
	dev, err := d.anyDevice("free pinned memory")
	if err != nil {
		return
	}
	for _, addr := range removed {
		_ = dev.check(C.na_host_free(dev.ctx(), C.uint64_t(addr)), "free pinned memory")
	}
}

// Register implements driver.Driver.
func (d *Driver) Register(addr, size uint64) error {
	const doing = "register memory"
	dev, err := d.anyDevice(doing)
	if err != nil {
		return err
	}
	return dev.check(C.na_register(dev.ctx(), C.uint64_t(addr), C.uint64_t(size)), doing)
}

// Unregister implements driver.Driver. A call that failed is tried once more, on another device if the first was lost:
// there is no later occasion, and the memory of the program would stay pinned.
func (d *Driver) Unregister(addr uint64) error {
	const doing = "unregister memory"
	var failed error
	for range 2 {
		dev, err := d.anyDevice(doing)
		if err != nil {
			return err
		}
		failed = dev.check(C.na_unregister(dev.ctx(), C.uint64_t(addr)), doing)
		if failed == nil {
			return nil
		}
	}
	return failed
}

// Stage implements driver.VendorDevice.
func (d *Device) Stage(size uint64) (uint64, error) {
	d.staged.Collect(math.MaxInt, d.Unstage)
	return d.drv.AllocHost(size)
}

// Unstage implements driver.VendorDevice.
func (d *Device) Unstage(addr uint64) { d.drv.FreeHost(addr) }

// reach lets the device use the memory of another one, once.
func (d *Device) reach(other int) error {
	if other == d.ordinal || other < 0 {
		return nil
	}
	if _, done := d.peers.Load(other); done {
		return nil
	}
	if err := d.drv.Enable(d.ordinal, other); err != nil {
		return err
	}
	d.peers.Store(other, true)
	return nil
}
