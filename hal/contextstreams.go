package hal

import (
	"cmp"
	"slices"

	"halstream/hal/driver"
)

// point is Point, and forgets the closed streams whose work is done.
func (c *Context) point() driver.Point {
	var ps driver.Points
	for _, s := range c.streamList() {
		p := s.d.Point()
		if s.closed.Load() && p.Wait(0) {
			c.mu.Lock()
			delete(c.streams, s)
			c.mu.Unlock()
			continue
		}
		ps = append(ps, p)
	}
	return ps
}

// minSweep is the number of streams below which a sweep costs more than it saves.
const minSweep = 16

// sweep forgets the closed streams whose work is done. It runs when the number of
// streams has doubled, which makes its cost per stream constant. The caller holds mu.
func (c *Context) sweep() {
	for s := range c.streams {
		if s.closed.Load() && s.workDone() {
			delete(c.streams, s)
		}
	}
	c.sizeAfterSweep = len(c.streams)
}

// streamList returns the context's streams in the order in which they were made, including those
// that were closed while work was pending. What is done to all of them is then a part of a run that repeats.
func (c *Context) streamList() []*Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Stream, 0, len(c.streams))
	for s := range c.streams {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Stream) int { return cmp.Compare(a.index, b.index) })
	return list
}
