package host

import (
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

// engine moves the streams of all host devices. Everything that streams,
// events and gates hold is guarded by its one lock, which is never held across
// a C call, a wait or a function of the program.
type engine struct {
	mu    sync.Mutex
	sched sched.Scheduler
	clock sched.Clock
	real  sched.Clock // the machine's
	// parallel says that streams advance on their own, without schedule points.
	parallel atomic.Bool
	spec     string // the schedule's text
	// wake collects the threads to be woken once the lock is released.
	wake []*park.Parker
	// reached collects the notices of places that were reached, likewise.
	reached []*notice
	// engines is how many engine operations of one device may run at once.
	engines int
	// following says that the ends of tagged operations are noted.
	following bool
	executed  []driver.Execution
	// onSequence is called with the tag of each operation that is put on a stream.
	onSequence func(driver.Tag)
	values     values
	lanes      atomic.Uint64 // ever made
	// pending is closed when a stream has work; nil where nobody waits for that.
	pending chan struct{}
	// titles give what stands for the marks of the text that is being made.
	titles []func() string
	// closed says that the backend was closed: no operation is taken any more.
	closed bool
}

// Lock implements sched.Runner.
func (e *engine) Lock() { e.mu.Lock() }

// Unlock implements sched.Runner.
func (e *engine) Unlock() {
	current := e.sched
	kick := current.Unlocking()
	wake := e.wake
	e.wake = nil
	reached := e.reached
	e.reached = nil
	e.mu.Unlock()
	if kick {
		current.Unlocked()
	}
	for _, n := range reached {
		n.to.Reached()
	}
	for _, p := range wake {
		p.Unpark()
	}
}

func (e *engine) unpark(p *park.Parker) {
	if p != nil {
		e.wake = append(e.wake, p)
	}
}

// release wakes a thread, or has a notice called, once the lock is released.
func (e *engine) release(w waiter) {
	e.unpark(w.parker)
	if w.notice != nil {
		e.reached = append(e.reached, w.notice)
	}
}

// submit puts an operation on a stream. It completes within the call only if
// it is complete by definition: nothing is before it and there is nothing to do.
func (e *engine) submit(s *Stream, o *op) error {
	e.Lock()
	if e.closed {
		e.Unlock()
		return errClosed(o.kind.String())
	}
	e.add(s, o)
	e.submitted(s)
	e.Unlock()
	return nil
}

// submitted is the schedule point after an operation was put on s. The lock is held.
func (e *engine) submitted(s *Stream) { e.sched.Point(sched.Enqueued, s, nil, 0) }

// add puts *o on a stream. It takes a pointer since operations are large, and
// most records are done before one is stored.
func (e *engine) add(s *Stream, o *op) {
	e.sequenced(o.tag)
	ep := s.dev.join(s)
	s.words.Submitted.Add(1)
	parallel := e.parallel.Load()
	if parallel && s.state == sched.Idle && (ep == nil || ep.open) && o.kind == opRecord {
		s.words.Completed.Add(1)
		e.stamp(o)
		e.completedAtEnqueue(o.tag)
		return
	}
	o.ep = ep
	if ep != nil {
		ep.pending++
		s.dev.noteOrder()
	}
	s.q.push(o)
	if !parallel {
		e.sched.Added(s, o.kind.String())
		e.checkValues()
	}
	if s.state == sched.Idle {
		s.dev.activate(s)
		e.advance(s)
	}
}

// advance looks at the head operation of a stream that runs nothing: it goes
// idle, is ready, or waits for something that will call advance again.
func (e *engine) advance(s *Stream) {
	if s.q.n == 0 {
		s.state = sched.Idle
		s.dev.deactivate(s)
		return
	}
	s.state = sched.Stalled
	o := s.q.front()
	if o.ep != nil && !o.ep.open {
		o.ep.parked = append(o.ep.parked, s)
		return
	}
	switch o.kind {
	case opWait:
		if t := o.on; t.words.Completed.Load() < o.arg {
			t.waiting.add(waiter{seq: o.arg, stream: s})
			e.limit(s, o.limit)
			return
		}
	case opLaunch:
		if at := o.launchBehind(); at.on != nil {
			o.on, o.arg = at.on, at.seq
			at.on.waiting.add(waiter{seq: at.seq, stream: s})
			return
		}
	case opWaitSet:
		if ev := o.ref.(*Event); !ev.set {
			ev.parked = append(ev.parked, s)
			e.limit(s, o.limit)
			return
		}
	case opGate:
		if g := o.ref.(*gate); !g.open.Load() {
			g.parked = s
			return
		}
	case opWaitValue:
		if v := o.ref.(*valueOp); !v.met() {
			e.awaitValue(s)
			return
		}
	}
	e.ready(s)
}

// ready gives a stream whose head operation can run to the scheduler.
func (e *engine) ready(s *Stream) {
	s.stopTimer()
	s.state = sched.Ready
	e.sched.Ready(s)
}

// run executes the head operation of a ready stream, or starts it.
func (e *engine) run(s *Stream) {
	if s.state != sched.Ready {
		return // of a scheduler that was closed: the stream was run without it
	}
	o := s.q.front()
	if e.following {
		s.extra().began = e.clock.Now()
	}
	switch o.kind {
	case opRecord:
		e.stamp(o)
	case opReset:
		o.ref.(*Event).set = false
	case opWriteValue:
		v := o.ref.(*valueOp)
		atomic.StoreUint64(v.at(), v.Value.Value)
	case opCall, opReport:
		s.state = sched.Running
		e.unpark(o.ref.(driver.Sink).Ready(o.arg, s.level, s))
		return
	case opLaunch:
		s.state = sched.Running
		if o.ref.(*launch).begin(s) {
			return // laneEnded goes on
		}
	case opBody:
		s.state = sched.Running
		if o.ref.(*bodyRun).begin(s) {
			return // laneEnded goes on
		}
	case opLaneEnd:
		l := o.ref.(*launch)
		e.finish(s)
		e.advance(s)
		e.laneEnded(l, s)
		return
	case opPass, opReportPass:
		e.unpark(o.ref.(driver.Sink).Ready(o.arg, s.level, nil))
	case opWork:
		s.state = sched.Running
		w := o.ref.(work)
		if !w.short() {
			e.start(s)
			return
		}
		// As running, the head operation stays where it is meanwhile.
		e.mu.Unlock()
		w.run()
		e.mu.Lock()
	}
	e.finish(s)
	e.advance(s)
}

// finish takes the head operation off the stream and releases who waits for it.
func (e *engine) finish(s *Stream) {
	o := s.q.front()
	if o.kind == opWait || o.kind == opWaitSet {
		if ev, ok := o.ref.(*Event); ok {
			ev.waits--
		}
	}
	if e.following && o.tag != 0 && !s.inBody() { // what runs any number of times has no time of its own
		e.executed = append(e.executed, driver.Execution{Tag: o.tag, Began: s.extra().began, Ended: e.clock.Now()})
	}
	ep, changed := o.ep, o.kind.changes()
	size := 1
	var droppedEpochs []*epoch
	if few := s.extras; few != nil {
		size += few.skip
		droppedEpochs = few.droppedEpochs
		few.skip, few.droppedEpochs = 0, nil
	}
	s.q.pop()
	if done := s.words.Completed.Add(uint64(size)); len(s.waiting) > 0 {
		e.releaseUntil(s, done)
	}
	if ep != nil {
		e.left(s.dev, ep, 1)
	}
	for _, ep := range droppedEpochs {
		e.left(s.dev, ep, 1)
	}
	if changed {
		e.checkValues()
	}
}

// releaseUntil releases who waits for one of the first operations of a stream.
func (e *engine) releaseUntil(s *Stream, done uint64) {
	for len(s.waiting) > 0 && s.waiting[0].seq <= done {
		w := s.waiting.pop()
		if w.stream != nil {
			if w.stream.state == sched.Stalled {
				e.advance(w.stream)
			}
		} else {
			e.release(w)
		}
	}
}

// stamp makes the event of a record operation stand as done.
func (e *engine) stamp(o *op) {
	ev := o.ref.(*Event)
	if ev.at.seq == o.arg && ev.at.on == o.on && ev.opts.Timing {
		ev.when = e.clock.Now()
	}
	if ev.opts.Settable {
		ev.set = true
		parked := ev.parked
		ev.parked = nil
		for _, s := range parked {
			if s.state == sched.Stalled {
				e.advance(s)
			}
		}
	}
}
