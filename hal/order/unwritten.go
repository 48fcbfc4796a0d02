package order

import (
	"slices"
	"sort"
)

// unwritten is the device memory that was allocated since the check began and that nothing has written yet, in the order of
// the calls. What may have been written unseen is not in it.
type unwritten struct {
	pieces []piece // sorted, disjoint
}

// maxUnwritten is of how many pieces an unwritten consists at most; of more nothing is known.
const maxUnwritten = 1 << 14

// from returns the index of the first piece that ends behind an address.
func (u *unwritten) from(address uint64) int {
	return sort.Search(len(u.pieces), func(i int) bool { return u.pieces[i].end > address })
}

// allocate adds memory that was allocated.
func (u *unwritten) allocate(p piece) {
	if p.start >= p.end {
		return
	}
	u.write(p)
	u.pieces = slices.Insert(u.pieces, u.from(p.start), p)
}

// write takes out memory that was written, or freed.
func (u *unwritten) write(p piece) {
	first := u.from(p.start)
	last := first
	var rest []piece // of the first and the last one
	for last < len(u.pieces) && u.pieces[last].start < p.end {
		if one := u.pieces[last]; one.start < p.start {
			rest = append(rest, piece{one.start, p.start})
		}
		if one := u.pieces[last]; one.end > p.end {
			rest = append(rest, piece{p.end, one.end})
		}
		last++
	}
	if first == last || p.start >= p.end {
		return
	}
	u.pieces = slices.Replace(u.pieces, first, last, rest...)
	if len(u.pieces) > maxUnwritten {
		u.clear()
	}
}

// within returns the first part of p that is unwritten.
func (u *unwritten) within(p piece) (part piece, found bool) {
	i := u.from(p.start)
	if i == len(u.pieces) || u.pieces[i].start >= p.end {
		return piece{}, false
	}
	return piece{max(p.start, u.pieces[i].start), min(p.end, u.pieces[i].end)}, true
}

// clear forgets everything: it may have been written.
func (u *unwritten) clear() { u.pieces = nil }
