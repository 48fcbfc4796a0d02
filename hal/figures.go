package hal

import "halstream/hal/bestfit"

// figures count bytes of memory and keep the peaks of the counts.
type figures struct {
	used, active, reserved             uint64
	usedPeak, activePeak, reservedPeak uint64
}

// take counts bytes that are allocated, in a chunk of so many bytes.
func (f *figures) take(n, chunk uint64) {
	f.used += n
	f.active += chunk
	f.usedPeak = max(f.usedPeak, f.used)
	f.activePeak = max(f.activePeak, f.active)
}

// reserve counts bytes that are taken from the device.
func (f *figures) reserve(n uint64) {
	f.reserved += n
	f.reservedPeak = max(f.reservedPeak, f.reserved)
}

// resetPeaks makes peaks start again from the current counts.
func (f *figures) resetPeaks(used, reserved bool) {
	if used {
		f.usedPeak, f.activePeak = f.used, f.active
	}
	if reserved {
		f.reservedPeak = f.reserved
	}
}

// MemoryStats counts the memory of a device in bytes, each block rounded up to a
// multiple of 512: blocks of the stream-ordered pool and blocks without a stream.
type MemoryStats struct {
	// Allocated is the memory that the program holds: a block counts until it is freed.
	Allocated, AllocatedPeak uint64
	// Active is Allocated and the freed memory that pending work still uses.
	Active, ActivePeak uint64
	// Reserved is the memory taken from the device: Active and the free memory of the
	// pool.
	Reserved, ReservedPeak uint64
	// OutOfMemory counts the allocations that failed, Retries those that waited for
	// freed memory that pending work still used.
	OutOfMemory, Retries uint64
	// Pools counts the segments of the stream-ordered pool: all, the small and the large
	// ones. Blocks without a stream are none.
	Pools [segmentKinds]SegmentStats
}

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

// countAlloc counts a new block that does not belong to the pool.
func (p *pool) countAlloc(size uint64) {
	p.mu.Lock()
	n := bestfit.RoundUp(size)
	p.all.take(n, n)
	p.all.reserve(n)
	p.mu.Unlock()
}

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

// countReturned counts a block that does not belong to the pool and was returned to
// the device.
func (p *pool) countReturned(size uint64) {
	n := bestfit.RoundUp(size)
	p.mu.Lock()
	p.all.active -= n
	p.all.reserved -= n
	p.mu.Unlock()
}

// PoolChunk is a part of a segment that a pool has taken from its device.
type PoolChunk struct {
	Segment, Chunk Range
	Used           bool    // by a block, or by work that is pending on a block that was freed
	Block          *Block  // that has it, nil for one that was freed
	Stream         *Stream // on which it was allocated, or alone may be; nil for none
}

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
		if b := m.blocks.Find(chunks[i].Chunk.Start); b != nil && b.pooled {
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
