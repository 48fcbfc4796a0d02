package order

import (
	"maps"
	"slices"

	"halstream/hal"
)

// handleHost handles an operation by which a host thread enqueued nothing.
func (c *Checker) handleHost(k kind, t *thread, op *hal.Operation) {
	from := strict
	if k == queryStream || k == queryEvent {
		if !op.Internal {
			from = queried
		}
	}
	switch k {
	case syncStream, queryStream:
		if op.Stream != nil {
			c.synchronize(t, c.timeline(op.Stream), op.Seq, from)
		}
	case syncEvent, queryEvent:
		if op.Event != nil {
			c.synchronizeEvent(t, c.event(op.Event), op.Version, from)
		}
	case syncDevice:
		if op.Stream != nil {
			c.synchronizeDevice(t, c.device(op.Stream.Device()), op.Users, op.Seq)
		}
	case syncMemory:
		for _, r := range op.Reads {
			if c.held > 0 {
				c.forceOver(nil, pieceOf(r))
				c.settle()
			}
		}
		c.addMemory(&t.clocks, op.Reads)
	case waitMemory:
		if op.Stream != nil {
			c.addMemory(&c.timeline(op.Stream).clocks, op.Reads)
		}
	case access:
		c.accessed(access, t, op)
	}
	if k != access {
		c.dropWaited()
	}
}

// addMemory adds all operations on some bytes: they were waited for, or found done.
func (c *Checker) addMemory(k *clocks, blocks []hal.Range) {
	g := gather{clocks: k}
	for _, r := range blocks {
		c.table.over(pieceOf(r), func(cl *cell, _ piece) {
			for _, list := range [][]entry{cl.writes, cl.reads} {
				for _, e := range list {
					g.add(e.stamp, e.info.clocks)
				}
			}
		})
	}
}

// handleLifetime handles the creation and release of memory, streams and events.
func (c *Checker) handleLifetime(k kind, op *hal.Operation) {
	switch k {
	case newMemory, freeMemory:
		c.late.dropUnwaited(func(s *source) bool {
			return slices.ContainsFunc(op.Writes, func(r hal.Range) bool { return pieceOf(r).meets(s.piece) })
		})
		if op.Cached {
			c.freeCached(op)
			break
		}
		// No operation uses a block before it is allocated, or after it was freed (M2).
		for _, r := range op.Writes {
			if c.held > 0 && k == newMemory {
				c.forceOver(nil, pieceOf(r))
				c.settle()
			}
			c.table.clear(pieceOf(r))
		}
		c.forgetValues(op.Writes)
	case vainWait:
		c.timeline(op.Stream).noteVainWait(op, NoRecord)
	case closeStream:
		if s := c.timelines[op.Stream]; s != nil {
			c.closeTimeline(s)
		}
	case closeEvent:
		delete(c.events, op.Event)
	case endCapture:
		if op.Nodes != nil {
			c.compare(op)
		}
		if op.Exec != nil {
			c.compared(op)
		}
	}
}

// freeCached handles the free of a cached block that waits for the work of other
// streams: who gets its memory comes after all of that.
func (c *Checker) freeCached(op *hal.Operation) {
	own := c.timeline(op.Users[0])
	if own.slot == 0 {
		c.tick(own, clocks{})
	}
	in := &info{stamp: own.stamp, clocks: own.clocks, timeline: own, id: op.ID, kind: free, ready: true, silent: true}
	g := gather{clocks: &in.clocks}
	for _, user := range op.Users[1:] {
		s := c.timeline(user)
		if c.held > 0 {
			c.forceBefore(s, op.Seq)
			c.settle()
		}
		g.add(s.asOf(op.Seq))
	}
	g.addAll(own.dev.past) // of users that were closed
	for _, r := range op.Writes {
		c.touch(in, pieceOf(r), true, false)
	}
}

// freeNoWait handles a free that waits for nothing: an access by the host.
func (c *Checker) freeNoWait(op *hal.Operation) {
	t := c.thread(op.Thread)
	t.clocks[timed] = c.called
	c.finishSync(t, op.Seq)
	for _, r := range op.Writes {
		if c.held > 0 {
			c.forceOver(nil, pieceOf(r))
			c.settle()
		}
	}
	c.accessed(free, t, op)
}

