package host

import (
	"slices"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

// worker is a thread that runs operations which take time. Without work it spins a little, then
// parks, and ends a while later: starting one costs more than most operations.
type worker struct {
	parker *park.Parker
	// stream and work are set by the thread that wakes an idle worker.
	stream *Stream
	work   work
	ended  bool // woken because the backend was closed
}

const (
	// lingerNS is for how many nanoseconds a worker stays without work.
	lingerNS = 100_000_000
	// workerSpinNS is for how many of them it spins before it parks.
	workerSpinNS = 50_000
)

// start has a worker run the head operation of a stream, the most urgent stream's first. The
// operation waits in the backlog while all workers are at work, and for one that is about to look
// there: waking another one costs the caller more. The lock is held.
func (e *engine) start(s *Stream) {
	d := s.dev
	s.state = sched.Queued
	d.backlog.Push(s.level, s)
	if d.busy == e.engines || d.backlog.Len() <= d.looking {
		return
	}
	s, w := e.take(d)
	d.busy++
	if n := len(d.idle); n > 0 {
		idle := d.idle[n-1]
		d.idle = d.idle[:n-1]
		idle.stream, idle.work = s, w
		e.unpark(idle.parker)
		return
	}
	go e.work(d, s, w)
}

// take takes the most urgent operation from the backlog of a device; nil if there is none. The
// lock is held.
func (e *engine) take(d *Device) (*Stream, work) {
	s, ok := d.backlog.Pop()
	if !ok {
		return nil, nil
	}
	s.state = sched.Running
	if e.following {
		s.extra().began = e.clock.Now()
	}
	return s, s.q.front().ref.(work)
}

// work is what a worker of a device does: it runs operations until none comes for a while.
func (e *engine) work(d *Device, s *Stream, w work) {
	defer yieldToWaker()()
	me := &worker{parker: park.Get()}
	defer park.Put(me.parker)
	for s != nil {
		w.run()
		e.Lock()
		e.finish(s)
		d.looking++ // what follows on this stream is often the next work
		e.advance(s)
		e.point(sched.Ended, s, nil, 0)
		d.looking--
		s, w = e.take(d)
		if s == nil {
			d.busy--
			d.idle = append(d.idle, me)
		}
		e.Unlock()
		if s == nil {
			s, w = e.waitForWork(d, me)
		}
	}
}

// waitForWork spins, then parks, and returns the work that another thread has given to the worker,
// nil if none came. The worker is in the device's list of idle ones.
func (e *engine) waitForWork(d *Device, me *worker) (*Stream, work) {
	woken := me.parker.Park(lingerNS, workerSpinNS)
	e.Lock()
	s, w := me.stream, me.work
	me.stream, me.work = nil, nil
	if s == nil {
		d.idle = slices.DeleteFunc(d.idle, func(o *worker) bool { return o == me })
	}
	unparked := s != nil || me.ended
	e.Unlock()
	if unparked && !woken {
		me.parker.Park(driver.Forever, 0) // another thread is about to unpark it
	}
	return s, w
}
