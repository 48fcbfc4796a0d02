package hal

import "math/rand/v2"

// space is the map of all memory the runtime knows, by address: a treap, since
// blocks come and go in no order and every copy looks two addresses up.
type space struct {
	root *leaf
	n    int
}

type leaf struct {
	block       *Block
	rank        uint32
	left, right *leaf
}

// find returns the block that holds addr, nil if none does.
func (s *space) find(addr uint64) *Block {
	var below *Block
	for n := s.root; n != nil; {
		if addr < n.block.Start {
			n = n.left
		} else {
			below = n.block
			n = n.right
		}
	}
	if below != nil && addr-below.Start < below.Size {
		return below
	}
	return nil
}

// overlaps returns a block that shares bytes with a range.
func (s *space) overlaps(start, size uint64) *Block {
	if b := s.find(start); b != nil {
		return b
	}
	var above *Block
	for n := s.root; n != nil; {
		if n.block.Start >= start {
			above = n.block
			n = n.left
		} else {
			n = n.right
		}
	}
	if above != nil && above.Start-start < size {
		return above
	}
	return nil
}

func (s *space) insert(b *Block) {
	left, right := split(s.root, b.Start)
	s.root = join(join(left, &leaf{block: b, rank: rand.Uint32()}), right)
	s.n++
}

func (s *space) remove(b *Block) {
	left, rest := split(s.root, b.Start)
	_, right := split(rest, b.Start+1)
	s.root = join(left, right)
	s.n--
}

// split divides a tree into the blocks below addr and the others.
func split(n *leaf, addr uint64) (left, right *leaf) {
	if n == nil {
		return nil, nil
	}
	if n.block.Start < addr {
		n.right, right = split(n.right, addr)
		return n, right
	}
	left, n.left = split(n.left, addr)
	return left, n
}

func join(left, right *leaf) *leaf {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.rank > right.rank:
		left.right = join(left.right, right)
		return left
	}
	right.left = join(left, right.left)
	return right
}
