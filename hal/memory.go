package hal

import "halstream/hal/driver"

// checkSize rejects a size that is not positive.
func checkSize(op string, size int64) error {
	if size <= 0 {
		return driver.Errorf(driver.InvalidValue, op, "the size is %d bytes; ask for one or more", size)
	}
	return nil
}

// Alloc returns size bytes of device memory, aligned to 256.
//
// # Errors
//   - [ErrInvalidValue]: size is not positive.
//   - [ErrOutOfMemory]: there is not enough memory; the text has the numbers.
//   - [ErrInHostFunction].
//
// Contract: M1, H3.
func (d *Device) Alloc(t *Thread, size int64) (*Block, error) { return d.AllocWait(t, size, nil) }

// AllocWait is Alloc that, before it fails for lack of memory, calls wait with the
// point at which pending work has stopped using freed memory. wait reports whether
// the point was reached; then AllocWait tries again. A nil wait is not called.
//
// # Errors: as for Alloc.
//
// Contract: M16.
func (d *Device) AllocWait(t *Thread, size int64, wait func(driver.Point) bool) (*Block, error) {
	const op = "allocate"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	if err := checkSize(op, size); err != nil {
		return nil, err
	}
	if err := d.rt.CheckUnsafe(t, op); err != nil {
		return nil, err
	}
	d.used.Store(true)
	var addr uint64
	err := d.rt.allocWithRetry(d, op, uint64(size), wait, func() (err error) {
		addr, err = d.d.Alloc(uint64(size))
		return err
	})
	if err != nil {
		return nil, err
	}
	d.pool.countAlloc(uint64(size))
	b := &Block{Start: addr, Size: uint64(size), Kind: DeviceMemory, dev: d}
	d.rt.addBlock(b)
	d.rt.notifyHost(Operation{Kind: "new memory", Stream: d.legacy, Thread: t, Writes: []Range{{addr, b.Size}}})
	return b, nil
}

// allocWithRetry calls alloc. If that runs out of memory, it calls alloc again after
// it returned to d the freed memory that is no longer in use and what the pool keeps,
// and once more after wait, if that is not nil, has waited for the freed memory that
// is still in use. d is nil for memory of the host.
func (rt *Runtime) allocWithRetry(d *Device, op string, size uint64, wait func(driver.Point) bool, alloc func() error) error {
	rt.reap(maxReap)
	err := alloc()
	if !isOutOfMemory(err) {
		return err
	}
	again := func() error {
		rt.reapAll()
		if d != nil {
			d.pool.trim(d, 0)
		}
		return alloc()
	}
	err = again()
	waited := false
	if isOutOfMemory(err) && wait != nil {
		points := rt.pendingFrees()
		if d != nil {
			points = d.pool.pendingFrees(points)
		}
		if waited = len(points) > 0 && wait(points); waited {
			err = again()
		}
	}
	if d != nil {
		d.pool.countShortage(isOutOfMemory(err), waited)
	}
	if isOutOfMemory(err) {
		return rt.outOfMemoryError(op, size, err.(*Error))
	}
	return err
}

// isOutOfMemory reports whether err is an error of kind OutOfMemory.
func isOutOfMemory(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Kind == driver.OutOfMemory
}

// forgetBlock removes a block that is freed from the map. The caller holds the memory's lock.
func (rt *Runtime) forgetBlock(b *Block) {
	b.freed = true
	rt.memory.blocks.Remove(b.Start)
}

// addBlock adds a new block to the map.
func (rt *Runtime) addBlock(b *Block) {
	b.rt = rt
	rt.memory.mu.Lock()
	if rt.WatchesPages() {
		rt.countUnseen(b)
	}
	rt.memory.blocks.Insert(b.Start, b.Size, b)
	rt.memory.mu.Unlock()
}

// AllocHost returns size bytes of pinned host memory, aligned to 256.
//
// # Errors: as for Device.Alloc.
//
// Contract: M10, H3.
func (rt *Runtime) AllocHost(t *Thread, size int64) (*Block, error) {
	return rt.AllocHostWait(t, size, nil)
}

// AllocHostWait is AllocHost that waits as Device.AllocWait does.
//
// # Errors: as for Device.Alloc.
//
// Contract: M16.
func (rt *Runtime) AllocHostWait(t *Thread, size int64, wait func(driver.Point) bool) (*Block, error) {
	const op = "allocate pinned memory"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	if err := checkSize(op, size); err != nil {
		return nil, err
	}
	if err := rt.CheckUnsafe(t, op); err != nil {
		return nil, err
	}
	var addr uint64
	err := rt.allocWithRetry(nil, op, uint64(size), wait, func() (err error) {
		addr, err = rt.drv.AllocHost(uint64(size))
		return err
	})
	if err != nil {
		return nil, err
	}
	b := &Block{Start: addr, Size: uint64(size), Kind: Pinned}
	rt.addBlock(b)
	rt.notifyHost(Operation{Kind: "new memory", Thread: t, Writes: []Range{{addr, b.Size}}})
	return b, nil
}

// liveBlockAt returns the block that starts at addr and fits what op may free, which
// what names in the error. The caller holds the memory's lock.
func (rt *Runtime) liveBlockAt(op string, addr uint64, fits func(*Block) bool, what string) (*Block, error) {
	b := rt.memory.blocks.Find(addr)
	switch {
	case b == nil && (rt.ownsAddress(addr) || rt.memory.deferred.space.Find(addr) != nil || rt.poolsHold(addr)):
		return nil, driver.Errorf(driver.InvalidValue, op,
			"no block is allocated at %#x: it was freed already, or never allocated", addr)
	case b == nil:
		return nil, driver.Errorf(driver.InvalidValue, op, "%#x is not memory of this runtime", addr)
	case b.Start != addr:
		return nil, driver.Errorf(driver.InvalidValue, op,
			"%#x lies %d bytes inside a block; give its start, %#x", addr, addr-b.Start, b.Start)
	case !fits(b):
		return nil, driver.Errorf(driver.InvalidValue, op, "%#x is %s, not %s", addr, b.describe(), what)
	}
	return b, nil
}

