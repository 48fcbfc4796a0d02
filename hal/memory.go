package hal

import (
	"fmt"
	"sync"

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
	Start, Size uint64
	Kind        MemoryKind
	dev         *Device
	pooled      bool   // from the device's pool
	registered  bool   // the program's own memory, pinned
	room        uint64 // what a pooled block takes
	users       []use
}

// use is the last operation of a stream that works on a block.
type use struct {
	stream *Stream
	place  uint64
	calls  int // that are about to enqueue such an operation
	what   string
}

// memories is the memory of a runtime: one map of all blocks, by address.
type memories struct {
	mu    sync.Mutex
	space space
	// dying are freed blocks that pending operations still work on.
	dying []*Block
}

// begin notes that a call is about to enqueue work on b, so that b is not given
// back before end tells which operation it became.
func (b *Block) begin(s *Stream, what string) {
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

func (b *Block) end(s *Stream, place uint64) {
	for i := range b.users {
		if u := &b.users[i]; u.stream == s {
			u.calls--
			u.place = max(u.place, place)
			return
		}
	}
}

func (u use) reached() bool { return u.calls == 0 && u.stream.d.(driver.Worker).Reached(u.place) }

// using runs enqueue, which puts one operation that works on blocks (nil ones
// are left out) on s. No lock is held meanwhile.
func (s *Stream) using(w driver.Worker, blocks []*Block, enqueue func() error) error {
	err := enqueue()
	place := w.Last()
	m := &s.dev.rt.memory
	m.mu.Lock()
	for _, b := range blocks {
		if b != nil {
			b.end(s, place)
		}
	}
	m.mu.Unlock()
	return err
}

// busy returns a use that is still pending, nil if there is none.
func (b *Block) busy() *use {
	for i := range b.users {
		if !b.users[i].reached() {
			return &b.users[i]
		}
	}
	return nil
}

func (d *Device) memory(op string) (driver.Memory, error) {
	if m, ok := d.d.(driver.Memory); ok {
		return m, nil
	}
	return nil, driver.Errorf(driver.NotSupported, op, "the %s backend has no memory yet", d.rt.Name())
}

func (rt *Runtime) pinner(op string) (driver.Pinner, error) {
	if p, ok := rt.drv.(driver.Pinner); ok {
		return p, nil
	}
	return nil, driver.Errorf(driver.NotSupported, op, "the %s backend has no pinned memory yet", rt.Name())
}

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
//   - [ErrOutOfMemory]: there is no room; the text has the figures.
//   - [ErrInHostFunction].
//
// Contract: M1, H3.
func (d *Device) Alloc(t *Thread, size int64) (*Block, error) {
	const op = "allocate"
	if err := t.enter(op); err != nil {
		return nil, err
	}
	if err := checkSize(op, size); err != nil {
		return nil, err
	}
	m, err := d.memory(op)
	if err != nil {
		return nil, err
	}
	d.used.Store(true)
	d.rt.reap()
	addr, err := m.Alloc(uint64(size))
	if isOutOfMemory(err) {
		// What the pool keeps and nobody uses may make room.
		d.pool.trim(d, 0)
		d.rt.reap()
		addr, err = m.Alloc(uint64(size))
	}
	if err != nil {
		return nil, err
	}
	b := &Block{Start: addr, Size: uint64(size), Kind: DeviceMemory, dev: d}
	d.rt.know(b)
	return b, nil
}

func isOutOfMemory(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Kind == driver.OutOfMemory
}

func (rt *Runtime) know(b *Block) {
	rt.memory.mu.Lock()
	rt.memory.space.insert(b)
	rt.memory.mu.Unlock()
}

// AllocHost returns size bytes of pinned host memory, aligned to 256.
//
// # Errors: as for Device.Alloc.
//
// Contract: M10, H3.
func (rt *Runtime) AllocHost(t *Thread, size int64) (*Block, error) {
	const op = "allocate pinned memory"
	if err := t.enter(op); err != nil {
		return nil, err
	}
	if err := checkSize(op, size); err != nil {
		return nil, err
	}
	p, err := rt.pinner(op)
	if err != nil {
		return nil, err
	}
	rt.reap()
	addr, err := p.AllocHost(uint64(size))
	if err != nil {
		return nil, err
	}
	b := &Block{Start: addr, Size: uint64(size), Kind: Pinned}
	rt.know(b)
	return b, nil
}

// RegisterHost makes memory of the program pinned until UnregisterHost.
//
// # Errors
//   - [ErrInvalidValue]: the range is empty, not mapped, or shares bytes with
//     memory that the runtime knows.
//   - [ErrInHostFunction].
//
// Contract: M10.
func (rt *Runtime) RegisterHost(t *Thread, addr uint64, size int64) error {
	const op = "register memory"
	if err := t.enter(op); err != nil {
		return err
	}
	if err := checkSize(op, size); err != nil {
		return err
	}
	p, err := rt.pinner(op)
	if err != nil {
		return err
	}
	rt.memory.mu.Lock()
	other := rt.memory.space.overlaps(addr, uint64(size))
	rt.memory.mu.Unlock()
	if other != nil {
		return driver.Errorf(driver.InvalidValue, op, "it shares bytes with %s at %#x", other.Kind, other.Start)
	}
	if err := p.Register(addr, uint64(size)); err != nil {
		return err
	}
	rt.know(&Block{Start: addr, Size: uint64(size), Kind: Pinned, registered: true})
	return nil
}

// take removes the block that starts at addr from the map.
func (rt *Runtime) take(op string, addr uint64, fits func(*Block) bool, what string) (*Block, error) {
	b := rt.memory.space.find(addr)
	switch {
	case b == nil && rt.ours(addr):
		return nil, driver.Errorf(driver.InvalidValue, op,
			"%#x is no live block: it was freed already, or never allocated", addr)
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

func (b *Block) describe() string {
	switch {
	case b.registered:
		return "registered host memory"
	case b.pooled:
		return "stream-ordered device memory"
	}
	return b.Kind.String()
}

// ours reports whether an address lies where the runtime's memory lies.
func (rt *Runtime) ours(addr uint64) bool {
	if p, ok := rt.drv.(driver.Pinner); ok && p.OwnsHost(addr) {
		return true
	}
	for _, d := range rt.devices {
		if m, ok := d.d.(driver.Memory); ok && m.Owns(addr) {
			return true
		}
	}
	return false
}

// Free gives device memory back. No later operation may name it; pending ones
// that do complete first, and only then is it used again.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of a live block of device memory.
//   - [ErrInHostFunction].
//
// Contract: M2.
func (rt *Runtime) Free(t *Thread, addr uint64) error {
	const op = "free"
	if err := t.enter(op); err != nil {
		return err
	}
	m := &rt.memory
	m.mu.Lock()
	b, err := rt.take(op, addr, func(b *Block) bool { return b.Kind == DeviceMemory }, "device memory")
	if err == nil {
		m.space.remove(b)
		m.dying = append(m.dying, b)
	}
	m.mu.Unlock()
	rt.reap()
	return err
}

// FreeHost gives pinned memory back. With force, pending operations that work
// on it complete first; without, they make the call fail.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of pinned memory of this runtime.
//   - [ErrNotReady]: a pending operation works on it; the text names it.
//   - [ErrInHostFunction].
//
// Contract: M10.
func (rt *Runtime) FreeHost(t *Thread, addr uint64, force bool) error {
	const op = "free pinned memory"
	return rt.unpin(t, op, addr, func(b *Block) bool { return b.Kind == Pinned && !b.registered },
		"pinned memory of the runtime", force)
}

// UnregisterHost makes registered memory pageable again.
//
// # Errors: as for FreeHost.
//
// Contract: M10.
func (rt *Runtime) UnregisterHost(t *Thread, addr uint64) error {
	return rt.unpin(t, "unregister memory", addr, func(b *Block) bool { return b.registered },
		"registered memory", false)
}

func (rt *Runtime) unpin(t *Thread, op string, addr uint64, fits func(*Block) bool, what string, force bool) error {
	if err := t.enter(op); err != nil {
		return err
	}
	m := &rt.memory
	m.mu.Lock()
	b, err := rt.take(op, addr, fits, what)
	if err == nil {
		if u := b.busy(); u != nil && !force {
			err = driver.Errorf(driver.NotReady, op,
				"%s at %#x is in use by %s, which is pending on stream %d of device %d; synchronize that stream first",
				b.describe(), addr, u.what, u.stream.index, u.stream.dev.ordinal)
		} else {
			m.space.remove(b)
			m.dying = append(m.dying, b)
		}
	}
	m.mu.Unlock()
	rt.reap()
	return err
}

// reap gives back freed blocks that no operation works on any more.
func (rt *Runtime) reap() {
	m := &rt.memory
	m.mu.Lock()
	var dead []*Block
	kept := m.dying[:0]
	for _, b := range m.dying {
		if b.busy() == nil {
			dead = append(dead, b)
		} else {
			kept = append(kept, b)
		}
	}
	clear(m.dying[len(kept):])
	m.dying = kept
	m.mu.Unlock()
	for _, b := range dead {
		switch {
		case b.registered:
			_ = rt.drv.(driver.Pinner).Unregister(b.Start)
		case b.Kind == Pinned:
			rt.drv.(driver.Pinner).FreeHost(b.Start)
		case b.pooled:
			b.dev.pool.giveBack(b.dev, b)
		default:
			b.dev.d.(driver.Memory).Free(b.Start)
		}
	}
}

// MemoryInfo returns the free and total bytes of the device.
//
// Contract: M1.
func (d *Device) MemoryInfo() (free, total uint64, err error) {
	m, err := d.memory("memory info")
	if err != nil {
		return 0, 0, err
	}
	d.rt.reap()
	free, total = m.Info()
	return free, total, nil
}

// Lookup returns the kind, the start and the size of the block that holds an
// address, and the ordinal of its device, -1 for the host.
func (rt *Runtime) Lookup(addr uint64) (kind MemoryKind, start, size uint64, ordinal int) {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	b := rt.memory.space.find(addr)
	if b == nil {
		return Pageable, 0, 0, -1
	}
	ordinal = -1
	if b.dev != nil {
		ordinal = b.dev.ordinal
	}
	return b.Kind, b.Start, b.Size, ordinal
}

// reserve is within, and begins the use of the block on s.
func (s *Stream) reserve(op, role string, addr, size uint64) (*Block, error) {
	b, err := s.dev.rt.within(op, role, addr, size)
	if b != nil {
		b.begin(s, "a "+op)
	}
	return b, err
}

// within checks that a range lies in one block, or outside everything the
// runtime knows, and returns the block, nil for pageable memory.
func (rt *Runtime) within(op, role string, addr, size uint64) (*Block, error) {
	b := rt.memory.space.find(addr)
	if b == nil {
		if rt.ours(addr) {
			return nil, driver.Errorf(driver.InvalidValue, op,
				"the %s, %#x, lies in memory that was freed or never allocated", role, addr)
		}
		if other := rt.memory.space.overlaps(addr, size); other != nil {
			return nil, driver.Errorf(driver.InvalidValue, op,
				"the %s runs from %#x into a block at %#x", role, addr, other.Start)
		}
		return nil, nil
	}
	if end := b.Start + b.Size; addr+size > end || addr+size < addr {
		return nil, driver.Errorf(driver.InvalidValue, op,
			"the %s, %d bytes at %#x, ends %d bytes behind its block of %d bytes at %#x",
			role, size, addr, addr+size-end, b.Size, b.Start)
	}
	return b, nil
}

// String describes the block.
func (b *Block) String() string {
	return fmt.Sprintf("%d bytes of %s at %#x", b.Size, b.describe(), b.Start)
}
