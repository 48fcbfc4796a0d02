package order

import "halstream/hal"

// maxLate is how many operations back an observed access is accepted; a power of two.
const maxLate = 1 << 17

// maxLateWords bounds the words of their clocks.
const maxLateWords = 1 << 24

// late remembers operations whose accesses may be observed when they run.
type late struct {
	ops     []*info          // by the low bits of their numbers
	tokens  map[uint64]*info // those of them that are functions of the program
	first   uint32           // no number before it is remembered
	words   int
	last    *vector // the clock that was counted last
	sources map[uint32]*source
	queue   []uint32 // of their numbers
	refills []refill
	// unwaited are the numbers of those that no host thread comes after.
	unwaited    []uint32
	overwritten []refill
	unknown     int
}

// source is a copy whose source may change before it runs.
type source struct {
	info     *info
	host     *vector // the clock of the calling thread
	expected bool    // an operation ordered before the copy may have been about to write there
	// unknown is a function that comes before the copy, may have been pending at its
	// call, and does not say what it writes; nil if there is none.
	unknown *info
	piece   piece
}

type refill struct {
	source *source
	piece
}

// remember keeps o, which may write more than it declares.
func (l *late) remember(o *info) {
	if l.ops == nil {
		l.ops = make([]*info, maxLate)
		l.tokens = map[uint64]*info{}
		l.first = o.id
	}
	for l.words > maxLateWords || o.id-l.first >= maxLate {
		if o.id-l.first >= 1<<31 {
			return // its number is older than all that are remembered
		}
		if p := &l.ops[l.first%maxLate]; *p != nil {
			l.words -= (*p).weight
			if l.tokens[(*p).token] == *p {
				delete(l.tokens, (*p).token)
			}
			*p = nil
		}
		l.first++
	}
	if v := o.clocks[strict]; v != l.last {
		l.last = v
		o.weight = len(v.span())
		l.words += o.weight
	}
	l.ops[o.id%maxLate] = o
	if o.token != 0 {
		l.tokens[o.token] = o
	}
}

func (l *late) find(id uint32) *info {
	if l.ops != nil {
		if o := l.ops[id%maxLate]; o != nil && o.id == id {
			return o
		}
	}
	return nil
}

// Observed declares that the operation id, a function, also wrote these bytes, as a
// comparison of their contents has shown. It may be called from any thread, at any
// time after Handle.
func (c *Checker) Observed(id uint32, writes []hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toObserved, id, writes...)
	o := c.observed(id)
	for _, r := range writes {
		if p := pieceOf(r); o != nil && p.start < p.end {
			c.table.each(p, func(cl *cell, part piece) { c.visitLate(cl, o, part) })
		}
	}
}

// observed returns a function that has run, nil if it is not remembered any more.
func (c *Checker) observed(id uint32) *info {
	o := c.late.find(id)
	if o == nil {
		if o = c.heldInfo(id); o == nil {
			c.late.unknown++
			return nil
		}
		// It ran, so what it waited for came.
		c.forceInfo(o)
		c.settle()
		if o.id != id { // a node of a launch
			return c.late.find(id)
		}
	}
	return o
}

// ObservedReads is Observed for bytes that the operation also read.
func (c *Checker) ObservedReads(id uint32, reads []hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toObservedReads, id, reads...)
	o := c.observed(id)
	for _, r := range reads {
		if p := pieceOf(r); o != nil && p.start < p.end {
			c.table.each(p, func(cl *cell, part piece) { c.visitLateRead(cl, o, part) })
		}
	}
}

// visitLateRead is visit for a read that is observed after later accesses were handled.
func (c *Checker) visitLateRead(cl *cell, o *info, p piece) {
	covered := false
	for i := range cl.writes {
		switch e := &cl.writes[i]; {
		case e.info == o || o.before(e):
			covered = true
		case !o.after(e):
			c.conflictLate(e, o, true, false, p)
		}
	}
	for i := range cl.reads {
		covered = covered || cl.reads[i].info == o || o.before(&cl.reads[i])
	}
	if !covered {
		cl.reads = append(cl.reads, entry{stamp: o.stamp, info: o, seen: true})
		cl.reindex()
	}
}

// visitLate is visit for a write that is observed after later accesses were handled.
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
			c.conflictLate(&e, o, true, true, p)
		}
		cl.writes[n] = e
		n++
	}
	clear(cl.writes[n:])
	cl.writes = cl.writes[:n]
	covered = covered || n >= maxWrites // it is in a report then
	n = 0
	for _, e := range cl.reads {
		switch {
		case e.info == o || o.before(&e):
		case o.after(&e):
			continue
		default:
			c.conflictLate(&e, o, false, true, p)
		}
		cl.reads[n] = e
		n++
	}
	clear(cl.reads[n:])
	cl.reads = cl.reads[:n]
	cl.reindex()
	if !covered {
		cl.writes = append(cl.writes, entry{stamp: o.stamp, info: o, seen: true})
	}
}

