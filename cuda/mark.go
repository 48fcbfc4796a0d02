package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Flags of the driver's events.
const (
	eventBlockingSync  = 1
	eventDisableTiming = 2
	eventFlavours      = 4
)

// mark is one of the driver's events, shared by those who look at its latest
// record. When the last of them lets go it is used again, even while its work
// is pending: streams that wait for it were bound when they were told to.
type mark struct {
	dev   *Device
	event C.CUevent
	flags uint8
	refs  atomic.Int32
}

// hold takes a share, and reports false if nobody had one any more.
func (m *mark) hold() bool {
	for {
		n := m.refs.Load()
		if n == 0 {
			return false
		}
		if m.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (m *mark) release() {
	if m.refs.Add(-1) == 0 {
		m.dev.marks[m.flags].put(m)
	}
}

// marks are events that nobody uses, of one device and one flavour. Making one
// takes a lock of the driver's that all threads want.
type marks struct {
	mu    sync.Mutex
	spare []*mark
}

// mostSpare bounds how many unused events a device keeps of each flavour.
const mostSpare = 4096

func (p *marks) put(m *mark) {
	p.mu.Lock()
	p.spare = append(p.spare, m)
	p.mu.Unlock()
}

func (p *marks) take() *mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.spare)
	if n == 0 {
		return nil
	}
	m := p.spare[n-1]
	p.spare = p.spare[:n-1]
	return m
}

// surplus takes out what is too much.
func (p *marks) surplus(most int) []*mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spare) <= most {
		return nil
	}
	gone := append([]*mark(nil), p.spare[most:]...)
	clear(p.spare[most:])
	p.spare = p.spare[:most]
	return gone
}

// newMark returns an event that nobody else uses.
func (d *Device) newMark(flags uint8, doing string) (*mark, error) {
	m := d.marks[flags].take()
	if m == nil {
		m = &mark{dev: d, flags: flags}
		if err := d.check(C.hs_event_new(d.ctx(), C.uint32_t(flags), &m.event), doing); err != nil {
			return nil, err
		}
	}
	m.refs.Store(1)
	return m, nil
}

// trimMarks gives events beyond most of each flavour back to the driver.
func (d *Device) trimMarks(most int) {
	for i := range d.marks {
		for _, m := range d.marks[i].surplus(most) {
			_ = d.check(C.hs_event_destroy(d.ctx(), m.event), "close event")
		}
	}
}

// point is a mark that host threads wait for, and what is known once it is
// reached: that its stream has come to a place.
type point struct {
	mark   *mark
	stream *Stream // nil for a whole device
	place  uint64
	spin   int64
	state  atomic.Uint32
}

// States of a point.
const (
	waiting uint32 = iota
	watched        // the collector gives the mark back if nobody waits to the end
	reached
)

// newPoint makes a point of a mark whose share it takes over.
func newPoint(m *mark, s *Stream, place uint64) *point {
	return &point{mark: m, stream: s, place: place, spin: s.dev.spin(m.flags)}
}

// Wait implements driver.Point. A device that is lost has reached every point:
// Lost says that nothing came of it.
func (p *point) Wait(limit int64) bool {
	if p.state.Load() == reached {
		return true
	}
	m := p.mark
	if !m.hold() {
		return true // another thread found it reached
	}
	if p.state.Load() == reached { // and the mark is somebody else's by now
		m.release()
		return true
	}
	d := m.dev
	for {
		if d.gone() {
			m.release()
			return d.calm(limit) && p.arrive()
		}
		var s C.hs_status
		if limit == 0 {
			s = C.hs_event_query(d.ctx(), m.event)
		} else {
			s = C.hs_await(d.ctx(), m.event, C.int64_t(limit), C.int64_t(p.spin))
		}
		switch code := int(C.hs_code(s)); {
		case code == 0:
			m.release()
			return p.arrive()
		case code != codeNotReady:
			// Of the event, not of the work: wait for the work in another way.
			if d.check(s, "synchronize"); d.lost.Load() == nil {
				m.release()
				return p.fallBack(s)
			}
		case limit >= 0:
			m.release()
			if p.state.CompareAndSwap(waiting, watched) {
				runtime.SetFinalizer(p, func(p *point) { p.drop() })
			}
			return false
		}
	}
}

// fallBack ends a wait that the driver refused: the stream keeps the error.
func (p *point) fallBack(s C.hs_status) bool {
	if p.stream != nil {
		p.stream.fail(failed(s, "synchronize"))
	}
	return p.arrive()
}

// arrive notes that the point was reached.
func (p *point) arrive() bool {
	if p.drop() && p.stream != nil {
		p.stream.note(p.place)
	}
	return true
}

// share returns a point of the same place with a share of the mark of its own: it
// stays a point of that place when p is dropped because later work took its place.
// The collector gives the share back if nobody waits to the end.
func (p *point) share() *point {
	if !p.mark.hold() {
		return p
	}
	if p.state.Load() == reached { // and the mark is somebody else's by now
		p.mark.release()
		return p
	}
	q := newPoint(p.mark, p.stream, p.place)
	q.state.Store(watched)
	runtime.SetFinalizer(q, func(q *point) { q.drop() })
	return q
}

// drop lets go of the mark, once, and reports whether it was this call.
func (p *point) drop() bool {
	for {
		before := p.state.Load()
		if before == reached {
			return false
		}
		if p.state.CompareAndSwap(before, reached) {
			p.mark.release()
			return true
		}
	}
}

// rest is the point at which a stream has nothing to do.
type rest struct {
	stream *Stream
	place  uint64
}

// Wait implements driver.Point.
func (r *rest) Wait(limit int64) bool {
	s := r.stream
	d := s.dev
	for {
		if d.gone() {
			return d.calm(limit)
		}
		if s.reached.Load() > r.place {
			return true
		}
		if tail := s.behind(); tail != nil {
			return tail.Wait(limit)
		}
		if !s.enter() {
			continue // closed meanwhile: there is a point behind it
		}
		status := C.hs_await_stream(d.ctx(), s.h, C.int64_t(limit), C.int64_t(d.spin(0)))
		s.leave()
		if C.hs_code(status) == codeNotReady {
			if limit >= 0 {
				return false
			}
			continue
		}
		if d.check(status, "synchronize") != nil && d.lost.Load() == nil {
			s.fail(failed(status, "synchronize"))
			return true
		}
		s.note(r.place)
		return true
	}
}

// calm waits until nothing of ours works on memory of the program for a device
// that was lost: the driver does no more, and the program may give it back.
func (d *Device) calm(limit int64) bool {
	clock := stopwatch()
	for d.working.Load() > 0 {
		if limit >= 0 && clock() >= limit {
			return false
		}
		if C.hs_breathe() != 0 && limit >= 0 {
			return false
		}
	}
	return true
}

// reachedPoint is one behind which there is nothing.
type reachedPoint struct{}

func (reachedPoint) Wait(int64) bool { return true }
