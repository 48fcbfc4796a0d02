package hal

import (
	"sync"

	"halstream/hal/driver"
	"halstream/hal/status"
)

// Notices are the waits of a program that sleeps in one place for all of them, such as
// an event loop. The program begins a wait with [Stream.Notify] or [Event.Notify],
// learns from Take which of its waits may end, and ends each of them with End or Drop.
type Notices struct {
	ring func()
	shut func()

	mu      sync.Mutex
	waits   map[uint64]*notice
	reached []uint64
	rung    bool // ring was called since the last Take
	ringing int  // calls of ring that have not returned
	closed  bool
}

// notice is a wait that was begun and not ended. It implements driver.Notice.
type notice struct {
	to      *Notices
	number  uint64
	point   driver.Point
	outcome func() error // what a synchronize that was successful would return
	plain   func() bool  // whether that is certainly nothing
	cancel  func()       // guarded by the lock of to; nil until it is known, and once it was called
	dropped bool
	ended   bool  // only for Take
	look    int64 // how long End lets operations run, in ns
}

// scheduleLookNS is how long End lets the chosen operations run under a deterministic
// schedule. The device moves there only during calls, and repeated looks without a limit
// count as one call. It is short, as what is waited for may need another task of the loop.
const scheduleLookNS = 20_000_000

// NewNotices returns Notices without waits. ring is called when a wait may end, on any
// thread and at most once until the next Take, so that many ends make the program look
// once; it must not block. shut is called once after Close, when ring is called no more.
func NewNotices(ring, shut func()) *Notices {
	return &Notices{ring: ring, shut: shut, waits: map[uint64]*notice{}}
}

// Notify begins a wait for all work enqueued on s so far, and reports whether that is
// pending. If it is not, the call has done what Synchronize does. number names the wait
// in n, which has no other one of that number.
//
// # Errors: as for Synchronize, of work that is done; [ErrClosed] for closed Notices.
//
// Contract: Z1, Z2, Z3.
func (s *Stream) Notify(t *Thread, n *Notices, number uint64) (pending bool, err error) {
	outcome := func() error {
		if err := s.Failure(); err != nil {
			return err
		}
		return s.dev.Lost()
	}
	if !s.dev.rt.Deterministic() { // there it would be a call of its own, whose answer the order decides
		if done, err := s.TryFinish(t); err != nil {
			return false, err
		} else if done {
			return false, outcome()
		}
	}
	if err := s.checkNotCaptured(t, "synchronize"); err != nil {
		return false, err
	}
	return n.begin(s.dev.rt, s.observe(t, s.exactPoint()), number, outcome, s.hasNoFailure)
}

// exactPoint is the backend's Point, except that it does not wait for work that is enqueued
// later where a vendor's Point would: a task that waits is where more is enqueued meanwhile.
func (s *Stream) exactPoint() driver.Point {
	v, ok := s.d.(driver.VendorStream)
	if !ok || s.isDefault || !s.dev.Legacy().workDone() { // a mark would wait for the legacy stream
		return s.d.Point()
	}
	place := s.d.Last()
	v.Keep()
	return s.d.At(place)
}

// hasNoFailure reports whether s certainly has no error to report; it leaves what it has.
func (s *Stream) hasNoFailure() bool {
	return s.words != nil && s.words.Special.Load()&status.Failed == 0 && s.dev.Lost() == nil
}

// Notify begins a wait for the latest record of e at this call, as [Stream.Notify] does
// for the work of a stream.
//
// # Errors: as for Synchronize; [ErrClosed] for closed Notices.
//
// Contract: Z1, Z2, Z3.
func (e *Event) Notify(t *Thread, n *Notices, number uint64) (pending bool, err error) {
	p, err := e.Point(t)
	if err != nil || p == nil {
		return false, err
	}
	d := e.Device()
	return n.begin(e.rt, p, number, d.Lost, func() bool { return d.Lost() == nil })
}

