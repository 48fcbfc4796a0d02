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
// the free; on other streams when the fence of the free is reached. The pool divides
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
// the fence of the free is reached; those of a caching allocator only that stream may
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
	segment := max(segmentSize(n, class), p.spare(s, class))
	p.makeRoom(s, segment)
	start, err := s.dev.d.Alloc(segment)
	if err != nil && segment > segmentSize(n, class) {
		segment = segmentSize(n, class)
		start, err = s.dev.d.Alloc(segment)
	}
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
	rest := p.binOfRest(s, c)
	if class == exact && segment > n {
		c.Seq = s.d.Last() // the rest merges with what s has pending work on
		rest = &p.binOf(ownBin{s, class}).Bin
	}
	p.divide(rest, c, n)
	p.mu.Unlock()
	return c, nil
}

// spare returns how large a segment that is taken for s should be at least: as large as all
// of the memory that only s may use and that is too small in each of its parts. So blocks of
// s whose sizes grow while its work is pending soon find memory that was freed before.
func (p *pool) spare(s *Stream, class uint8) uint64 {
	if class > kept {
		return 0 // its segments are larger than most blocks
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.ordered[ownBin{s, class}]
	if own == nil {
		return 0
	}
	return min(own.Bytes(), largeSegment)
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
		c.Seq = 0 // of the stream that had it before
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

// advance moves the chunks for which the fence of their free is reached to ready, and
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

// moveReached moves the chunks of a bin for which the fence of their free is reached to
// ready, and reports whether it has others. The caller holds mu.
func (p *pool) moveReached(b *streamBin) (held bool) {
	for c := b.Oldest(); c != nil; c = b.Oldest() {
		if !b.stream.d.Reached(c.Seq) {
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

// free frees a chunk at a fence of a stream; with s nil every stream may use it at
// once.
func (p *pool) free(d *Device, c *bestfit.Chunk, s *Stream, seq uint64) {
	p.mu.Lock()
	p.own.active -= c.Size
	p.all.active -= c.Size
	b := p.readyBin(c)
	if class := c.Segment().Class; s != nil && (class != exact || !s.d.Reached(seq)) {
		b = &p.binOf(ownBin{s, class}).Bin
	}
	p.order++
	c.Seq, c.Order = seq, p.order
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

// holds reports whether an address lies in memory of the pool.
func (p *pool) holds(addr uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.segments.Find(addr) != nil
}

// allocation is what listeners learn of an allocation, see Operation, and whether its
// memory is taken from the device in segments of fixed sizes.
type allocation struct{ cached, inOrder, segments bool }

// Classes of a pool's segments: a block comes from a segment of its own class.
const (
	exact = uint8(iota) // for blocks whose segment has their size, and that any stream may have next
	kept                // the same, for blocks that stay with their stream as with a caching allocator
	small               // of a caching allocator, for blocks of up to smallMost
	large               // of a caching allocator, for all others
	classes
)

// How the native allocator of torch.cuda takes memory from the device.
const (
	smallMost    = 1 << 20  // the largest block of a small segment
	smallSegment = 2 << 20  // the size of each small segment
	largeSegment = 20 << 20 // and of a large one for blocks below ownSegment
	ownSegment   = 10 << 20 // from which on a block gets a segment that fits it,
	ownUnit      = 2 << 20  // in multiples of this
)

// classOf returns the class of the segment for a block of n bytes.
func (a allocation) classOf(n uint64) uint8 {
	switch {
	case !a.cached:
		return exact
	case !a.segments:
		return kept
	case n <= smallMost:
		return small
	}
	return large
}

// segmentSize returns the size of the segment that is taken for a block of n bytes.
func segmentSize(n uint64, class uint8) uint64 {
	switch {
	case class <= kept:
		return n
	case class == small:
		return smallSegment
	case n < ownSegment:
		return largeSegment
	}
	return (n + ownUnit - 1) &^ (ownUnit - 1)
}

// divisible reports whether what is left of a chunk becomes a free chunk: a small
// rest stays with a large block, as it would fit none of its segment's.
func divisible(rest uint64, class uint8) bool {
	if class == large {
		return rest > smallMost
	}
	return rest > 0
}

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
		case b.stream.d.Reached(c.Seq):
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
// It keeps chunks for which the fence of the free is not reached yet, and free parts
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
// be returned when operations of streams are done.
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

// countAlloc counts a new block that does not belong to the pool.
func (p *pool) countAlloc(size uint64) {
	p.mu.Lock()
	n := bestfit.RoundUp(size)
	p.all.take(n, n)
	p.all.reserve(n)
	p.mu.Unlock()
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

// Gauge is a count with its peak, and with all that was added to it.
type Gauge struct{ Current, Peak, Added uint64 }

func (g *Gauge) add(n uint64) {
	g.Current += n
	g.Added += n
	g.Peak = max(g.Peak, g.Current)
}

// SegmentStats counts what the stream-ordered pool of a device has taken from it. Peaks
// are those since the latest Device.ResetMemoryPeaks.
type SegmentStats struct {
	Segments, Bytes Gauge
	// Split counts the free parts of segments that are in use in part, and which
	// therefore cannot go back to the device.
	Split, SplitBytes Gauge
}

// Indices of MemoryStats.Pools.
const (
	AllSegments   = iota
	SmallSegments // of up to 2 MiB
	LargeSegments
	segmentKinds
)

// segmentCounts counts all segments of a pool, and the small and the large ones.
type segmentCounts [segmentKinds]SegmentStats

// kindsOf returns the two kinds that a segment of so many bytes counts for.
func kindsOf(size uint64) [2]int {
	if size <= smallSegment {
		return [2]int{AllSegments, SmallSegments}
	}
	return [2]int{AllSegments, LargeSegments}
}

func (s *segmentCounts) added(size uint64) {
	for _, kind := range kindsOf(size) {
		s[kind].Segments.add(1)
		s[kind].Bytes.add(size)
	}
}

func (s *segmentCounts) removed(size uint64) {
	for _, kind := range kindsOf(size) {
		s[kind].Segments.Current--
		s[kind].Bytes.Current -= size
	}
}

func (s *segmentCounts) resetPeaks(split, segments bool) {
	for i := range s {
		of := &s[i]
		if split {
			of.Split.Peak, of.SplitBytes.Peak = of.Split.Current, of.SplitBytes.Current
		}
		if segments {
			of.Segments.Peak, of.Bytes.Peak = of.Segments.Current, of.Bytes.Current
		}
	}
}

// addFree puts a free chunk into a bin, merged with its neighbours there, and returns
// the chunk that it is now part of. The caller holds mu.
func (p *pool) addFree(b *bestfit.Bin, c *bestfit.Chunk) *bestfit.Chunk {
	parts, bytes := b.Len(), c.Size
	c = b.Add(c)
	merged := uint64(parts + 1 - b.Len())
	for _, kind := range kindsOf(c.Segment().Size) {
		of := &p.counts[kind]
		of.Split.Current -= merged
		if c.Whole() {
			of.SplitBytes.Current -= c.Size - bytes
		} else {
			of.Split.add(1)
			of.SplitBytes.add(bytes)
		}
	}
	return c
}

// removeFree takes a free chunk out of its bin. The caller holds mu.
func (p *pool) removeFree(c *bestfit.Chunk) {
	c.Bin().Remove(c)
	if c.Whole() {
		return
	}
	for _, kind := range kindsOf(c.Segment().Size) {
		p.counts[kind].Split.Current--
		p.counts[kind].SplitBytes.Current -= c.Size
	}
}

// countShortage counts an allocation that failed for lack of memory, or that waited
// for freed memory.
func (p *pool) countShortage(failed, waited bool) {
	p.mu.Lock()
	if failed {
		p.failures++
	}
	if waited {
		p.retries++
	}
	p.mu.Unlock()
}

// pendingFrees appends, for each stream with chunks that only it may use, the point
// after which other streams may use all of them.
func (p *pool) pendingFrees(points driver.Points) driver.Points {
	p.mu.Lock()
	var last []fence
	for _, b := range p.bins {
		f := fence{stream: b.stream}
		for c := range b.All() {
			f.seq = max(f.seq, c.Seq)
		}
		last = append(last, f)
	}
	p.mu.Unlock()
	for _, f := range last {
		points = append(points, f.point())
	}
	return points
}
