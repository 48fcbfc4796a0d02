package hal

import (
	"slices"
	"sync"

	"halstream/hal/addrmap"
	"halstream/hal/bestfit"
	"halstream/hal/driver"
)

// MemoryKind is the kind of a block of memory.
type MemoryKind uint8

const (
	// Pageable memory is host memory of the program that was not registered.
	Pageable MemoryKind = iota
	// Pinned memory is host memory that devices can access.
	Pinned
	// DeviceMemory belongs to a device.
	DeviceMemory
)

// String returns the kind as texts of errors name it.
func (k MemoryKind) String() string {
	return [...]string{"pageable host memory", "pinned host memory", "device memory"}[k]
}

// Block is a range of memory that was allocated by the runtime or registered with it.
type Block struct {
	Start, Size  uint64
	Kind         MemoryKind
	rt           *Runtime
	dev          *Device
	pooled       bool           // from the device's pool
	registered   bool           // not allocated by the runtime, but pinned by it
	byProgram    bool           // registered by RegisterHost, and not unregistered since
	shares       int            // that keep it registered
	foreign      bool           // of another library; exists for one operation only
	module       driver.Module  // of which this is the code
	onReturn     func()         // for borrowed memory: notifies its library
	chunk        *bestfit.Chunk // of the pool, for a pooled block
	allocStream  *Stream        // in whose order a pooled block was allocated
	inOrder      bool           // Release frees it in the order of its stream
	managed      bool           // the host may work on it as well
	cached       bool           // its free is no access
	freed        bool
	unannounced  bool   // freed, and its listeners are about to be notified of that
	sharesPage   bool   // with another block, while pages are watched
	countedFreed bool   // does not count as allocated any more; the pool's mu guards it
	freedAt      uint64 // of a pooled block: the place of allocStream at which it was freed
	users        []use
	recorded     []*Stream // streams of RecordStream
	graphs       int       // that have nodes which work on it
	collected    bool      // by Collect, while graphs work on it
	ofGraph      *graphMemory
}

// location returns where the block lies, for a backend. Pageable memory has a nil
// block.
func (b *Block) location() (driver.Where, int) {
	switch {
	case b == nil:
		return driver.Pageable, -1
	case b.dev != nil:
		return driver.OnDevice, b.dev.ordinal
	}
	return driver.Pinned, -1
}

// use is the last operation of a stream that accesses a block.
type use struct {
	stream *Stream
	place  uint64
	calls  int    // in progress that are about to enqueue such an operation
	what   string // names the operation in errors
}

// memoryState is the memory of a runtime.
type memoryState struct {
	mu     sync.Mutex
	blocks addrmap.Map[*Block]
	// deferred are freed blocks that pending operations still use.
	deferred deferred
}

// beginUse records that a call is about to enqueue work on b. The memory of b is not
// reused before endUse has recorded the place of that work, and the work is done.
// The caller holds the memory's lock.
func (b *Block) beginUse(s *Stream, what string) {
	for i := range b.users {
		if b.users[i].stream == s {
			b.users[i].calls++
			b.users[i].what = what
			return
		}
	}
	// Forget the uses that are done, or the list would grow with each stream that
	// uses the block.
	kept := b.users[:0]
	for _, u := range b.users {
		if !u.reached() {
			kept = append(kept, u)
		}
	}
	b.users = append(kept, use{s, 0, 1, what})
}

// endUse records the place of the operation of beginUse. The caller holds the
// memory's lock.
func (b *Block) endUse(s *Stream, place uint64) {
	for i := range b.users {
		if u := &b.users[i]; u.stream == s {
			u.calls--
			u.place = max(u.place, place)
			return
		}
	}
}

// reached reports whether the operation is known to be done.
func (u use) reached() bool { return u.calls == 0 && u.stream.d.Reached(u.place) }

// pendingUse returns a use that is still pending, nil if there is none.
func (b *Block) pendingUse() *use {
	for i := range b.users {
		if !b.users[i].reached() {
			return &b.users[i]
		}
	}
	return nil
}

// describe returns the kind of the block as texts of errors name it.
func (b *Block) describe() string {
	switch {
	case b.ofGraph != nil:
		return "memory of a graph"
	case b.registered && !b.byProgram:
		return "shared host memory"
	case b.registered:
		return "registered host memory"
	case b.pooled:
		return "stream-ordered device memory"
	}
	return b.Kind.String()
}

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

// maxOverwrite is the greatest number of bytes of a block that are overwritten.
const maxOverwrite = 64 << 20

// Disown counts the block as freed, for an owner that has dropped it while pending
// functions still refer to it. The owner calls Release when they have ended.
//
// Contract: M15.
func (b *Block) Disown() { b.countFreed() }

// countFreed counts a block as freed, once. Pending work may still use it.
func (b *Block) countFreed() {
	if b.dev == nil || b.module != nil || b.foreign {
		return
	}
	p := &b.dev.pool
	n := bestfit.RoundUp(b.Size)
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.countedFreed {
		return
	}
	b.countedFreed = true
	p.all.used -= n
	if b.pooled {
		p.own.used -= n
	}
}

// ownMemory reports whether the runtime allocated the memory of the block.
func (b *Block) ownMemory() bool { return b.module == nil && b.onReturn == nil && !b.registered }

// onHost reports whether the block is memory of the host; nil is pageable memory.
func (b *Block) onHost() bool { return b == nil || b.dev == nil }

// usableBy reports whether a range that begins in b, nil for pageable memory, lies in it, and s can use it.
func (b *Block) usableBy(s *Stream, r Range) bool {
	return b != nil && b.Kind != Pageable && r.Size <= b.Size-(r.Start-b.Start) && (b.dev == nil || b.dev.ordinal == s.dev.ordinal)
}
