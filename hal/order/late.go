package order

import "halstream/hal"

// lateMost is how many operations back an observed access is accepted; a power of
// two.
const lateMost = 1 << 17

// lateWords bounds the words of their clocks.
const lateWords = 1 << 24

// late remembers operations of which more may become known when they run.
type late struct {
	ops     []*info // by the low bits of their numbers
	first   uint32  // no number before it is remembered
	words   int
	last    *vector // counted
	sources map[uint32]*source
	queue   []uint32 // of their numbers
	refills []refill
	unknown int
}

// source is a copy whose source may change before it runs.
type source struct {
	info  *info
	host  *vector // what the host knew at the call
	legit bool    // something ordered before the copy was still to write there
}

type refill struct {
	source *source
	piece
}

// remember keeps o, which may turn out to write more than it said.
func (l *late) remember(o *info) {
	if l.ops == nil {
		l.ops = make([]*info, lateMost)
		l.first = o.id
	}
	for l.words > lateWords || o.id-l.first >= lateMost {
		if o.id-l.first >= 1<<31 {
			return // handled too late
		}
		if p := &l.ops[l.first%lateMost]; *p != nil {
			l.words -= (*p).weight
			*p = nil
		}
		l.first++
	}
	if v := o.knowledge[strict]; v != l.last {
		l.last = v
		o.weight = len(v.span())
		l.words += o.weight
	}
	l.ops[o.id%lateMost] = o
}

func (l *late) find(id uint32) *info {
	if l.ops != nil {
		if o := l.ops[id%lateMost]; o != nil && o.id == id {
			return o
		}
	}
	return nil
}

// Observed declares that the operation id, a function, also wrote these bytes: their
// contents were compared. It may be called from any thread, any time after
// Handle.
func (c *Checker) Observed(id uint32, writes []hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.late.find(id)
	if o == nil {
		if o = c.heldInfo(id); o == nil {
			c.late.unknown++
			return
		}
		// It ran, so what it waited for came.
		c.forceInfo(o)
		c.settle()
	}
	for _, r := range writes {
		if p := pieceOf(r); p.start < p.end {
			c.table.each(p, func(cl *cell, part piece) { c.visitLate(cl, o, part) })
		}
	}
}

// visitLate is visit for a write that becomes known after later accesses.
func (c *Checker) visitLate(cl *cell, o *info, p piece) {
	covered := false
	n := 0
	for _, e := range cl.writes {
		switch {
		case e.info == o || o.before(&e):
			covered = true
		case o.after(&e):
			continue
		default:
			c.conflictLate(&e, o, true, p)
		}
		cl.writes[n] = e
		n++
	}
	clear(cl.writes[n:])
	cl.writes = cl.writes[:n]
	covered = covered || n >= writesMost // it is in a report then
	n = 0
	for _, e := range cl.reads {
		switch {
		case e.info == o || o.before(&e):
		case o.after(&e):
			continue
		default:
			c.conflictLate(&e, o, false, p)
		}
		cl.reads[n] = e
		n++
	}
	clear(cl.reads[n:])
	cl.reads = cl.reads[:n]
	cl.reindex()
	if !covered {
		cl.writes = append(cl.writes, entry{o.stamp, o, true})
	}
}

// before reports whether o comes before the operation of e.
func (o *info) before(e *entry) bool {
	if e.slot == o.slot {
		return e.seq > o.seq
	}
	return e.info.knowledge[strict].knows(o.stamp)
}

func (c *Checker) conflictLate(e *entry, o *info, write bool, p piece) {
	category := Race
	for _, w := range []struct {
		world    int
		category Category
	}{{timed, ByTiming}, {asked, ByQuery}} {
		if o.knowledge[w.world].knows(e.stamp) || e.info.knowledge[w.world].knows(o.stamp) {
			category = w.category
		}
	}
	c.pair(category, half{e.info, write, e.seen}, half{o, true, true}, p)
}

// Source declares, right after Handle of a copy, that the copy's source r will be compared with what it was at
// the call; see Refilled.
func (c *Checker) Source(id uint32, r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := pieceOf(r)
	s := &source{legit: c.held > 0}
	c.table.over(p, func(cl *cell, _ piece) {
		for i := range cl.reads {
			if cl.reads[i].info.id == id {
				s.info = cl.reads[i].info
			}
		}
	})
	if s.info == nil && !s.legit {
		return
	}
	if s.info != nil {
		if h := c.threads[s.info.thread]; h != nil {
			s.host = h.knowledge[strict]
		}
		s.legit = s.legit || c.explained(s, p)
	}
	l := &c.late
	if l.sources == nil {
		l.sources = map[uint32]*source{}
	}
	l.sources[id] = s
	if l.queue = append(l.queue, id); len(l.queue) > 1<<16 {
		delete(l.sources, l.queue[0])
		l.queue = l.queue[1:]
	}
}

// explained reports whether a write that comes before a copy, and was not known
// to be done at its call, may have changed the source.
func (c *Checker) explained(s *source, p piece) bool {
	found := false
	c.table.over(p, func(cl *cell, _ piece) {
		for i := range cl.writes {
			if e := &cl.writes[i]; s.info.after(e) && !s.info.before(e) && !s.host.knows(e.stamp) {
				found = true
			}
		}
	})
	return found
}

// Refilled declares that the source of the copy id was not the same when it ran as
// at the call. That is reported with the next Take, unless an operation that is
// ordered before the copy wrote there meanwhile, or who did is in a report
// already.
func (c *Checker) Refilled(id uint32, r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.late.sources[id]
	if s == nil {
		c.late.unknown++
		return
	}
	delete(c.late.sources, id)
	if p := pieceOf(r); !s.legit && !c.explained(s, p) {
		c.late.refills = append(c.late.refills, refill{s, p})
	}
}

func (c *Checker) takeRefills() {
	for _, f := range c.late.refills {
		if o := f.source.info; !o.raced && !c.explained(f.source, f.piece) {
			key := pair{Refill, o.side(), side{device: -1}}
			if c.known(&key, o.id, 0, f.piece) {
				continue
			}
			c.add(key, Report{
				Category: Refill, First: o.access(false, false),
				Second: Access{Device: -1, Write: true, Seen: true, Host: true, Unknown: true},
				Reason: Reason{Why: SourceChanged, Record: firstRecord(o)},
			}, f.piece)
		}
	}
	c.late.refills = nil
}
