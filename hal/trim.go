package hal

import (
	"math"

	"halstream/hal/bestfit"
)

// release moves segments of caching allocators to ready that are free as a whole, of at
// most so many bytes together, for the device to have them back: those of one stream, or
// with nil of all. It reports whether others will be free. The caller holds mu.
func (p *pool) release(of *Stream, most uint64) (held bool) {
	for _, b := range p.bins {
		if b.class == exact || of != nil && b.stream != of {
			continue
		}
		moved, more := p.moveWhole(b, most)
		most -= moved
		held = more || held
	}
	return held
}

// moveWhole moves the segments of a bin of a caching allocator to ready that are free as a
// whole, of at most so many bytes together, and reports whether others will be free. The
// caller holds mu.
func (p *pool) moveWhole(b *streamBin, most uint64) (moved uint64, held bool) {
	for c := range b.All() {
		switch {
		case !c.Whole() || c.Size > most-moved:
		case b.stream.d.Reached(c.Place):
			moved += c.Size
			p.removeFree(c)
			p.put(p.readyBin(c), c)
		default:
			held = true
		}
	}
	return moved, held
}

// removeIdle removes an idle segment from the pool and returns its address. The caller
// holds mu, and returns the memory to the device afterwards.
func (p *pool) removeIdle(c *bestfit.Chunk) uint64 {
	p.idle.Remove(c)
	p.removeFree(c)
	p.segments.Remove(c.Start)
	p.own.reserved -= c.Size
	p.all.reserved -= c.Size
	p.counts.removed(c.Size)
	return c.Start
}

// makeRoom returns idle segments to the device before a larger one of n bytes is
// taken for s, at most n bytes of them. So a program whose blocks grow does not reserve
// the sum of their sizes. Segments of other streams' caches stay: the device may give
// their addresses out again, and s is not ordered behind their streams.
func (p *pool) makeRoom(s *Stream, n uint64) {
	var back []uint64
	p.mu.Lock()
	takeIdle := func() {
		for c := p.idle.First(); c != nil && c.Size <= n; c = p.idle.First() {
			n -= c.Size
			back = append(back, p.removeIdle(c))
		}
	}
	takeIdle()
	p.release(s, n)
	takeIdle()
	p.mu.Unlock()
	for _, addr := range back {
		s.dev.d.Free(addr)
	}
}

// trim returns idle segments to the device until at most least free bytes are kept.
// It keeps chunks for which the place of the free is not reached yet, and free parts
// of segments in use.
func (p *pool) trim(d *Device, least uint64) {
	d.rt.refresh()
	for range d.rt.refreshRounds() {
		back, held := p.takeExcess(least)
		for _, addr := range back {
			d.d.Free(addr)
		}
		if !held {
			return
		}
		d.rt.refresh()
	}
}

// takeExcess removes the segments that trim returns, and reports whether more could
// be returned when places of streams are reached.
func (p *pool) takeExcess(least uint64) (back []uint64, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held = p.advance()
	held = p.release(nil, math.MaxUint64) || held
	for c := p.idle.First(); c != nil && p.own.reserved-p.own.active > least; c = p.idle.First() {
		back = append(back, p.removeIdle(c))
	}
	return back, held && p.own.reserved-p.own.active > least
}

// drain returns all idle segments to the device, whose driver is closed next, unless
// pending work may still use memory of the pool.
func (p *pool) drain(d *Device) {
	if d.d.Pending() > 0 {
		return
	}
	back, _ := p.takeExcess(0)
	for _, addr := range back {
		d.d.Free(addr)
	}
}
