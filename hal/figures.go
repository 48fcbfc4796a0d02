package hal

import "halstream/hal/bestfit"

// figures are bytes of memory and their peaks.
type figures struct {
	used, active, reserved             uint64
	usedPeak, activePeak, reservedPeak uint64
}

// take counts bytes that are given out.
func (f *figures) take(n uint64) {
	f.used += n
	f.active += n
	f.usedPeak = max(f.usedPeak, f.used)
	f.activePeak = max(f.activePeak, f.active)
}

// reserve counts bytes that are taken from the device.
func (f *figures) reserve(n uint64) {
	f.reserved += n
	f.reservedPeak = max(f.reservedPeak, f.reserved)
}

// resetPeaks makes peaks start from what is held now.
func (f *figures) resetPeaks(used, reserved bool) {
	if used {
		f.usedPeak, f.activePeak = f.used, f.active
	}
	if reserved {
		f.reservedPeak = f.reserved
	}
}

// MemoryStats are the figures of a device's memory, in bytes, each block rounded
// up to a multiple of 512: of the stream-ordered pool, and of blocks without a stream.
type MemoryStats struct {
	// Allocated is what the program holds: a block counts until it is freed.
	Allocated, AllocatedPeak uint64
	// Active is Allocated and what was freed while pending work still uses it.
	Active, ActivePeak uint64
	// Reserved is what is taken from the device: Active, and what the pool keeps.
	Reserved, ReservedPeak uint64
	// OutOfMemory counts allocations that failed, Retries those that waited for
	// freed memory which pending work still used.
	OutOfMemory, Retries uint64
}

// MemoryStats returns the figures of the device's memory.
//
// Contract: M15.
func (d *Device) MemoryStats() MemoryStats {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	f := &d.pool.all
	return MemoryStats{f.used, f.usedPeak, f.active, f.activePeak, f.reserved, f.reservedPeak,
		d.pool.failures, d.pool.retries}
}

// ResetMemoryPeaks makes peaks of the device's figures start from what is held now.
//
// Contract: M15.
func (d *Device) ResetMemoryPeaks(allocated, reserved bool) {
	d.pool.mu.Lock()
	d.pool.all.resetPeaks(allocated, reserved)
	d.pool.mu.Unlock()
}

// ResetMemoryCounts makes the counts of failed and repeated allocations start from 0.
func (d *Device) ResetMemoryCounts() {
	d.pool.mu.Lock()
	d.pool.failures, d.pool.retries = 0, 0
	d.pool.mu.Unlock()
}

// CountOutOfMemory counts an allocation that was refused by a limit above the device's.
func (d *Device) CountOutOfMemory() { d.pool.countShortage(true, false) }

// countAlloc counts a new block that is not the pool's.
func (p *pool) countAlloc(size uint64) {
	p.mu.Lock()
	p.all.take(bestfit.RoundUp(size))
	p.all.reserve(bestfit.RoundUp(size))
	p.mu.Unlock()
}

// Disown counts the block as freed: the program refers to it no more, but functions
// that are pending on streams do. Release follows when they have ended.
//
// Contract: M15.
func (b *Block) Disown() { b.countFreed() }

// countFreed counts a block that was freed, once; pending work may still use it.
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

// countReturned counts a plain block that goes back to the device.
func (p *pool) countReturned(size uint64) {
	n := bestfit.RoundUp(size)
	p.mu.Lock()
	p.all.active -= n
	p.all.reserved -= n
	p.mu.Unlock()
}

// PoolStats returns what the stream-ordered pool holds.
//
// Contract: M7, M15.
func (d *Device) PoolStats() PoolStats {
	p := &d.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.own
	return PoolStats{f.used, f.reserved, f.usedPeak, f.reservedPeak, p.threshold}
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

// ResetPoolPeaks makes peaks of the pool start from what is held now.
func (d *Device) ResetPoolPeaks(used, reserved bool) {
	p := &d.pool
	p.mu.Lock()
	p.own.resetPeaks(used, reserved)
	p.mu.Unlock()
}
