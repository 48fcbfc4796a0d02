package hal

import (
	"slices"

	"halstream/hal/driver"
)

// Freed reports whether the block was freed, by whichever call.
func (b *Block) Freed() bool {
	if b.rt == nil {
		return b.freed
	}
	b.rt.memory.mu.Lock()
	defer b.rt.memory.mu.Unlock()
	return b.freed
}

// Device returns the device of the block, nil for memory of the host.
func (b *Block) Device() *Device { return b.dev }

// ReleaseInOrder makes Release free a stream-ordered block as Stream.FreeAsync does:
// in the order of its stream, without waiting for uses on other streams. Memory of a
// graph has no such order: its graphs end it.
func (b *Block) ReleaseInOrder() { b.inOrder = b.pooled }

// RecordStream declares that work on s uses the block, for work enqueued without
// ranges of its accesses. When the block is freed, its memory is not reused before
// the work enqueued on s by then is done, also if s was closed meanwhile. The stream
// that the block was allocated on needs no such call.
//
// Contract: M17. Source: torch.Tensor.record_stream.
func (b *Block) RecordStream(s *Stream) {
	if s == b.allocStream {
		return
	}
	m := &b.rt.memory
	m.mu.Lock()
	if !slices.Contains(b.recorded, s) {
		b.recorded = append(b.recorded, s)
	}
	m.mu.Unlock()
}

// Recorded reports whether RecordStream was called with another stream than the one
// the block was allocated on.
func (b *Block) Recorded() bool {
	b.rt.memory.mu.Lock()
	defer b.rt.memory.mu.Unlock()
	return b.recorded != nil
}

// addUse records that the work of s up to place uses the block. The caller holds the
// memory's lock.
func (b *Block) addUse(s *Stream, place uint64) {
	for i := range b.users {
		if u := &b.users[i]; u.stream == s {
			u.place = max(u.place, place)
			return
		}
	}
	b.users = append(b.users, use{stream: s, place: place, what: "work of a recorded stream"})
}

// Release frees a block for its owner. Pending operations that use it complete first.
// Stream-ordered memory can be allocated again on its stream at once, unless other
// streams use it, and on other streams when the work that is now enqueued on its
// stream is done. A block that was freed already is not freed again.
//
// # Errors: [ErrInHostFunction].
//
// Contract: M2, M7, M15, M17.
func (b *Block) Release(t *Thread) error {
	rt := b.rt
	if err := t.checkCaller("free"); err != nil {
		return err
	}
	rt.ReportTouched(t) // while the block is known
	if b.onReturn != nil {
		rt.releaseBorrowed(b)
		return nil
	}
	if b.inOrder && b.recorded == nil && !b.allocStream.closed.Load() {
		if rt.remove(b) {
			b.allocStream.freeInOrder(t, b)
		}
		return nil
	}
	m := &rt.memory
	m.mu.Lock()
	if others := b.recorded; len(others) > 0 {
		m.mu.Unlock()
		for _, s := range others { // track exactly when the work enqueued by now is done
			if k, ok := s.d.(driver.VendorStream); ok {
				k.Keep()
			}
		}
		m.mu.Lock()
	}
	if b.freed || b.keptByGraphs() {
		m.mu.Unlock()
		return nil
	}
	if b.pooled {
		b.freedAt = b.allocStream.d.Last()
		// Later work of its stream is ordered after these uses.
		b.users = slices.DeleteFunc(b.users, func(u use) bool { return u.stream == b.allocStream && u.calls == 0 })
	}
	rt.deferFree(b)
	m.mu.Unlock()
	rt.noteFreed(t, b, false, nil)
	rt.reap(maxReap)
	return nil
}

// Collect is Release for a block whose owner was collected: the program may still launch
// graphs that work on the memory, which is freed when none is left.
//
// Contract: G6.
func (b *Block) Collect() error {
	if b.rt != nil {
		m := &b.rt.memory
		m.mu.Lock()
		waits := b.graphs > 0 && !b.freed
		b.collected = b.collected || waits
		m.mu.Unlock()
		if waits {
			return nil
		}
	}
	return b.Release(nil)
}

// keepBlocks keeps the memory that a node works on, where its owner is collected.
func (k *keep) keepBlocks(blocks []*Block) {
	for _, b := range blocks {
		if b == nil || b.foreign || !k.addBlock(b) {
			continue
		}
		m := &k.rt.memory
		m.mu.Lock()
		b.graphs++
		m.mu.Unlock()
	}
}

// addBlock adds a block to those that are kept, and reports false if it is one of them.
func (k *keep) addBlock(b *Block) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.recent[:], b) {
		return false
	}
	k.recent[k.next] = b
	k.next = (k.next + 1) % len(k.recent)
	if _, kept := k.has[b]; kept {
		return false
	}
	if k.has == nil {
		k.has = map[*Block]struct{}{}
	}
	k.has[b] = struct{}{}
	k.blocks = append(k.blocks, b)
	return true
}

