package order

import "halstream/hal"

// heldOp is an operation that is held: the clocks of something that it comes after are
// not computed yet, because a wait for a Future event came before the record (A2).
type heldOp struct {
	op        hal.Operation
	kind      kind
	host      clocks   // of the calling thread
	needs     []*point // points that it comes after
	satisfied int      // how many of them are done
	from      *point   // the one of them that a wait names
	event     *event   // Future event that it waits for
	value     *valueWait
	point     *point // the point that it makes, for a record, a mark or a write of a value
	info      *info
}

// hold handles an operation while others are held. The points that it comes after are
// determined now; it is performed when they are done.
func (c *Checker) hold(s *timeline, t *thread, k kind, op *hal.Operation) {
	it := &heldOp{op: *op, kind: k, host: t.clocks}
	switch k {
	case wait:
		if op.Event == nil {
			break
		}
		if e := c.event(op.Event); !e.future {
			if p := e.at(op.Version); p != nil && p.timeline != s {
				it.needs = append(it.needs, p)
				it.from = p
			}
		} else if e.known || op.Version == 0 {
			it.event = e
		}
		if s.legacy {
			it.needs = c.ordered(it.needs, s.dev, s)
		}
	case waitStream:
		if op.Other != nil && op.Other != op.Stream {
			from := c.timeline(op.Other)
			it.needs = append(it.needs, c.placeOn(from))
			it.from = it.needs[0]
			if from.legacy {
				it.needs = c.ordered(it.needs, from.dev, s)
			}
			if s.legacy {
				it.needs = c.ordered(it.needs, s.dev, s)
			}
		}
	default:
		if s.legacy {
			it.needs = c.ordered(it.needs, s.dev, s)
		} else if l := s.dev.legacy; s.ordered && l != nil {
			it.needs = append(it.needs, c.placeOn(l))
		}
		switch k {
		case record:
			it.point = &point{version: op.Version, timeline: s}
			c.event(op.Event).push(it.point)
		case writeValue:
			it.point = &point{timeline: s}
			c.writeOn(op.Value, it.point)
		case waitValue:
			it.value = c.waitOn(s, t, op)
		case allocate:
			for _, r := range op.Writes {
				c.forceOver(s, pieceOf(r))
			}
		}
	}
	if k.accesses(op) {
		it.info = c.newInfo(k, t, s, op)
	}
	c.put(s, it)
	c.settle()
}

// put adds an operation to its stream, and performs it if nothing holds it.
func (c *Checker) put(s *timeline, it *heldOp) {
	if len(s.queue) == 0 && it.ready() {
		c.release(s, it)
		return
	}
	s.queue = append(s.queue, it)
	if len(s.queue) == 1 {
		c.held++
		s.await(it)
	}
}

// placeOn returns the place on a stream at which its work so far is done.
func (c *Checker) placeOn(s *timeline) *point {
	if len(s.queue) == 0 {
		return &point{stamp: s.stamp, clocks: s.clocks, timeline: s, done: true}
	}
	if last := s.queue[len(s.queue)-1]; last.point != nil {
		return last.point
	}
	p := &point{timeline: s}
	s.queue = append(s.queue, &heldOp{kind: mark, point: p})
	return p
}

// ordered adds the places on the streams that are ordered with the legacy default
// stream and have work that it is not ordered after yet, except on one stream.
func (c *Checker) ordered(list []*point, d *device, but *timeline) []*point {
	for _, o := range d.timelines {
		if o.ordered && !o.legacy && o != but && (o.dirty || len(o.queue) > 0) {
			list = append(list, c.placeOn(o))
		}
	}
	return append(list, &point{clocks: d.pastOrdered, done: true})
}

// missing returns the first point that is not done yet, nil if there is none.
func (it *heldOp) missing() *point {
	for it.satisfied < len(it.needs) && it.needs[it.satisfied].done {
		it.satisfied++
	}
	if it.satisfied < len(it.needs) {
		return it.needs[it.satisfied]
	}
	return nil
}

func (it *heldOp) ready() bool {
	return it.missing() == nil && (it.event == nil || it.event.set != nil) &&
		(it.value == nil || len(it.value.enders()) > 0)
}

// await makes the first missing point of s's first held operation look at s again.
func (s *timeline) await(it *heldOp) {
	if p := it.missing(); p != nil {
		p.waiting = append(p.waiting, s)
	} else if it.value != nil {
		it.value.cell.waiting = append(it.value.cell.waiting, s)
	} else {
		it.event.waiting = append(it.event.waiting, s)
	}
}

