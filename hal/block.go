package hal

import (
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

// using calls enqueue, which enqueues on s the one operation for which beginUse was
// called on blocks, and then endUse on each of them. Nil blocks are skipped. No lock
// is held during the call.
func (s *Stream) using(blocks []*Block, enqueue func() error) error {
	err := enqueue()
	s.endUses(blocks, err)
	return err
}

// endUses calls endUse on blocks after an operation was enqueued, or could not be because of err.
func (s *Stream) endUses(blocks []*Block, err error) {
	var place uint64
	if err == nil {
		place = s.d.Last()
		s.requestExact(blocks)
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	for _, b := range blocks {
		if b != nil {
			b.endUse(s, place)
		}
	}
	m.mu.Unlock()
}

// requestExact asks the backend to track exactly when the operation enqueued last is
// done if one of the blocks is pinned: FreeHost fails while an operation uses such a
// block.
func (s *Stream) requestExact(blocks []*Block) {
	for _, b := range blocks {
		if b != nil && b.Kind == Pinned {
			if k, ok := s.d.(driver.VendorStream); ok {
				k.Keep()
			}
			return
		}
	}
}

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

// refresh makes the backend update which places of its streams are reached, for the
// streams of which a place was queried and not reached. It may call the vendor's
// library, so the caller holds no lock.
func (rt *Runtime) refresh() {
	if rt.vendor != nil {
		rt.vendor.Refresh()
	}
}

// refreshRounds is how often a caller queries whether places are reached, with a
// refresh before each round. A vendor's backend needs two rounds: only the first one
// marks the streams that the second refresh updates.
func (rt *Runtime) refreshRounds() int {
	if rt.vendor != nil {
		return 2
	}
	return 1
}

// giveBack returns the memory of a block that nothing uses any more to where it came
// from. The caller holds no lock.
func (rt *Runtime) giveBack(b *Block) {
	switch {
	case b.module != nil:
		b.module.Close()
	case b.onReturn != nil:
		b.onReturn()
	case b.registered:
		_ = rt.drv.Unregister(b.Start)
	case b.Kind == Pinned:
		rt.sources.forget(Range{b.Start, b.Size})
		rt.drv.FreeHost(b.Start)
	case b.pooled:
		// freedAt is 0 if no stream has to reach a place before others use the memory.
		b.dev.pool.free(b.dev, b.chunk, b.allocStream, b.freedAt)
	default:
		b.dev.d.Free(b.Start)
		b.dev.pool.countReturned(b.Size)
	}
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
		if !u.stream.d.Reached(u.place) {
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
		ps = append(ps, u.stream.d.At(u.place))
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

// WaitMemory makes work enqueued on s after this call start only when the
// pending operations that use the block that contains addr are done, including those
// on streams that were closed meanwhile.
//
// # Errors: as for Wait.
//
// Contract: S6, M11, H3.
func (s *Stream) WaitMemory(t *Thread, addr uint64) error {
	const op = "wait for memory"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, op, "wait before the capture begins")
	}
	for _, o := range s.dev.rt.MemoryUsers(addr) {
		if o == s {
			continue
		}
		var id uint32
		if s.listened() {
			id = s.announce(&Operation{Kind: OpWaitStream, Thread: t, Other: o})
		}
		if err := s.settle(t, id, s.d.WaitStream(o.d, id)); err != nil {
			return err
		}
	}
	// Work that was done already is ordered before later work of s as well.
	s.dev.rt.notifyHost(Operation{Kind: OpWaitMemory, Stream: s, Thread: t, Reads: s.dev.rt.wholeBlock(addr)})
	return nil
}
