package hal

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal/park"
)

// Given is what a thread finds when it is woken in its seat: the layout is C's, too.
type Given struct {
	Token uint64
	Flags uint32
	// Taken is set to 1 by the thread once it has found it. Atomic.
	Taken uint32
}

// Bits of Given.Flags.
const (
	GivenDrop  = 1 << iota // see Task
	GivenSpawn             // see Task
	GivenWatch             // call Queue.Watch before the function runs
)

// awake reports whether t knows of the function that it was given.
func (t *Thread) awake() bool { return t.given == nil || atomic.LoadUint32(&t.given.Taken) != 0 }

// Seat is where a thread that serves a queue sleeps outside of any call: it waits
// for the parker, whose memory is C's, and finds in given what it is to run. So it
// starts the function without a call of the runtime. Without a token and flags it is
// to call NextOrSit again.
// It sets Taken when it has looked: until then it counts as one that is about to go on.
//
// Contract: H1, H5.
type Seat struct {
	parker *park.Parker
	given  *Given
}

// NewSeat returns a seat that uses the given memory until Free.
func NewSeat(given *Given) *Seat { return &Seat{park.Get(), given} }

// Parker returns the address of the parker, for hs_park_wait of package park.
func (s *Seat) Parker() unsafe.Pointer { return s.parker.Address() }

// Free gives the seat up: its thread does not sit in it, and will not.
func (s *Seat) Free() { park.Put(s.parker) }

// idler is a thread that waits for a function.
type idler struct {
	p    *park.Parker
	t    *Thread
	seat *Seat // nil: when it is woken it takes a function itself
}

// give hands a function to a thread in its seat, which wakes with it. The lock is held.
func (q *Queue) give(w idler, k readyFunc) {
	task := q.begin(w.t, k)
	flags := uint32(0)
	if task.Drop {
		flags |= GivenDrop
	} else if k.watch != nil {
		flags |= GivenWatch
	}
	if task.Spawn {
		flags |= GivenSpawn
	}
	w.seat.given.Token, w.seat.given.Flags = task.Token, flags
	w.t.given = w.seat.given
}

// NextOrSit is Next without waiting; where there is no function it returns
// Task.Sit, and the thread is to wait in its seat.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//
// Contract: H1, H3, H5.
func (q *Queue) NextOrSit(t *Thread, seat *Seat) (Task, error) {
	if err := t.checkCaller("take a function"); err != nil {
		return Task{}, err
	}
	q.mu.Lock()
	return q.take(t, 0, seat), nil
}

// DoneOrSit is Done followed by NextOrSit. If the stream reaches its next function at
// once, this thread takes it, and no other thread is woken.
//
// Contract: H1, H2.
func (q *Queue) DoneOrSit(t *Thread, failed bool, err *Error, seat *Seat) (task Task, unreported bool) {
	q.mu.Lock()
	q.switching++
	unreported = q.end(t, failed, err)
	q.mu.Lock()
	q.switching--
	return q.take(t, 0, seat), unreported
}

// Watch begins to observe what the function that t was given changes.
func (q *Queue) Watch(t *Thread) {
	q.mu.Lock()
	w := t.running.watch
	q.mu.Unlock()
	if w != nil {
		w.begin()
	}
}

// Leave ends the wait of a thread in its seat after a time in vain. left is false
// if the thread was chosen meanwhile: it is to wait for the permit, which follows.
// end says that the thread must end: there are enough of them.
func (q *Queue) Leave(t *Thread, seat *Seat) (left, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.removeIdle(seat.parker) {
		return false, false
	}
	end = len(q.idle) > 0
	if end {
		q.threads--
		q.removeWorker(t)
	}
	return true, end
}

// SetPressure sets the word that is not 0 while functions wait and no thread is free
// for them: a thread that runs a burst is to call Yield then. Its memory has to last as
// long as q.
func (q *Queue) SetPressure(word *atomic.Uint32) {
	q.mu.Lock()
	q.pressure = word
	q.mu.Unlock()
}

// Pressure returns the word of SetPressure, nil without one.
func (q *Queue) Pressure() *atomic.Uint32 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pressure
}

// press keeps the word of SetPressure. The lock is held.
func (q *Queue) press() {
	if q.pressure == nil {
		return
	}
	var n uint32
	if q.ready.Len() > q.switching && len(q.idle) == 0 {
		n = 1
	}
	if q.pressure.Load() != n {
		q.pressure.Store(n)
	}
}
