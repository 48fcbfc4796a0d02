package hal

import (
	"sync"

	"halstream/hal/driver"
)

// pool is the stream-ordered memory of a device. A block that was freed on a
// stream is given out again on that stream at once, since what is enqueued
// there comes after the free, and on others once the free point is reached.
type pool struct {
	mu        sync.Mutex
	kept      map[uint64][]keptBlock // by room, the one freed last at the end
	reserved  uint64
	used      uint64
	peak      uint64 // of used
	peakHeld  uint64 // of reserved
	threshold uint64
	limited   bool // a threshold was set; without, everything is kept
}

type keptBlock struct {
	addr   uint64
	stream *Stream
	place  uint64
}

func (k keptBlock) free(s *Stream) bool {
	return k.stream == s || k.stream.d.(driver.Worker).Reached(k.place)
}

// PoolStats is what the stream-ordered pool of a device holds, in bytes.
type PoolStats struct{ Used, Reserved, UsedPeak, ReservedPeak, Threshold uint64 }

// rooms are the sizes the pool keeps: few, so that blocks fit again.
func room(size uint64) uint64 {
	switch {
	case size <= 1<<20:
		return (size + 511) &^ 511
	case size <= 1<<27:
		return (size + 1<<20 - 1) &^ (1<<20 - 1)
	}
	return (size + 1<<21 - 1) &^ (1<<21 - 1)
}

// AllocAsync returns size bytes of device memory that work enqueued on s from
// now on may use. Work on other streams must be ordered after s.
//
// # Errors: as for Device.Alloc, and [ErrClosed], [ErrWrongContext], [ErrNoContext].
//
// Contract: M7, H3. Source: CUDA driver API, cuMemAllocAsync.
func (s *Stream) AllocAsync(t *Thread, size int64) (*Block, error) {
	const op = "allocate in stream order"
	if err := s.admit(t, op); err != nil {
		return nil, err
	}
	if err := checkSize(op, size); err != nil {
		return nil, err
	}
	d := s.dev
	m, err := d.memory(op)
	if err != nil {
		return nil, err
	}
	p := &d.pool
	n := room(uint64(size))
	var addr uint64
	d.rt.refresh()
	for range d.rt.looks() {
		var held bool
		if addr, held = p.reuse(s, n); addr != 0 || !held {
			break
		}
		d.rt.refresh()
	}
	if addr == 0 {
		if addr, err = d.allocate(m, n); err != nil {
			if isOutOfMemory(err) && n != uint64(size) {
				err = driver.Errorf(driver.OutOfMemory, op, "%d bytes asked for; with the room a pool gives each block, %s",
					size, err.(*Error).Text)
			}
			return nil, err
		}
		p.grow(n)
	}
	b := &Block{Start: addr, Size: uint64(size), Kind: DeviceMemory, dev: d, pooled: true, room: n}
	var id uint32
	if s.listened() {
		id = s.tell(Operation{Kind: "allocate", Thread: t, Writes: []Range{{addr, uint64(size)}}})
	}
	if w := s.d.(driver.Worker); !w.Reached(w.Last()) {
		// The block may be one that pending work of s still works on for its former owner.
		b.users = []use{{stream: s, place: w.Last(), what: "work from before its allocation"}}
	}
	d.rt.know(b)
	if d.rt.deterministic() {
		// In the stream's order, and always, whether the block is new or not: the
		// operations of a run must not depend on what earlier runs left.
		return b, s.scribble(b, id)
	}
	return b, nil
}

// scribble overwrites a block, as the operation of s that is its allocation.
func (s *Stream) scribble(b *Block, id uint32) error {
	m := &s.dev.rt.memory
	m.mu.Lock()
	b.begin(s, "its allocation")
	m.mu.Unlock()
	w := s.d.(driver.Worker)
	return s.using(w, []*Block{b}, func() error {
		return w.Fill(driver.Fill{Dst: b.Start, Count: min(b.Size, scribbleMost), Value: 0xff, Size: 1,
			On: driver.OnDevice, Tag: id})
	})
}

// scribbleMost bounds how much of a block is overwritten.
const scribbleMost = 64 << 20

// reuse takes a kept block that s may have now, 0 if there is none, and reports
// whether there are some that it may not have yet.
func (p *pool) reuse(s *Stream, n uint64) (addr uint64, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.kept[n]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].free(s) {
			addr := list[i].addr
			list[i] = list[len(list)-1]
			list[len(list)-1] = keptBlock{}
			p.kept[n] = list[:len(list)-1]
			p.take(n)
			return addr, false
		}
	}
	return 0, len(list) > 0
}

