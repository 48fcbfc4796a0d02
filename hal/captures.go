package hal

import (
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/status"
)

// captureIDs is the number of the latest capture of any runtime.
var captureIDs atomic.Uint64

// captures are the captures of a runtime.
type captures struct {
	count atomic.Int32
	mu    sync.Mutex
	// active are the streams that capture, with their captures.
	active map[*Stream]*Capture
	// lists belong to captures that have not ended.
	lists map[*CapturedCalls]*Capture
	fills atomic.Pointer[CapturedCalls] // the list that takes fills, if one does
	past  pastCaptures
}

// join makes s a stream of c, and reports false if it is one of another capture.
func (a *captures) join(s *Stream, c *Capture) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !s.capture.CompareAndSwap(nil, c) {
		return false
	}
	if a.active == nil {
		a.active = map[*Stream]*Capture{}
	}
	a.active[s] = c
	a.count.Add(1)
	c.rt.words.Or(status.Captured) // calls that C could answer pass the runtime
	a.mark(s.dev)
	return true
}

// leave ends the part of streams in their capture.
func (a *captures) leave(streams map[*Stream]*branch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var left []*Device
	for s := range streams {
		if _, ok := a.active[s]; ok {
			delete(a.active, s)
			s.capture.Store(nil)
			if a.count.Add(-1) == 0 {
				s.dev.rt.words.And(^uint32(status.Captured))
			}
			if !slices.Contains(left, s.dev) {
				left = append(left, s.dev)
			}
		}
	}
	for _, d := range left {
		a.mark(d)
	}
}

// mark refuses work on the legacy default stream of d while ordered streams capture: it
// would depend on them. While it captures itself, nothing changes. The caller holds mu.
func (a *captures) mark(d *Device) {
	for s := range a.active {
		if s.dev == d && s.Ordered() {
			if d.legacy.capture.Load() == nil {
				d.legacy.capture.Store(&Capture{rt: d.rt, legacy: d})
			}
			return
		}
	}
	d.legacy.capture.Store(nil)
}

// on returns the captures that have streams on d, ordered ones only if that is set.
func (a *captures) on(d *Device, ordered bool) (found []*Capture) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s, c := range a.active {
		if s.dev == d && (!ordered || s.Ordered()) && !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	return found
}
