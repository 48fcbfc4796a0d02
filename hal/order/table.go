package order

import (
	"slices"
	"sort"
)

// piece is a range of addresses, the end excluded.
type piece struct{ start, end uint64 }

// meets reports whether two ranges share a byte.
func (p piece) meets(o piece) bool { return p.start < o.end && o.start < p.end }

// seg is a range whose bytes were all accessed by the same operations.
type seg struct {
	piece
	cell *cell
}

// maxChunk is how many ranges a chunk holds before it is split.
const maxChunk = 128

// table is the ranges that were accessed, by address, never two that overlap.
// They lie in chunks, so that a new one moves few of them.
type table struct {
	chunks [][]seg
	firsts []uint64 // where each chunk begins
	n      int
	spare  []seg // for building
}

// find returns the first range that ends behind addr; past the end if there is none.
func (t *table) find(addr uint64) (ci, si int) {
	lo, hi := 0, len(t.firsts)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); t.firsts[mid] <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	ci = max(0, lo-1)
	if ci == len(t.chunks) {
		return ci, 0
	}
	segs := t.chunks[ci]
	lo, hi = 0, len(segs)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); segs[mid].end <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(segs) {
		return ci + 1, 0
	}
	return ci, lo
}

// exact returns the cell of a range that was accessed just so before, nil if
// there is none.
func (t *table) exact(p piece) *cell {
	ci, si := t.find(p.start)
	if ci < len(t.chunks) {
		if s := &t.chunks[ci][si]; s.piece == p {
			return s.cell
		}
	}
	return nil
}

// each calls visit for every part of p whose cell is of its own, making those
// that are missing. Equal neighbours become one afterwards.
func (t *table) each(p piece, visit func(*cell, piece)) {
	ci, si := t.find(p.start)
	list, n := t.spare[:0], 0
	pos := p.start
	for i, j := ci, si; i < len(t.chunks); i, j = i+1, 0 {
		segs := t.chunks[i]
		for ; j < len(segs) && segs[j].start < p.end; j++ {
			s := segs[j]
			n++
			if s.start < p.start {
				list = append(list, seg{piece{s.start, p.start}, s.cell.clone()})
				s.start = p.start
			}
			if pos < s.start {
				list = append(list, seg{piece{pos, s.start}, newCell()})
			}
			rest := s
			s.end = min(s.end, p.end)
			list = append(list, s)
			if rest.end > p.end {
				list = append(list, seg{piece{p.end, rest.end}, s.cell.clone()})
			}
			pos = s.end
		}
		if j < len(segs) {
			break
		}
	}
	if pos < p.end {
		// Behind the last one: nothing of list lies there yet.
		list = append(list, seg{piece{pos, p.end}, newCell()})
	}
	for i := range list {
		if s := &list[i]; s.start >= p.start && s.end <= p.end {
			visit(s.cell, s.piece)
		}
	}
	list = compact(list)
	t.splice(ci, si, n, list)
	t.spare = keep(list)
}

// over calls visit for every part of p that was accessed before.
func (t *table) over(p piece, visit func(*cell, piece)) {
	for ci, si := t.find(p.start); ci < len(t.chunks); ci, si = ci+1, 0 {
		for _, s := range t.chunks[ci][si:] {
			if s.start >= p.end {
				return
			}
			visit(s.cell, piece{max(s.start, p.start), min(s.end, p.end)})
		}
	}
}

// clear takes a range out.
func (t *table) clear(p piece) {
	ci, si := t.find(p.start)
	list, n := t.spare[:0], 0
	for i, j := ci, si; i < len(t.chunks); i, j = i+1, 0 {
		segs := t.chunks[i]
		for ; j < len(segs) && segs[j].start < p.end; j++ {
			s := segs[j]
			n++
			if s.start < p.start {
				list = append(list, seg{piece{s.start, p.start}, s.cell})
			}
			if s.end > p.end {
				c := s.cell
				if s.start < p.start {
					c = c.clone()
				}
				list = append(list, seg{piece{p.end, s.end}, c})
			}
		}
		if j < len(segs) {
			break
		}
	}
	if n > 0 {
		t.splice(ci, si, n, list)
	}
	t.spare = keep(list)
}

// keep returns the storage of a list for the next one.
func keep(list []seg) []seg {
	if cap(list) > 1024 {
		return nil
	}
	clear(list)
	return list[:0]
}

// compact makes one of equal neighbours.
func compact(list []seg) []seg {
	n := 0
	for i := range list {
		if n > 0 && list[n-1].end == list[i].start && list[n-1].cell.equal(list[i].cell) {
			list[n-1].end = list[i].end
			continue
		}
		list[n] = list[i]
		n++
	}
	clear(list[n:])
	return list[:n]
}

// splice puts a list in the place of n ranges from a place on.
func (t *table) splice(ci, si, n int, list []seg) {
	t.n += len(list) - n
	if ci == len(t.chunks) {
		if len(list) == 0 {
			return
		}
		if ci == 0 {
			t.chunks, t.firsts = append(t.chunks, nil), append(t.firsts, 0)
		} else {
			ci--
		}
		si = len(t.chunks[ci])
	}
	// First remove the replaced ranges that lie in the chunks behind.
	here := min(n, len(t.chunks[ci])-si)
	last := ci + 1
	for n -= here; n > 0; {
		if k := len(t.chunks[last]); k <= n {
			n -= k
			last++
			continue
		}
		t.chunks[last] = slices.Delete(t.chunks[last], 0, n)
		t.firsts[last] = t.chunks[last][0].start
		n = 0
	}
	segs := slices.Replace(t.chunks[ci], si, si+here, list...)
	var parts [][]seg
	for len(segs) > maxChunk {
		parts = append(parts, slices.Clone(segs[:maxChunk/2]))
		segs = segs[maxChunk/2:]
	}
	switch {
	case len(parts) > 0:
		parts = append(parts, slices.Clone(segs))
	case len(segs) > 0:
		t.chunks[ci], t.firsts[ci] = segs, segs[0].start
		if last == ci+1 {
			return
		}
		parts = [][]seg{segs}
	}
	t.chunks = slices.Replace(t.chunks, ci, last, parts...)
	firsts := make([]uint64, len(parts))
	for i, part := range parts {
		firsts[i] = part[0].start
	}
	t.firsts = slices.Replace(t.firsts, ci, last, firsts...)
}

// sweep removes the accesses that floor covers, and returns how many ranges are left.
func (t *table) sweep(floor *vector) int {
	var all []seg
	for _, segs := range t.chunks {
		for _, s := range segs {
			if s.cell.drop(floor); !s.cell.empty() {
				all = append(all, s)
			}
		}
	}
	all = compact(all)
	*t = table{n: len(all)}
	for len(all) > 0 {
		k := min(len(all), maxChunk/2)
		t.chunks = append(t.chunks, slices.Clone(all[:k]))
		t.firsts = append(t.firsts, all[0].start)
		all = all[k:]
	}
	return t.n
}

// sorted reports whether the table's invariants hold; for tests.
func (t *table) sorted() bool {
	n, end := 0, uint64(0)
	for i, segs := range t.chunks {
		if len(segs) == 0 || t.firsts[i] != segs[0].start {
			return false
		}
		for _, s := range segs {
			if s.start < end || s.start >= s.end {
				return false
			}
			n, end = n+1, s.end
		}
	}
	return n == t.n && sort.SliceIsSorted(t.firsts, func(i, j int) bool { return t.firsts[i] < t.firsts[j] })
}
