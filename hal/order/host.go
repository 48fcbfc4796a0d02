package order

import "halstream/hal"

// handleHost takes what a host thread did without enqueuing anything.
func (c *Checker) handleHost(k kind, t *thread, op *hal.Operation) {
	from := strict
	if k == queryStream || k == queryEvent {
		if !op.Internal {
			from = asked
		}
	}
	switch k {
	case syncStream, queryStream:
		if op.Stream != nil {
			c.synchronize(t, c.line(op.Stream), op.Seq, from)
		}
	case syncEvent, queryEvent:
		if op.Event != nil {
			c.synchronizeEvent(t, c.event(op.Event), op.Version, from)
		}
	case syncDevice:
		if op.Stream != nil {
			c.synchronizeDevice(t, c.device(op.Stream.Device()), op.Seq)
		}
	case syncMemory:
		for _, r := range op.Reads {
			if c.held > 0 {
				c.forceOver(nil, pieceOf(r))
				c.settle()
			}
		}
		c.knowMemory(&t.know, op.Reads)
	case waitMemory:
		if op.Stream != nil {
			c.knowMemory(&c.line(op.Stream).know, op.Reads)
		}
	case access:
		c.accessed(t, op)
	}
}

// knowMemory adds whatever was enqueued on some bytes, which was waited for or
// was seen to be done.
func (c *Checker) knowMemory(k *know, blocks []hal.Range) {
	g := gather{know: k}
	for _, r := range blocks {
		c.table.over(pieceOf(r), func(cl *cell, _ piece) {
			for _, list := range [][]entry{cl.writes, cl.reads} {
				for _, e := range list {
					g.add(e.stamp, e.info.know)
				}
			}
		})
	}
}

// keepHouse takes calls that make or give up memory, streams and events.
func (c *Checker) keepHouse(k kind, op *hal.Operation) {
	switch k {
	case newMemory, freeMemory:
		// Nothing works on a block that is given out, or ever will on one that
		// was freed (M2).
		for _, r := range op.Writes {
			if c.held > 0 && k == newMemory {
				c.forceOver(nil, pieceOf(r))
				c.settle()
			}
			c.table.clear(pieceOf(r))
		}
	case closeStream:
		if s := c.lines[op.Stream]; s != nil {
			c.closeLine(s)
		}
	case closeEvent:
		delete(c.events, op.Event)
	}
}

// synchronize makes t come after the work that was enqueued on s before the
// operation with number seq.
func (c *Checker) synchronize(t *thread, s *line, seq uint64, from int) {
	if c.held > 0 {
		c.forceBefore(s, seq)
		if s.legacy {
			for _, o := range s.dev.lines {
				if o.ordered {
					c.forceBefore(o, seq)
				}
			}
		}
		c.settle()
	}
	g := gather{know: &t.know, from: from}
	c.addLine(&g, s, seq)
}

func (c *Checker) synchronizeEvent(t *thread, e *event, version uint64, from int) {
	p := e.at(version)
	if p == nil {
		return
	}
	if !p.done {
		c.forcePoint(p)
		c.settle()
	}
	g := gather{know: &t.know, from: from}
	g.add(p.stamp, p.know)
}

func (c *Checker) synchronizeDevice(t *thread, d *device, seq uint64) {
	if c.held > 0 {
		for _, s := range d.lines {
			c.forceBefore(s, seq)
		}
		c.settle()
	}
	g := gather{know: &t.know}
	for _, s := range d.lines {
		if s.slot != 0 {
			g.add(s.asOf(seq))
		}
	}
	g.addAll(d.past)
}

// accessed takes accesses of the host, in the order of its thread.
func (c *Checker) accessed(t *thread, op *hal.Operation) {
	if t.slot == 0 {
		t.stamp = c.slots.take(t.know[strict], &t.know)
	}
	t.seq++
	t.know = t.know.with(t.stamp)
	in := c.newInfo(access, t, nil, op)
	in.stamp, in.know, in.ready = t.stamp, t.know, true
	for _, r := range op.Reads {
		c.touch(in, pieceOf(r), false, false)
	}
	for _, r := range op.Writes {
		c.touch(in, pieceOf(r), true, false)
	}
}

// closeLine forgets a stream once nothing of it is held.
func (c *Checker) closeLine(s *line) {
	s.closed = true
	if len(s.queue) == 0 {
		c.forget(s)
	}
}

// tidyEach is how many operations there are at most between two looks at what
// can be forgotten.
const tidyEach = 4096

// tidy forgets threads, streams and events that are gone and accesses that
// everybody knows. What is looked at in whole is looked at only when it has
// doubled, so that the cost for each operation stays the same.
func (c *Checker) tidy() {
	c.next = c.count + tidyEach
	for _, id := range c.ended.take() {
		if h := c.threads[id]; h != nil {
			delete(c.threads, id)
			c.orphan = h.know
			if h.slot != 0 {
				c.slots.give(h.stamp, h.know)
			}
		}
	}
	c.latest.thread = nil
	if len(c.lines) > 2*c.kept.lines+64 {
		for stream, s := range c.lines {
			if stream.Closed() && !s.closed {
				c.closeLine(s)
			}
		}
		c.kept.lines = len(c.lines)
	}
	if len(c.events) > 2*c.kept.events+256 {
		for e := range c.events {
			if e.Closed() {
				delete(c.events, e)
			}
		}
		c.kept.events = len(c.events)
	}
	if c.held == 0 {
		var floor *vector
		first := true
		for _, h := range c.threads {
			if first {
				floor, first = h.know[strict], false
			} else {
				floor = common(floor, h.know[strict])
			}
		}
		c.floor = floor
	}
	if c.table.n > 2*c.kept.pieces+1024 {
		c.kept.pieces = c.table.sweep(c.floor)
	}
}
