package host

import (
	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// limit starts the time limit of the wait at the head of a blocked stream. A
// wait further behind has not begun to wait, so it needs no timer yet.
func (e *engine) limit(s *Stream, ns int64) {
	if ns == driver.Forever || s.limited() {
		return
	}
	seq := s.words.Completed.Load() + 1
	s.extra().timer = e.clock.After(ns, func() {
		e.Lock()
		defer e.Unlock()
		e.expireLocked(s, seq)
	})
}

// stopTimer ends the time limit of the head operation, if it has one.
func (s *Stream) stopTimer() {
	if s.limited() {
		s.extras.timer.Stop()
		s.extras.timer = nil
	}
}

// expireLocked ends the wait at place seq with a Timeout error if it still blocks the
// stream: the timer may have fired while something else ended the wait. The caller
// holds mu.
func (e *engine) expireLocked(s *Stream, seq uint64) {
	if !s.limited() || s.state != sched.Stalled || s.words.Completed.Load()+1 != seq {
		return
	}
	s.extras.timer = nil
	v := s.q.front().ref.(*Event)
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
	case opWait, opLaunch:
		if o.on == nil {
			return
		}
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
	case opWaitValue:
		s.eng.values.waiting = without(s.eng.values.waiting, s)
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

// AbortStream implements driver.Simulator. An operation that an engine or a host
// function already runs is not interrupted; the body of a node does not run again.
func (d *Driver) AbortStream(s driver.Stream) int {
	d.eng.Lock()
	defer d.eng.Unlock()
	return s.(*Stream).abort()
}

func (s *Stream) abort() int {
	e := s.eng
	if s.state == sched.Idle {
		return 0
	}
	if s.awaited() {
		s.fail(driver.Errorf(driver.Aborted, "synchronize", "the pending work of %s was dropped", s.title()))
	}
	rest := s.q.drop()
	if last := len(rest) - 1; s.parent() != nil && last >= 0 {
		s.q.push(&rest[last]) // the launch goes on when the lane has ended
		rest = rest[:last]
	}
	n := len(rest)
	for i := range rest {
		s.undo(&rest[i])
		if ep := rest[i].ep; ep != nil {
			s.extra().droppedEpochs = append(s.extra().droppedEpochs, ep)
		}
	}
	s.extra().skip += n
	head := s.q.front()
	if l := s.started(); l != nil {
		l.stop()
		if l.body != nil {
			l.body.stopped = true
		}
	}
	if head.kind == opLaneEnd {
		// It can run, and has to: the launch goes on behind it.
	} else if s.state == sched.Stalled || s.state == sched.Ready || s.state == sched.Queued {
		switch s.state {
		case sched.Stalled:
			s.leaveList()
		case sched.Queued:
			s.dev.backlog.Remove(s.level, func(o *Stream) bool { return o == s })
		}
		// As an empty operation it can run whatever the stream waits for.
		s.undo(head)
		head.kind, head.ref, head.on = opNop, nil, nil
		n++
		if s.state != sched.Ready {
			e.advance(s)
		}
	}
	e.point(sched.Ended, s, nil, 0)
	return n
}

// undo reverts what enqueuing an operation that will not run has changed elsewhere.
func (s *Stream) undo(o *op) {
	switch o.kind {
	case opCall, opPass, opReport, opReportPass:
		s.eng.unpark(o.ref.(driver.Sink).Drop(o.arg))
	case opWait, opWaitSet:
		if ev, ok := o.ref.(*Event); ok {
			ev.waits--
		}
	case opLaunch:
		s.eng.dropLaunch(o.ref.(*launch))
	case opWork:
		s.drop(o.ref.(work))
	case opRecord:
		// Streams that wait for the record continue: the work before it was dropped.
		s.eng.stamp(o)
	}
}
