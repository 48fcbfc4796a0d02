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
	owner        owner
	allocStream  *Stream // in whose order it was allocated, nil for memory that has no such order
	managed      bool    // the host may work on it as well
	cached       bool    // its free is no access
	freed        bool
	unannounced  bool // freed, and its listeners are about to be notified of that
	sharesPage   bool // with another block, while pages are watched
	countedFreed bool // does not count as allocated any more; the pool's mu guards it
	users        []use
	recorded     []*Stream // streams of RecordStream
	graphs       int       // that have nodes which work on it
	collected    bool      // by Collect, while graphs work on it
}

// owner is whose the memory of a block is.
type owner interface {
	// kind returns the kind of the block as texts of errors name it.
	kind(b *Block) string
	// giveBack returns memory that nothing uses any more to where it came from. The caller holds no lock.
	giveBack(b *Block)
}

// allocated is memory that the runtime has from the backend's library, of a device or pinned.
type allocated struct{}

// pooled is memory of a device's pool, in the order of a stream. The memory's lock guards the fields.
type pooled struct {
	chunk *bestfit.Chunk
	// freedAt is the sequence number of the operation of the block's stream behind which other streams may use
	// the memory once it is freed, 0 for at once.
	freedAt uint64
	// inOrder says that Release frees it in the order of its stream.
	inOrder bool
}

// registration is host memory that the runtime has pinned and not allocated. The memory's lock guards the fields.
type registration struct {
	byProgram bool // by RegisterHost, and not unregistered since
	shares    int  // that keep it registered
}

// borrowed is memory that another library lends, and is told of its return.
type borrowed struct{ returned func() }

// moduleCode is the memory of a loaded module.
type moduleCode struct{ module driver.Module }

// variable is the memory of a variable of a module, which gives it back itself.
type variable struct{}

// foreign is memory of another library: its block exists for one operation only.
type foreign struct{}

func (allocated) kind(b *Block) string  { return b.Kind.String() }
func (*pooled) kind(*Block) string      { return "stream-ordered device memory" }
func (*graphMemory) kind(*Block) string { return "memory of a graph" }
func (borrowed) kind(b *Block) string   { return b.Kind.String() }
func (moduleCode) kind(b *Block) string { return b.Kind.String() }
func (variable) kind(*Block) string     { return "a variable of a module" }
func (foreign) kind(b *Block) string    { return b.Kind.String() }
func (r *registration) kind(*Block) string {
	if r.byProgram {
		return "registered host memory"
	}
	return "shared host memory"
}

func (allocated) giveBack(b *Block) {
	if b.Kind == Pinned {
		b.rt.sources.forget(Range{b.Start, b.Size})
		b.rt.drv.FreeHost(b.Start)
		return
	}
	b.dev.d.Free(b.Start)
	b.dev.pool.countReturned(b.Size)
}

func (p *pooled) giveBack(b *Block) { b.dev.pool.free(b.dev, p.chunk, b.allocStream, p.freedAt) }

func (*graphMemory) giveBack(b *Block) { allocated{}.giveBack(b) }

func (*registration) giveBack(b *Block) {
	b.rt.sources.forget(Range{b.Start, b.Size})
	_ = b.rt.drv.Unregister(b.Start)
}

func (o borrowed) giveBack(*Block) { o.returned() }

func (o moduleCode) giveBack(*Block) { o.module.Close() }

func (variable) giveBack(*Block) {}

func (foreign) giveBack(*Block) {}

// isFreeable reports whether Free takes the block: what a module or another process has allocated is theirs.
func (b *Block) isFreeable() bool {
	return b.Kind == DeviceMemory && b.owner != variable{} && !b.isOpened()
}

// isOpened reports whether the memory is another process's.
func (b *Block) isOpened() bool {
	_, is := b.owner.(*opened)
	return is
}

// pooled returns what a block of a pool is, nil for another one.
func (b *Block) pooled() *pooled {
	p, _ := b.owner.(*pooled)
	return p
}

// registration returns what a registered block is, nil for another one.
func (b *Block) registration() *registration {
	r, _ := b.owner.(*registration)
	return r
}

// ofGraph returns what a block that a node allocates is, nil for another one.
func (b *Block) ofGraph() *graphMemory {
	m, _ := b.owner.(*graphMemory)
	return m
}