// synchronize makes t come after the work that was enqueued on s before the
// operation with number seq.
func (c *Checker) synchronize(t *thread, s *timeline, seq uint64, from int) {
	if c.held > 0 {
		c.forceBefore(s, seq)
		if s.legacy {
			for _, o := range s.dev.timelines {
				if o.ordered {
					c.forceBefore(o, seq)
				}
			}
		}
		c.settle()
	}
	g := gather{clocks: &t.clocks, from: from}
	c.addTimeline(&g, s, seq)
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
	g := gather{clocks: &t.clocks, from: from}
	g.add(p.stamp, p.clocks)
}

// synchronizeDevice makes t come after the work on some streams of a device, nil for all,
// and on those that were closed.
func (c *Checker) synchronizeDevice(t *thread, d *device, only []*hal.Stream, seq uint64) {
	waitedFor := func(s *timeline) bool { return only == nil || slices.Contains(only, s.stream) }
	if c.held > 0 {
		for _, s := range d.timelines {
			if waitedFor(s) {
				c.forceBefore(s, seq)
			}
		}
		c.settle()
	}
	g := gather{clocks: &t.clocks}
	for _, s := range d.timelines {
		if s.slot != 0 && waitedFor(s) {
			g.add(s.asOf(seq))
		}
	}
	g.addAll(d.past)
}

// accessed handles accesses by the host, in the order of its thread.
func (c *Checker) accessed(k kind, t *thread, op *hal.Operation) {
	if t.slot == 0 {
		t.stamp = c.slots.take(t.clocks[strict], &t.clocks)
	}
	t.seq++
	t.clocks = t.clocks.with(t.stamp)
	in := c.newInfo(k, t, nil, op)
	in.stamp, in.clocks, in.ready = t.stamp, t.clocks, true
	if op.Stream != nil {
		// The call that stages a source is an operation of the stream: it comes after the stream's earlier
		// copies to that memory. The thread itself comes after none of them.
		g := gather{clocks: &c.staging}
		c.addTimeline(&g, c.timeline(op.Stream), op.Seq)
	}
	for _, r := range op.Reads {
		c.touch(in, pieceOf(r), false, false)
	}
	for _, r := range op.Writes {
		c.touch(in, pieceOf(r), true, false)
	}
	c.staging = clocks{}
}

// closeTimeline removes a stream once none of its operations is held.
func (c *Checker) closeTimeline(s *timeline) {
	s.closed = true
	if len(s.queue) == 0 {
		c.forget(s)
	}
}

// tidyEach is the greatest number of operations between two runs of tidy.
const tidyEach = 4096

// tidy removes ended threads, closed streams and events, and accesses that the clocks
// of all threads cover. A table is scanned only when its size has doubled, so that the
// cost of each operation is constant on average.
func (c *Checker) tidy() {
	c.next = c.count + tidyEach
	for _, id := range c.ended.take() {
		if h := c.threads[id]; h != nil {
			delete(c.threads, id)
			c.lastEndedClocks = h.clocks
			delete(c.host.begun, id)
			if h.slot != 0 {
				c.slots.give(h.stamp, h.clocks)
			}
		}
	}
	c.latest.thread = nil
	if len(c.timelines) > 2*c.kept.timelines+64 && !c.replaying {
		for stream, s := range c.timelines {
			if stream.Closed() && !s.closed {
				c.closeTimeline(s)
			}
		}
		c.kept.timelines = len(c.timelines)
	}
	if len(c.events) > 2*c.kept.events+256 && !c.replaying {
		for e := range c.events {
			if e.Closed() {
				delete(c.events, e)
			}
		}
		c.kept.events = len(c.events)
	}
	if !c.replaying {
		maps.DeleteFunc(c.launches, func(x *hal.GraphExec, _ launch) bool { return x.Closed() })
	}
	if c.held == 0 {
		var floor *vector
		first := true
		for _, h := range c.threads {
			if first {
				floor, first = h.clocks[strict], false
			} else {
				floor = common(floor, h.clocks[strict])
			}
		}
		if c.table.n < maxIdlePieces {
			for _, clock := range c.host.begun {
				floor = common(floor, clock[strict])
			}
		}
		c.floor = floor
	}
	if c.table.n > 2*c.kept.pieces+1024 {
		c.kept.pieces = c.table.sweep(c.floor)
	}
}
