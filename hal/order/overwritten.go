package order

import (
	"slices"

	"halstream/hal"
)

// maxUnwaited is how many copies from pinned memory are remembered that no host thread
// is ordered behind.
const maxUnwaited = 256

// noteUnwaited remembers the copy of a source that may be overwritten too early.
func (l *late) noteUnwaited(id uint32, s *source, p piece) {
	if s.info == nil {
		return
	}
	s.piece = p
	if l.unwaited = append(l.unwaited, id); len(l.unwaited) > maxUnwaited {
		l.unwaited = slices.Delete(l.unwaited, 0, 1)
	}
}

// dropUnwaited forgets the copies for which done holds.
func (l *late) dropUnwaited(done func(*source) bool) {
	if len(l.unwaited) == 0 {
		return
	}
	l.unwaited = slices.DeleteFunc(l.unwaited, func(id uint32) bool {
		s := l.sources[id]
		return s == nil || done(s)
	})
}

// coveredBy reports whether the host thread t comes after the copy, by whatever it knows.
func (s *source) coveredBy(t *thread) bool {
	for _, k := range t.clocks {
		if k.covers(s.info.stamp) {
			return true
		}
	}
	return t.pendingSync != nil // its last call has waited for a stream
}

// SourceInUse reports whether no host thread comes after the copy id, as far as operations
// were handled.
func (c *Checker) SourceInUse(id uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropWaited()
	return slices.Contains(c.late.unwaited, id)
}

// dropWaited forgets the copies that a host thread comes after. A thread that ends
// afterwards need not be known any more.
func (c *Checker) dropWaited() {
	c.late.dropUnwaited(func(s *source) bool {
		for _, t := range c.threads {
			if s.coveredBy(t) {
				return true
			}
		}
		return false
	})
}

// Overwritten declares that the source of the copy id had the contents of the call when
// the copy ran, and has others now, at the begin of a wait of the host. That is reported
// with the next Take, unless a host thread comes after the copy, or an operation or the
// host may have changed it that declares to write there, or that does not say what it
// writes: such accesses are reported by themselves.
func (c *Checker) Overwritten(id uint32, r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toOverwritten, id, r)
	c.dropWaited()
	s := c.late.sources[id]
	if c.held > 0 || !slices.Contains(c.late.unwaited, id) || c.writtenSince(s, pieceOf(r)) {
		return
	}
	delete(c.late.sources, id)
	c.late.overwritten = append(c.late.overwritten, refill{s, pieceOf(r)})
}

// behind reports whether the copy comes after the operation of e.
func (s *source) behind(e *entry) bool { return s.info.after(e) && !s.info.before(e) }

// writtenSince reports whether an operation that is not ordered before the copy may have
// written to its source.
func (c *Checker) writtenSince(s *source, p piece) bool {
	found := false
	c.table.over(p, func(cl *cell, _ piece) {
		for i := range cl.writes {
			found = found || !s.behind(&cl.writes[i])
		}
	})
	for _, d := range c.all {
		for _, l := range d.timelines {
			for _, f := range l.undeclared {
				found = found || f != nil && !s.behind(&entry{stamp: f.stamp, info: f})
			}
		}
	}
	return found
}
