package hal

import (
	"math"
	"slices"
	"sync"

	"halstream/hal/addrmap"
	"halstream/hal/bestfit"
	"halstream/hal/driver"
)

// pool is the stream-ordered memory of a device. On the stream on which it was freed,
// memory can be allocated again at once, since work enqueued there is ordered after
// the free; on other streams when the place of the free is reached. The pool divides
// the segments that it takes from the device, and merges free neighbours.
type pool struct {
	mu        sync.Mutex
	ready     [classes]bestfit.Bin // free on every stream
	ordered   map[ownBin]*streamBin
	bins      []*streamBin // those of ordered by age, so that runs under a schedule repeat
	segments  addrmap.Map[*bestfit.Segment]
	idle      bestfit.SegmentList // that are ready as a whole, the one freed first at the head
	order     uint64              // counts frees
	own       figures             // of the pool
	all       figures             // of the pool and of blocks without a stream
	counts    segmentCounts
	threshold uint64
	limited   bool // a threshold was set; without one all free memory is kept
	failures  uint64
	retries   uint64
}

// streamBin holds chunks freed on one stream, which only that stream may use before
// the place of the free is reached; those of a caching allocator only that stream may
// use at all. When it is closed, others get its segments that are free as a whole.
type streamBin struct {
	bestfit.Bin
	ownBin
}

// ownBin is what a streamBin is found by: its stream, and the class of its segments.
type ownBin struct {
	stream *Stream
	class  uint8
}

// PoolStats counts the memory of the stream-ordered pool of a device in bytes. Peaks
// are those since the latest Device.ResetPoolPeaks.
type PoolStats struct{ Used, Reserved, UsedPeak, ReservedPeak, Threshold uint64 }

// AllocAsync returns size bytes of device memory that work enqueued on s from
// now on may use. Work on other streams must be ordered after s.
//
// # Errors: as for Device.Alloc, and [ErrClosed], [ErrWrongContext], [ErrNoContext].
//
// Contract: M7, M15, H3. Source: CUDA driver API, cuMemAllocAsync.
func (s *Stream) AllocAsync(t *Thread, size int64) (*Block, error) {
	return s.AllocAsyncWait(t, size, nil)
}

// AllocAsyncWait is AllocAsync that waits for freed memory as Device.AllocWait does.
//
// # Errors: as for AllocAsync.
//
// Contract: M16.
func (s *Stream) AllocAsyncWait(t *Thread, size int64, wait func(driver.Point) bool) (*Block, error) {
	return s.allocInOrder(t, size, wait, allocation{})
}

func (s *Stream) allocInOrder(t *Thread, size int64, wait func(driver.Point) bool, rules allocation) (*Block, error) {
	const op = "allocate in stream order"
	if err := s.checkEnqueue(t, op); err != nil {
		return nil, err
	}
	if c := s.capture.Load(); c != nil {
		return c.allocate(s, op, size, wait)
	}
	if err := checkSize(op, size); err != nil {
		return nil, err
	}
	d := s.dev
	n := bestfit.RoundUp(uint64(size))
	class := rules.classOf(n)
	var c *bestfit.Chunk
	err := d.rt.allocWithRetry(d, op, uint64(size), wait, func() (err error) {
		c, err = d.pool.alloc(s, n, class)
		return err
	})
	if err != nil {
		return nil, err
	}
	b := &Block{Start: c.Start, Size: uint64(size), Kind: DeviceMemory, dev: d, pooled: true, chunk: c, allocStream: s,
		cached: rules.cached}
	var id uint32
	if s.listened() {
		id = s.notify(Operation{Kind: OpAllocate, Thread: t, Writes: []Range{{b.Start, b.Size}},
			Cached: rules.cached, InOrder: rules.inOrder})
	}
	if last := s.d.Last(); !s.d.Reached(last) {
		// Pending work of s may still use this memory as a block that was freed before.
		b.users = []use{{stream: s, place: last, what: "work from before its allocation"}}
	}
	d.rt.addBlock(b)
	if d.rt.Deterministic() {
		// Always, also if the memory is new: the operations of a run must not depend on
		// earlier runs.
		return b, s.overwrite(b, id)
	}
	return b, nil
}

