package order

import "halstream/hal"

// info is an operation that accesses memory.
type info struct {
	stamp
	clocks   clocks    // but for its own stamp
	timeline *timeline // nil for accesses by the host

	id, site uint32
	token    uint64
	thread   uint64
	arrival  uint64 // in the order of the calls
	name     string // of the kind, as listeners see it
	label    string // that the program has given the operation
	kind     kind
	ready    bool      // stamp and clocks are set
	raced    bool      // is in a report
	silent   bool      // the life of a cached block: in no report
	weight   int       // words of its clock that late counts for it
	run      *graphRun // of the launch that it is a node of, nil for others
	node     int
}

func (c *Checker) newInfo(k kind, t *thread, l *timeline, op *hal.Operation) *info {
	c.arrival++
	return &info{
		timeline: l, id: op.ID, site: op.Site, token: op.Token, thread: t.id,
		arrival: c.arrival, name: op.Kind, label: op.Name, kind: k, silent: op.Cached,
	}
}

// after reports whether o comes after the operation of e, which was handled earlier.
func (o *info) after(e *entry) bool {
	if o.run != nil && e.info.run == o.run {
		return o.run.comesAfter(e.info.node, o.node)
	}
	return e.slot == o.slot || o.clocks[strict].covers(e.stamp)
}

// apart reports whether o and the operation of e, which has no order with it, cannot run at the same
// time all the same: they are in two bodies of one node, which runs one of them.
func (o *info) apart(e *entry) bool {
	return o.run != nil && e.info.run == o.run && o.run.apart(e.info.node, o.node)
}

// entry is an access in a cell.
type entry struct {
	stamp
	info   *info
	seen   bool // observed, not declared
	reused bool // the memory was freed and given out again since
}

// cell is the accesses of a range that later ones are compared with.
type cell struct {
	writes, reads []entry
	w             [1]entry
	r             [2]entry
	// With many reads: where the one of each slot is, plus one, and the
	// number at which those that are covered by others are taken out.
	index []int32
	prune int
}

const (
	maxWrites       = 32 // all but the first are in reports
	maxScannedReads = 16 // up to so many reads are compared one by one
)

func newCell() *cell {
	c := &cell{}
	c.writes, c.reads = c.w[:0], c.r[:0]
	return c
}

func (c *cell) clone() *cell {
	n := newCell()
	n.writes = append(n.writes, c.writes...)
	n.reads = append(n.reads, c.reads...)
	n.reindex()
	return n
}

func (c *cell) empty() bool { return len(c.writes)+len(c.reads) == 0 }

// equal reports whether two cells hold the same accesses.
func (c *cell) equal(o *cell) bool {
	return equalEntries(c.writes, o.writes) && equalEntries(c.reads, o.reads)
}

func equalEntries(a, b []entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].info != b[i].info || a[i].reused != b[i].reused {
			return false
		}
	}
	return true
}

// freedBefore reports whether the program freed the memory itself before o allocates it.
func (c *cell) freedBefore(o *info) bool {
	for i := range c.writes {
		if e := &c.writes[i]; e.info.kind == free && !e.info.silent && o.after(e) {
			return true
		}
	}
	return false
}

// visit compares an access with those of a cell, reports the unordered pairs, and
// replaces the accesses that it supersedes.
func (c *Checker) visit(cl *cell, o *info, write, seen bool, r piece) {
	if o.silent && o.kind == allocate && cl.freedBefore(o) {
		// What came before is ordered before that free, or reported with it.
		clear(cl.writes)
		clear(cl.reads)
		cl.writes, cl.reads = cl.w[:0], cl.r[:0]
		cl.reindex()
	}
	n := 0
	for i := range cl.writes {
		e := &cl.writes[i]
		if o.after(e) {
			if write || c.floor.covers(e.stamp) {
				continue
			}
		} else if !o.apart(e) && (e.info.name != "copy" || !c.staging[strict].covers(e.stamp)) {
			c.conflict(e, o, true, write, seen, r)
			e.reused = e.reused || o.silent && o.kind == allocate
		}
		if n != i {
			cl.writes[n] = *e
		}
		n++
	}
	if n < len(cl.writes) {
		clear(cl.writes[n:])
		cl.writes = cl.writes[:n]
	}
	if !write {
		c.read(cl, entry{stamp: o.stamp, info: o, seen: seen})
		return
	}
	n = 0
	for i := range cl.reads {
		e := &cl.reads[i]
		if o.after(e) {
			continue
		}
		if !o.apart(e) {
			c.conflict(e, o, false, true, seen, r)
			e.reused = e.reused || o.silent && o.kind == allocate
		}
		if n != i {
			cl.reads[n] = *e
		}
		n++
	}
	if n < len(cl.reads) {
		clear(cl.reads[n:])
		cl.reads = cl.reads[:n]
		cl.reindex()
	}
	if len(cl.writes) >= maxWrites {
		cl.writes = append(cl.writes[:0], cl.writes[1:]...)
	}
	cl.writes = append(cl.writes, entry{stamp: o.stamp, info: o, seen: seen})
}

// read adds a read and removes those that come before it: a later operation that comes
// after it comes after them.
func (c *Checker) read(cl *cell, e entry) {
	if n := len(cl.reads); n > 0 && cl.reads[n-1].slot == e.slot && e.info.after(&cl.reads[n-1]) {
		cl.reads[n-1] = e
		return
	}
	if len(cl.reads) < maxScannedReads || len(cl.reads) >= cl.prune {
		n := 0
		for i := range cl.reads {
			if f := &cl.reads[i]; !e.info.after(f) && !c.floor.covers(f.stamp) {
				if n != i {
					cl.reads[n] = *f
				}
				n++
			}
		}
		clear(cl.reads[n:])
		cl.reads = append(cl.reads[:n], e)
		cl.reindex()
		return
	}
	if int(e.slot) < len(cl.index) && cl.index[e.slot] > 0 {
		if last := &cl.reads[cl.index[e.slot]-1]; e.info.after(last) {
			*last = e
			return
		}
	}
	cl.reads = append(cl.reads, e)
	cl.place(len(cl.reads) - 1)
}

// reindex rebuilds the index of the reads, if there are many.
func (c *cell) reindex() {
	if len(c.reads) < maxScannedReads {
		c.index, c.prune = nil, 0
		return
	}
	c.prune = 2 * len(c.reads)
	clear(c.index)
	for i := range c.reads {
		c.place(i)
	}
}

func (c *cell) place(i int) {
	slot := int(c.reads[i].slot)
	if slot >= len(c.index) {
		grown := make([]int32, slot+slot/2+1)
		copy(grown, c.index)
		c.index = grown
	}
	c.index[slot] = int32(i + 1)
}

// drop removes accesses that no later operation can be unordered with.
func (c *cell) drop(floor *vector) {
	n := len(c.reads)
	for _, list := range []*[]entry{&c.writes, &c.reads} {
		kept := (*list)[:0]
		for _, e := range *list {
			if !floor.covers(e.stamp) {
				kept = append(kept, e)
			}
		}
		clear((*list)[len(kept):])
		*list = kept
	}
	if len(c.reads) < n {
		c.reindex()
	}
}
