package hal

import "math/rand/v2"

// chunkUnit is what pools take sizes in multiples of.
const chunkUnit = 512

// roundUp returns the bytes that a block of a pool takes.
func roundUp(size uint64) uint64 { return (size + chunkUnit - 1) &^ (chunkUnit - 1) }

// segment is a piece of memory that a pool got from a device, or from whoever
// supplies the pool. It is divided into chunks.
type segment struct {
	start, size uint64
	number      int64  // by which the user of a Cache knows it
	next, prev  *chunk // in the list of segments that are ready as a whole
}

// chunk is a part of a segment, in use or free.
type chunk struct {
	segment       *segment
	start, size   uint64
	before, after *chunk // neighbours in the segment
	bin           *bin   // where it is free; nil while in use
	place         uint64 // of the bin's stream: the point of the free
	order         uint64 // when it was freed: of one size the one freed last goes first
	rank          uint32
	left, right   *chunk // in the bin's tree
	older, newer  *chunk // in the bin's list, by the time of the free
}

// split keeps the first size bytes of c and returns the rest, nil if there is none.
func (c *chunk) split(size uint64) *chunk {
	if c.size == size {
		return nil
	}
	rest := &chunk{segment: c.segment, start: c.start + size, size: c.size - size, before: c, after: c.after,
		place: c.place, order: c.order}
	if c.after != nil {
		c.after.before = rest
	}
	c.after, c.size = rest, size
	return rest
}

// absorb makes the neighbour behind c a part of it.
func (c *chunk) absorb() {
	other := c.after
	c.size += other.size
	c.place, c.order = max(c.place, other.place), max(c.order, other.order)
	if c.after = other.after; c.after != nil {
		c.after.before = c
	}
}

// whole reports whether c is all of its segment.
func (c *chunk) whole() bool { return c.before == nil && c.after == nil }

// bin holds free chunks: a tree by size for the best fit, and a list by the time
// of the free. A pool has one for the chunks that anybody may have now, and one
// for each stream, to which they belong until the point of their free is reached.
type bin struct {
	stream         *Stream // nil for a bin that is no stream's
	root           *chunk
	oldest, newest *chunk
	count          int
	bytes          uint64
}

// comesBefore reports whether c comes before a size and an order in a tree.
func (c *chunk) comesBefore(size, order uint64) bool {
	return c.size < size || c.size == size && c.order > order
}

// add puts a free chunk in, merged with its neighbours that are in the bin, and
// returns the chunk that it is now part of.
func (b *bin) add(c *chunk) *chunk {
	if c.after != nil && c.after.bin == b {
		b.remove(c.after)
		c.absorb()
	}
	if c.before != nil && c.before.bin == b {
		before := c.before
		b.remove(before)
		before.absorb()
		c = before
	}
	c.bin, c.rank = b, rand.Uint32()
	c.left, c.right = nil, nil
	left, right := b.cut(b.root, c.size, c.order)
	b.root = b.join(b.join(left, c), right)
	c.older, c.newer = b.newest, nil
	if b.newest != nil {
		b.newest.newer = c
	} else {
		b.oldest = c
	}
	b.newest = c
	b.count++
	b.bytes += c.size
	return c
}

// remove takes a chunk out.
func (b *bin) remove(c *chunk) {
	left, rest := b.cut(b.root, c.size, c.order)
	_, right := b.cut(rest, c.size, c.order-1) // orders are unique: c alone lies between
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
	b.bytes -= c.size
}

// fit returns the smallest chunk of at least size bytes, nil if there is none.
func (b *bin) fit(size uint64) (best *chunk) {
	for c := b.root; c != nil; {
		if c.size < size {
			c = c.right
		} else {
			best = c
			c = c.left
		}
	}
	return best
}

// cut divides a tree into the chunks that come before a size and an order, and the others.
func (b *bin) cut(c *chunk, size, order uint64) (left, right *chunk) {
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

func (b *bin) join(left, right *chunk) *chunk {
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
