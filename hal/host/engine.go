package host

import (
	"slices"
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
	s.seal()
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
		if t := o.on; t != nil && t.words.Completed.Load() < o.arg {
			t.waiting.add(waiter{seq: o.arg, stream: s})
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
		if b := o.ref.(*bodyRun); b.holds() && b.run.spread(s) {
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
	if e.following && o.tag != 0 {
		e.executed = append(e.executed, driver.Execution{Tag: o.tag, Began: s.extra().began, Ended: e.clock.Now()})
	}
	ep, changed := o.ep, o.kind.changes()
	if s.q.n == 1 {
		s.seal()
	}
	size := o.size()
	var droppedEpochs []*epoch
	if few := s.extras; few != nil {
		size += few.skip
		droppedEpochs = few.droppedEpochs
		few.skip, few.droppedEpochs = 0, nil
	}
	s.q.pop()
	done := s.words.Completed.Add(uint64(size))
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

// assigned is a running operation that an engine has not begun yet.
type assigned struct {
	stream *Stream
	work   work
}

// start gives an engine to the stream, or queues it for one. An engine that is about
// to look for work is preferred: starting another one costs the caller more.
func (e *engine) start(s *Stream) {
	d := s.dev
	w := s.q.front().ref.(work)
	if d.leaving > len(d.next) && d.backlog.Len() == 0 {
		d.next = append(d.next, assigned{s, w})
		return
	}
	if d.busy == e.engines || s.parent() != nil && d.branches.wait(d) {
		s.state = sched.Queued
		d.backlog.Push(s.level, s)
		return
	}
	e.assign(d, s, w)
}

// assign gives work to an engine that has none. The lock is held.
func (e *engine) assign(d *Device, s *Stream, w work) {
	d.busy++
	if n := len(d.resting); n > 0 {
		r := d.resting[n-1]
		d.resting = d.resting[:n-1]
		r.stream, r.work = s, w
		e.unpark(r.parker)
		return
	}
	go e.work(d, s, w)
}

// resting is an engine without work. It looks for work, and then sleeps for a while
// before it ends: starting one costs more than most operations.
type resting struct {
	parker *park.Parker
	stream *Stream // set by who wakes it
	work   work
	ended  bool // woken because the backend was closed
}

const (
	// lingerNS is how long an engine stays without work.
	lingerNS = 100_000_000
	// lookNS is how long it looks for work before it sleeps, at least. It looks for
	// twice as long as its last work took, up to lookMostNS: a program that copies,
	// and works on what it copied, comes back after about that time, and waking an
	// engine would cost it a part of what sharing the copy saves.
	lookNS     = 50_000
	lookMostNS = 200_000
)

// followMost is how many short operations of a stream an engine runs, one after the other, before it
// looks at other streams and at the clock: each takes as long as such an operation.
const followMost = 16

// follows returns the work that has become the head of s, if the engine that ran the one before is to run it
// at once: giving the engine up and getting it back takes longer than a short function. It returns nil if more
// urgent work waits, or any, unless s runs a branch of a launch: that one ends. The lock is held.
func (e *engine) follows(d *Device, s *Stream) work {
	if s.q.n == 0 || !e.parallel.Load() || d.backlog.Len() > 0 && (s.parent() == nil || d.backlog.First().level < s.level) {
		return nil
	}
	o := s.q.front()
	if o.kind != opWork || o.ep != nil && !o.ep.open {
		return nil
	}
	w := o.ref.(work)
	if w.short() {
		return nil
	}
	if e.following {
		s.extra().began = e.clock.Now()
	}
	return w
}

// work runs engine operations of a device, the most urgent stream's first,
// until none comes for a while.
func (e *engine) work(d *Device, s *Stream, w work) {
	defer yieldToWaker()()
	clock := machineClock()
	began, took := clock.Now(), int64(awakeNS) // nanoseconds of an operation; not known yet
	for n := int64(1); ; n++ {
		done := w.run()
		e.Lock()
		if done {
			e.finish(s)
			if next := e.follows(d, s); next != nil && took < awakeNS && n < followMost {
				w = next
				e.Unlock()
				continue
			}
			d.leaving++ // what follows on this stream is often the next work
		}
		now := clock.Now()
		took, began, n = (now-began)/n, now, 0
		if done {
			if s.parent() != nil {
				d.branches.took = took
			}
			e.advance(s)
		}
		e.point(sched.Ended, s, nil, 0)
		d.leaving--
		var r *resting
		var next *Stream
		if len(d.next) > 0 {
			next, w = d.next[0].stream, d.next[0].work
			d.next = slices.Delete(d.next, 0, 1)
		} else if queued, ok := d.backlog.Pop(); ok {
			next = queued
			next.state = sched.Running
			if e.following {
				next.extra().began = e.clock.Now()
			}
			w = next.q.front().ref.(work)
		} else {
			d.busy--
			d.branches.taken = true
			d.runsOn = sched.Processor()
			r = &resting{parker: park.Get()}
			d.resting = append(d.resting, r)
		}
		e.Unlock()
		s = next
		if r != nil {
			if s, w = e.rest(d, r, lookFor(took)); s == nil {
				return
			}
			began = clock.Now()
		}
	}
}
