package host

import (
	"slices"

	"halstream/hal/host/sched"
	"halstream/hal/park"
)

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

// followMost is how many short operations of a branch of a launch an engine runs, one after the other, before it
// looks at other branches and at the clock: each takes as long as such an operation.
const followMost = 16

// follows returns the work that has become the head of s, a branch of a launch, if the engine that ran the one before
// is to run it at once: giving the engine up and getting it back takes longer than a short function. It returns nil
// if more urgent work waits, and for other streams: an engine that keeps pace with the thread that enqueues the functions
// makes that wait for the lock each time (torch's small operators took twice as long). The lock is held.
func (e *engine) follows(d *Device, s *Stream) work {
	if s.parent() == nil || s.q.n == 0 || !e.parallel.Load() || d.backlog.Len() > 0 && d.backlog.First().level < s.level {
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
