package order

import (
	"slices"

	"halstream/hal"
)

// turn is what the table of accesses has to see in the order of the calls: accesses, or
// something else.
type turn struct {
	in            *info // whose accesses it is, nil for something else
	reads, writes []hal.Range
	awaited       bool   // the operation has yet to hand in its accesses: these are an upper bound
	staging       clocks // see Checker.staging
	other         func()
}

// maxTurns is how many accesses wait for an operation that has not handed in its own.
const maxTurns = 1 << 16

// inTurn does t at once, or behind an operation that has yet to hand in what it accesses. So the
// reports are the same whenever operations run.
func (c *Checker) inTurn(t turn) {
	if len(c.turns) == 0 && !t.awaited {
		c.take(&t)
		return
	}
	kept := t
	c.turns = append(c.turns, &kept)
	switch {
	case t.in == nil:
	case t.awaited:
		if c.awaited == nil {
			c.awaited = map[uint32]*turn{}
		}
		c.awaited[t.in.id] = &kept
	case t.in.kind == free:
		for _, r := range t.writes {
			if p := pieceOf(r); p.start < p.end {
				c.frees.each(p, func(cl *cell, _ piece) {
					cl.writes = append(cl.writes[:0], entry{stamp: t.in.stamp, info: t.in})
				})
			}
		}
	}
	if len(c.turns) > maxTurns {
		// What it hands in counts as observed late then.
		first := c.turns[0]
		delete(c.awaited, first.in.id)
		first.reads, first.writes, first.awaited = nil, nil, false
		c.takeTurns()
	}
}

// take does t.
func (c *Checker) take(t *turn) {
	if t.in == nil {
		t.other()
		return
	}
	c.staging = t.staging
	for _, r := range t.reads {
		c.touch(t.in, pieceOf(r), false, false)
	}
	for _, r := range t.writes {
		c.touch(t.in, pieceOf(r), true, false)
	}
	c.staging = clocks{}
	if t.in.audible {
		t.in.silent = false
	}
}

// takeTurns does what no operation that has yet to hand in its accesses comes before.
func (c *Checker) takeTurns() {
	for len(c.turns) > 0 && !c.turns[0].awaited {
		t := c.turns[0]
		c.turns[0] = nil
		c.turns = c.turns[1:]
		c.take(t)
	}
	if len(c.turns) == 0 {
		c.turns, c.frees = nil, table{}
	}
}

// giveUp lets operations that have not handed in anything access all that they declared.
func (c *Checker) giveUp() {
	for _, t := range c.awaited {
		t.awaited = false
	}
	clear(c.awaited)
	c.takeTurns()
}

// HandedIn declares what operation id, which was announced with HandsIn, has accessed. It may be
// called from any thread, at any time after Handle.
//
// Contract: V45.
func (c *Checker) HandedIn(id uint32, reads, writes []hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.handedIn(id, reads, writes)
	t := c.awaited[id]
	if t == nil {
		o := c.observed(id) // if it was held: it ran, so what it waited for came
		if t = c.awaited[id]; t == nil {
			if o != nil {
				c.observe(o, reads, writes)
			}
			return
		}
	}
	delete(c.awaited, id)
	t.reads, t.writes, t.awaited = reads, writes, false
	c.takeTurns()
}

// Awaited returns the streams of operations that have yet to hand in what they access.
func (c *Checker) Awaited() []*hal.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[*hal.Stream]bool{}
	var found []*hal.Stream
	for _, t := range c.turns {
		if s := t.stream(); t.awaited && s != nil && !seen[s] {
			seen[s] = true
			found = append(found, s)
		}
	}
	return found
}

// stream returns the stream of an access, nil for one of the host.
func (t *turn) stream() *hal.Stream {
	if t.in == nil || t.in.timeline == nil {
		return nil
	}
	return t.in.timeline.stream
}

// over calls visit for the accesses to a part of p so far. Of an operation that has yet to hand in
// its own these are all that it declared.
func (c *Checker) over(p piece, visit func(e *entry, write bool)) {
	c.table.over(p, func(cl *cell, _ piece) {
		for i := range cl.writes {
			visit(&cl.writes[i], true)
		}
		for i := range cl.reads {
			visit(&cl.reads[i], false)
		}
	})
	for _, t := range c.turns {
		meets := func(r hal.Range) bool { return t.in != nil && pieceOf(r).meets(p) }
		if slices.ContainsFunc(t.reads, meets) {
			visit(&entry{stamp: t.in.stamp, info: t.in}, false)
		}
		if slices.ContainsFunc(t.writes, meets) {
			visit(&entry{stamp: t.in.stamp, info: t.in}, true)
		}
	}
}
