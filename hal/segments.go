package hal

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
