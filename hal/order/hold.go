package order

import "halstream/hal"

// item is an operation that is held: something that it comes after is not known
// yet, because a wait for a Future event came before the record (A2).
type item struct {
	op    hal.Operation
	kind  kind
	host  knowledge // of the calling thread
	needs []*point  // that it comes after
	met   int       // of those, how many are known
	event *event    // Future event that it waits for
	value *valueWait
	point *point // that it makes: of a record, or a mark
	info  *info
}

// hold takes an operation while others are held. What it comes after is noted
// now, as places on streams; it is performed when they are known.
func (c *Checker) hold(s *line, t *thread, k kind, op *hal.Operation) {
	it := &item{op: *op, kind: k, host: t.knowledge}
	switch k {
	case wait:
		if op.Event == nil {
			break
		}
		if e := c.event(op.Event); !e.future {
			if p := e.at(op.Version); p != nil && p.line != s {
				it.needs = append(it.needs, p)
			}
		} else if e.known || op.Version == 0 {
			it.event = e
		}
	case waitStream:
		if op.Other != nil && op.Other != op.Stream {
			from := c.line(op.Other)
			it.needs = append(it.needs, c.placeOn(from))
			if from.legacy {
				it.needs = c.ordered(it.needs, from.dev, s)
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
			it.point = &point{version: op.Version, line: s}
			c.event(op.Event).push(it.point)
		case writeValue:
			it.point = &point{line: s}
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

// put adds an item to its stream, and performs it if nothing holds it.
func (c *Checker) put(s *line, it *item) {
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
func (c *Checker) placeOn(s *line) *point {
	if len(s.queue) == 0 {
		return &point{stamp: s.stamp, knowledge: s.knowledge, line: s, done: true}
	}
	if last := s.queue[len(s.queue)-1]; last.point != nil {
		return last.point
	}
	p := &point{line: s}
	s.queue = append(s.queue, &item{kind: mark, point: p})
	return p
}

// ordered adds the places on the streams that are in order with the legacy
// default stream, but for one, that it does not know of.
func (c *Checker) ordered(list []*point, d *device, but *line) []*point {
	for _, o := range d.lines {
		if o.ordered && !o.legacy && o != but && (o.dirty || len(o.queue) > 0) {
			list = append(list, c.placeOn(o))
		}
	}
	return append(list, &point{knowledge: d.pastOrdered, done: true})
}

// missing returns the first place that is not known yet, nil if there is none.
func (it *item) missing() *point {
	for it.met < len(it.needs) && it.needs[it.met].done {
		it.met++
	}
	if it.met < len(it.needs) {
		return it.needs[it.met]
	}
	return nil
}

func (it *item) ready() bool {
	return it.missing() == nil && (it.event == nil || it.event.set != nil) &&
		(it.value == nil || len(it.value.enders()) > 0)
}

// await makes the first missing point of s's first held operation look at s again.
func (s *line) await(it *item) {
	if p := it.missing(); p != nil {
		p.waiting = append(p.waiting, s)
	} else if it.value != nil {
		it.value.cell.waiting = append(it.value.cell.waiting, s)
	} else {
		it.event.waiting = append(it.event.waiting, s)
	}
}

// release performs an operation that all is known for.
func (c *Checker) release(s *line, it *item) {
	if it.kind == mark {
		c.reach(it.point, s)
		return
	}
	g := gather{knowledge: &s.knowledge}
	g.addAll(it.host)
	for _, p := range it.needs {
		if p.done {
			g.add(p.stamp, p.knowledge)
		} else {
			g.add(p.line.stamp, p.line.knowledge) // forced: rather an order too many than a false report
		}
	}
	switch op := &it.op; it.kind {
	case wait:
		if e := it.event; e != nil {
			if p := e.set; p != nil {
				g.add(p.stamp, p.knowledge)
				s.noteWait(op, p.line, p.seq)
			} else {
				g.addAll(e.ever) // forced: some record was enqueued
			}
		} else if len(it.needs) > 0 {
			s.noteWait(op, it.needs[0].line, it.needs[0].seq)
		}
	case waitStream:
		if len(it.needs) > 0 {
			s.noteWait(op, it.needs[0].line, it.needs[0].seq)
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

// pop performs the first held operation of s, whatever is known.
func (c *Checker) pop(s *line) {
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

// force performs the held operations of s, all or while more says so: the
// program knows that they are done, so what they waited for has come. What they
// need of other streams is performed first.
func (c *Checker) force(s *line, more func(*item) bool) {
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

func (c *Checker) forcePoint(p *point) { c.force(p.line, func(*item) bool { return !p.done }) }

func (c *Checker) forceInfo(o *info) { c.force(o.line, func(*item) bool { return !o.ready }) }

// forceBefore forces what was enqueued on s before the operation with number seq.
func (c *Checker) forceBefore(s *line, seq uint64) {
	c.force(s, func(it *item) bool { return it.kind == mark || it.op.Seq < seq })
}

// forceOver forces the streams, but for one, that hold an access to a range: the
// memory is given out again, so they are done.
func (c *Checker) forceOver(but *line, p piece) {
	for _, s := range c.heldLines() {
		if s == but {
			continue
		}
		last := (*item)(nil)
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
			c.force(s, func(*item) bool { return !last.info.ready })
		}
	}
}

// heldLines returns the streams with held operations, in the order of the
// devices' streams.
func (c *Checker) heldLines() []*line {
	var found []*line
	for _, d := range c.all {
		for _, s := range d.lines {
			if len(s.queue) > 0 {
				found = append(found, s)
			}
		}
	}
	return found
}

// heldInfo returns a held operation with accesses by its number.
func (c *Checker) heldInfo(id uint32) *info {
	for _, s := range c.heldLines() {
		for _, it := range s.queue {
			if it.info != nil && it.info.id == id {
				return it.info
			}
		}
	}
	return nil
}
