package host

import (
	"sync"
	"sync/atomic"
	"time"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

// engine moves the streams of all host devices. The fields of streams, events and
// gates are guarded by its one lock, which is never held across a C call, a wait or
// a function of the program.
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
	// reached collects the notices of fences that were reached, likewise.
	reached []*notice
	// woken are the workers that were given work and have not begun it.
	woken []*worker
	// engines is how many workers one device may have at work.
	engines      int
	kernelMemory kernelMemory
	// kernelLimit is after how many instructions a kernel fails.
	kernelLimit int64
	// following says that the times of tagged operations are collected in executed.
	following bool
	executed  []driver.Execution
	// onSequence is called with the tag of each operation that is put on a stream.
	onSequence func(driver.Tag)
	values     values
	branches   atomic.Uint64 // how many branches of graphs were ever made
	// pending is closed when a stream has work; nil where nobody waits for that.
	pending chan struct{}
	// titles give what replaces each titleMark of the text that is being made.
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

// use sets the engine's scheduler. The lock is held, or no other thread uses the
// engine yet.
func (e *engine) use(s sched.Scheduler, text string) {
	e.sched, e.clock, e.spec = s, s.Clock(e.real), text
	e.parallel.Store(s.Parallel())
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
	e.reportSequenced(o.tag)
	ep := s.dev.join(s)
	s.submitted.Add(1)
	s.legacySeen = s.dev.default_.submitted.Load()
	parallel := e.parallel.Load()
	if parallel && s.state == sched.Idle && (ep == nil || ep.open) && o.kind == opRecord {
		s.completed.Add(1)
		e.stamp(o)
		e.completedAtEnqueue(o.tag)
		return
	}
	o.ep = ep
	if ep != nil {
		ep.pending++
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

// addBarrier ends a wait for something that is complete. On the legacy default stream it
// still is a barrier in the legacy order: what the ordered streams have enqueued comes before
// it, and what they enqueue later comes after it. On other streams nothing is enqueued.
func (e *engine) addBarrier(s *Stream, tag driver.Tag) {
	if s.legacy && s.dev.unorderedWork() {
		e.add(s, &op{kind: opNop, tag: tag})
		return
	}
	e.reportSequenced(tag)
	e.completedAtEnqueue(tag)
}

// completeByDefinition reports whether a wait for a fence enqueues nothing, because the
// fence is reached. Under a deterministic schedule every wait is enqueued: which
// operations there are, and so their numbers, must not depend on the order in which
// they run.
func (e *engine) completeByDefinition(at fence) bool { return e.parallel.Load() && at.reached() }

// reportSequenced reports an operation whose sequence number is final. The lock is held.
func (e *engine) reportSequenced(tag driver.Tag) {
	if tag != 0 && e.onSequence != nil {
		e.onSequence(tag)
	}
}

// completedAtEnqueue notes an operation that was complete when it was enqueued.
func (e *engine) completedAtEnqueue(tag driver.Tag) {
	if e.following && tag != 0 {
		now := e.clock.Now()
		e.executed = append(e.executed, driver.Execution{Tag: tag, Began: now, Ended: now})
	}
}

// advance decides what becomes of a stream that runs nothing: it goes idle, its head
// operation is ready, or that waits for something that will call advance again.
func (e *engine) advance(s *Stream) {
	if s.q.n == 0 {
		s.state = sched.Idle
		s.dev.deactivate(s)
		return
	}
	s.state = sched.Stalled
	o := s.q.front()
	if o.ep != nil && !o.ep.open {
		o.ep.blocked = append(o.ep.blocked, s)
		return
	}
	switch o.kind {
	case opWait:
		if t := o.on; t.completed.Load() < o.arg {
			t.waiting.add(waiter{seq: o.arg, stream: s})
			s.startTimer(o.limit)
			return
		}
	case opLaunch:
		if at := o.launchBefore(); at.on != nil {
			o.on, o.arg = at.on, at.seq
			at.on.waiting.add(waiter{seq: at.seq, stream: s})
			return
		}
	case opWaitSet:
		if ev := o.ref.(*Event); !ev.set {
			ev.blocked = append(ev.blocked, s)
			s.startTimer(o.limit)
			return
		}
	case opGate:
		if g := o.ref.(*gate); !g.open.Load() {
			g.blocked = s
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
	if o.kind == opWait && o.on.dev != s.dev {
		if err := o.on.dev.lost.Load(); err != nil { // what it waits for may not have run
			s.lose(err)
			o = s.q.front()
		}
	}
	if e.following {
		s.rareState().began = e.clock.Now()
	}
	switch o.kind {
	case opRecord:
		e.stamp(o)
	case opReset:
		o.ref.(*Event).set = false
	case opWriteValue:
		o.ref.(*valueOp).write()
	case opCall, opReport:
		s.state = sched.Running
		e.unpark(o.ref.(driver.Sink).Ready(o.arg, s.level, s))
		return
	case opLaunch:
		s.state = sched.Running
		if o.ref.(*launch).begin(s) {
			return // branchEnded continues
		}
	case opBody:
		s.state = sched.Running
		if o.ref.(*bodyRun).begin(s) {
			return // branchEnded continues
		}
	case opBranchEnd:
		l := o.ref.(*launch)
		e.finish(s)
		e.advance(s)
		l.branchEnded(s)
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
		e.executed = append(e.executed, driver.Execution{Tag: o.tag, Began: s.rareState().began, Ended: e.clock.Now()})
	}
	ep, changed := o.ep, o.kind.changes()
	size := 1
	var droppedEpochs []*epoch
	if rare := s.rare; rare != nil {
		size += rare.droppedOps
		droppedEpochs = rare.droppedEpochs
		rare.droppedOps, rare.droppedEpochs = 0, nil
	}
	s.q.pop()
	if done := s.completed.Add(uint64(size)); len(s.waiting) > 0 {
		e.releaseUntil(s, done)
	}
	if ep != nil {
		s.dev.leave(ep)
	}
	for _, ep := range droppedEpochs {
		s.dev.leave(ep)
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

// releaseThreads wakes the threads that wait for a stream which a function of the
// program still blocks: no thread may be left to complete that function.
func (e *engine) releaseThreads(s *Stream) {
	for _, w := range s.waiting {
		e.release(w)
	}
	s.waiting = nil
}

// stamp makes the event of a record operation stand as done.
func (e *engine) stamp(o *op) {
	ev := o.ref.(*Event)
	if ev.at.seq == o.arg && ev.at.on == o.on && ev.opts.Timing {
		ev.when = e.clock.Now()
	}
	if ev.opts.Settable {
		ev.set = true
		blocked := ev.blocked
		ev.blocked = nil
		for _, s := range blocked {
			if s.state == sched.Stalled {
				e.advance(s)
			}
		}
	}
}

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
// Larger ones run on a worker, so that other threads of the program can run meanwhile.
const maxInlineStep = 1 << 20

// Step implements sched.Runner.
func (e *engine) Step(stream sched.Stream, began int64) {
	s := stream.(*Stream)
	s.rareState().began = began
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

// text returns what describe returns with the lock held, with the titles of nodes in it.
func (e *engine) text(describe func() string) string {
	e.Lock()
	text := describe()
	titles := e.titles
	e.titles = nil
	e.Unlock()
	return withTitles(text, titles)
}

// realTime is the monotonic clock of the machine.
type realTime struct{ start time.Time }

// machineClock returns the machine's monotonic clock.
func machineClock() sched.Clock { return realTime{time.Now()} }

// Now implements sched.Clock.
func (c realTime) Now() int64 { return int64(time.Since(c.start)) }

// After implements sched.Clock.
func (c realTime) After(ns int64, f func()) sched.Timer { return time.AfterFunc(time.Duration(ns), f) }