// release performs an operation whose points are done, or that is forced.
func (c *Checker) release(s *timeline, it *heldOp) {
	if it.kind == mark {
		c.reach(it.point, s)
		return
	}
	g := gather{clocks: &s.clocks}
	g.addAll(it.host)
	for _, p := range it.needs {
		if p.done {
			g.add(p.stamp, p.clocks)
		} else {
			g.add(p.timeline.stamp, p.timeline.clocks) // forced: assuming an order that does not exist avoids a false report
		}
	}
	switch op := &it.op; it.kind {
	case wait:
		if e := it.event; e != nil {
			if p := e.set; p != nil {
				g.add(p.stamp, p.clocks)
				s.noteWait(op, p.timeline, p.seq)
			} else {
				g.addAll(e.ever) // forced: some record was enqueued
			}
		} else if it.from != nil {
			s.noteWait(op, it.from.timeline, it.from.seq)
		}
	case waitStream:
		if it.from != nil {
			s.noteWait(op, it.from.timeline, it.from.seq)
		}
	case allocate:
		c.addFrees(&g, op.Writes)
	case waitValue:
		c.passed(&g, it.value, op)
	}
	c.perform(s, it.host, it.kind, &it.op, it.point, it.info)
}

// settle performs what is held and has become ready.
func (c *Checker) settle() {
	for len(c.work) > 0 {
		s := c.work[len(c.work)-1]
		c.work = c.work[:len(c.work)-1]
		for len(s.queue) > 0 && s.queue[0].ready() {
			c.pop(s)
		}
		if len(s.queue) > 0 {
			s.await(s.queue[0])
		}
	}
}

// pop performs the first held operation of s, ready or forced.
func (c *Checker) pop(s *timeline) {
	it := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	c.release(s, it)
	if len(s.queue) == 0 {
		s.queue = nil
		c.held--
		if s.closed {
			c.forget(s)
		}
	}
}

// force performs held operations of s, all or while more reports true: the program has
// seen that they are done, so the records that they waited for were enqueued. The
// operations of other streams that they come after are performed first.
func (c *Checker) force(s *timeline, more func(*heldOp) bool) {
	if s.forcing {
		return
	}
	s.forcing = true
	for len(s.queue) > 0 && (more == nil || more(s.queue[0])) {
		for _, p := range s.queue[0].needs {
			if !p.done {
				c.forcePoint(p)
			}
		}
		c.pop(s)
	}
	s.forcing = false
	if len(s.queue) > 0 {
		c.work = append(c.work, s)
	}
}

func (c *Checker) forcePoint(p *point) { c.force(p.timeline, func(*heldOp) bool { return !p.done }) }

func (c *Checker) forceInfo(o *info) { c.force(o.timeline, func(*heldOp) bool { return !o.ready }) }

// forceBefore forces what was enqueued on s before the operation with number seq.
func (c *Checker) forceBefore(s *timeline, seq uint64) {
	c.force(s, func(it *heldOp) bool { return it.kind == mark || it.op.Seq < seq })
}

// forceOver forces the streams, but for one, that hold an access to a range: the
// memory is given out again, so they are done.
func (c *Checker) forceOver(but *timeline, p piece) {
	for _, s := range c.heldTimelines() {
		if s == but {
			continue
		}
		last := (*heldOp)(nil)
		for _, it := range s.queue {
			for _, list := range [][]hal.Range{it.op.Reads, it.op.Writes} {
				for _, r := range list {
					if q := pieceOf(r); q.start < p.end && p.start < q.end {
						last = it
					}
				}
			}
		}
		if last != nil {
			c.force(s, func(*heldOp) bool { return !last.info.ready })
		}
	}
}

// heldTimelines returns the streams with held operations, in the order of the
// devices' streams.
func (c *Checker) heldTimelines() []*timeline {
	var found []*timeline
	for _, d := range c.all {
		for _, s := range d.timelines {
			if len(s.queue) > 0 {
				found = append(found, s)
			}
		}
	}
	return found
}

// heldInfo returns a held operation with accesses by its number, or by that of a node of it.
func (c *Checker) heldInfo(id uint32) *info {
	for _, s := range c.heldTimelines() {
		for _, it := range s.queue {
			if it.info != nil && (it.info.id == id || it.op.Nodes != nil && id-it.op.ID <= uint32(it.op.Nodes.All())) {
				return it.info
			}
		}
	}
	return nil
}