// alloc returns a chunk that work of s may use from now on.
func (p *pool) alloc(s *Stream, n uint64, class uint8) (*bestfit.Chunk, error) {
	rt := s.dev.rt
	rt.refresh()
	for range rt.refreshRounds() {
		c, held := p.reuse(s, n, class)
		if c != nil {
			return c, nil
		}
		if !held {
			break
		}
		rt.refresh()
	}
	segment := segmentSize(n, class)
	p.makeRoom(s, segment)
	start, err := s.dev.d.Alloc(segment)
	if err != nil {
		return nil, err
	}
	c := bestfit.NewChunk(start, segment)
	c.Segment().Class = class
	p.mu.Lock()
	p.segments.Insert(start, segment, c.Segment())
	p.own.reserve(segment)
	p.all.reserve(segment)
	p.counts.added(segment)
	p.divide(p.binOfRest(s, c), c, n)
	p.mu.Unlock()
	return c, nil
}

// binOfRest returns the bin for what is left of a chunk that every stream could have and
// of which s gets a part: segments of a caching allocator stay with one stream as a whole,
// so that their parts merge again.
func (p *pool) binOfRest(s *Stream, c *bestfit.Chunk) *bestfit.Bin {
	if class := c.Segment().Class; class != exact {
		return &p.binOf(ownBin{s, class}).Bin
	}
	return p.readyBin(c)
}

// reuse takes a free chunk that s may use now, and reports whether there are chunks
// that it may use only later.
func (p *pool) reuse(s *Stream, n uint64, class uint8) (c *bestfit.Chunk, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ready := &p.ready[class]
	if own := p.ordered[ownBin{s, class}]; own != nil {
		c = own.Fit(n)
	}
	if c == nil {
		c = ready.Fit(n)
	}
	if c == nil {
		held = p.advance() && class == exact
		c = ready.Fit(n)
	}
	if c == nil {
		return nil, held
	}
	p.take(s, c, n)
	return c, false
}

// take takes n bytes of a free chunk out of its bin, for s. The caller holds mu.
func (p *pool) take(s *Stream, c *bestfit.Chunk, n uint64) {
	b := c.Bin()
	ready := b == p.readyBin(c)
	if ready && c.Whole() {
		p.idle.Remove(c)
	}
	p.removeFree(c)
	rest := b
	if ready {
		c.Place = 0 // of the stream that had it before
		rest = p.binOfRest(s, c)
	}
	p.divide(rest, c, n)
	if b.Len() == 0 && !ready && c.Segment().Class == exact {
		p.dropBin(b)
	}
}

// divide allocates n bytes of a chunk that is in no bin, and puts the rest, if it can
// be a chunk of its own, into b. The caller holds mu.
func (p *pool) divide(b *bestfit.Bin, c *bestfit.Chunk, n uint64) {
	if divisible(c.Size-n, c.Segment().Class) {
		p.put(b, c.Split(n))
	}
	p.own.take(n, c.Size)
	p.all.take(n, c.Size)
}

// readyBin returns the bin for a chunk that is free on every stream.
func (p *pool) readyBin(c *bestfit.Chunk) *bestfit.Bin { return &p.ready[c.Segment().Class] }

// put adds a free chunk to a bin. The caller holds mu.
func (p *pool) put(b *bestfit.Bin, c *bestfit.Chunk) {
	if c.Order == 0 {
		p.order++
		c.Order = p.order // bins ask for numbers that are used once
	}
	if c = p.addFree(b, c); b == p.readyBin(c) && c.Whole() {
		p.idle.Append(c)
	}
}

// advance moves the chunks for which the place of their free is reached to ready, and
// reports whether others will follow. The caller holds mu.
func (p *pool) advance() (held bool) {
	kept := p.bins[:0]
	for _, b := range p.bins {
		switch {
		case b.class == exact:
			held = p.moveReached(b) || held
		case b.stream.Closed():
			_, more := p.moveWhole(b, math.MaxUint64)
			held = more || held
		default:
			kept = append(kept, b)
			continue
		}
		if b.Len() == 0 {
			delete(p.ordered, b.ownBin)
		} else {
			kept = append(kept, b)
		}
	}
	clear(p.bins[len(kept):])
	p.bins = kept
	return held
}

// moveReached moves the chunks of a bin for which the place of their free is reached to
// ready, and reports whether it has others. The caller holds mu.
func (p *pool) moveReached(b *streamBin) (held bool) {
	for c := b.Oldest(); c != nil; c = b.Oldest() {
		if !b.stream.d.Reached(c.Place) {
			return true
		}
		p.removeFree(c)
		p.put(p.readyBin(c), c)
	}
	return false
}