// begin lists a wait for p unless p is reached.
func (n *Notices) begin(rt *Runtime, p driver.Point, number uint64, outcome func() error, plain func() bool) (pending bool, err error) {
	if p.Wait(0) {
		return false, outcome()
	}
	w := &notice{to: n, number: number, point: p, outcome: outcome, plain: plain}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return false, closedError("notify", "list of waits")
	}
	n.waits[number] = w
	n.mu.Unlock()
	if rt.Deterministic() {
		w.look = scheduleLookNS
		return true, nil // nothing moves by itself: the program looks with End
	}
	cancel := notify(p, w)
	n.mu.Lock()
	if w.dropped {
		n.mu.Unlock()
		cancel() // closed meanwhile
		return true, nil
	}
	w.cancel = cancel
	n.mu.Unlock()
	return true, nil
}

// notify has w called when p is reached: by the backend, or by the runtime's own look.
func notify(p driver.Point, w *notice) (cancel func()) {
	if o, ok := p.(*observedPoint); ok {
		p = o.Point // listeners are notified by End, on the thread that goes on
	}
	if b, ok := p.(driver.Notifying); ok {
		return b.Notify(w)
	}
	return looker.add(p, w)
}

// Reached implements driver.Notice.
func (w *notice) Reached() {
	n := w.to
	n.mu.Lock()
	if w.dropped {
		n.mu.Unlock()
		return
	}
	n.reached = append(n.reached, w.number)
	if n.rung {
		n.mu.Unlock()
		return
	}
	n.rung = true
	n.ringing++
	n.mu.Unlock()
	n.ring()
	n.mu.Lock()
	n.ringing--
	last := n.closed && n.ringing == 0
	n.mu.Unlock()
	if last {
		n.shut()
	}
}

// Take returns the numbers of the waits that may end since the last call: those that it
// has ended, as they had no error to give, and those that End has to look at.
//
// Contract: Z2, Z3.
func (n *Notices) Take() (ended, others []uint64) {
	n.mu.Lock()
	numbers := n.reached
	n.reached, n.rung = nil, false
	waits := make([]*notice, len(numbers))
	for i, number := range numbers {
		waits[i] = n.waits[number]
	}
	n.mu.Unlock()
	for i, w := range waits {
		switch {
		case w == nil: // dropped meanwhile
		case w.point.Wait(0) && w.plain():
			waits[i].ended = true
			ended = append(ended, w.number)
		default:
			others = append(others, w.number)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range waits {
		if w != nil && w.ended {
			w.dropped, w.cancel = true, nil // its notice has come
			delete(n.waits, w.number)
		}
	}
	return ended, others
}

// End ends a wait whose point is reached and reports whether it is; until then the wait
// goes on. A wait that n does not have has ended.
//
// # Errors
//   - The first error of a function or wait on the stream that was waited for, once.
//   - [ErrDeviceLost].
//
// Contract: Z1, Z3.
func (n *Notices) End(number uint64) (done bool, err error) {
	n.mu.Lock()
	w := n.waits[number]
	n.mu.Unlock()
	if w == nil {
		return true, nil
	}
	if !w.point.Wait(w.look) {
		return false, nil
	}
	n.Drop(number)
	return true, w.outcome()
}

// Drop ends a wait without a look at what it waits for, which stays pending.
//
// Contract: Z4.
func (n *Notices) Drop(number uint64) {
	n.mu.Lock()
	w := n.waits[number]
	delete(n.waits, number)
	cancel := w.dropLocked()
	n.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// dropLocked makes sure that a wait, nil for none, is named no more, and returns what
// gives its notice up, nil for nothing.
func (w *notice) dropLocked() (cancel func()) {
	if w == nil || w.dropped {
		return nil
	}
	w.dropped = true
	cancel, w.cancel = w.cancel, nil
	return cancel
}

// Len returns how many waits were begun and not ended.
func (n *Notices) Len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.waits)
}

// Close drops all waits; later ones are refused. Closing again does nothing.
//
// Contract: Z4.
func (n *Notices) Close() {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return
	}
	n.closed = true
	var cancels []func()
	for _, w := range n.waits {
		if cancel := w.dropLocked(); cancel != nil {
			cancels = append(cancels, cancel)
		}
	}
	clear(n.waits)
	n.reached = nil
	last := n.ringing == 0
	n.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	if last {
		n.shut()
	}
}
