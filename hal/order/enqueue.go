package order

import "halstream/hal"

// point is a place on a stream with what was known there: of a record, or of
// the work enqueued so far. While operations are held it may not be known yet.
type point struct {
	stamp
	knowledge knowledge
	version   uint64 // of the event, for records
	line      *line
	done      bool
	waiting   []*line // held ones
}

// event is what records have made of an event.
type event struct {
	future bool
	latest [3]*point // the newest record first; older ones may be synchronized with
	// Future events only: what the first record since the reset made known, nil
	// if there was none; known unless the event is older than the checker.
	set     *point
	known   bool
	ever    knowledge // what any record made known
	waiting []*line
}

func (c *Checker) event(e *hal.Event) *event {
	found := c.events[e]
	if found == nil {
		found = &event{future: e.Options().Kind == hal.Future}
		c.events[e] = found
	}
	return found
}

// at returns the record that made a version, nil if it was before our time.
func (e *event) at(version uint64) *point {
	var best *point
	for _, p := range e.latest {
		if p != nil && p.version >= version {
			best = p
		}
	}
	return best
}

func (e *event) push(p *point) {
	e.latest[2], e.latest[1], e.latest[0] = e.latest[1], e.latest[0], p
}

// early reports whether a wait comes before the record that it waits for.
func (c *Checker) early(op *hal.Operation) bool {
	if op.Event == nil {
		return false
	}
	e := c.event(op.Event)
	return e.future && e.set == nil && (e.known || op.Version == 0)
}

// enqueue takes an operation whose predecessors are all known.
func (c *Checker) enqueue(s *line, t *thread, k kind, op *hal.Operation) {
	g := gather{knowledge: &s.knowledge}
	if s.seen != t.knowledge {
		g.addAll(t.knowledge)
		s.seen = t.knowledge
	}
	var p *point
	switch k {
	case wait:
		if op.Event == nil {
			break
		}
		e := c.event(op.Event)
		p := e.set
		if !e.future {
			p = e.at(op.Version)
		}
		if p != nil && p.line != s {
			g.add(p.stamp, p.knowledge)
			s.noteWait(op, p.line, p.seq)
		}
	case waitStream:
		if o := op.Other; o != nil && o != op.Stream {
			from := c.line(o)
			c.addLine(&g, from, op.Seq)
			s.noteWait(op, from, from.seq)
		}
	default:
		if s.ordered {
			c.legacyOrder(&g, s)
		}
		switch k {
		case record:
			p = &point{version: op.Version, line: s}
			c.event(op.Event).push(p)
		case allocate:
			c.addFrees(&g, op.Writes)
		case writeValue:
			p = &point{line: s}
			c.writeOn(op.Value, p)
		case waitValue:
			c.passed(&g, c.waitOn(s, t, op), op)
		}
	}
	var in *info
	if k.accesses(op) {
		in = c.newInfo(k, t, s, op)
	}
	c.perform(s, t.knowledge, k, op, p, in)
}

// legacyOrder makes s come after what the rule of the legacy default stream
// says (S5).
func (c *Checker) legacyOrder(g *gather, s *line) {
	d := s.dev
	if s.legacy {
		for i, o := range d.dirty {
			g.add(o.stamp, o.knowledge)
			o.dirty = false
			d.dirty[i] = nil
		}
		d.dirty = d.dirty[:0]
		g.addAll(d.pastOrdered)
		d.pastOrdered = knowledge{}
		return
	}
	if l := d.legacy; l != nil && l.seq != s.legacySeen {
		g.add(l.stamp, l.knowledge)
		s.legacySeen = l.seq
	}
}

// addLine adds the work that was enqueued on s before the operation with number
// seq; of the legacy default stream that includes the streams ordered with it.
func (c *Checker) addLine(g *gather, s *line, seq uint64) {
	g.add(s.asOf(seq))
	if s.legacy {
		for _, o := range s.dev.dirty {
			g.add(o.asOf(seq))
		}
		g.addAll(s.dev.pastOrdered)
	}
}

