package hal

import (
	"sync"

	"halstream/hal/addrmap"
	"halstream/hal/bestfit"
	"halstream/hal/driver"
)

// MemoryKind says what a block of memory is.
type MemoryKind uint8

const (
	// Pageable memory is the program's own; the runtime knows nothing of it.
	Pageable MemoryKind = iota
	// Pinned memory is the host's, and a device reads it when the stream gets there.
	Pinned
	// DeviceMemory belongs to a device.
	DeviceMemory
)

// String returns the kind in words.
func (k MemoryKind) String() string {
	return [...]string{"pageable host memory", "pinned host memory", "device memory"}[k]
}

// Block is memory that the runtime knows.
type Block struct {
	Start, Size  uint64
	Kind         MemoryKind
	rt           *Runtime
	dev          *Device
	pooled       bool           // from the device's pool
	registered   bool           // the program's own memory, pinned
	foreign      bool           // another library's, known for one operation
	module       driver.Module  // of which this is the code
	onReturn     func()         // for borrowed memory: tells its library
	chunk        *bestfit.Chunk // of the pool, for a pooled block
	allocStream  *Stream        // in whose order a pooled block was allocated
	inOrder      bool           // Release frees it in the order of its stream
	freed        bool
	countedFreed bool   // does not count as allocated any more; its pool's lock guards it
	freedAt      uint64 // place of home: for a pooled block, where it was freed
	users        []use
	recorded     []*Stream // that use it without saying so: see RecordStream
}

// location says where the block lies, to a backend: pageable memory has none.
func (b *Block) location() (driver.Where, int) {
	switch {
	case b == nil:
		return driver.Pageable, -1
	case b.dev != nil:
		return driver.OnDevice, b.dev.ordinal
	}
	return driver.Pinned, -1
}

// use is the last operation of a stream that works on a block.
type use struct {
	stream *Stream
	place  uint64
	calls  int // that are about to enqueue such an operation
	what   string
}

// memoryState is the memory of a runtime: one map of all blocks, by address.
type memoryState struct {
	mu     sync.Mutex
	blocks addrmap.Map[*Block]
	// deferred are freed blocks that pending operations still work on.
	deferred deferred
}

// beginUse notes that a call is about to enqueue work on b, so that b is not given
// back before end tells which operation it became.
func (b *Block) beginUse(s *Stream, what string) {
	for i := range b.users {
		if b.users[i].stream == s {
			b.users[i].calls++
			b.users[i].what = what
			return
		}
	}
	// Forget the streams that are past their last use, or a block that many
	// streams take turns with would remember them all.
	kept := b.users[:0]
	for _, u := range b.users {
		if !u.reached() {
			kept = append(kept, u)
		}
	}
	b.users = append(kept, use{s, 0, 1, what})
}

func (b *Block) endUse(s *Stream, place uint64) {
	for i := range b.users {
		if u := &b.users[i]; u.stream == s {
			u.calls--
			u.place = max(u.place, place)
			return
		}
	}
}

func (u use) reached() bool { return u.calls == 0 && u.stream.d.Reached(u.place) }

// using runs enqueue, which puts one operation that works on blocks (nil ones
// are left out) on s. No lock is held meanwhile.
func (s *Stream) using(blocks []*Block, enqueue func() error) error {
	var place uint64
	err := enqueue()
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
	return err
}

// requestExact asks for exact answers about the operation enqueued last if the host may
// be told that it still works on one of the blocks.
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

func (b *Block) describe() string {
	switch {
	case b.registered:
		return "registered host memory"
	case b.pooled:
		return "stream-ordered device memory"
	}
	return b.Kind.String()
}

// refresh lets the backend ask how far the streams are that somebody looked at
// in vain. It may call the vendor's library, so no lock is held.
func (rt *Runtime) refresh() {
	if rt.vendor != nil {
		rt.vendor.Refresh()
	}
}

// refreshRounds is how often those look whose answer depends on places being reached:
// where the backend has to ask, the first look says what it has to ask for.
func (rt *Runtime) refreshRounds() int {
	if rt.vendor != nil {
		return 2
	}
	return 1
}

func (rt *Runtime) giveBack(b *Block) {
	switch {
	case b.module != nil:
		b.module.Close()
	case b.onReturn != nil:
		b.onReturn()
	case b.registered:
		_ = rt.drv.Unregister(b.Start)
	case b.Kind == Pinned:
		rt.drv.FreeHost(b.Start)
	case b.pooled:
		// Its stream's place, 0 for none, was noted when it was freed.
		b.dev.pool.free(b.dev, b.chunk, b.allocStream, b.freedAt)
	default:
		b.dev.d.Free(b.Start)
		b.dev.pool.countReturned(b.Size)
	}
}

// Blocks returns how many blocks of memory are live.
//
// Contract: M2.
func (rt *Runtime) Blocks() int {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	return rt.memory.blocks.Len()
}

// Lookup returns the kind, the start and the size of the block that holds an
// address, and the ordinal of its device, -1 for the host.
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

// pendingUses returns what is pending on the block that holds addr.
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

// MemoryUsers returns the streams with pending operations on the block that
// holds addr; none for memory that the runtime does not know.
func (rt *Runtime) MemoryUsers(addr uint64) []*Stream {
	var streams []*Stream
	for _, u := range rt.pendingUses(addr) {
		streams = append(streams, u.stream)
	}
	return streams
}

// MemoryPoint returns the point at which all operations that are enqueued so
// far on the block that holds addr are done, nil if none is pending.
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
	o := Operation{Kind: "synchronize memory", Thread: t, Reads: rt.wholeBlock(addr)}
	if len(ps) == 0 {
		rt.notifyHost(o)
		return nil, nil
	}
	return rt.observe(ps, o), nil
}

// wholeBlock is the block that holds addr, as listeners see it.
func (rt *Runtime) wholeBlock(addr uint64) []Range {
	if !rt.listened() {
		return nil
	}
	_, start, size, _ := rt.Lookup(addr)
	return []Range{{start, size}}
}

// WaitMemory makes work enqueued on s after this call start only when the
// operations that are pending on the block that holds addr are done. Streams
// that were closed since are waited for, too.
//
// # Errors: as for Wait.
//
// Contract: S6, M11, H3.
func (s *Stream) WaitMemory(t *Thread, addr uint64) error {
	const op = "wait for memory"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	for _, o := range s.dev.rt.MemoryUsers(addr) {
		if o == s {
			continue
		}
		var id uint32
		if s.listened() {
			id = s.announce(Operation{Kind: "wait stream", Thread: t, Other: o})
		}
		if err := s.settle(t, id, s.d.WaitStream(o.d, id)); err != nil {
			return err
		}
	}
	// What is done already was not waited for, but is ordered as well.
	s.dev.rt.notifyHost(Operation{Kind: "wait memory", Stream: s, Thread: t, Reads: s.dev.rt.wholeBlock(addr)})
	return nil
}