// binOf returns the bin of a stream and a class. The caller holds mu.
func (p *pool) binOf(of ownBin) *streamBin {
	b := p.ordered[of]
	if b == nil {
		if p.ordered == nil {
			p.ordered = map[ownBin]*streamBin{}
		}
		b = &streamBin{ownBin: of}
		p.ordered[of] = b
		p.bins = append(p.bins, b)
	}
	return b
}

// dropBin forgets the empty bin of a stream. The caller holds mu.
func (p *pool) dropBin(b *bestfit.Bin) {
	i := slices.IndexFunc(p.bins, func(o *streamBin) bool { return &o.Bin == b })
	delete(p.ordered, p.bins[i].ownBin)
	p.bins = slices.Delete(p.bins, i, i+1)
}

// free frees a chunk at a place of a stream; with s nil every stream may use it at
// once.
func (p *pool) free(d *Device, c *bestfit.Chunk, s *Stream, place uint64) {
	p.mu.Lock()
	p.own.active -= c.Size
	p.all.active -= c.Size
	b := p.readyBin(c)
	if class := c.Segment().Class; s != nil && (class != exact || !s.d.Reached(place)) {
		b = &p.binOf(ownBin{s, class}).Bin
	}
	p.order++
	c.Place, c.Order = place, p.order
	p.put(b, c)
	over := p.overThreshold()
	p.mu.Unlock()
	if over {
		p.trim(d, p.threshold)
	}
}

// overThreshold reports whether more free memory is kept than the program wants. The
// caller holds mu.
func (p *pool) overThreshold() bool {
	return p.limited && p.own.reserved-p.own.active > p.threshold
}

// FreeAsync frees memory of AllocAsync in the order of s. All work that uses it must
// be ordered before.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of a live stream-ordered block of
//     the stream's device.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M7, M15. Source: CUDA driver API, cuMemFreeAsync.
func (s *Stream) FreeAsync(t *Thread, addr uint64) error { return s.freeAsync(t, addr, nil) }

// FreeBlockAsync is FreeAsync of b. It does not free another block that has the
// address of b now. Memory of a graph stays its owner's, which frees what later launches allocate.
//
// # Errors: as for FreeAsync, and [ErrInvalidValue] if b was freed already.
//
// Contract: M2, M7.
func (s *Stream) FreeBlockAsync(t *Thread, b *Block) error { return s.freeAsync(t, 0, b) }

// freeAsync is FreeAsync of the block at addr, or of only if that is not nil.
func (s *Stream) freeAsync(t *Thread, addr uint64, only *Block) error {
	const op = "free in stream order"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.free(s, op, addr, only)
	}
	s.dev.rt.ReportTouched(t) // while the block is known
	if only != nil {
		addr = only.Start
	}
	rt := s.dev.rt
	rt.memory.mu.Lock()
	b, err := rt.liveBlockAt(op, addr, func(b *Block) bool { return (b.pooled || b.ofGraph != nil) && b.dev == s.dev },
		"stream-ordered memory of the stream's device")
	if err == nil && b.ofGraph != nil && (only == nil || only == b) {
		err = b.endLaunched(op)
		rt.memory.mu.Unlock()
		if err != nil {
			return err
		}
		s.freedOfGraph(t, b)
		return nil
	}
	if err == nil && only != nil && only != b {
		err = only.alreadyFreed(op)
	}
	if err == nil {
		rt.forgetBlock(b)
		b.cached = false // this free is one by the program: all work on the memory comes before it
	}
	rt.memory.mu.Unlock()
	if err != nil {
		return err
	}
	s.freeInOrder(t, b)
	return nil
}

// freeInOrder frees a block that was removed from the map, in the order of s.
func (s *Stream) freeInOrder(t *Thread, b *Block) {
	b.countFreed()
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpFree, Thread: t, Writes: []Range{{b.Start, b.Size}}, Cached: b.cached})
	}
	// Before the listeners are called: what they enqueue comes after the free.
	place := s.d.Mark(id)
	if id != 0 {
		s.dev.rt.listeners.endAnnounce(id, nil)
	}
	s.dev.pool.free(s.dev, b.chunk, s, place)
}

// holds reports whether an address lies in memory of the pool.
func (p *pool) holds(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.segments.Find(addr) != nil
}
