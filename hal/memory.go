package hal

import (
	"container/heap"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"

	"halstream/hal/addrmap"
	"halstream/hal/driver"
	"halstream/hal/pages"
)

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
	b := &Block{Start: addr, Size: uint64(size), Kind: DeviceMemory, dev: d, owner: allocated{}}
	d.rt.addBlock(b)
	d.rt.notifyHost(Operation{Kind: OpNewMemory, Stream: d.legacy, Thread: t, Writes: []Range{{addr, b.Size}}})
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
	rt.memory.listed = nil
}

// addBlock adds a new block to the map.
func (rt *Runtime) addBlock(b *Block) {
	rt.memory.mu.Lock()
	rt.insertBlock(b)
	rt.memory.mu.Unlock()
}

// insertBlock is addBlock for a caller that holds the memory's lock.
func (rt *Runtime) insertBlock(b *Block) {
	b.rt = rt
	if rt.WatchesPages() {
		rt.countUnseen(b)
	}
	rt.memory.blocks.Insert(b.Start, b.Size, b)
	rt.memory.listed = nil
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
	b := &Block{Start: addr, Size: uint64(size), Kind: Pinned, owner: allocated{}}
	rt.addBlock(b)
	rt.notifyHost(Operation{Kind: OpNewMemory, Thread: t, Writes: []Range{{addr, b.Size}}})
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
	b, err := rt.liveBlockAt(op, addr, (*Block).isFreeable, "device memory")
	if err == nil && b.ofGraph() != nil {
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
		o := Operation{Kind: OpFreeMemory, Thread: t, Writes: []Range{{b.Start, b.Size}}, NoWait: noWait}
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
	return rt.unpin(t, op, addr, func(b *Block) bool { return b.Kind == Pinned && b.registration() == nil },
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
	if r := b.registration(); r != nil {
		r.byProgram = false
		if r.shares > 0 {
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

// refresh makes the backend update which operations of its streams are done, for the
// streams of which one was asked for and was not done. It may call the vendor's
// library, so the caller holds no lock.
func (rt *Runtime) refresh() {
	if rt.vendor != nil {
		rt.vendor.Refresh()
	}
}

// refreshRounds is how often a caller asks whether operations are done, with a
// refresh before each round. A vendor's backend needs two rounds: only the first one
// marks the streams that the second refresh updates.
func (rt *Runtime) refreshRounds() int {
	if rt.vendor != nil {
		return 2
	}
	return 1
}

// Blocks returns the number of blocks of memory that are not freed.
//
// Contract: M2.
func (rt *Runtime) Blocks() int {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	return rt.memory.blocks.Len()
}

// Lookup returns the kind, the start and the size of the block that contains an
// address, and the ordinal of its device, -1 for the host. An address in no block is
// Pageable memory of size 0.
func (rt *Runtime) Lookup(addr uint64) (kind MemoryKind, start, size uint64, ordinal int) {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	b := rt.memory.blocks.Find(addr)
	if b == nil {
		return Pageable, 0, 0, -1
	}
	ordinal = -1
	if b.dev != nil {
		ordinal = b.dev.ordinal
	}
	return b.Kind, b.Start, b.Size, ordinal
}

// pendingUses returns the pending operations that use the block that contains addr.
func (rt *Runtime) pendingUses(addr uint64) (found []use) {
	rt.refresh()
	for range rt.refreshRounds() {
		if found = rt.pendingOnce(addr); len(found) == 0 {
			break
		}
		rt.refresh()
	}
	return found
}

// pendingOnce is pendingUses without a refresh.
func (rt *Runtime) pendingOnce(addr uint64) []use {
	m := &rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.blocks.Find(addr)
	if b == nil {
		return nil
	}
	var found []use
	for _, u := range b.users {
		if !u.fence.reached() {
			found = append(found, u)
		}
	}
	return found
}

// MemoryUsers returns the streams with pending operations on the block that contains
// addr; none for an address in no block.
func (rt *Runtime) MemoryUsers(addr uint64) []*Stream {
	var streams []*Stream
	for _, u := range rt.pendingUses(addr) {
		streams = append(streams, u.stream)
	}
	return streams
}

// MemoryPoint returns the point at which all operations that are enqueued so far and
// use the block that contains addr are done, nil if none is pending.
//
// # Errors
//   - [ErrInHostFunction].
//
// Contract: M2, M11, H3.
func (rt *Runtime) MemoryPoint(t *Thread, addr uint64) (driver.Point, error) {
	if err := t.checkCaller("wait for memory"); err != nil {
		return nil, err
	}
	var ps driver.Points
	for _, u := range rt.pendingUses(addr) {
		ps = append(ps, u.point())
	}
	o := Operation{Kind: OpSynchronizeMemory, Thread: t, Reads: rt.wholeBlock(addr)}
	if len(ps) == 0 {
		rt.notifyHost(o)
		return nil, nil
	}
	return rt.observe(ps, o), nil
}

// wholeBlock returns the range of the block that contains addr, for listeners.
func (rt *Runtime) wholeBlock(addr uint64) []Range {
	if !rt.listened() {
		return nil
	}
	_, start, size, _ := rt.Lookup(addr)
	return []Range{{start, size}}
}

// Borrow returns a block for memory of another library. returned is called once, with
// no lock held, when the block was released and no operation that was enqueued by
// then uses the memory any more.
//
// Contract: M17.
func (rt *Runtime) Borrow(addr, size uint64, returned func()) *Block {
	return &Block{Start: addr, Size: size, rt: rt, owner: borrowed{returned}}
}

// releaseBorrowed is Release of a block of Borrow.
func (rt *Runtime) releaseBorrowed(b *Block) {
	if rt.ended.Load() { // no operation runs any more
		if !b.freed {
			b.freed = true
			b.owner.giveBack(b)
		}
		return
	}
	rt.refresh()
	m := &rt.memory
	m.mu.Lock()
	if !b.freed {
		b.freed = true
		if known := m.blocks.Find(b.Start); known != nil {
			for _, u := range known.users {
				if u.calls > 0 { // a call is about to enqueue an operation: the next one
					u.seq = max(u.seq, u.stream.d.Last()+1)
				}
				b.addUse(u.stream, u.seq)
			}
		}
		for _, s := range b.recorded {
			b.addUse(s, s.d.Last())
		}
		m.deferred.add(b)
	}
	m.mu.Unlock()
	rt.reap(maxReap)
}

// FreeOnAllocStream frees stream-ordered memory in the order of the stream that it was
// allocated on.
//
// # Errors: as for Stream.FreeAsync.
//
// Contract: M7.
func (rt *Runtime) FreeOnAllocStream(t *Thread, addr uint64) error {
	const op = "free in stream order"
	if err := t.checkCaller(op); err != nil {
		return err
	}
	rt.ReportTouched(t) // while the block is known
	rt.memory.mu.Lock()
	b, err := rt.liveBlockAt(op, addr, func(b *Block) bool { return b.pooled() != nil || b.ofGraph() != nil }, "stream-ordered memory")
	rt.memory.mu.Unlock()
	if err != nil {
		return err
	}
	if b.allocStream == nil { // of a node that was added to a graph
		return rt.Free(t, addr)
	}
	if b.allocStream.closed.Load() {
		return b.Release(t)
	}
	return b.allocStream.FreeAsync(t, addr)
}

// ReclaimSome returns the memory of a few of the freed blocks that are no longer in
// use. It takes a short time only.
func (rt *Runtime) ReclaimSome() { rt.reap(maxReap) }

// remove removes a block from the map, and reports false if it was freed already.
func (rt *Runtime) remove(b *Block) bool {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	if b.freed {
		return false
	}
	rt.forgetBlock(b)
	return true
}

// extent is a range that an operation accesses, with its role in the operation:
// "source" or "target".
type extent struct {
	role       string
	addr, size uint64
}

// maxExtents is the greatest number of ranges that one operation has.
const maxExtents = 2

// checkRange rejects a range that leaves its block, or, with b nil, a range that
// is not pageable memory because it touches memory of the runtime. captured says that
// the operation becomes a node, which may come after one that allocates the memory.
func (rt *Runtime) checkRange(op string, r extent, b *Block, captured bool) error {
	if b != nil {
		if b.ofGraph() != nil {
			if err := b.checkValid(op, r.role, captured); err != nil {
				return err
			}
		}
		if left := b.Start + b.Size - r.addr; r.size > left {
			return driver.Errorf(driver.InvalidValue, op,
				"the %s, %d bytes at %#x, ends %d bytes behind its block of %d bytes at %#x",
				r.role, r.size, r.addr, r.size-left, b.Size, b.Start)
		}
		// A library may report more memory around a registered range than was registered.
		if b.isForeign() {
			return rt.checkNoOverlap(op, r)
		}
		return nil
	}
	if rt.ownsAddress(r.addr) {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s, %#x, lies in memory that was freed or never allocated", r.role, r.addr)
	}
	if err := rt.checkNoOverlap(op, r); err != nil {
		return err
	}
	if rt.ownsAddress(r.addr + r.size - 1) {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s, %d bytes at %#x, extends into memory of a device", r.role, r.size, r.addr)
	}
	return nil
}

// checkNoOverlap rejects a range that begins outside every block and ends in one.
func (rt *Runtime) checkNoOverlap(op string, r extent) error {
	if other := rt.memory.blocks.Overlapping(r.addr, r.size); other != nil {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s begins at %#x, outside of any block, and extends into the block at %#x", r.role, r.addr, other.Start)
	}
	return nil
}

// foreignBlockAt returns the memory of another library that contains an address, nil
// if the backend's library reports none. The caller holds no lock.
func (rt *Runtime) foreignBlockAt(addr uint64) *Block {
	where, start, size, ordinal, found := rt.vendor.Probe(addr)
	if !found || where == driver.Pageable || rt.isFreed(addr) {
		return nil
	}
	if size == 0 { // the library does not report the end of the allocation
		start, size = addr, math.MaxUint64-addr
	}
	b := &Block{Start: start, Size: size, Kind: Pinned, owner: foreign{}}
	if where == driver.OnDevice {
		if ordinal < 0 || ordinal >= len(rt.devices) {
			return nil
		}
		b.Kind, b.dev = DeviceMemory, rt.devices[ordinal]
	}
	return b
}

// isFreed reports whether an address lies in memory that the program freed and the
// runtime has not returned to the library yet: the library still reports it as
// allocated, but no operation may use it.
func (rt *Runtime) isFreed(addr uint64) bool {
	m := &rt.memory
	m.mu.Lock()
	deferred := m.deferred.space.Find(addr)
	m.mu.Unlock()
	return deferred != nil || rt.poolsHold(addr)
}

// poolsHold reports whether an address lies in memory of a pool. The memory's lock may be held.
func (rt *Runtime) poolsHold(addr uint64) bool {
	return slices.ContainsFunc(rt.devices, func(d *Device) bool { return d.pool.holds(addr) })
}

// span returns the number of bytes from the first byte of the first row to the last
// byte of the last one, and whether addresses from addr on can have that many.
func span(addr, pitch, width, height uint64) (uint64, bool) {
	high, low := bits.Mul64(pitch, height-1)
	n, carry := bits.Add64(low, width, 0)
	_, overflow := bits.Add64(addr, n, 0)
	return n, high == 0 && carry == 0 && overflow == 0
}

// maxRows is the greatest number of rows that listeners see as ranges of their own;
// of a copy with more rows they see one range that includes the gaps.
const maxRows = 4096

// rows returns the ranges of the rows, one range if there are no gaps between them.
func rows(addr, pitch, width, height uint64) []Range {
	if pitch == width || height == 1 || height > maxRows {
		n, _ := span(addr, pitch, width, height)
		return []Range{{addr, n}}
	}
	ranges := make([]Range, height)
	for i := range ranges {
		ranges[i] = Range{addr + uint64(i)*pitch, width}
	}
	return ranges
}

// checkAccess rejects a range of pageable memory with a page that is not mapped, or
// that cannot be read or, with write, written: an access would end the process.
func checkAccess(op, role string, addr, size uint64, write bool) error {
	if write && pages.Writable(addr, size) || !write && pages.Readable(addr, size) {
		return nil
	}
	return accessError(op, role, addr, size, write)
}

// accessError is the error of memory that this process cannot read or, with write,
// write.
func accessError(op, role string, addr, size uint64, write bool) *Error {
	access := "readable"
	if write {
		access = "writable"
	}
	return driver.Errorf(driver.InvalidValue, op,
		"the %s, %d bytes at %#x, is not %s memory of this process", role, size, addr, access)
}

// CheckMemory rejects a range of addresses with a page that is not mapped or
// cannot be read. op names the call in the error.
//
// # Errors
//   - [ErrInvalidValue]: a part of the range is not mapped, or cannot be read.
//
// Contract: M3.
func CheckMemory(op string, addr, size uint64) error {
	return checkAccess(op, "memory", addr, size, false)
}

// RegisterHost makes memory of the program pinned until UnregisterHost. Memory that is
// registered only because it is shared (see ShareHost) can be registered as the same
// range.
//
// # Errors
//   - [ErrInvalidValue]: the range is empty, not mapped, or shares bytes with
//     memory of the runtime or registered memory.
//   - [ErrInHostFunction].
//
// Contract: M10, M21.
func (rt *Runtime) RegisterHost(t *Thread, addr uint64, size int64) error {
	const op = "register memory"
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if err := checkSize(op, size); err != nil {
		return err
	}
	_, err := rt.register(t, op, addr, uint64(size), func(b *Block) error {
		r := b.registration()
		if r == nil || r.byProgram || b.Start != addr || b.Size != uint64(size) {
			return driver.Errorf(driver.InvalidValue, op, "the range shares bytes with %s, %d bytes at %#x",
				b.describe(), b.Size, b.Start)
		}
		r.byProgram = true
		return nil
	})
	return err
}

// register returns the block that shares bytes with the range, after accept has
// agreed to it, or else a new registered block. The new block is given to accept as
// well. accept is called with the memory's lock held.
func (rt *Runtime) register(t *Thread, op string, addr, size uint64, accept func(*Block) error) (*Block, error) {
	if b, err := rt.acceptOverlapping(addr, size, nil, accept); b != nil || err != nil {
		return b, err
	}
	if rt.ownsAddress(addr) || rt.ownsAddress(addr+size-1) {
		return nil, driver.Errorf(driver.InvalidValue, op, "%d bytes at %#x are memory of this runtime", size, addr)
	}
	if err := rt.drv.Register(addr, size); err != nil {
		return nil, err
	}
	created := &Block{Start: addr, Size: size, Kind: Pinned, owner: &registration{}, rt: rt}
	// Another thread may have registered the same bytes meanwhile.
	b, err := rt.acceptOverlapping(addr, size, created, accept)
	if b != created {
		_ = rt.drv.Unregister(addr)
		return b, err
	}
	rt.notifyHost(Operation{Kind: OpNewMemory, Thread: t, Writes: []Range{{addr, size}}})
	return b, nil
}

// acceptOverlapping calls accept with the block that shares bytes with the range. If
// there is none it adds created, if that is not nil, and calls accept with it.
func (rt *Runtime) acceptOverlapping(addr, size uint64, created *Block, accept func(*Block) error) (*Block, error) {
	m := &rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.blocks.Overlapping(addr, size)
	if b == nil {
		if created == nil {
			return nil, nil
		}
		b = created
		m.blocks.Insert(addr, size, b)
		m.listed = nil
	}
	return b, accept(b)
}

// UnregisterHost ends the registration of RegisterHost: the memory becomes pageable
// again, at once or, if it is shared, when the last share ends.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of memory that the program registered.
//     The text says so if the memory is registered only because it is shared.
//   - [ErrNotReady]: a pending operation uses it; the text names the operation.
//   - [ErrInHostFunction].
//
// Contract: M10, M21.
func (rt *Runtime) UnregisterHost(t *Thread, addr uint64) error {
	return rt.unpin(t, "unregister memory", addr, func(b *Block) bool { r := b.registration(); return r != nil && r.byProgram },
		"memory that the program registered", false)
}

// Share keeps host memory of another library registered until it ends.
type Share struct {
	rt    *Runtime
	block *Block // nil once the share has ended; the memory's lock guards it
}

// ShareHost registers host memory that another library lends, unless the range lies
// in registered memory, and keeps it registered until the share ends. It returns nil
// for memory that the runtime allocated, which needs no registration.
//
// # Errors
//   - [ErrInvalidValue]: the range is empty or not mapped, or shares bytes with a
//     block without lying in it as a whole.
//   - [ErrInHostFunction].
//
// Contract: M21.
func (rt *Runtime) ShareHost(t *Thread, addr, size uint64) (*Share, error) {
	const op = "share memory"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	if size == 0 || size > -addr {
		return nil, driver.Errorf(driver.InvalidValue, op, "%d bytes at %#x are no range of memory", size, addr)
	}
	b, err := rt.register(t, op, addr, size, func(b *Block) error {
		if addr < b.Start || addr-b.Start+size > b.Size {
			return driver.Errorf(driver.InvalidValue, op,
				"%d bytes at %#x overlap %s, %d bytes at %#x, without lying in it; copy them",
				size, addr, b.describe(), b.Size, b.Start)
		}
		if r := b.registration(); r != nil {
			r.shares++
		}
		return nil
	})
	if err != nil || b.registration() == nil {
		return nil, err
	}
	return &Share{rt, b}, nil
}

// End ends the share. With the last share of memory that the program did not register
// itself, or has unregistered since, the memory becomes pageable again, as soon as no
// pending operation uses it. End may be called again, and does nothing then; it may be
// called anywhere, since finalizers do.
//
// Contract: M21.
func (s *Share) End(t *Thread) {
	rt := s.rt
	m := &rt.memory
	m.mu.Lock()
	b := s.block
	if b == nil || rt.ended.Load() {
		m.mu.Unlock()
		return
	}
	s.block = nil
	r := b.registration()
	r.shares--
	last := r.shares == 0 && !r.byProgram
	if last {
		rt.deferFree(b)
	}
	m.mu.Unlock()
	if last {
		rt.noteFreed(t, b, false, nil)
		rt.reap(maxReap)
	}
}

// MarkManaged says that the host may work as well on the block which contains an address.
//
// Contract: V8. Source: CUDA driver API, cuMemAllocManaged.
func (rt *Runtime) MarkManaged(addr uint64) {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	if b := rt.memory.blocks.Find(addr); b != nil {
		b.managed = true
	}
}

// SetStrictReuse sets whether memory of AllocReusable goes back at once, without waiting
// for work of other streams. Under a deterministic schedule it always does.
//
// Contract: M22.
func (rt *Runtime) SetStrictReuse(on bool) { rt.strictReuse.Store(on) }

// StrictReuse reports whether memory of AllocReusable goes back at once.
func (rt *Runtime) StrictReuse() bool { return rt.strictReuse.Load() || rt.Deterministic() }

// blocksPacked appends the blocks that arguments begin in to a list. It reports false if one that the caller has not
// looked at is not where s can use it.
func (rt *Runtime) blocksPacked(s *Stream, args []byte, modes string, list []*Block) (found []*Block, placed bool) {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	return rt.blocksPackedLocked(s, args, modes, list)
}

// blocksPackedLocked is blocksPacked; the caller holds the memory's lock.
func (rt *Runtime) blocksPackedLocked(s *Stream, args []byte, modes string, list []*Block) (found []*Block, placed bool) {
	for i := range len(modes) {
		r, mode := packed(args, modes, i)
		if mode == '-' {
			continue
		}
		b := rt.memory.blocks.Find(r.Start)
		if modes[i] == mode && !b.usableBy(s, r) {
			return nil, false
		}
		if b != nil {
			list = append(list, b)
		}
	}
	return list, true
}

// reap returns the memory of at most most freed blocks that no operation uses any more.
func (rt *Runtime) reap(most int) {
	if rt.ended.Load() {
		return // closing the driver has freed all memory
	}
	rt.refresh()
	m := &rt.memory
	m.mu.Lock()
	found := m.deferred.take(most)
	m.mu.Unlock()
	for _, b := range found {
		b.owner.giveBack(b)
	}
}

// reapAll is reap without a bound, for calls that need the memory.
func (rt *Runtime) reapAll() {
	for range rt.refreshRounds() {
		rt.reap(math.MaxInt)
	}
}

// pendingFrees returns the points at which the operations that use freed blocks are
// done.
func (rt *Runtime) pendingFrees() (points driver.Points) {
	m := &rt.memory
	m.mu.Lock()
	var last []fence
	for _, s := range m.deferred.streams {
		f := fence{stream: s}
		for _, w := range *m.deferred.heaps[s] {
			f.seq = max(f.seq, w.seq)
			for _, o := range w.block.users {
				if o.stream != s {
					last = append(last, o.fence)
				}
			}
		}
		last = append(last, f)
	}
	m.mu.Unlock()
	for _, f := range last {
		points = append(points, f.point())
	}
	return points
}

// outOfMemoryError is e with the size that was asked for and the size of the freed
// memory that pending work still uses.
func (rt *Runtime) outOfMemoryError(op string, size uint64, e *Error) error {
	m := &rt.memory
	m.mu.Lock()
	freed := m.deferred.bytes
	m.mu.Unlock()
	hint := ""
	if freed != 0 {
		hint = fmt.Sprintf(" (%d bytes that were freed are still in use by pending work; synchronize its streams)", freed)
	}
	return &Error{Kind: e.Kind, Code: e.Code, Op: op, Token: e.Token,
		Text: fmt.Sprintf("out of memory. Tried to allocate %d bytes (%s)%s", size, e.Text, hint)}
}

// deferred holds blocks that were freed while pending operations use them. A block is
// in the heap of one stream on which an operation uses it. When that operation is
// done the block moves to the heap of another such stream, or its memory is returned.
// So the cost of a search depends on the operations that are done, not on the number
// of blocks.
type deferred struct {
	heaps     map[*Stream]*useHeap
	streams   []*Stream           // those with a heap, by age
	undecided []*Block            // that calls are about to enqueue work on, or whose free is not announced yet
	done      []*Block            // that no operation uses any more
	space     addrmap.Map[*Block] // those of the runtime's own memory, by address
	bytes     uint64
}

// waiting is a block and the sequence number of the operation of a stream that it waits for.
type waiting struct {
	seq   uint64
	block *Block
}

type useHeap []waiting

func (h useHeap) Len() int { return len(h) }

func (h useHeap) Less(i, j int) bool { return h[i].seq < h[j].seq }

func (h useHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *useHeap) Push(x any) { *h = append(*h, x.(waiting)) }

func (h *useHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = waiting{}
	*h = old[:len(old)-1]
	return last
}

// add defers a block that was removed from the map. The caller holds the memory's
// lock, as for the other methods.
func (d *deferred) add(b *Block) {
	d.bytes += b.Size
	if b.ownMemory() {
		d.space.Insert(b.Start, b.Size, b)
	}
	d.wait(b)
}

// wait puts a block into the list or heap that it belongs to now.
func (d *deferred) wait(b *Block) {
	if b.unannounced {
		d.undecided = append(d.undecided, b)
		return
	}
	for _, u := range b.users {
		if u.calls > 0 {
			d.undecided = append(d.undecided, b)
			return
		}
	}
	u := b.pendingUse()
	if u == nil {
		d.done = append(d.done, b)
		return
	}
	h := d.heaps[u.stream]
	if h == nil {
		if d.heaps == nil {
			d.heaps = map[*Stream]*useHeap{}
		}
		h = &useHeap{}
		d.heaps[u.stream] = h
		d.streams = append(d.streams, u.stream)
	}
	heap.Push(h, waiting{u.seq, b})
}

// take removes and returns at most most blocks that no operation uses any more.
func (d *deferred) take(most int) (found []*Block) {
	undecided := d.undecided
	d.undecided = nil
	for _, b := range undecided {
		d.wait(b)
	}
	looked := 0
	streams := d.streams
	d.streams = nil // wait adds streams whose heap it begins
	for _, s := range streams {
		h := d.heaps[s]
		w := s.d
		for len(*h) > 0 && looked < most && w.Reached((*h)[0].seq) {
			d.wait(heap.Pop(h).(waiting).block)
			looked++
		}
		if len(*h) == 0 {
			delete(d.heaps, s)
		} else {
			d.streams = append(d.streams, s)
		}
	}
	n := min(most, len(d.done))
	found = append(found, d.done[:n]...)
	clear(d.done[:n])
	d.done = d.done[n:]
	if len(d.done) == 0 {
		d.done = nil
	}
	for _, b := range found {
		d.bytes -= b.Size
		if b.ownMemory() {
			d.space.Remove(b.Start)
		}
	}
	return found
}

// maxReap is the greatest number of freed blocks whose memory a call that frees or
// allocates returns: more than one, so that their number does not grow, and few, so
// that no call takes long.
const maxReap = 16

// MemoryStats returns the counts of the device's memory.
//
// Contract: M15.
func (d *Device) MemoryStats() MemoryStats {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	f := &d.pool.all
	return MemoryStats{f.used, f.usedPeak, f.active, f.activePeak, f.reserved, f.reservedPeak,
		d.pool.failures, d.pool.retries, d.pool.counts}
}

// ResetMemoryPeaks makes the peaks of MemoryStats start again from the current counts.
//
// Contract: M15.
func (d *Device) ResetMemoryPeaks(allocated, reserved bool) {
	d.pool.mu.Lock()
	d.pool.all.resetPeaks(allocated, reserved)
	d.pool.counts.resetPeaks(allocated, reserved)
	d.pool.mu.Unlock()
}

// CountOutOfMemory counts an allocation that failed because of a limit which is not
// the device's, such as the limit of a pool of the program.
func (d *Device) CountOutOfMemory() { d.pool.countShortage(true, false) }

// PoolChunks returns the parts of the segments of the stream-ordered pool, by address.
//
// Contract: M15.
func (d *Device) PoolChunks() (chunks []PoolChunk) {
	p := &d.pool
	p.mu.Lock()
	for s := range p.segments.All() {
		for c := range s.Chunks() {
			chunk := PoolChunk{Segment: Range{s.Start, s.Size}, Chunk: Range{c.Start, c.Size}, Used: c.Bin() == nil}
			for _, b := range p.bins {
				if &b.Bin == c.Bin() {
					chunk.Stream = b.stream
				}
			}
			chunks = append(chunks, chunk)
		}
	}
	p.mu.Unlock()
	m := &d.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range chunks {
		if b := m.blocks.Find(chunks[i].Chunk.Start); b != nil && b.pooled() != nil {
			chunks[i].Block, chunks[i].Stream = b, b.allocStream
		}
	}
	return chunks
}

// PoolStats returns the counts of the stream-ordered pool. Memory above the threshold
// whose free was reached since is returned to the device before.
//
// Contract: M7, M15.
func (d *Device) PoolStats() PoolStats {
	p := &d.pool
	p.mu.Lock()
	over, threshold := p.overThreshold(), p.threshold
	p.mu.Unlock()
	if over {
		p.trim(d, threshold)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.own
	return PoolStats{f.used, f.reserved, f.usedPeak, f.reservedPeak, p.threshold}
}

// TrimPool returns free memory of the pool to the device until least bytes are left.
//
// Contract: M7.
func (d *Device) TrimPool(least uint64) { d.pool.trim(d, least) }

// SetPoolThreshold sets how many free bytes the pool keeps.
//
// Contract: M7.
func (d *Device) SetPoolThreshold(bytes uint64) {
	p := &d.pool
	p.mu.Lock()
	p.threshold, p.limited = bytes, true
	p.mu.Unlock()
	p.trim(d, bytes)
}

// ResetPoolPeaks makes the peaks of PoolStats start again from the current counts.
func (d *Device) ResetPoolPeaks(used, reserved bool) {
	p := &d.pool
	p.mu.Lock()
	p.own.resetPeaks(used, reserved)
	p.mu.Unlock()
}

// Reclaim returns the memory of all freed blocks that are no longer in use.
func (d *Device) Reclaim() {
	d.rt.reapAll()
	d.pool.mu.Lock()
	d.pool.advance()
	d.pool.mu.Unlock()
}

// DeferredPoint returns the point at which no pending work uses freed memory of the
// device any more, memory of its pool included; nil if none uses any now.
//
// Contract: M16.
func (d *Device) DeferredPoint() driver.Point {
	points := d.pool.pendingFrees(d.rt.pendingFrees())
	if len(points) == 0 {
		return nil
	}
	return points
}

// CheckTensorDevice rejects a tensor whose memory the devices of the runtime cannot
// access. kind and number are DLPack's of the tensor's device.
//
// # Errors
//   - [ErrInvalidValue]: another kind of device.
//   - [ErrInvalidDevice]: there is no CUDA device with this number.
//   - [ErrNotSupported]: the backend takes no tensors.
//
// Contract: M20.
func (rt *Runtime) CheckTensorDevice(kind, number int32) error {
	const op = "import"
	name := ""
	if kind >= 0 && kind < tensorTypesNamed {
		name = tensorDevices[kind]
	}
	if name == "" {
		name = fmt.Sprintf("a device of DLPack's type %d", kind)
	}
	onHost := kind == tensorOnHost || kind == tensorInCUDAPinned || kind == tensorInROCmPinned || kind == tensorInCUDAManaged
	onCUDA := kind == tensorOnCUDA || kind == tensorInCUDAManaged
	switch backend := rt.Name(); {
	case backend != "host" && backend != "cuda" && backend != "ascend":
		return driver.Errorf(driver.NotSupported, op, "importing tensors on the %s backend is not built yet", backend)
	case backend == "cuda" && onCUDA, backend == "ascend" && kind == tensorOnExtension:
		_, err := rt.Device(int(number)) // another numbering than this process's would name none
		return err
	case onHost:
		return nil
	case backend != "host":
		return driver.Errorf(driver.InvalidValue, op, "the tensor is on %s (number %d), whose memory %s devices cannot "+
			"reach; copy it to the host first", name, number, map[string]string{"cuda": "CUDA", "ascend": "Ascend"}[backend])
	}
	return driver.Errorf(driver.InvalidValue, op, "the tensor is on %s (number %d), and devices of the host backend see "+
		"the memory of the host only; copy it there first", name, number)
}

// blocksOf returns the blocks that ranges begin in.
func (rt *Runtime) blocksOf(lists ...[]Range) (found []*Block) {
	m := &rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, list := range lists {
		for _, r := range list {
			if b := m.blocks.Find(r.Start); b != nil {
				found = append(found, b)
			}
		}
	}
	return found
}

const opShareMemory = "share memory with other processes"

// SharePoint returns the point at which ShareMemory may be called for an address: nothing that is pending now works on the
// pages of its block any more. It is nil if that is so already.
//
// # Errors: as for ShareMemory.
//
// Contract: M26.
func (rt *Runtime) SharePoint(t *Thread, addr uint64) (driver.Point, error) {
	b, _, err := rt.sharable(t, addr)
	if err != nil {
		return nil, err
	}
	if points := rt.usesOfPages(b); len(points) > 0 {
		return points, nil
	}
	return nil, nil
}

// ShareMemory lets other processes of the machine work on the block of device memory that contains addr, for as long as
// it is allocated here, and returns what OpenMemory finds it by. The first time the memory's pages move to where others
// can map them: nothing may work on them meanwhile, see SharePoint.
//
// # Errors
//   - [ErrInvalidValue]: the address is not one of device memory, the memory is another process's, or pending work uses it.
//   - [ErrNotSupported]: this backend or system cannot.
//   - [ErrOutOfMemory]: the system gives no memory that can be shared.
//   - [ErrInHostFunction].
//
// Contract: M26. Source: CUDA driver API, cuIpcGetMemHandle.
func (rt *Runtime) ShareMemory(t *Thread, addr uint64) (handle ShareHandle, err error) {
	b, device, err := rt.sharable(t, addr)
	if err != nil {
		return handle, err
	}
	if len(rt.usesOfPages(b)) > 0 {
		return handle, driver.Errorf(driver.InvalidValue, opShareMemory, "pending work uses the memory or its neighbours; wait for it first")
	}
	m, err := device.Share(b.Start, b.Size)
	if err != nil {
		return handle, err
	}
	return newHandle(memoryMark, m, b.dev), nil
}

// sharable returns the block that contains an address and the device that can share it.
func (rt *Runtime) sharable(t *Thread, addr uint64) (*Block, driver.SharingDevice, error) {
	const op = opShareMemory
	if err := t.checkCaller(op); err != nil {
		return nil, nil, err
	}
	rt.memory.mu.Lock()
	b := rt.memory.blocks.Find(addr)
	rt.memory.mu.Unlock()
	if b == nil || b.Kind != DeviceMemory {
		return nil, nil, driver.Errorf(driver.InvalidValue, op, "%#x is not device memory", addr)
	}
	if b.isOpened() {
		return nil, nil, driver.Errorf(driver.InvalidValue, op, "%#x is memory of another process, which can share it itself", addr)
	}
	device, err := sharingOf(b.dev, op)
	return b, device, err
}

// usesOfPages returns the points of the pending operations that use any block on the pages of a block.
func (rt *Runtime) usesOfPages(b *Block) (points driver.Points) {
	page := uint64(os.Getpagesize())
	from, to := b.Start&^(page-1), (b.Start+b.Size+page-1)&^(page-1)
	rt.refresh()
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	for one := range rt.memory.blocks.All() {
		if one.Start < to && from < one.Start+one.Size {
			for _, u := range one.users {
				if !u.reached() {
					points = append(points, u.point())
				}
			}
		}
	}
	return points
}

// OpenMemory maps memory that a device has in another process, as memory of the device of that number here, until
// CloseMemory was called as often. A handle that is open already gives the same block.
//
// # Errors
//   - [ErrInvalidValue]: handle is none, or the process that made it has ended or belongs to another user.
//   - [ErrWrongContext]: this process made the handle; it has the memory already.
//   - [ErrWrongDevice]: there is no such device here.
//   - [ErrNotSupported]: this backend or system cannot.
//   - [ErrOutOfMemory]: the system gives no addresses.
//   - [ErrInHostFunction].
//
// Contract: M26. Source: CUDA driver API, cuIpcOpenMemHandle.
func (rt *Runtime) OpenMemory(t *Thread, handle ShareHandle) (*Block, error) {
	const op = "open memory of another process"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	d, device, m, err := sharedBy(rt, op, handle, memoryMark, "memory")
	if err != nil {
		return nil, err
	}
	if b := rt.openAgain(handle, nil); b != nil {
		return b, nil
	}
	addr, err := device.Map(m)
	if err != nil {
		return nil, err
	}
	b := &Block{Start: addr, Size: m.Size, Kind: DeviceMemory, dev: d, owner: &opened{handle: handle}}
	if other := rt.openAgain(handle, b); other != b { // another thread was faster
		device.Unmap(addr, m.Size)
		return other, nil
	}
	rt.notifyHost(Operation{Kind: OpNewMemory, Stream: d.legacy, Thread: t, Writes: []Range{{addr, b.Size}}})
	return b, nil
}

// openAgain counts one more OpenMemory of a handle, and returns its block. If the handle is not open, that is made, which
// it adds, unless made is nil.
func (rt *Runtime) openAgain(handle ShareHandle, made *Block) *Block {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	for b := range rt.memory.blocks.All() {
		if o, is := b.owner.(*opened); is && o.handle == handle {
			o.times++
			return b
		}
	}
	if made != nil {
		made.owner.(*opened).times++
		rt.insertBlock(made)
	}
	return made
}

// CloseMemory ends one OpenMemory, and returns how many are left. With the last one the memory is unmapped when the
// pending operations that use it are done; no later operation may use it.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of memory that OpenMemory has returned and that is open.
//   - [ErrInHostFunction].
//
// Contract: M26. Source: CUDA driver API, cuIpcCloseMemHandle.
func (rt *Runtime) CloseMemory(t *Thread, addr uint64) (left int, err error) {
	const op = "close memory of another process"
	if err := t.checkCaller(op); err != nil {
		return 0, err
	}
	rt.memory.mu.Lock()
	b, err := rt.liveBlockAt(op, addr, (*Block).isOpened, "memory of another process")
	if err == nil {
		o := b.owner.(*opened)
		o.times--
		left = o.times
	}
	rt.memory.mu.Unlock()
	if err != nil || left > 0 {
		return left, err
	}
	return 0, b.Release(t)
}
