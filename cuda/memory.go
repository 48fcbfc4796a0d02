package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"slices"
	"sync"

	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// Alloc implements driver.Device. The memory comes from a pool of this device, in the
// order of a stream that is never blocked: cuMemAlloc may wait for all work of the
// device, and that work may wait for the caller.
func (d *Device) Alloc(size uint64) (uint64, error) {
	const doing = "allocate"
	if err := d.usable(doing); err != nil {
		return 0, err
	}
	l := d.state()
	d.retryFrees(false)
	if size <= smallMost {
		if addr, err := d.allocateSmall(l, size, doing); addr != 0 || err != nil {
			return d.allocated(addr, size, err)
		}
	}
	addr, s, err := d.allocate(l, size, l.pool != 0, doing)
	if err != nil {
		return 0, err
	}
	if outOfMemory(s) {
		made, err := d.makeRoom(doing)
		if err != nil {
			return 0, err
		}
		if made {
			if addr, s, err = d.allocate(l, size, l.pool != 0, doing); err != nil {
				return 0, err
			}
		}
	}
	if outOfMemory(s) {
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
		if addr, err = d.usableNow(addr, size, doing); err != nil {
			return 0, err
		}
		if !d.isPlain(uint64(addr)) {
			d.pooled.Add(uint64(addr), size)
		}
	}
	return d.allocated(uint64(addr), size, nil)
}

// allocated notes that a block is in use.
func (d *Device) allocated(addr, size uint64, err error) (uint64, error) {
	if err == nil {
		d.freed.Remove(addr, size)
		d.sizes.Store(addr, size)
	}
	return addr, err
}

func outOfMemory(s C.hs_status) bool { return C.hs_code(s) == codeOutOfMemory }

// makeRoom gives unused memory back to the driver. It reports false if the driver waits there for work that may wait
// for the host, maybe for the caller. Frees may be pending on the internal stream, and the pool may be fragmented.
func (d *Device) makeRoom(doing string) (bool, error) {
	l := d.state()
	if l.pool != 0 {
		if _, err := d.awaitInternal(doing); err != nil {
			return false, err
		}
	}
	d.freeSlab(d.slabs.reclaim())
	d.retryFrees(true)
	if l.pool == 0 {
		return true, nil
	}
	_, made, err := d.callWithLimit("cuMemPoolTrimTo", doing, func() C.hs_status { return C.hs_pool_trim(l.ctx, l.pool) }, nil)
	return made, err
}

// usableNow returns memory that any stream may use at once, for memory of the pool that was
// allocated on the internal stream.
func (d *Device) usableNow(pooled C.CUdeviceptr, size uint64, doing string) (C.CUdeviceptr, error) {
	l := d.state()
	done, err := d.syncInternal(doing)
	if done {
		return pooled, nil
	}
	if err == nil {
		// Its hardware queue is blocked, by a stream that is held for instance, or the device is slow.
		var plain C.CUdeviceptr
		var s C.hs_status
		if plain, s, err = d.allocate(l, size, false, doing); err == nil {
			err = d.check(s, doing)
		}
		if err == nil {
			C.hs_free_pool(l.ctx, pooled, l.internal)
			d.plain.Store(uint64(plain), true)
			return plain, nil
		}
		if outOfMemory(s) { // the memory of the pool is all there is
			done, waited := d.awaitInternal(doing)
			if done {
				return pooled, nil
			}
			if waited != nil {
				err = waited
			}
		}
	}
	C.hs_free_pool(l.ctx, pooled, l.internal)
	return 0, err
}

// allocate allocates memory, from the pool or not.
func (d *Device) allocate(l *deviceState, size uint64, fromPool bool, doing string) (C.CUdeviceptr, C.hs_status, error) {
	var addr C.CUdeviceptr
	call := "cuMemAlloc"
	do := func() C.hs_status { return C.hs_alloc(l.ctx, C.uint64_t(size), &addr) }
	undo := func() { C.hs_free(l.ctx, addr) }
	if fromPool {
		call = "cuMemAllocFromPoolAsync"
		do = func() C.hs_status { return C.hs_alloc_pool(l.ctx, C.uint64_t(size), l.pool, l.internal, &addr) }
		undo = func() { C.hs_free_pool(l.ctx, addr, l.internal) }
	}
	s, returned, err := d.callWithLimit(call, doing, do, undo)
	if err != nil {
		return 0, 0, err
	}
	if !returned {
		e := driver.Errorf(driver.OutOfMemory, doing, "%s does not return while work waits for the host: before the driver finds "+
			"%d bytes it may wait for that work. Let another thread go on with it, or allocate before", call, size)
		e.Code = codeOutOfMemory
		return 0, 0, e
	}
	return addr, s, nil
}

