package host

import (
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

// point is a schedule point of the calling thread. The lock is held.
func (e *engine) point(why sched.Reason, s *Stream, done func() bool, limit int64) {
	if why != sched.Ended && !e.parallel.Load() {
		e.checkValues()
		if reached := done; reached != nil {
			done = func() bool {
				e.checkValues() // the program may have written them meanwhile
				return reached()
			}
		}
	}
	if s == nil {
		e.sched.Point(why, nil, done, limit)
		return
	}
	e.sched.Point(why, s, done, limit)
}

// Wake implements sched.Runner.
func (e *engine) Wake(p *park.Parker) { e.unpark(p) }

// Run implements sched.Runner.
func (e *engine) Run(stream sched.Stream) (onEngine bool) {
	s := stream.(*Stream)
	e.run(s)
	return (s.state == sched.Running || s.state == sched.Queued) && s.q.front().kind == opWork
}

// maxInlineStep is the size in bytes up to which a copy or fill runs within Step.
// Larger ones run on an engine, so that other threads of the program can run meanwhile.
const maxInlineStep = 1 << 20

// Step implements sched.Runner.
func (e *engine) Step(stream sched.Stream, began int64) {
	s := stream.(*Stream)
	s.extra().began = began
	switch o := s.q.front(); o.kind {
	case opPass:
		// Work behind it must not run before it has ended: its thread decides when.
		o.kind = opCall
	case opWork:
		switch w := o.ref.(work).(type) {
		case delayWork:
			e.finish(s)
			e.advance(s)
			return
		case *copyWork:
			if w.Width*w.Height <= maxInlineStep {
				e.runInline(s, w.run)
				return
			}
		case *fillWork:
			if w.Count*uint64(w.Size) <= maxInlineStep {
				e.runInline(s, w.run)
				return
			}
		}
	}
	e.run(s)
}

func (e *engine) runInline(s *Stream, f func()) {
	s.state = sched.Running
	e.Unlock()
	f()
	e.Lock()
	e.finish(s)
	e.advance(s)
}

// Level implements sched.Stream.
func (s *Stream) Level() uint8 { return s.level }

// State implements sched.Stream.
func (s *Stream) State() sched.State {
	if s.started() != nil {
		return sched.Stalled // it waits for the lanes
	}
	return s.state
}

// Enqueued implements sched.Stream.
func (s *Stream) Enqueued() uint64 { return s.words.Submitted.Load() - s.first }

// Completed implements sched.Stream.
func (s *Stream) Completed() uint64 { return s.words.Completed.Load() - s.first }

// Head implements sched.Stream.
func (s *Stream) Head() sched.Op {
	o := s.q.front()
	head := sched.Op{Tag: o.tag, Report: o.kind == opReport, Spreads: o.kind == opLaunch || o.kind == opBody, Cost: cost(o)}
	switch o.kind {
	case opCall, opPass:
		head.Token = o.arg
	case opWork:
		_, head.Delay = o.ref.(delayWork)
	}
	return head
}

// HandsOver implements sched.Stream.
func (s *Stream) HandsOver() bool {
	o := s.q.front()
	switch o.kind {
	case opCall:
		return true
	case opWork:
		return !o.ref.(work).short()
	}
	return false
}

// Pending implements sched.Stream.
func (s *Stream) Pending() bool {
	return s.state != sched.Idle || s.legacy && (!s.dev.last.open || s.dev.last.pending > 0)
}

// Holder implements sched.Stream.
func (s *Stream) Holder() sched.Stream {
	if h := s.holder(); h != nil {
		return h
	}
	return nil
}

func (s *Stream) holder() *Stream {
	if s.state == sched.Idle {
		return s.dev.firstOrdered(s)
	}
	o := s.q.front()
	if l := s.started(); l != nil {
		return l.lane()
	}
	if o.ep == nil || o.ep.open {
		if o.kind == opWait || o.kind == opLaunch {
			return place{o.on, o.arg}.launched().on
		}
		return nil
	}
	// The legacy order puts the work of the open epoch before it.
	var best *Stream
	for t := s.dev.active; t != nil; t = t.next {
		if t == s {
			continue
		}
		if h := t.q.front(); h.ep == nil || !h.ep.open {
			continue
		}
		if t.state == sched.Ready {
			return t
		}
		if t.state == sched.Stalled && t.q.front().kind == opWait {
			best = t
		}
	}
	return best
}

// firstOrdered returns a stream with work that a synchronize of the legacy default
// stream would wait for, nil if s is another stream.
func (d *Device) firstOrdered(s *Stream) *Stream {
	if !s.legacy {
		return nil
	}
	for t := d.active; t != nil; t = t.next {
		if t.ordered {
			return t
		}
	}
	return nil
}
