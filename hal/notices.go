package hal

import (
	"runtime"
	"sync"
	"time"

	"halstream/hal/driver"
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

// looks looks at the points of backends that cannot say when a point is reached: one
// goroutine for all of them, which ends when there is none.
type looks struct {
	mu      sync.Mutex
	points  map[*notice]driver.Point
	running bool
}

var looker = looks{points: map[*notice]driver.Point{}}

const (
	// lookBusy is for how long it looks without a pause after a point was reached or added.
	lookBusy = 50 * time.Microsecond
	// The pauses after that double from the first to the last length.
	lookFirst = 20 * time.Microsecond
	lookLast  = time.Millisecond
)

// add has w called when p is reached.
func (l *looks) add(p driver.Point, w *notice) (cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.points[w] = p
	if !l.running {
		l.running = true
		go l.work()
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.points, w)
	}
}

func (l *looks) work() {
	pause := time.Duration(0)
	since := time.Now()
	known := 0
	for {
		found, all := l.look()
		switch {
		case all == 0:
			return
		case found > 0 || all > known:
			pause, since = 0, time.Now()
		case pause > 0:
			pause = min(2*pause, lookLast)
		case time.Since(since) > lookBusy:
			pause = lookFirst
		}
		if known = all; pause > 0 {
			time.Sleep(pause)
		} else {
			runtime.Gosched()
		}
	}
}

// look looks at each point once, and returns how many were reached and how many there
// were. If there are none the goroutine ends.
func (l *looks) look() (found, all int) {
	l.mu.Lock()
	points := make(map[*notice]driver.Point, len(l.points))
	for w, p := range l.points {
		points[w] = p
	}
	l.running = len(points) > 0
	l.mu.Unlock()
	for w, p := range points {
		if !p.Wait(0) {
			continue
		}
		l.mu.Lock()
		_, still := l.points[w]
		delete(l.points, w)
		l.mu.Unlock()
		if still {
			w.Reached()
			found++
		}
	}
	return found, len(points)
}