// before reports whether o comes before the operation of e.
func (o *info) before(e *entry) bool {
	if o.run != nil && e.info.run == o.run {
		return o.run.path(o.node, e.info.node)
	}
	if e.slot == o.slot {
		return e.seq > o.seq
	}
	return e.info.clocks[strict].covers(o.stamp)
}

// conflictLate reports an access of o that is observed late with an entry that is unordered.
func (c *Checker) conflictLate(e *entry, o *info, eWrites, oWrites bool, p piece) {
	if e.info.silent {
		return
	}
	category := Race
	for _, w := range []struct {
		notion   int
		category Category
	}{{timed, ByTiming}, {queried, ByQuery}} {
		if o.clocks[w.notion].covers(e.stamp) || e.info.clocks[w.notion].covers(o.stamp) {
			category = w.category
		}
	}
	c.pair(category, participant{e.info, eWrites, e.seen, e.reused}, participant{o, oWrites, true, false}, p)
}

// Source declares, right after Handle of a copy, that the copy's source r will be
// compared with its contents at the call; see Refilled.
func (c *Checker) Source(id uint32, r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toSource, id, r)
	p := pieceOf(r)
	s := &source{expected: c.held > 0}
	c.table.over(p, func(cl *cell, _ piece) {
		for i := range cl.reads {
			if cl.reads[i].info.id == id {
				s.info = cl.reads[i].info
			}
		}
	})
	if s.info == nil && !s.expected {
		return
	}
	if s.info != nil {
		if h := c.threads[s.info.thread]; h != nil {
			s.host = h.clocks[strict]
		}
		s.expected = s.expected || c.explained(s, p)
		s.unknown = c.undeclaredBefore(s)
	}
	l := &c.late
	if l.sources == nil {
		l.sources = map[uint32]*source{}
	}
	l.sources[id] = s
	l.noteUnwaited(id, s, p)
	if l.queue = append(l.queue, id); len(l.queue) > 1<<16 {
		delete(l.sources, l.queue[0])
		l.queue = l.queue[1:]
	}
}

// explained reports whether a write that comes before a copy, and may have been pending
// at its call, may have changed the source.
func (c *Checker) explained(s *source, p piece) bool {
	found := false
	c.table.over(p, func(cl *cell, _ piece) {
		for i := range cl.writes {
			if e := &cl.writes[i]; s.info.after(e) && !s.info.before(e) && !s.host.covers(e.stamp) {
				found = true
			}
		}
	})
	return found
}

// undeclaredBefore returns the latest function before a copy that may have been pending at
// its call and that declares no writes, nil if there is none.
func (c *Checker) undeclaredBefore(s *source) *info {
	var latest *info
	for _, d := range c.all {
		for _, l := range d.timelines {
			for _, f := range l.undeclared {
				if f != nil && s.info.after(&entry{stamp: f.stamp, info: f}) && !s.host.covers(f.stamp) &&
					(latest == nil || f.arrival > latest.arrival) {
					latest = f
				}
			}
		}
	}
	return latest
}

// Refilled declares that the source of the copy id had other contents when the copy ran
// than at the call. That is reported with the next Take, unless an operation that is
// ordered before the copy wrote there meanwhile, or the copy is in a report already. If
// a function that is ordered before the copy may have written there without declaring
// it, the report is of that function, in a category of its own.
func (c *Checker) Refilled(id uint32, r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toRefilled, id, r)
	s := c.late.sources[id]
	if s == nil {
		c.late.unknown++
		return
	}
	delete(c.late.sources, id)
	if p := pieceOf(r); !s.expected && !c.explained(s, p) {
		c.late.refills = append(c.late.refills, refill{s, p})
	}
}

func (c *Checker) takeRefills() {
	for _, f := range c.late.refills {
		if o := f.source.info; !o.raced && !c.explained(f.source, f.piece) {
			if u := f.source.unknown; u != nil {
				c.undeclaredRefill(u, o, f.piece)
				continue
			}
			c.addRefill(o, f.piece)
		}
	}
	for _, f := range c.late.overwritten {
		if !f.source.info.raced {
			c.addRefill(f.source.info, f.piece)
		}
	}
	c.late.refills, c.late.overwritten = nil, nil
}

// addRefill reports that the source of the copy o was changed by an unknown access.
func (c *Checker) addRefill(o *info, p piece) {
	key := pair{Refill, o.side(), side{device: -1}}
	if c.known(&key, o.id, 0, p) {
		return
	}
	c.add(key, Report{
		Category: Refill, First: o.access(false, false),
		Second: Access{Device: -1, Write: true, Seen: true, Host: true, Unknown: true},
		Reason: Reason{Why: SourceChanged, Record: firstRecord(o)},
	}, p)
}

// undeclaredRefill reports that u may have changed the source of the copy o.
func (c *Checker) undeclaredRefill(u, o *info, p piece) {
	key := pair{Undeclared, u.side(), o.side()}
	if c.known(&key, u.id, o.id, p) {
		return
	}
	c.add(key, Report{
		Category: Undeclared, First: u.access(true, false), Second: o.access(false, false),
		Reason: Reason{Why: UndeclaredWrite},
	}, p)
}
