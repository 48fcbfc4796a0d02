package sched

import (
	"sync/atomic"
	"time"

	"halstream/hal/driver"
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
	// helpMost bounds how many operations a thread that waits runs itself: a millisecond's worth, in which it looks
	// neither at its limit nor for signals.
	helpMost = 2048
	// helpNS is how long the pump leaves work to threads that wait.
	helpNS = 50_000
)

// parallel runs ready streams as soon as it can: on the pump, one goroutine
// that spins for a while and then sleeps, and on threads that wait.
type parallel struct {
	r      Runner
	ready  prio.Queue[Stream]
	avail  int32 // ready.Len(), written under the lock and read by a pump that spins
	parked bool  // the pump sleeps and nobody has woken it yet
	sleep  *park.Parker
	closed bool
	handed bool  // the last operation that ran went to an engine
	waker  int32 // the processor of the thread that woke the pump; -1: not known
	done   chan struct{}
	// helping is how many threads run streams while they wait, written under the lock. The pump reads it without, and has it
	// in a cache line of its own, since the other fields change with each operation.
	_       [64]byte
	helping int32
	_       [60]byte
}

// NewParallel returns the default scheduler: real threads, most urgent first.
func NewParallel() Scheduler {
	return &parallel{sleep: park.Get(), done: make(chan struct{}), parked: true, waker: -1}
}

// Attach implements Scheduler.
func (p *parallel) Attach(r Runner) {
	p.r = r
	go p.pump()
}

// Clock implements Scheduler.
func (p *parallel) Clock(real Clock) Clock { return real }

// Parallel implements Scheduler.
func (p *parallel) Parallel() bool { return true }

// Run implements Scheduler: nothing is kept of what happens.
func (p *parallel) Run() driver.Run { return driver.Run{} }

// Ready implements Scheduler.
func (p *parallel) Ready(s Stream) {
	p.ready.Push(s.Level(), s)
	atomic.StoreInt32(&p.avail, int32(p.ready.Len()))
}

// Added implements Scheduler.
func (p *parallel) Added(Stream, string) {}

// Numbered implements Scheduler.
func (p *parallel) Numbered(Stream) {}

// Point implements Scheduler.
func (p *parallel) Point(why Reason, s Stream, done func() bool, _ int64) {
	switch why {
	case Enqueued:
		// Handing a host function over is no work: its dispatcher can be woken
		// from here instead of by the pump.
		if p.ready.Len() == 1 && s != nil && s.State() == Ready && s.HandsOver() {
			p.one()
		}
	case Blocked:
		atomic.AddInt32(&p.helping, 1)
		for n := 0; n < helpMost && !done() && (p.one() || p.r.Help()); n++ {
			if n%batch == batch-1 {
				p.r.Unlock()
				p.r.Lock()
			}
		}
		atomic.AddInt32(&p.helping, -1)
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
func (p *parallel) Unlocked() {
	atomic.StoreInt32(&p.waker, processor())
	p.sleep.Unpark()
}

// one runs the head operation of the most urgent ready stream.
func (p *parallel) one() bool {
	s, ok := p.ready.Pop()
	if !ok {
		return false
	}
	atomic.StoreInt32(&p.avail, int32(p.ready.Len()))
	p.handed = p.r.Run(s)
	return true
}

// Close implements Scheduler.
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
	// Where no processor is free the pump runs in place of the thread that woke it. To
	// look for more work would then only keep that thread from enqueueing some, unless
	// it enqueues so fast that each operation would wake the pump again.
	waker := int32(-1)
	for {
		// Two threads that run streams in turns, a batch each, take longer than one: only one of them has the lock, and
		// what it works on goes from the cache of one processor to that of the other. Where the pump runs in place of the
		// thread that woke it, that one cannot go on.
		spinWhile(&p.helping, helpNS, atomic.LoadInt32(&p.waker))
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
		if more || spin(&p.avail, wait, leaveNS, waker) {
			continue
		}
		p.r.Lock()
		p.parked = p.ready.Len() == 0 && !p.closed
		sleep := p.parked
		p.r.Unlock()
		if sleep {
			began := time.Now()
			p.sleep.Park(-1, 0)
			waker = -1
			if time.Since(began) > spinNS {
				waker = atomic.LoadInt32(&p.waker)
			}
		}
	}
}
