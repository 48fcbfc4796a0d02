// Package addrmap maps ranges of addresses that do not overlap to values.
package addrmap

import (
	"iter"
	"math/rand/v2"
)

// Map holds values by the range of addresses each of them belongs to. It is a
// treap, since ranges come and go in no order and every copy looks two addresses
// up, and a few ranges that were added last: most memory is released soon, and then
// what that costs does not depend on how many ranges there are. The zero Map is
// empty. It is not safe for concurrent use.
type Map[V any] struct {
	root   *node[V]
	n      int
	recent [8]entry[V]
	next   int // of recent, which is used in turns
}

type node[V any] struct {
	start, size uint64
	value       V
	rank        uint32
	left, right *node[V]
}

// entry is a range that is not in the tree; its size is 0 where there is none.
type entry[V any] struct {
	start, size uint64
	value       V
}

// Len returns the number of ranges.
func (m *Map[V]) Len() int { return m.n }

// All returns the values by address.
func (m *Map[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		m.settle()
		m.root.each(yield)
	}
}

// settle puts all ranges into the tree.
func (m *Map[V]) settle() {
	for i := range m.recent {
		m.move(&m.recent[i])
	}
}

// move puts the range of an entry, if it has one, into the tree.
func (m *Map[V]) move(e *entry[V]) {
	if e.size > 0 {
		m.plant(e.start, e.size, e.value)
		*e = entry[V]{}
	}
}

func (n *node[V]) each(yield func(V) bool) bool {
	return n == nil || n.left.each(yield) && yield(n.value) && n.right.each(yield)
}

// Find returns the value of the range that contains addr, the zero value if none does.
func (m *Map[V]) Find(addr uint64) (v V) {
	for i := range m.recent {
		if e := &m.recent[i]; addr-e.start < e.size {
			return e.value
		}
	}
	if n := m.find(addr); n != nil {
		return n.value
	}
	return v
}

func (m *Map[V]) find(addr uint64) *node[V] {
	var below *node[V]
	for n := m.root; n != nil; {
		if addr < n.start {
			n = n.left
		} else {
			below = n
			n = n.right
		}
	}
	if below != nil && addr-below.start < below.size {
		return below
	}
	return nil
}

// Overlapping returns the value of a range that shares bytes with the given one,
// the zero value if there is none.
func (m *Map[V]) Overlapping(start, size uint64) (v V) {
	for i := range m.recent {
		// The second difference wraps around where the entry begins below start.
		if e := &m.recent[i]; e.size > 0 && (start-e.start < e.size || e.start-start < size) {
			return e.value
		}
	}
	if n := m.find(start); n != nil {
		return n.value
	}
	var above *node[V]
	for n := m.root; n != nil; {
		if n.start >= start {
			above = n
			n = n.left
		} else {
			n = n.right
		}
	}
	if above != nil && above.start-start < size {
		return above.value
	}
	return v
}

// Insert adds a range, which overlaps no other one of the map and is not empty.
func (m *Map[V]) Insert(start, size uint64, v V) {
	e := &m.recent[m.next]
	m.next = (m.next + 1) % len(m.recent)
	m.move(e)
	*e = entry[V]{start, size, v}
	m.n++
}

// plant adds a range to the tree.
func (m *Map[V]) plant(start, size uint64, v V) {
	// One way down to where the node belongs, and from there on below it: most nodes are leaves.
	added := &node[V]{start: start, size: size, value: v, rank: rand.Uint32()}
	at := &m.root
	for *at != nil && (*at).rank >= added.rank {
		at = (*at).towards(start)
	}
	added.left, added.right = split(*at, start)
	*at = added
}

// Remove removes the range that begins at start, which is in the map.
func (m *Map[V]) Remove(start uint64) {
	m.n--
	for i := range m.recent {
		if e := &m.recent[i]; e.start == start && e.size > 0 {
			*e = entry[V]{}
			return
		}
	}
	at := &m.root
	for (*at).start != start {
		at = (*at).towards(start)
	}
	*at = join((*at).left, (*at).right)
}

// towards returns the half of the tree below n in which a range begins at addr.
func (n *node[V]) towards(addr uint64) **node[V] {
	if addr < n.start {
		return &n.left
	}
	return &n.right
}

// split divides a tree into the ranges that begin below addr and the others.
func split[V any](n *node[V], addr uint64) (left, right *node[V]) {
	if n == nil {
		return nil, nil
	}
	if n.start < addr {
		n.right, right = split(n.right, addr)
		return n, right
	}
	left, n.left = split(n.left, addr)
	return left, n
}

// join merges two trees of which all of left lies below all of right.
func join[V any](left, right *node[V]) *node[V] {
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
