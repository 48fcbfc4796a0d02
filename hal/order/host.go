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
		c.knowMemory(&t.knowledge, op.Reads)
	case waitMemory:
		if op.Stream != nil {
			c.knowMemory(&c.line(op.Stream).knowledge, op.Reads)
		}
	case access:
		c.accessed(t, op)
	}
}

// knowMemory adds all operations on some bytes: they were waited for, or found done.
func (c *Checker) knowMemory(k *knowledge, blocks []hal.Range) {
	g := gather{knowledge: k}
	for _, r := range blocks {
		c.table.over(pieceOf(r), func(cl *cell, _ piece) {
			for _, list := range [][]entry{cl.writes, cl.reads} {
				for _, e := range list {
					g.add(e.stamp, e.info.knowledge)
				}
			}
		})
	}
}

// handleLifetime takes calls that create or release memory, streams and events.
func (c *Checker) handleLifetime(k kind, op *hal.Operation) {
	switch k {
	case newMemory, freeMemory:
		// No operation uses a block before it is allocated, or after it was freed (M2).
		for _, r := range op.Writes {
			if c.held > 0 && k == newMemory {
				c.forceOver(nil, pieceOf(r))
				c.settle()
			}
			c.table.clear(pieceOf(r))
		}
		c.forgetValues(op.Writes)
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
	g := gather{knowledge: &t.knowledge, from: from}
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
	g := gather{knowledge: &t.knowledge, from: from}
	g.add(p.stamp, p.knowledge)
}

func (c *Checker) synchronizeDevice(t *thread, d *device, seq uint64) {
	if c.held > 0 {
		for _, s := range d.lines {
			c.forceBefore(s, seq)
		}
		c.settle()
	}
	g := gather{knowledge: &t.knowledge}
	for _, s := range d.lines {
		if s.slot != 0 {
			g.add(s.asOf(seq))
		}
	}
	g.addAll(d.past)
}

// accessed takes accesses by the host, in the order of its thread.
func (c *Checker) accessed(t *thread, op *hal.Operation) {
	if t.slot == 0 {
		t.stamp = c.slots.take(t.knowledge[strict], &t.knowledge)
	}
	t.seq++
	t.knowledge = t.knowledge.with(t.stamp)
	in := c.newInfo(access, t, nil, op)
	in.stamp, in.knowledge, in.ready = t.stamp, t.knowledge, true
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

// tidyEach is the greatest number of operations between two runs of tidy.
const tidyEach = 4096

// tidy forgets ended threads, closed streams and events, and accesses that all
// threads know. A table is scanned only when its size has doubled, so that the cost
// for each operation stays the same.
func (c *Checker) tidy() {
	c.next = c.count + tidyEach
	for _, id := range c.ended.take() {
		if h := c.threads[id]; h != nil {
			delete(c.threads, id)
			c.lastEndedKnowledge = h.knowledge
			if h.slot != 0 {
				c.slots.give(h.stamp, h.knowledge)
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
				floor, first = h.knowledge[strict], false
			} else {
				floor = common(floor, h.knowledge[strict])
			}
		}
		c.floor = floor
	}
	if c.table.n > 2*c.kept.pieces+1024 {
		c.kept.pieces = c.table.sweep(c.floor)
	}
}