// holds reports whether an address lies in a block that is kept.
func (p *pool) holds(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, list := range p.kept {
		for _, k := range list {
			if addr-k.addr < n {
				return true
			}
		}
	}
	return false
}

func (p *pool) take(n uint64) {
	p.used += n
	p.peak = max(p.peak, p.used)
}

// grow counts memory that was taken from the device and is used at once.
func (p *pool) grow(n uint64) {
	p.mu.Lock()
	p.reserved += n
	p.peakHeld = max(p.peakHeld, p.reserved)
	p.take(n)
	p.mu.Unlock()
}

// FreeAsync gives memory of AllocAsync back at this point of s. All work on it
// must be ordered before.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of a live stream-ordered block of
//     the stream's device.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M7. Source: CUDA driver API, cuMemFreeAsync.
func (s *Stream) FreeAsync(t *Thread, addr uint64) error {
	const op = "free in stream order"
	if err := s.admit(t, op); err != nil {
		return err
	}
	rt := s.dev.rt
	rt.memory.mu.Lock()
	b, err := rt.take(op, addr, func(b *Block) bool { return b.pooled && b.dev == s.dev },
		"stream-ordered memory of the stream's device")
	if err == nil {
		rt.memory.space.remove(b)
	}
	rt.memory.mu.Unlock()
	if err != nil {
		return err
	}
	if s.listened() {
		s.tell(Operation{Kind: "free", Thread: t, Writes: []Range{{addr, b.Size}}})
	}
	s.dev.pool.keep(s.dev, b, keptBlock{addr, s, s.d.(driver.Worker).Mark()})
	return nil
}

func (p *pool) keep(d *Device, b *Block, k keptBlock) {
	p.mu.Lock()
	if p.kept == nil {
		p.kept = map[uint64][]keptBlock{}
	}
	p.kept[b.room] = append(p.kept[b.room], k)
	p.used -= b.room
	over := p.limited && p.reserved-p.used > p.threshold
	p.mu.Unlock()
	if over {
		p.trim(d, p.threshold)
	}
}

// giveBack ends a pooled block that was freed without a stream: nothing works
// on it any more.
func (p *pool) giveBack(d *Device, b *Block) {
	p.keep(d, b, keptBlock{b.Start, d.legacy, 0})
}

// trim gives kept blocks back to the device until at most least bytes are
// kept; those whose free point is not reached stay.
func (p *pool) trim(d *Device, least uint64) {
	d.rt.refresh()
	for range d.rt.looks() {
		back, held := p.excess(least)
		for _, addr := range back {
			d.d.(driver.Memory).Free(addr)
		}
		if !held {
			return
		}
		d.rt.refresh()
	}
}

// drain gives all kept blocks back to the device, whose driver is closed next. What
// pending work may still be at stays.
func (p *pool) drain(d *Device) {
	if d.d.Pending() > 0 {
		return
	}
	p.mu.Lock()
	kept := p.kept
	p.kept = nil
	p.mu.Unlock()
	for _, list := range kept {
		for _, k := range list {
			d.d.(driver.Memory).Free(k.addr)
		}
	}
}

// excess takes out what trim gives back, and reports whether there was more
// that it could not.
func (p *pool) excess(least uint64) (back []uint64, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, list := range p.kept {
		kept := list[:0]
		for _, k := range list {
			if p.reserved-p.used > least && k.stream.d.(driver.Worker).Reached(k.place) {
				back = append(back, k.addr)
				p.reserved -= n
			} else {
				kept = append(kept, k)
			}
		}
		clear(list[len(kept):])
		p.kept[n] = kept
	}
	return back, p.reserved-p.used > least
}

// PoolStats returns what the stream-ordered pool holds.
//
// Contract: M7.
func (d *Device) PoolStats() PoolStats {
	p := &d.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return PoolStats{p.used, p.reserved, p.peak, p.peakHeld, p.threshold}
}

// TrimPool gives memory that the pool keeps back to the device, down to least bytes.
//
// Contract: M7.
func (d *Device) TrimPool(least uint64) { d.pool.trim(d, least) }

// SetPoolThreshold says how many bytes the pool keeps when they are free.
//
// Contract: M7.
func (d *Device) SetPoolThreshold(bytes uint64) {
	p := &d.pool
	p.mu.Lock()
	p.threshold, p.limited = bytes, true
	p.mu.Unlock()
	p.trim(d, bytes)
}

// ResetPoolPeaks makes the peaks start from what is held now.
func (d *Device) ResetPoolPeaks() {
	p := &d.pool
	p.mu.Lock()
	p.peak, p.peakHeld = p.used, p.reserved
	p.mu.Unlock()
}
