package host

import (
	"time"

	"halstream/hal/driver"
)

// after lets expire look at the wait at place seq of a stream in ns nanoseconds.
// The result is nil where time is not the machine's.
func (e *engine) after(ns int64, s *Stream, seq uint64, v *Event) *time.Timer {
	if d, ok := e.sched.(*deterministic); ok {
		d.after(ns, s, seq, v)
		return nil
	}
	return time.AfterFunc(time.Duration(ns), func() { e.expire(s, seq, v) })
}

// expire lets a stream go on whose head operation, a wait, took too long.
// A wait that is not at the head yet has not begun to wait, so its time runs on
// only from there: it is looked at again.
func (e *engine) expire(s *Stream, seq uint64, v *Event) {
	e.Lock()
	defer e.Unlock()
	e.expired(s, seq, v)
}

// expired is expire for who has the lock.
func (e *engine) expired(s *Stream, seq uint64, v *Event) {
	done := s.completed.Load()
	if done >= seq || s.state == idle {
		return
	}
	if o := s.q.front(); done+1 < seq || (o.ep != nil && !o.ep.open) {
		e.after(int64(time.Millisecond), s, seq, v)
		return
	}
	if s.state != blocked {
		return
	}
	text := "wait for event " + name(v.opts.ID) + " passed its limit: " + v.describe(1)
	s.fail(&driver.Error{Kind: driver.Timeout, Op: "wait event", Text: text})
	s.leaveList()
	e.finish(s)
	e.advance(s)
}

// leaveList takes a blocked stream out of the list in which it waits.
func (s *Stream) leaveList() {
	o := s.q.front()
	if o.ep != nil && !o.ep.open {
		o.ep.parked = without(o.ep.parked, s)
		return
	}
	switch o.kind {
	case opWait:
		for i, w := range o.on.waiting {
			if w.stream == s {
				o.on.waiting.remove(i)
				return
			}
		}
	case opWaitSet:
		v := o.ref.(*Event)
		v.parked = without(v.parked, s)
	case opGate:
		o.ref.(*gate).parked = nil
	}
}

func without(list []*Stream, s *Stream) []*Stream {
	for i, p := range list {
		if p == s {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// Abort implements driver.Stream. What an engine or a host function already
// works on ends in its own time.
func (s *Stream) Abort() int {
	s.eng.Lock()
	defer s.eng.Unlock()
	return s.abort()
}

func (s *Stream) abort() int {
	e := s.eng
	if s.state == idle {
		return 0
	}
	for _, w := range s.waiting {
		if w.parker != nil {
			s.fail(driver.Errorf(driver.Aborted, "synchronize", "the pending work of %s was dropped", s.title()))
			break
		}
	}
	rest := s.q.drop()
	n := len(rest)
	for i := range rest {
		s.undo(&rest[i])
		if ep := rest[i].ep; ep != nil {
			s.gone = append(s.gone, ep)
		}
	}
	s.skip += n
	if s.state == blocked || s.state == ready || s.state == queued {
		head := s.q.front()
		switch s.state {
		case blocked:
			s.leaveList()
		case queued:
			s.dev.backlog.Remove(s.level, func(o *Stream) bool { return o == s })
		}
		// As an empty operation it can run wherever the stream stands.
		s.undo(head)
		head.kind, head.ref, head.on, head.timer = opNop, nil, nil, nil
		n++
		if s.state != ready {
			e.advance(s)
		}
	}
	e.sched.Point(Ended, s, nil, 0)
	return n
}

// undo takes back what an operation that will not run has announced elsewhere.
func (s *Stream) undo(o *op) {
	switch o.kind {
	case opCall, opPass, opReport, opReportPass:
		s.eng.unpark(o.ref.(driver.Sink).Drop(o.arg))
	case opWait, opWaitSet:
		if o.timer != nil {
			o.timer.Stop()
		}
		if ev, ok := o.ref.(*Event); ok {
			ev.waits--
		}
	case opWork:
		s.drop(o.ref.(work))
	case opRecord:
		// Whoever waits for the record goes on: its work is gone.
		s.eng.stamp(*o)
	}
}
