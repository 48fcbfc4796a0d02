package hal

import (
	"slices"

	"halstream/hal/driver"
)

// How what was added to a capture without a call of the runtime becomes nodes, places and edges.

// makeNodes makes nodes of the functions and fills that were captured and are none yet, and heeds the records and waits. Whoever
// looks at the nodes of a graph, or at what the next one of a stream comes after, calls it first.
// The caller holds the graph's mu.
func (c *Capture) makeNodes() {
	queued := c.added()
	if len(c.calls.queued) > 0 {
		queued = append(c.calls.queued, queued...)
	}
	g := c.graph
	records, fills, functions := counts(queued)
	g.reserve(fills + functions)
	filled := make([]filledNode, fills)
	c.calls.records = c.rt.captures.roomForRecords(c.calls.records, records)
	var first [8]*branch // of the first streams: looking them up takes as long as all the rest of a record or wait
	for i := 0; i < len(queued); i++ {
		call := queued[i]
		lane := call.Lane & laneBits
		s := c.calls.lanes[lane]
		var b *branch
		if lane >= uint32(len(first)) {
			b = c.branch(s)
		} else if b = first[lane]; b == nil {
			b = c.branch(s)
			first[lane] = b
		}
		switch {
		case call.Lane&RecordCall != 0:
			c.calls.records = append(c.calls.records, numbered{call.Token, b.tails})
			continue
		case call.Lane&WaitCall != 0:
			tails, _ := c.calls.place(call.Token)
			b.join(tails)
			continue
		}
		made := g.place()
		made.site = call.Site
		if call.Lane&FillCall != 0 {
			i++
			c.calls.makeFill(made, &filled[0], call, queued[i])
			filled = filled[1:]
		} else {
			made.kind, made.token = driver.CallNode, call.Token
		}
		made.device, made.level, made.stream = s.dev.ordinal, s.level, s
		made.after = b.tails
		made.self[0] = made
		b.tails = made.self[:]
	}
	c.calls.queued = c.calls.queued[:0]
	if c.ended {
		g.capture = nil
		c.rt.captures.keepRoom(c.calls.records)
		c.rt.captures.takeBack(c)
		c.calls = calls{}
	}
}

// counts returns how many of some calls are records, fills, and functions.
func counts(queued []CapturedCall) (records, fills, functions int) {
	for i := range queued {
		switch queued[i].Lane & (RecordCall | WaitCall | FillCall) {
		case RecordCall:
			records++
		case FillCall:
			fills++ // once for each half
		case 0:
			functions++
		}
	}
	return records, fills / fillCalls, functions
}

// mostRecords bounds how many records there is room for in what is kept for later captures: 128 KiB.
const mostRecords = 1 << 12

// roomForRecords returns records with room for n more.
func (a *captures) roomForRecords(records []numbered, n int) []numbered {
	if records == nil && n > 0 {
		if room := a.room.Swap(nil); room != nil {
			records = *room
		}
	}
	return slices.Grow(records, n)
}

// keepRoom keeps the room of records that are needed no more.
func (a *captures) keepRoom(records []numbered) {
	if n := cap(records); n > 0 && n <= mostRecords {
		clear(records)
		records = records[:0]
		a.room.Store(&records)
	}
}

// made returns the nodes. The caller holds mu.
func (g *Graph) made() []*Node {
	if g.capture != nil {
		g.capture.makeNodes()
	}
	return g.nodes
}

// forgetCalls forgets what was captured and is no node yet, where nothing uses the graph any more. Otherwise the next
// capture would copy it out of the list that it gets.
func (g *Graph) forgetCalls() {
	if g.keep.users.Load() > 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.capture; c != nil && c.ended {
		c.rt.captures.takeBack(c)
		c.calls = calls{}
	}
}
