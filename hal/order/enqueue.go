package order

import "halstream/hal"

// point is a place on a stream with its clocks: that of a record, or behind the work
// enqueued so far. While operations are held its clocks may not be computed yet.
type point struct {
	stamp
	clocks   clocks
	version  uint64 // of the event, for records
	timeline *timeline
	done     bool
	waiting  []*timeline // streams whose first held operation waits for it
}

// event is the state of an event.
type event struct {
	future bool
	latest [3]*point // the newest record first; older ones may be synchronized with
	// Future events only: the first record since the reset, nil if there was none;
	// known says that set is valid, which it is not while the checker has seen neither
	// a record nor a reset of the event.
	set     *point
	known   bool
	ever    clocks // the union of the clocks of all records
	waiting []*timeline
}

func (c *Checker) event(e *hal.Event) *event {
	found := c.events[e]
	if found == nil {
		found = &event{future: e.Options().Kind == hal.Future}
		c.events[e] = found
	}
	return found
}

// at returns the record that made a version, nil if the checker has not seen it.
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

// enqueue handles an operation whose predecessors were all performed.
func (c *Checker) enqueue(s *timeline, t *thread, k kind, op *hal.Operation) {
	g := gather{clocks: &s.clocks}
	if s.seen != t.clocks {
		g.addAll(t.clocks)
		s.seen = t.clocks
	}
	var p *point
	switch k {
	case wait:
		if s.legacy {
			c.legacyOrder(&g, s)
		}
		if op.Event == nil {
			break
		}
		e := c.event(op.Event)
		p := e.set
		if !e.future {
			p = e.at(op.Version)
		}
		switch {
		case p != nil && p.timeline != s:
			g.add(p.stamp, p.clocks)
			s.noteWait(op, p.timeline, p.seq)
		case p != nil:
			s.noteVainWait(op, OwnRecord)
		}
	case waitStream:
		if o := op.Other; o != nil && o != op.Stream {
			if s.legacy {
				c.legacyOrder(&g, s)
			}
			from := c.timeline(o)
			c.addTimeline(&g, from, op.Seq)
			s.noteWait(op, from, from.seq)
		}
	default:
		if s.ordered {
			c.legacyOrder(&g, s)
		}
		switch k {
		case record:
			p = &point{version: op.Version, timeline: s}
			c.event(op.Event).push(p)
		case allocate:
			c.addFrees(&g, op.Writes)
		case writeValue:
			p = &point{timeline: s}
			c.writeOn(op.Value, p)
		case waitValue:
			c.passed(&g, c.waitOn(s, t, op), op)
		case launchGraph:
			p = c.launched(&g, s, op)
		}
	}
	var in *info
	if k.accesses(op) {
		in = c.newInfo(k, t, s, op)
	}
	c.perform(s, t.clocks, k, op, p, in)
}

// legacyOrder makes s come after what the rule of the legacy default stream
// says (S5).
func (c *Checker) legacyOrder(g *gather, s *timeline) {
	d := s.dev
	if s.legacy {
		for i, o := range d.dirty {
			g.add(o.stamp, o.clocks)
			o.dirty = false
			d.dirty[i] = nil
		}
		d.dirty = d.dirty[:0]
		g.addAll(d.pastOrdered)
		d.pastOrdered = clocks{}
		return
	}
	if l := d.legacy; l != nil && l.seq != s.legacySeen {
		g.add(l.stamp, l.clocks)
		s.legacySeen = l.seq
	}
}

// addTimeline adds the work that was enqueued on s before the operation with number
// seq; of the legacy default stream that includes the streams ordered with it.
func (c *Checker) addTimeline(g *gather, s *timeline, seq uint64) {
	g.add(s.asOf(seq))
	if s.legacy {
		for _, o := range s.dev.dirty {
			g.add(o.asOf(seq))
		}
		g.addAll(s.dev.pastOrdered)
	}
}

// launch is the latest launch of an executable graph.
type launch struct {
	seq      uint64 // of the operation
	at       *point
	compared *hal.NodeList // the nodes that were compared with each other last
}