// internalMost is for how many nanoseconds a call waits for the internal stream. Its work
// takes microseconds, unless a stream that shares its hardware queue cannot go on.
const internalMost = 20_000_000

// syncInternal waits for the internal stream: afterwards any stream may use the
// memory that was allocated on it. It reports false if the stream does not go on:
// what blocks it may wait for the caller.
func (d *Device) syncInternal(doing string) (bool, error) {
	l := d.state()
	for clock := vendor.Stopwatch(); ; pause() {
		done, err := d.answer(C.hs_stream_query(l.ctx, l.internal), doing)
		if done || err != nil {
			l.blocked.Store(false)
			return done, err
		}
		if l.blocked.Load() || clock() >= internalMost {
			l.blocked.Store(true)
			return false, nil
		}
	}
}

// stallMost is for how many nanoseconds a call that has no other memory waits for the internal
// stream while work may wait for the host.
var stallMost int64 = 1_000_000_000

// awaitInternal is syncInternal for a call that has no other memory than what the internal stream
// allocates or frees, or what another thread is about to free on it. It waits for a slow device
// until the stream has gone on, and where work waits for the host, maybe for the caller, not long.
func (d *Device) awaitInternal(doing string) (bool, error) {
	l := d.state()
	looked := int64(0)
	for clock := vendor.Stopwatch(); ; pause() {
		elsewhere := d.callsElsewhere.Load() > 0
		done, err := d.answer(C.hs_stream_query(l.ctx, l.internal), doing)
		if err != nil || done && !elsewhere {
			l.stalled.Store(false)
			return done, err
		}
		now := clock()
		if d.drv.stalls() && (l.stalled.Load() || now >= stallMost) {
			l.stalled.Store(true) // the next call does not wait as long again
			return done, nil
		}
		if now-looked < signalSlice {
			continue
		}
		looked = now
		if lock := pythonLock.unlock(); lock != nil {
			if pythonLock.interrupted(&lock) {
				return false, driver.Errorf(driver.Interrupted, doing, "a handler of a signal raised while memory was freed")
			}
			pythonLock.relock(lock)
		}
	}
}

// Free implements driver.Device.
func (d *Device) Free(addr uint64) {
	if !d.opened() {
		return // with the device its memory is lost
	}
	if size, ok := d.sizes.LoadAndDelete(addr); ok {
		d.freed.Add(addr, size.(uint64))
		d.pooled.Remove(addr, size.(uint64))
	}
	if ours, unused := d.slabs.give(addr); ours {
		d.freeSlab(unused)
		d.retryFrees(false)
		return
	}
	if d.isPlain(addr) {
		d.unfreed.add(addr)
		d.retryFrees(false)
		return
	}
	d.retryFrees(false)
	d.callToGiveBack("cuMemFreeAsync", giveBackLimit, func() {
		if d.free(addr) != nil && d.opened() {
			d.unfreed.add(addr)
		}
	})
}

// isPlain reports whether a block is of no pool.
func (d *Device) isPlain(addr uint64) bool {
	_, plain := d.plain.Load(addr)
	return plain || d.state().pool == 0
}

func (d *Device) free(addr uint64) error {
	l := d.state()
	if d.isPlain(addr) {
		d.plain.Delete(addr) // before the driver gives the address to another thread's allocation
		err := d.check(C.hs_free(l.ctx, C.CUdeviceptr(addr)), "free")
		if err != nil {
			d.plain.Store(addr, true)
		}
		return err
	}
	return d.check(C.hs_free_pool(l.ctx, C.CUdeviceptr(addr), l.internal), "free")
}

