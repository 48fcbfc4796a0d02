// Package bestfit divides segments of memory into chunks and finds the smallest
// free chunk that is large enough. It works on addresses only: it neither reads
// nor allocates the memory itself. Nothing in it is safe for concurrent use but
// Cache.
package bestfit

import (
	"iter"
	"math/rand/v2"
)

// unit is what pools take sizes in multiples of.
const unit = 512

// RoundUp returns the bytes that a block of size bytes takes of a pool.
func RoundUp(size uint64) uint64 { return (size + unit - 1) &^ (unit - 1) }

// Segment is a piece of memory that a pool got from a device, or from whoever
// supplies the pool. It is divided into chunks.
type Segment struct {
	Start, Size uint64
	first       *Chunk // never merged into another one
	number      int64  // by which the user of a Cache identifies it
	// Class belongs to the user: which blocks the segment is for.
	Class      uint8
	next, prev *Chunk // in a SegmentList
}

// Chunk is a part of a segment, in use or free.
type Chunk struct {
	Start, Size uint64
	// Seq and Order belong to the user: the point of the stream at which the
	// chunk becomes free, and when it was freed, a number above 0 that is used once. Merged chunks
	// keep the larger ones. Of one size the chunk with the larger Order goes first.
	Seq, Order uint64

	segment       *Segment
	before, after *Chunk // neighbours in the segment
	bin           *Bin   // that contains it; nil while in use
	rank          uint32
	left, right   *Chunk // in the bin's tree
	older, newer  *Chunk // in the bin's list, by the time of the free
}

// NewChunk returns the chunk that is all of a new segment, in use.
func NewChunk(start, size uint64) *Chunk {
	c := &Chunk{Start: start, Size: size, segment: &Segment{Start: start, Size: size}}
	c.segment.first = c
	return c
}

// Chunks returns the chunks of the segment by address.
func (s *Segment) Chunks() iter.Seq[*Chunk] {
	return func(yield func(*Chunk) bool) {
		for c := s.first; c != nil && yield(c); c = c.after {
		}
	}
}

// Segment returns the segment that c is a part of.
func (c *Chunk) Segment() *Segment { return c.segment }

// Bin returns the bin that contains c, nil while c is in use.
func (c *Chunk) Bin() *Bin { return c.bin }

// Split keeps the first size bytes of c and returns the rest, nil if there is none.
func (c *Chunk) Split(size uint64) *Chunk {
	if c.Size == size {
		return nil
	}
	rest := &Chunk{segment: c.segment, Start: c.Start + size, Size: c.Size - size, before: c, after: c.after,
		Seq: c.Seq, Order: c.Order}
	if c.after != nil {
		c.after.before = rest
	}
	c.after, c.Size = rest, size
	return rest
}

// absorb makes the neighbour behind c a part of it.
func (c *Chunk) absorb() {
	other := c.after
	c.Size += other.Size
	c.Seq, c.Order = max(c.Seq, other.Seq), max(c.Order, other.Order)
	if c.after = other.after; c.after != nil {
		c.after.before = c
	}
}

// Whole reports whether c is all of its segment.
func (c *Chunk) Whole() bool { return c.before == nil && c.after == nil }

// Bin holds free chunks: a tree by size for the best fit, and a list by the time
// of the free. The zero Bin is empty.
type Bin struct {
	root           *Chunk
	oldest, newest *Chunk
	count          int
	bytes          uint64
}

// Len returns the number of chunks.
func (b *Bin) Len() int { return b.count }

// Bytes returns the size of all chunks together.
func (b *Bin) Bytes() uint64 { return b.bytes }

// Oldest returns the chunk that was added first, nil if the bin is empty.
func (b *Bin) Oldest() *Chunk { return b.oldest }

// All returns the chunks, the one added first before the others. The loop may
// remove the chunk it is at.
func (b *Bin) All() iter.Seq[*Chunk] {
	return func(yield func(*Chunk) bool) {
		for c := b.oldest; c != nil; {
			next := c.newer
			if !yield(c) {
				return
			}
			c = next
		}
	}
}

// comesBefore reports whether c comes before a size and an order in a tree.
func (c *Chunk) comesBefore(size, order uint64) bool {
	return c.Size < size || c.Size == size && c.Order > order
}

// Add puts a free chunk in, merged with its neighbours that are in the bin, and
// returns the chunk that it is now part of.
func (b *Bin) Add(c *Chunk) *Chunk {
	if c.after != nil && c.after.bin == b {
		b.Remove(c.after)
		c.absorb()
	}
	if c.before != nil && c.before.bin == b {
		before := c.before
		b.Remove(before)
		before.absorb()
		c = before
	}
	c.bin, c.rank = b, rand.Uint32()
	c.left, c.right = nil, nil
	left, right := b.cut(b.root, c.Size, c.Order)
	b.root = b.join(b.join(left, c), right)
	c.older, c.newer = b.newest, nil
	if b.newest != nil {
		b.newest.newer = c
	} else {
		b.oldest = c
	}
	b.newest = c
	b.count++
	b.bytes += c.Size
	return c
}

// Remove takes a chunk out.
func (b *Bin) Remove(c *Chunk) {
	left, rest := b.cut(b.root, c.Size, c.Order)
	_, right := b.cut(rest, c.Size, c.Order-1) // orders are unique: c alone lies between
	b.root = b.join(left, right)
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		b.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		b.newest = c.older
	}
	c.bin, c.left, c.right, c.older, c.newer = nil, nil, nil, nil, nil
	b.count--
	b.bytes -= c.Size
}

// Fit returns the smallest chunk of at least size bytes, nil if there is none.
func (b *Bin) Fit(size uint64) (best *Chunk) {
	for c := b.root; c != nil; {
		if c.Size < size {
			c = c.right
		} else {
			best = c
			c = c.left
		}
	}
	return best
}

// Depth returns how many chunks Fit looks at, at most.
func (b *Bin) Depth() int { return b.root.depth() }

func (c *Chunk) depth() int {
	if c == nil {
		return 0
	}
	return 1 + max(c.left.depth(), c.right.depth())
}

// cut divides a tree into the chunks that come before a size and an order, and the others.
func (b *Bin) cut(c *Chunk, size, order uint64) (left, right *Chunk) {
	if c == nil {
		return nil, nil
	}
	if c.comesBefore(size, order) {
		c.right, right = b.cut(c.right, size, order)
		return c, right
	}
	left, c.left = b.cut(c.left, size, order)
	return left, c
}

func (b *Bin) join(left, right *Chunk) *Chunk {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.rank > right.rank:
		left.right = b.join(left.right, right)
		return left
	}
	right.left = b.join(left, right.left)
	return right
}

// SegmentList lists segments that are free as a whole, each by its one chunk, the
// one added first at the head. The zero SegmentList is empty.
type SegmentList struct{ first, last *Chunk }

// First returns the chunk that was added first, nil if the list is empty.
func (l *SegmentList) First() *Chunk { return l.first }

// Append adds the chunk of a whole segment at the end.
func (l *SegmentList) Append(c *Chunk) {
	g := c.segment
	g.prev, g.next = l.last, nil
	if l.last != nil {
		l.last.segment.next = c
	} else {
		l.first = c
	}
	l.last = c
}

// Remove removes a chunk that is in the list.
func (l *SegmentList) Remove(c *Chunk) {
	g := c.segment
	if g.prev != nil {
		g.prev.segment.next = g.next
	} else {
		l.first = g.next
	}
	if g.next != nil {
		g.next.segment.prev = g.prev
	} else {
		l.last = g.prev
	}
	g.next, g.prev = nil, nil
}