// ownsAddress reports whether an address lies in a range reserved for memory of the
// runtime, allocated or not.
func (rt *Runtime) ownsAddress(addr uint64) bool {
	if rt.drv.OwnsHost(addr) {
		return true
	}
	for _, d := range rt.devices {
		if d.d.Owns(addr) {
			return true
		}
	}
	return false
}

// Free frees device memory. No later operation may use it; pending operations that
// use it complete, and only then is the memory reused.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of a live block of device memory.
//   - [ErrInHostFunction].
//
// Contract: M2.
func (rt *Runtime) Free(t *Thread, addr uint64) error { return rt.free(t, addr, false) }

// FreeNoWait is Free for callers whose call is one that waits for nothing: here pending
// operations complete, too, but listeners learn that no caller may count on that.
//
// Contract: M2, M24.
func (rt *Runtime) FreeNoWait(t *Thread, addr uint64) error { return rt.free(t, addr, true) }

func (rt *Runtime) free(t *Thread, addr uint64, noWait bool) error {
	const op = "free"
	if err := t.checkCaller(op); err != nil {
		return err
	}
	rt.ReportTouched(t) // while the block is known
	m := &rt.memory
	m.mu.Lock()
	b, err := rt.liveBlockAt(op, addr, func(b *Block) bool { return b.Kind == DeviceMemory }, "device memory")
	if err == nil && b.ofGraph != nil {
		if err = b.endLaunched(op); err == nil && b.graphs > 0 {
			m.mu.Unlock()
			return nil // the next launch allocates it again
		}
	}
	if err == nil {
		rt.deferFree(b)
	}
	m.mu.Unlock()
	rt.noteFreed(t, b, noWait, err)
	rt.reap(maxReap)
	return err
}

// noteFreed counts a block that was freed and notifies the listeners, unless err says
// that it was not freed or there is no block.
func (rt *Runtime) noteFreed(t *Thread, b *Block, noWait bool, err error) {
	if err != nil || b == nil {
		return
	}
	b.countFreed()
	if rt.listened() {
		o := Operation{Kind: "free memory", Thread: t, Writes: []Range{{b.Start, b.Size}}, NoWait: noWait}
		if b.dev != nil {
			o.Stream = b.dev.legacy
		}
		if b.cached {
			o.Cached, o.Users = true, append([]*Stream{b.allocStream}, b.recorded...)
		}
		rt.notifyHost(o)
	}
	// Only now may the memory be given out again: work of its next owner that the listeners learnt of before
	// this free would look like work that the free does not wait for.
	if b.unannounced {
		rt.memory.mu.Lock()
		b.unannounced = false
		rt.memory.mu.Unlock()
	}
}

// FreeHost frees pinned memory. If pending operations use it, the call fails; with
// force it does not, and the memory is reused when they are done.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of pinned memory of this runtime.
//   - [ErrNotReady]: a pending operation uses it; the text names the operation.
//   - [ErrInHostFunction].
//
// Contract: M10.
func (rt *Runtime) FreeHost(t *Thread, addr uint64, force bool) error {
	const op = "free pinned memory"
	return rt.unpin(t, op, addr, func(b *Block) bool { return b.Kind == Pinned && !b.registered },
		"pinned memory of the runtime", force)
}

// unpin frees or unregisters pinned memory for op: see liveBlockAt and FreeHost.
func (rt *Runtime) unpin(t *Thread, op string, addr uint64, fits func(*Block) bool, what string, force bool) error {
	if err := t.checkCaller(op); err != nil {
		return err
	}
	rt.ReportTouched(t)
	var b *Block
	var err error
	rt.refresh()
	for range rt.refreshRounds() {
		if b, err = rt.unpinOnce(op, addr, fits, what, force); err == nil || err.(*Error).Kind != driver.NotReady {
			break
		}
		rt.refresh()
	}
	rt.noteFreed(t, b, false, err)
	rt.reap(maxReap)
	return err
}

// unpinOnce is unpin without a refresh. The block is nil if it stays registered,
// because it is shared.
func (rt *Runtime) unpinOnce(op string, addr uint64, fits func(*Block) bool, what string, force bool) (*Block, error) {
	m := &rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	b, err := rt.liveBlockAt(op, addr, fits, what)
	if err != nil {
		return nil, err
	}
	if u := b.pendingUse(); u != nil && !force {
		return nil, driver.Errorf(driver.NotReady, op,
			"%s at %#x is in use by %s, which is pending on stream %d of device %d; synchronize that stream first",
			b.describe(), addr, u.what, u.stream.index, u.stream.dev.ordinal)
	}
	if b.registered {
		b.byProgram = false
		if b.shares > 0 {
			return nil, nil // it stays registered until the last share ends
		}
	}
	rt.deferFree(b)
	return b, nil
}

// deferFree removes a block from the map and keeps its memory until no operation
// uses it any more, and noteFreed has notified the listeners. The caller holds the memory's lock.
func (rt *Runtime) deferFree(b *Block) {
	b.unannounced = rt.listened()
	for _, s := range b.recorded {
		b.addUse(s, s.d.Last())
	}
	rt.forgetBlock(b)
	rt.memory.deferred.add(b)
}

// MemoryInfo returns the free and total bytes of the device, or the error of the
// vendor's library.
//
// Contract: M1.
func (d *Device) MemoryInfo() (free, total uint64, err error) {
	d.rt.reapAll()
	return d.d.Info()
}
