package order

import (
	"halstream/hal"
)

// maxSignals bounds how many writes of one value are remembered. A wait that an
// older one could have ended counts as ended by a later one.
const maxSignals = 64

// valueCell is what streams have written to a value in memory.
type valueCell struct {
	writes  []valueWrite // in the order of the calls
	waiting []*timeline  // streams whose first held operation waits for a write here
}

type valueWrite struct {
	value uint64
	point *point
}

// valueWait is a wait of a stream for a value.
type valueWait struct {
	hal.ValueAccess
	cell     *valueCell
	timeline *timeline
	host     clocks // of the calling thread
}

func (c *Checker) valueCell(addr uint64) *valueCell {
	cl := c.values[addr]
	if cl == nil {
		cl = &valueCell{}
		c.values[addr] = cl
	}
	return cl
}

// waitOn returns what a wait of s for a value waits for.
func (c *Checker) waitOn(s *timeline, t *thread, op *hal.Operation) *valueWait {
	return &valueWait{*op.Value, c.valueCell(op.Value.Addr), s, t.clocks}
}

// writeOn adds a write that p stands for.
func (c *Checker) writeOn(v *hal.ValueAccess, p *point) {
	cl := c.valueCell(v.Addr)
	if len(cl.writes) == maxSignals {
		cl.writes = append(cl.writes[:0], cl.writes[1:]...)
	}
	cl.writes = append(cl.writes, valueWrite{v.Value, p})
}

// written lets the streams that wait for a value be checked again.
func (c *Checker) written(v *hal.ValueAccess) {
	cl := c.valueCell(v.Addr)
	c.work = append(c.work, cl.waiting...)
	cl.waiting = nil
}

// enders returns the writes that can have ended the wait: those which meet its
// condition and were not overwritten, as far as the clock of the stream covers, by one that does
// not.
func (w *valueWait) enders() (found []*point) {
	for i, one := range w.cell.writes {
		if one.point.done && w.Condition.Met(one.value, w.Value) && !w.overwritten(i) {
			found = append(found, one.point)
		}
	}
	return found
}

func (w *valueWait) overwritten(i int) bool {
	first := w.cell.writes[i].point
	for _, later := range w.cell.writes[i+1:] {
		p := later.point
		if p.done && !w.Condition.Met(later.value, w.Value) &&
			(p.slot == first.slot || p.clocks[strict].covers(first.stamp)) && w.covers(p.stamp) {
			return true
		}
	}
	return false
}

func (w *valueWait) covers(at stamp) bool {
	return at.slot == w.timeline.slot || w.timeline.clocks[strict].covers(at) || w.host[strict].covers(at)
}

// passed makes the stream of a wait, to whose clocks g adds, come after the writes that can
// have ended it: after what all of them know, since any may have been the one.
func (c *Checker) passed(g *gather, w *valueWait, op *hal.Operation) {
	enders := w.enders()
	switch len(enders) {
	case 0:
		// Forced: the value came some other way. Rather an order too many than a
		// false report.
		c.table.over(pieceOf(hal.Range{Start: w.Addr, Size: 8}), func(cl *cell, _ piece) {
			for _, e := range cl.writes {
				g.add(e.stamp, e.info.clocks)
			}
		})
	case 1:
		if p := enders[0]; p.timeline != w.timeline {
			g.add(p.stamp, p.clocks)
			w.timeline.noteWait(op, p.timeline, p.seq)
		}
	default:
		common := enders[0].all()
		for _, p := range enders[1:] {
			common = common.common(p.all())
		}
		g.addAll(common)
	}
}

// forgetValues drops what was written to memory that is given out or freed.
func (c *Checker) forgetValues(ranges []hal.Range) {
	if len(c.values) == 0 {
		return
	}
	for addr, cl := range c.values {
		for _, r := range ranges {
			if addr-r.Start < r.Size {
				if cl.writes = nil; len(cl.waiting) == 0 {
					delete(c.values, addr)
				}
				break
			}
		}
	}
}