// launched adds the launch of the same executable before this one, which has to end
// first, and returns the point of this one.
func (c *Checker) launched(g *gather, s *timeline, op *hal.Operation) *point {
	p := &point{timeline: s}
	last := c.launches[op.Exec]
	if op.Nodes != nil && last.compared != op.Nodes { // instantiated before the check began
		c.compare(op)
		last.compared = op.Nodes
	}
	if last.at != nil && last.seq < op.Seq {
		g.add(last.at.stamp, last.at.clocks)
	}
	if last.at == nil || last.seq < op.Seq {
		last.seq, last.at = op.Seq, p
	}
	c.launches[op.Exec] = last
	return p
}

// addFrees adds the points where memory that is given out again was freed.
func (c *Checker) addFrees(g *gather, blocks []hal.Range) {
	for _, r := range blocks {
		c.table.over(pieceOf(r), func(cl *cell, _ piece) {
			for i := range cl.writes {
				if o := cl.writes[i].info; o.kind == free {
					g.add(o.stamp, o.clocks)
				}
			}
		})
	}
}

// accesses reports whether an operation works on memory. A wait for a value only
// looks at bytes that others are to change meanwhile.
func (k kind) accesses(op *hal.Operation) bool {
	return k == function || op.Nodes != nil || k != waitValue && len(op.Reads)+len(op.Writes) > 0
}

// perform performs an operation: the clocks of s cover all that comes before it.
func (c *Checker) perform(s *timeline, t clocks, k kind, op *hal.Operation, p *point, in *info) {
	c.tick(s, t)
	if s.ordered && !s.legacy && !s.dirty {
		s.dirty = true
		s.dev.dirty = append(s.dev.dirty, s)
	}
	s.lastSeq = op.Seq
	if len(c.threads) == 1 {
		s.places = 0
	} else {
		s.recent[s.places%len(s.recent)] = place{op.Seq, s.stamp, s.clocks}
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
	case launchGraph:
		if op.Nodes != nil {
			in.ready = true
			c.runNodes(s, t, op, in)
			in = nil // its nodes are what accesses memory
		}
		c.reach(p, s)
	case allocate:
		c.forgetValues(op.Writes)
	}
	if in == nil {
		return
	}
	in.stamp, in.clocks, in.ready = s.stamp, s.clocks, true
	if k == function {
		c.late.remember(in)
		if len(op.Writes) == 0 && op.Name == "" { // an operator with a name declares all of its accesses
			s.noteUndeclared(in)
		}
	}
	for _, r := range op.Reads {
		c.touch(in, pieceOf(r), false, false)
	}
	for _, r := range op.Writes {
		c.touch(in, pieceOf(r), true, false)
	}
	if op.InOrder {
		in.silent = false // towards what comes after it
	}
}

// reach makes p stand for what s has done so far.
func (c *Checker) reach(p *point, s *timeline) {
	p.stamp, p.clocks, p.timeline, p.done = s.stamp, s.clocks, s, true
	c.work = append(c.work, p.waiting...)
	p.waiting = nil
}

// signal makes a record set its event. A wait ends with the first record since the
// reset; if several are unordered, only what the clocks of all cover is certain.
func (c *Checker) signal(e *event, p *point) {
	if !e.future {
		return
	}
	e.known = true
	g := gather{clocks: &e.ever}
	g.add(p.stamp, p.clocks)
	switch was := e.set; {
	case was == nil:
		e.set = p
	case was.slot == p.slot && was.slot != 0, was.slot != 0 && p.clocks[strict].covers(was.stamp):
		// The first one comes first.
	default:
		e.set = &point{clocks: was.all().common(p.all()), timeline: p.timeline, done: true}
	}
	c.work = append(c.work, e.waiting...)
	e.waiting = nil
}

// all returns the clocks at p, with p itself.
func (p *point) all() clocks {
	if p.slot == 0 {
		return p.clocks
	}
	return p.clocks.with(p.stamp)
}

func pieceOf(r hal.Range) piece {
	return piece{r.Start, max(r.Start, r.Start+r.Size)} // a range past the end is none
}

// touch compares an access to a range with the earlier ones.
func (c *Checker) touch(o *info, p piece, write, seen bool) {
	if p.start >= p.end {
		return
	}
	if o.kind == allocate && !o.silent {
		// What came before is ordered before the free, or reported with it.
		c.table.clear(p)
	}
	if cl := c.table.exact(p); cl != nil {
		c.visit(cl, o, write, seen, p)
		return
	}
	c.table.each(p, func(cl *cell, part piece) { c.visit(cl, o, write, seen, part) })
}