// addFrees adds the points where memory that is given out again was freed.
func (c *Checker) addFrees(g *gather, blocks []hal.Range) {
	for _, r := range blocks {
		c.table.over(pieceOf(r), func(cl *cell, _ piece) {
			for i := range cl.writes {
				if o := cl.writes[i].info; o.kind == free {
					g.add(o.stamp, o.knowledge)
				}
			}
		})
	}
}

// accesses reports whether an operation works on memory. A wait for a value only
// looks at bytes that others are to change meanwhile.
func (k kind) accesses(op *hal.Operation) bool {
	return k == function || k != waitValue && len(op.Reads)+len(op.Writes) > 0
}

// perform is the operation itself: s knows all that comes before it.
func (c *Checker) perform(s *line, t knowledge, k kind, op *hal.Operation, p *point, in *info) {
	c.tick(s, t)
	if s.ordered && !s.legacy && !s.dirty {
		s.dirty = true
		s.dev.dirty = append(s.dev.dirty, s)
	}
	s.lastSeq = op.Seq
	if len(c.threads) == 1 {
		s.places = 0
	} else {
		s.recent[s.places%len(s.recent)] = place{op.Seq, s.stamp, s.knowledge}
		s.places++
	}
	switch k {
	case record:
		c.reach(p, s)
		s.noteRecord(op)
		c.signal(c.event(op.Event), p)
	case reset:
		e := c.event(op.Event)
		e.set, e.known = nil, true
	case writeValue:
		c.reach(p, s)
		c.written(op.Value)
	case allocate:
		c.forgetValues(op.Writes)
	}
	if in == nil {
		return
	}
	in.stamp, in.knowledge, in.ready = s.stamp, s.knowledge, true
	if k == function {
		c.late.remember(in)
	}
	for _, r := range op.Reads {
		c.touch(in, pieceOf(r), false, false)
	}
	for _, r := range op.Writes {
		c.touch(in, pieceOf(r), true, false)
	}
}

// reach makes p stand for what s has done so far.
func (c *Checker) reach(p *point, s *line) {
	p.stamp, p.knowledge, p.line, p.done = s.stamp, s.knowledge, s, true
	c.work = append(c.work, p.waiting...)
	p.waiting = nil
}

// signal makes a record set its event. A wait passes by the first record since
// the reset; if several come in no order, only what they all know is certain.
func (c *Checker) signal(e *event, p *point) {
	if !e.future {
		return
	}
	e.known = true
	g := gather{knowledge: &e.ever}
	g.add(p.stamp, p.knowledge)
	switch was := e.set; {
	case was == nil:
		e.set = p
	case was.slot == p.slot && was.slot != 0, was.slot != 0 && p.knowledge[strict].knows(was.stamp):
		// The first one comes first.
	default:
		e.set = &point{knowledge: was.all().common(p.all()), line: p.line, done: true}
	}
	c.work = append(c.work, e.waiting...)
	e.waiting = nil
}

// all is what is known at p, p included.
func (p *point) all() knowledge {
	if p.slot == 0 {
		return p.knowledge
	}
	return p.knowledge.with(p.stamp)
}

func pieceOf(r hal.Range) piece {
	return piece{r.Start, max(r.Start, r.Start+r.Size)} // a range past the end is none
}

// touch compares an access to a range with the earlier ones.
func (c *Checker) touch(o *info, p piece, write, seen bool) {
	if p.start >= p.end {
		return
	}
	if o.kind == allocate {
		// What came before is ordered before the free, or reported with it.
		c.table.clear(p)
	}
	if cl := c.table.exact(p); cl != nil {
		c.visit(cl, o, write, seen, p)
		return
	}
	c.table.each(p, func(cl *cell, part piece) { c.visit(cl, o, write, seen, part) })
}
