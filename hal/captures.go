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
	// lists belong to captures that have not ended, or whose calls are still there.
	lists map[*CapturedCalls]*Capture
	fills atomic.Pointer[CapturedCalls] // the list that takes fills, if one does
	past  pastCaptures
	room  atomic.Pointer[[]numbered] // of a capture that has ended, for the next one
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
	if s.Ordered() {
		a.mark(s.dev)
	}
	return true
}

// leave ends the part of a stream, and of others, in their capture.
func (a *captures) leave(s *Stream, others map[*Stream]*branch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var few [4]*Device
	left := a.leaveOne(s, few[:0])
	for s := range others {
		left = a.leaveOne(s, left)
	}
	for _, d := range left {
		a.mark(d)
	}
}

// leaveOne ends the part of a stream, and adds its device to left if mark has to look at it. The caller holds mu.
func (a *captures) leaveOne(s *Stream, left []*Device) []*Device {
	if _, ok := a.active[s]; !ok {
		return left
	}
	delete(a.active, s)
	s.capture.Store(nil)
	if a.count.Add(-1) == 0 {
		s.dev.rt.words.And(^uint32(status.Captured))
	}
	if s.Ordered() && !slices.Contains(left, s.dev) {
		left = append(left, s.dev)
	}
	return left
}

// mark refuses work on the legacy default stream of d while ordered streams capture: it
// would depend on them. While it captures itself, nothing changes. The caller holds mu.
func (a *captures) mark(d *Device) {
	for s := range a.active {
		if s.dev == d && s.Ordered() {
			if d.legacy.capture.Load() == nil {
				if d.refusing == nil {
					d.refusing = &Capture{rt: d.rt, legacy: d}
				}
				d.legacy.capture.Store(d.refusing)
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
