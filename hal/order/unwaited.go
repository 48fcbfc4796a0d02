package order

import "halstream/hal"

// Unwaited reports whether there is memory that operations have accessed for which t has
// not waited: an access that t, or work enqueued by it, makes next may be unordered with them.
func (c *Checker) Unwaited(t *hal.Thread) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.thread(t)
	for _, segs := range c.table.chunks {
		for _, s := range segs {
			if h.isBehind(s.cell.writes) || h.isBehind(s.cell.reads) {
				return true
			}
		}
	}
	return false
}

// isBehind reports whether one of the accesses, but for the ends of blocks, is not ordered before h.
func (h *thread) isBehind(accesses []entry) bool {
	for _, e := range accesses {
		if e.info.kind != free && e.info.kind != allocate && e.slot != h.slot && !h.clocks[strict].covers(e.stamp) {
			return true
		}
	}
	return false
}

// Unwaited is that of the checker that is in use.
func (s *Session) Unwaited(t *hal.Thread) bool {
	f := s.now.Load()
	return f != nil && f.checker.Unwaited(t)
}
