package order

// The three notions of order, each containing the one before.
const (
	strict  = iota // what the runtime guarantees
	queried        // and what follows from the answers of queries
	timed          // and from the order in which the host threads made their calls
	notions
)

// stamp names an operation: the seq-th of a slot. A slot is the component of one
// stream or host thread in the clocks. Slot 0 is unused.
type stamp struct{ slot, seq uint32 }

// vector is a vector clock: for each slot, up to which operation it covers. It is
// never changed once two places refer to it, so equal pointers mean equal vectors.
type vector struct {
	n     []uint32
	small [12]uint32 // for programs with few streams: one allocation
}

func newVector(n int) *vector {
	v := &vector{}
	if n <= len(v.small) {
		v.n = v.small[:n]
	} else {
		v.n = make([]uint32, n, n+n/8)
	}
	return v
}

// covers reports whether v covers an operation; no clock covers one of slot 0.
func (v *vector) covers(s stamp) bool {
	return v != nil && int(s.slot) < len(v.n) && v.n[s.slot] >= s.seq && s.slot != 0
}

// upTo returns up to which operation of a slot v covers.
func (v *vector) upTo(slot uint32) uint32 {
	if v == nil || int(slot) >= len(v.n) {
		return 0
	}
	return v.n[slot]
}

// raise makes v, of which the caller has the only pointer, contain other.
func (v *vector) raise(other *vector) {
	if other == nil {
		return
	}
	into := v.n[:len(other.n)]
	for i, x := range other.n {
		if x > into[i] {
			into[i] = x
		}
	}
}

// with returns v with s added.
func (v *vector) with(s stamp) *vector {
	if v.covers(s) {
		return v
	}
	n := int(s.slot) + 1
	if v != nil {
		n = max(n, len(v.n))
	}
	out := newVector(n)
	if v != nil {
		copy(out.n, v.n)
	}
	out.n[s.slot] = s.seq
	return out
}

// merged returns the union of a and b, one of the two if it contains the other.
func merged(a, b *vector) *vector {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	case a.contains(b):
		return a
	case b.contains(a):
		return b
	}
	out := newVector(max(len(a.n), len(b.n)))
	copy(out.n, a.n)
	out.raise(b)
	return out
}

func (v *vector) contains(other *vector) bool {
	for i, x := range other.n {
		if x > v.upTo(uint32(i)) {
			return false
		}
	}
	return true
}

// common returns what both a and b cover.
func common(a, b *vector) *vector {
	if a == nil || b == nil || a == b {
		if a == b {
			return a
		}
		return nil
	}
	out := newVector(min(len(a.n), len(b.n)))
	for i := range out.n {
		out.n[i] = min(a.n[i], b.n[i])
	}
	return out
}

// clocks is a vector clock for each of the three notions of order. While they do not
// differ they are one vector.
type clocks [notions]*vector

func (k *clocks) same() bool { return k[strict] == k[queried] && k[queried] == k[timed] }

// with returns k with s added in each notion of order.
func (k clocks) with(s stamp) clocks {
	var out clocks
	for w := range notions {
		if w > 0 && k[w] == k[w-1] {
			out[w] = out[w-1]
		} else {
			out[w] = k[w].with(s)
		}
	}
	return out
}

// common returns what both cover, for each notion of order.
func (k clocks) common(o clocks) clocks {
	var out clocks
	for w := range notions {
		if w > 0 && k[w] == k[w-1] && o[w] == o[w-1] {
			out[w] = out[w-1]
		} else {
			out[w] = common(k[w], o[w])
		}
	}
	return out
}

// gather adds operations to clocks, beginning with the notion from.
type gather struct {
	clocks *clocks
	from   int
	fresh  bool // no other place refers to the one vector of all notions
}

// add adds an operation and its clocks. A clock that covers an operation covers all
// that comes before it, so nothing changes for one that is covered already.
func (g *gather) add(at stamp, k clocks) {
	d := g.clocks
	if g.from == strict && d.same() && k.same() {
		v := d[strict]
		if v.covers(at) {
			return
		}
		if g.fresh && at.slot != 0 && max(len(k[strict].span()), int(at.slot)+1) <= len(v.n) {
			v.raise(k[strict])
			v.n[at.slot] = at.seq
			return
		}
		v = join(v, at, k[strict])
		g.fresh = at.slot != 0
		*d = clocks{v, v, v}
		return
	}
	g.fresh = false
	was := *d
	for w := g.from; w < notions; w++ {
		switch {
		case w > g.from && was[w] == was[w-1] && k[w] == k[w-1]:
			d[w] = d[w-1]
		case !was[w].covers(at):
			d[w] = join(was[w], at, k[w])
		}
		if w > 0 && d[w] != d[w-1] && d[w] != nil && d[w-1] != nil && d[w-1].contains(d[w]) {
			d[w] = d[w-1] // they do not differ any more
		}
	}
}

// span is the slots of a vector that may be nil.
func (v *vector) span() []uint32 {
	if v == nil {
		return nil
	}
	return v.n
}

// addAll adds all that k covers.
func (g *gather) addAll(k clocks) { g.add(stamp{}, k) }

func join(v *vector, at stamp, k *vector) *vector {
	if at.slot == 0 {
		return merged(v, k)
	}
	out := newVector(max(len(v.span()), len(k.span()), int(at.slot)+1))
	copy(out.n, v.span())
	out.raise(k)
	out.n[at.slot] = at.seq
	return out
}

// maxSlots is how many slots there may be before those of closed streams are used
// again even though the host did not synchronize with them.
const maxSlots = 4096

// slots allocates the slots of the clocks.
type slots struct {
	next  uint32
	spare []stamp // of closed streams and threads, with the last operation there
	look  int     // index at which the last search ended
	past  clocks  // the union of their clocks
}

// give returns the slot of a closed stream or thread, whose last operation was at with
// the clocks k.
func (s *slots) give(at stamp, k clocks) {
	s.spare = append(s.spare, at)
	g := gather{clocks: &s.past}
	g.add(at, k)
}

// take returns a slot for a stream or thread that begins behind what by covers. A
// used slot continues its count, so clocks that cover its former owner stay valid; and
// the new owner comes after the former one, since by covers that one's last operation.
// When there are too many slots the new owner counts as ordered after everything that
// was ever closed: accesses may then go unreported, but none is reported wrongly.
func (s *slots) take(by *vector, into *clocks) stamp {
	for range min(len(s.spare), 16) {
		s.look = (s.look + 1) % len(s.spare)
		if at := s.spare[s.look]; by.covers(at) {
			s.remove(s.look)
			return at
		}
	}
	if s.next >= maxSlots && len(s.spare) > 0 {
		at := s.spare[0]
		s.remove(0)
		g := gather{clocks: into}
		g.add(at, s.past)
		return at
	}
	s.next++
	return stamp{slot: s.next - 1}
}

func (s *slots) remove(i int) {
	last := len(s.spare) - 1
	s.spare[i] = s.spare[last]
	s.spare = s.spare[:last]
}
