package host

import (
	"sync/atomic"

	"halstream/hal/park"
	"halstream/hal/prio"
)

const (
	// spinNS is how long the pump looks for work before it sleeps. Waking it
	// costs microseconds, so it stays awake through the gaps of a busy program.
	spinNS = 50_000
	// batch bounds how many operations run under one hold of the lock, so that
	// a caller that keeps Python's lock does not wait long for it.
	batch = 16
	// leaveNS is how long the pump leaves new work alone. What has just become
	// ready is often run by the very thread that made it so, when it waits:
	// taking it away from there at once would cost both of them more than the
	// work itself.
	leaveNS = 1_000
	// helpMost bounds how much a thread that waits runs itself.
	helpMost = 256
)

// parallel runs ready streams as soon as it can: on the pump, one goroutine
// that spins for a while and then sleeps, and on threads that wait.
type parallel struct {
	r      Runner
	ready  prio.Queue[*Stream]
	avail  int32 // ready.Len(), written under the lock and read by a pump that spins
	parked bool  // the pump sleeps and nobody has woken it yet
	sleep  *park.Parker
	closed bool
	handed bool // the last operation that ran went to an engine
	done   chan struct{}
}

// Parallel returns the default scheduler: real threads, most urgent first.
func Parallel() Scheduler {
	return &parallel{sleep: park.Get(), done: make(chan struct{}), parked: true}
}

func (p *parallel) Attach(r Runner) {
	p.r = r
	go p.pump()
}

func (p *parallel) Ready(s *Stream) {
	p.ready.Push(s.level, s)
	atomic.StoreInt32(&p.avail, int32(p.ready.Len()))
}

func (p *parallel) Added(*Stream) {}

func (p *parallel) Point(why Reason, s *Stream, done func() bool, _ int64) {
	switch why {
	case Enqueued:
		// Handing a host function over is no work: its dispatcher can be woken
		// from here instead of by the pump.
		if s != nil && s.state == ready && handsOver(s.q.front()) && p.ready.Len() == 1 {
			p.one()
		}
	case Blocked:
		for n := 0; n < helpMost && !done() && p.one(); n++ {
			if n%batch == batch-1 {
				p.r.Unlock()
				p.r.Lock()
			}
		}
	case Ended:
		for n := 0; n < batch && p.one(); n++ {
		}
	}
}

// Unlocking asks for the pump when something is ready and nobody is awake.
func (p *parallel) Unlocking() bool {
	if p.parked && p.ready.Len() > 0 {
		p.parked = false
		return true
	}
	return false
}

// Unlocked wakes the pump.
func (p *parallel) Unlocked() { p.sleep.Unpark() }

// one runs the head operation of the most urgent ready stream.
func (p *parallel) one() bool {
	s, ok := p.ready.Pop()
	if !ok {
		return false
	}
	atomic.StoreInt32(&p.avail, int32(p.ready.Len()))
	p.r.Run(s)
	p.handed = s.state == running && s.q.front().kind == opWork
	return true
}

func (p *parallel) Close() {
	p.r.Lock()
	p.closed = true
	// Every thread that clears parked unparks the pump exactly once, and the pump
	// takes that permit before it goes on: none is left when the parker is given
	// back.
	wake := p.parked
	p.parked = false
	p.r.Unlock()
	if wake {
		p.Unlocked()
	}
	<-p.done
	park.Put(p.sleep)
}

func (p *parallel) pump() {
	defer close(p.done)
	p.sleep.Park(-1, 0)
	for {
		p.r.Lock()
		if p.closed {
			p.r.Unlock()
			return
		}
		more := true
		for n := 0; n < batch && more; n++ {
			more = p.one()
		}
		wait := int64(spinNS)
		if p.handed {
			// An engine needs a processor now, and so does the caller: where there
			// are two, a pump that spins takes one of them away.
			wait = 0
		}
		p.r.Unlock()
		if more || spin(&p.avail, wait, leaveNS) {
			continue
		}
		p.r.Lock()
		p.parked = p.ready.Len() == 0 && !p.closed
		sleep := p.parked
		p.r.Unlock()
		if sleep {
			p.sleep.Park(-1, 0)
		}
	}
}

// handsOver reports whether running an operation only gives it to another thread.
func handsOver(o *op) bool {
	if o.kind == opWork {
		return !o.ref.(work).short()
	}
	return o.kind == opCall
}