// releaseBlock ends what keepBlocks has begun for one block.
func (k *keep) releaseBlock(b *Block) {
	m := &k.rt.memory
	m.mu.Lock()
	b.graphs--
	last := b.leftByGraphs()
	m.mu.Unlock()
	if last {
		_ = b.Release(nil)
	}
}

// Borrow returns a block for memory of another library. returned is called once, with
// no lock held, when the block was released and no operation that was enqueued by
// then uses the memory any more.
//
// Contract: M17.
func (rt *Runtime) Borrow(addr, size uint64, returned func()) *Block {
	return &Block{Start: addr, Size: size, rt: rt, onReturn: returned}
}

// releaseBorrowed is Release of a block of Borrow.
func (rt *Runtime) releaseBorrowed(b *Block) {
	if rt.ended.Load() { // no operation runs any more
		if !b.freed {
			b.freed = true
			b.onReturn()
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
					u.place = max(u.place, u.stream.d.Last()+1)
				}
				b.addUse(u.stream, u.place)
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
	b, err := rt.liveBlockAt(op, addr, func(b *Block) bool { return b.pooled || b.ofGraph != nil }, "stream-ordered memory")
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

// ReleaseOn is Release of a stream-ordered block in the order of s instead of the
// stream that it was allocated on.
//
// # Errors
//   - [ErrInvalidValue]: s is on another device, or the block is not stream-ordered
//     or was freed already.
//   - [ErrInHostFunction], [ErrClosed], [ErrWrongContext], [ErrNoContext].
func (s *Stream) ReleaseOn(t *Thread, b *Block) error {
	const op = "free in stream order"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if !b.pooled || b.dev != s.dev {
		return driver.Errorf(driver.InvalidValue, op, "the block is not stream-ordered memory of the stream's device")
	}
	if b.Freed() {
		return b.alreadyFreed(op)
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	b.allocStream = s
	m.mu.Unlock()
	return b.Release(t)
}

// ReclaimSome returns the memory of a few of the freed blocks that are no longer in
// use. It takes a short time only.
func (rt *Runtime) ReclaimSome() { rt.reap(maxReap) }

// Reclaim returns the memory of all freed blocks that are no longer in use.
func (d *Device) Reclaim() {
	d.rt.reapAll()
	d.pool.mu.Lock()
	d.pool.advance()
	d.pool.mu.Unlock()
}

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

// Free is Release that fails for a block which was freed already, and for pinned
// memory that pending operations use.
//
// # Errors
//   - [ErrInvalidValue]: the block was freed already.
//   - [ErrNotReady]: the block is pinned memory that pending operations use.
//   - [ErrInHostFunction].
//
// Contract: M2, M10.
func (b *Block) Free(t *Thread) error {
	const op = "free"
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if b.Freed() {
		return b.alreadyFreed(op)
	}
	if b.Kind == Pinned && b.onReturn == nil && !b.Recorded() {
		return b.rt.unpin(t, op, b.Start, func(o *Block) bool { return o == b }, "the block that was to be freed", false)
	}
	return b.Release(t)
}

// alreadyFreed is the error of a second free.
func (b *Block) alreadyFreed(op string) error {
	return driver.Errorf(driver.InvalidValue, op, "the block of %d bytes at %#x was freed already", b.Size, b.Start)
}

// overwrite enqueues on s that a new block is overwritten. id is the ID of the
// allocation that listeners were notified of.
func (s *Stream) overwrite(b *Block, id uint32) error {
	m := &s.dev.rt.memory
	m.mu.Lock()
	b.beginUse(s, "its allocation")
	m.mu.Unlock()
	return s.using([]*Block{b}, func() error {
		return s.d.Fill(driver.Fill{Dst: b.Start, Count: min(b.Size, maxOverwrite), Value: 0xff, Size: 1,
			On: driver.OnDevice, Tag: id})
	})
}

// maxOverwrite is the greatest number of bytes of a block that are overwritten.
const maxOverwrite = 64 << 20

// pendingFrees appends, for each stream with chunks that only it may use, the point
// after which other streams may use all of them.
func (p *pool) pendingFrees(points driver.Points) driver.Points {
	p.mu.Lock()
	var last []use
	for _, b := range p.bins {
		u := use{stream: b.stream}
		for c := range b.All() {
			u.place = max(u.place, c.Place)
		}
		last = append(last, u)
	}
	p.mu.Unlock()
	for _, u := range last {
		points = append(points, u.stream.d.At(u.place))
	}
	return points
}