// isForeign reports whether the block is another library's, and exists for one operation only.
func (b *Block) isForeign() bool { return b.owner == foreign{} }

// isCode reports whether the block is that of a module.
func (b *Block) isCode() bool {
	_, is := b.owner.(moduleCode)
	return is
}

// inOrder reports whether Release frees the block in the order of its stream.
func (b *Block) inOrder() bool {
	p := b.pooled()
	return p != nil && p.inOrder
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

// fence is an operation of a stream, by its sequence number.
type fence struct {
	stream *Stream
	seq    uint64
}

// reached reports whether the operation is known to be done.
func (f fence) reached() bool { return f.stream.d.Reached(f.seq) }

// point returns the point at which the operation is done.
func (f fence) point() driver.Point { return f.stream.d.At(f.seq) }

// use is the last operation of a stream that accesses a block.
type use struct {
	fence
	calls int    // in progress that are about to enqueue such an operation
	what  string // names the operation in errors
}

// memoryState is the memory of a runtime.
type memoryState struct {
	mu     sync.Mutex
	blocks addrmap.Map[*Block]
	// deferred are freed blocks that pending operations still use.
	deferred deferred
	// listed is what extents has returned last; nil once a block was added or removed since.
	listed []driver.Extent
}

// extents returns where the blocks are, in order. The list is not changed any more.
func (m *memoryState) extents() []driver.Extent {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listed == nil {
		m.listed = make([]driver.Extent, 0, m.blocks.Len())
		for b := range m.blocks.All() {
			m.listed = append(m.listed, driver.Extent{Start: b.Start, End: b.Start + b.Size})
		}
	}
	return m.listed
}

// beginUse records that a call is about to enqueue work on b. The memory of b is not
// reused before endUse has recorded the sequence number of that work, and the work is done.
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
	b.users = append(kept, use{fence{s, 0}, 1, what})
}

// endUse records the sequence number of the operation of beginUse. The caller holds the
// memory's lock.
func (b *Block) endUse(s *Stream, seq uint64) {
	for i := range b.users {
		if u := &b.users[i]; u.stream == s {
			u.calls--
			u.seq = max(u.seq, seq)
			return
		}
	}
}

// reached reports whether the operation is known to be done, and no call is about to enqueue another one.
func (u use) reached() bool { return u.calls == 0 && u.fence.reached() }

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
func (b *Block) describe() string { return b.owner.kind(b) }

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
func (b *Block) ReleaseInOrder() {
	if p := b.pooled(); p != nil {
		p.inOrder = true
	}
}

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

// addUse records that the work of s up to a sequence number uses the block. The caller holds the
// memory's lock.
func (b *Block) addUse(s *Stream, seq uint64) {
	for i := range b.users {
		if u := &b.users[i]; u.stream == s {
			u.seq = max(u.seq, seq)
			return
		}
	}
	b.users = append(b.users, use{fence: fence{s, seq}, what: "work of a recorded stream"})
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
	if _, is := b.owner.(borrowed); is {
		rt.releaseBorrowed(b)
		return nil
	}
	if b.inOrder() && b.recorded == nil && !b.allocStream.closed.Load() {
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
	if p := b.pooled(); p != nil {
		p.freedAt = b.allocStream.d.Last()
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
	if b.Kind == Pinned && !b.Recorded() {
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
	if b.dev == nil || b.isCode() || b.isForeign() || b.isOpened() {
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
	if b.pooled() != nil {
		p.own.used -= n
	}
}

// ownMemory reports whether the runtime allocated the memory of the block.
func (b *Block) ownMemory() bool {
	switch b.owner.(type) {
	case allocated, *pooled, *graphMemory:
		return true
	}
	return false
}

// onHost reports whether the block is memory of the host; nil is pageable memory.
func (b *Block) onHost() bool { return b == nil || b.dev == nil }

// usableBy reports whether a range that begins in b, nil for pageable memory, lies in it, and s can use it.
func (b *Block) usableBy(s *Stream, r Range) bool {
	return b != nil && b.Kind != Pageable && r.Size <= b.Size-(r.Start-b.Start) && (b.dev == nil || b.dev.ordinal == s.dev.ordinal)
}
