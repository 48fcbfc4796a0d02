package order

// The three notions of order, each containing the one before.
const (
	strict = iota // what the runtime guarantees
	asked         // and what queries answered
	timed         // and the order in which the host threads made their calls
	worlds
)

// stamp names an operation: the seq-th of a slot. A slot is the place of one
// stream or host thread in the clocks. Slot 0 is nobody's.
type stamp struct{ slot, seq uint32 }

// vector says, per slot, up to which operation the work is known. It is never
// changed once it can be reached from two places, so equal pointers mean equal
// knowledge.
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

// knows reports whether an operation is known; nobody's never is.
func (v *vector) knows(s stamp) bool {
	return v != nil && int(s.slot) < len(v.n) && v.n[s.slot] >= s.seq && s.slot != 0
}

// upTo returns how far the work of a slot is known.
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

// with returns v with one stamp more.
func (v *vector) with(s stamp) *vector {
	if v.knows(s) {
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

// merged returns what a and b know together, one of the two if it contains the other.
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

// common returns what a and b both know.
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

// know is what is known in each of the three worlds. While nothing makes them
// differ they are one vector, and cost no more than one.
type know [worlds]*vector

func (k *know) same() bool { return k[strict] == k[asked] && k[asked] == k[timed] }

// with returns k with one stamp more in every world.
func (k know) with(s stamp) know {
	var out know
	for w := range worlds {
		if w > 0 && k[w] == k[w-1] {
			out[w] = out[w-1]
		} else {
			out[w] = k[w].with(s)
		}
	}
	return out
}

// common returns what both know in every world.
func (k know) common(o know) know {
	var out know
	for w := range worlds {
		if w > 0 && k[w] == k[w-1] && o[w] == o[w-1] {
			out[w] = out[w-1]
		} else {
			out[w] = common(k[w], o[w])
		}
	}
	return out
}

// gather adds knowledge to a know. from is the first world that takes part.
type gather struct {
	know  *know
	from  int
	fresh bool // the one vector of all worlds is only ours
}

// add adds an operation and what it knew. Knowing an operation means knowing
// all it knew, so for one that is known already there is nothing to do.
func (g *gather) add(at stamp, k know) {
	d := g.know
	if g.from == strict && d.same() && k.same() {
		v := d[strict]
		if v.knows(at) {
			return
		}
		if g.fresh && at.slot != 0 && max(len(k[strict].span()), int(at.slot)+1) <= len(v.n) {
			v.raise(k[strict])
			v.n[at.slot] = at.seq
			return
		}
		v = join(v, at, k[strict])
		g.fresh = at.slot != 0
		*d = know{v, v, v}
		return
	}
	g.fresh = false
	was := *d
	for w := g.from; w < worlds; w++ {
		switch {
		case w > g.from && was[w] == was[w-1] && k[w] == k[w-1]:
			d[w] = d[w-1]
		case !was[w].knows(at):
			d[w] = join(was[w], at, k[w])
		}
		if w > 0 && d[w] != d[w-1] && d[w] != nil && d[w-1] != nil && d[w-1].contains(d[w]) {
			d[w] = d[w-1] // the difference is over
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

// addAll adds what somebody knows.
func (g *gather) addAll(k know) { g.add(stamp{}, k) }

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