// unfreed is memory whose free has failed or is deferred: for memory of no pool the call
// waits for all work of the device, and that work may wait for the caller.
type unfreed struct {
	mu   sync.Mutex
	list []uint64
}

func (u *unfreed) add(addr uint64) {
	u.mu.Lock()
	u.list = append(u.list, addr)
	u.mu.Unlock()
}

func (u *unfreed) has(addr uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Contains(u.list, addr)
}

func (u *unfreed) empty() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.list) == 0
}

// retryFrees frees the memory of unfreed again. Where memory is short, it waits for the device if need be.
func (d *Device) retryFrees(short bool) {
	if d.unfreed.empty() {
		return
	}
	idle, stalls := d.Pending() == 0, d.drv.stalls()
	d.unfreed.mu.Lock()
	list := d.unfreed.list
	d.unfreed.list = nil
	d.unfreed.mu.Unlock()
	var now []uint64
	for _, addr := range list {
		if !idle && (stalls || d.isPlain(addr) && !short) {
			d.unfreed.add(addr)
		} else {
			now = append(now, addr)
		}
	}
	if len(now) == 0 {
		return
	}
	// Work of another thread, or of another library, may hold the device by now.
	d.callToGiveBack("cuMemFree", giveBackLimit, func() {
		for _, addr := range now {
			if d.opened() && d.free(addr) != nil {
				d.unfreed.add(addr)
			}
		}
	})
}

// Info implements driver.Device. Memory that the pool and the slabs keep for later counts as free.
func (d *Device) Info() (free, total uint64, err error) {
	const doing = "memory info"
	if err := d.usable(doing); err != nil {
		return 0, 0, err
	}
	l := d.state()
	var unused, all, kept C.uint64_t
	s, err := d.callInterruptibly("cuMemGetInfo", doing,
		func() C.hs_status { return C.hs_info(l.ctx, &unused, &all) }, nil)
	if err == nil {
		err = d.check(s, doing)
	}
	if err != nil {
		return 0, 0, err
	}
	if l.pool != 0 {
		if _, err := d.syncInternal(doing); err != nil {
			return 0, 0, err
		}
		s := C.hs_pool_kept(l.ctx, l.pool, &kept)
		if C.hs_code(s) == codeNotSupported {
			s, kept = 0, 0 // what the pool keeps counts as allocated then
		}
		if err := d.check(s, doing); err != nil {
			return 0, 0, err
		}
	}
	return uint64(unused+kept) + d.slabs.unused(), uint64(all), nil
}

// Owns implements driver.Device for freed memory: hal keeps the blocks in use.
func (d *Device) Owns(addr uint64) bool { return d.freed.Has(addr) }

// The driver's kinds of memory.
const (
	memoryHost   = C.HS_MEMORY_HOST
	memoryDevice = C.HS_MEMORY_DEVICE
)

// Stage implements driver.VendorDevice.
func (d *Device) Stage(size uint64) (uint64, error) {
	d.staged.Collect(maxCollect, d.Unstage)
	return d.drv.AllocHost(size)
}

// Unstage implements driver.VendorDevice.
func (d *Device) Unstage(addr uint64) { d.drv.FreeHost(addr) }

// allocateSmall returns a small block, 0 if there is no memory for another slab.
func (d *Device) allocateSmall(l *deviceState, size uint64, doing string) (uint64, error) {
	if addr := d.slabs.take(size); addr != 0 {
		return addr, nil
	}
	start, s, err := d.allocate(l, slabSize, false, doing)
	if err != nil {
		if e, ok := err.(*driver.Error); ok && e.Kind == driver.OutOfMemory {
			return 0, nil
		}
		return 0, err
	}
	if outOfMemory(s) {
		return 0, nil
	}
	if err := d.check(s, doing); err != nil {
		return 0, err
	}
	return d.slabs.add(uint64(start), size), nil
}

// freeSlab gives a slab without blocks back to the driver, when that waits for no work.
func (d *Device) freeSlab(start uint64) {
	if start == 0 {
		return
	}
	d.plain.Store(start, true)
	d.unfreed.add(start)
}
