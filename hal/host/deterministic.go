package host

import (
	"time"

	"halstream/hal/driver"
	"halstream/hal/park"
)

const (
	// queriesMost is how often in a row a stream may be asked in vain before
	// what is asked for runs: every schedule is fair to this bound.
	queriesMost = 64
	// inlineMostDet is the size up to which a copy or fill runs on the thread that
	// chose it. Larger ones let other threads of the program run meanwhile.
	inlineMostDet = 1 << 20
	// lookNS is how often a thread that waits for a function looks whether that
	// waits for the host.
	lookNS = 10_000_000
	// firstNS is how often it looks as long as the function has run no longer than
	// earlyNS: most of those that wait for the host do so at once.
	firstNS = 1_000_000
	earlyNS = 6_000_000
	// stuckLooks is how often in a row it must be found so.
	stuckLooks = 3
)

// deterministic moves the device only at schedule points, one operation at a
// time, as its policy says. So a program with one thread runs the same way each
// time.
//
// The thread at a schedule point chooses and runs. While a function of the
// program runs on its own thread, or a long piece of work on an engine, that
// thread waits for its end with no lock held; a function that needs the host to
// go on is left to itself after a while.
type deterministic struct {
	r      Runner
	eng    *engine
	policy policy
	caller driver.Caller
	clock  *virtual
	stall  time.Duration

	lanes  []*lane // by number-1
	byOwn  map[*Stream]*lane
	keys   uint32
	ready  int // lanes in the policy
	steps  []driver.Step
	calls  []driver.Call
	known  map[uint64]uint32 // threads
	waits  map[uint64]place  // what each thread waited for in its last call
	timers []limit
	asked  map[*Stream]int // queries in a row that found it busy, and nothing ran

	moving bool // a thread chooses and runs
	alone  bool // it is the device's own
	flight *flight
	waiter *park.Parker   // the thread that waits for the flight
	idle   []*park.Parker // threads that wait and have nothing to run
	stop   chan struct{}
	way    []place // see needed
}

// lane is what a run knows of a stream.
type lane struct {
	s        *Stream
	number   uint32
	base     uint64   // operations done before the run
	keys     []uint32 // of its operations, in the order of the calls
	key      uint32   // of the head, once it is ready
	priority uint64   // under pct
	spent    int64    // time that the delay at its head has taken
}

// head is the number of the head operation.
func (l *lane) head() uint32 { return uint32(l.s.completed.Load()-l.base) + 1 }

// flight is an operation that runs on another thread.
type flight struct {
	s     *Stream
	seq   uint64
	token uint64 // of a function, 0 for an engine's work
	began time.Time
	stuck int // looks in a row at which it waited for the host
}

func (f *flight) landed() bool { return f.s.completed.Load() >= f.seq }

// limit is a wait with a limit, in virtual time.
type limit struct {
	at  int64
	s   *Stream
	seq uint64
	v   *Event
}

func newDeterministic(text string, e *engine, c driver.Caller, stall time.Duration) (*deterministic, error) {
	d := &deterministic{eng: e, caller: c, clock: &virtual{}, stall: stall, stop: make(chan struct{}),
		byOwn: map[*Stream]*lane{}, known: map[uint64]uint32{}, waits: map[uint64]place{}, asked: map[*Stream]int{}}
	var err error
	if d.policy, err = newPolicy(text, d); err != nil {
		return nil, err
	}
	if d.caller.Wait == nil {
		d.caller.Wait = plainWait
	}
	if d.caller.Thread == nil {
		d.caller.Thread = func() (uint64, bool) { return 1, false }
	}
	if d.caller.Stuck == nil {
		d.caller.Stuck = func(uint64) bool { return false }
	}
	if d.caller.Asleep == nil {
		d.caller.Asleep = func() bool { return true }
	}
	return d, nil
}

// Attach implements Scheduler.
func (d *deterministic) Attach(r Runner) {
	d.r = r
	go d.goOn()
}

// Close implements Scheduler.
func (d *deterministic) Close() { close(d.stop) }

// Added implements Scheduler.
func (d *deterministic) Added(s *Stream) {
	l := d.byOwn[s]
	if l == nil {
		l = &lane{s: s, number: uint32(len(d.lanes)) + 1, base: s.submitted.Load() - 1}
		d.lanes = append(d.lanes, l)
		d.byOwn[s] = l
	}
	d.keys++
	l.keys = append(l.keys, d.keys)
}

// Ready implements Scheduler.
func (d *deterministic) Ready(s *Stream) {
	l := d.byOwn[s]
	l.key = l.keys[l.head()-1]
	l.spent = 0
	d.ready++
	d.policy.add(l)
}

// Unlocking implements Scheduler.
func (d *deterministic) Unlocking() bool { return false }

// Unlocked implements Scheduler.
func (d *deterministic) Unlocked() {}

func (d *deterministic) wakeIdle() {
	for _, p := range d.idle {
		d.eng.unpark(p)
	}
	d.idle = nil
}

// Point implements Scheduler.
func (d *deterministic) Point(why Reason, s *Stream, done func() bool, limit int64) {
	if why == Ended {
		if d.flight != nil && d.flight.landed() && d.waiter != nil {
			d.eng.unpark(d.waiter)
			d.waiter = nil
		}
		d.wakeIdle()
		return
	}
	id, inside := d.caller.Thread()
	if inside {
		return
	}
	again := d.note(why, s, id, limit)
	if why == Blocked && limit != 0 {
		d.block(s, done, limit)
		return
	}
	if d.moving || again {
		return
	}
	if s == nil || why != Queried && why != Blocked {
		d.move(s, nil, false, driver.Forever)
		return
	}
	if !d.busy(s) {
		delete(d.asked, s)
	} else {
		d.asked[s]++
	}
	if d.move(s, done, false, driver.Forever) && d.asked[s] > queriesMost {
		steps := len(d.steps)
		d.move(s, func() bool { return len(d.steps) > steps }, true, driver.Forever)
	}
}

// busy reports whether a query of s can find work pending.
func (d *deterministic) busy(s *Stream) bool {
	return s.state != idle || s.legacy && (!s.dev.last.open || s.dev.last.pending > 0)
}

// block runs operations until done, or for limit nanoseconds.
func (d *deterministic) block(s *Stream, done func() bool, limit int64) {
	end := time.Now().Add(time.Duration(limit))
	for !done() {
		left := limit
		if limit > 0 {
			if left = min(limit, int64(time.Until(end))); left <= 0 {
				return
			}
		}
		if !d.moving {
			now := d.clock.now
			if !d.move(s, done, true, left) || done() {
				return
			}
			if limit > 0 {
				// What ran has taken virtual time.
				if limit -= d.clock.now - now; limit <= 0 {
					return
				}
			}
			if d.ready > 0 {
				continue
			}
		}
		w := park.Get()
		d.idle = append(d.idle, w)
		d.r.Unlock()
		woken := w.Park(left, 0)
		d.r.Lock()
		if !woken && !d.leave(w) {
			d.r.Unlock()
			w.Park(driver.Forever, 0) // its permit is on the way
			d.r.Lock()
		}
		park.Put(w)
		if !woken {
			return
		}
	}
}

// leave takes a thread out of the idle ones and reports whether it was there.
func (d *deterministic) leave(w *park.Parker) bool {
	for i, p := range d.idle {
		if p == w {
			d.idle = append(d.idle[:i], d.idle[i+1:]...)
			return true
		}
	}
	return false
}

// move runs what the policy chooses until it lets the host go on, or done. It
// returns false if the call shall end at once.
func (d *deterministic) move(s *Stream, done func() bool, forced bool, limit int64) bool {
	d.moving = true
	goOn := d.moves(s, done, forced, limit)
	d.moving = false
	d.wakeIdle()
	return goOn
}

func (d *deterministic) moves(s *Stream, done func() bool, forced bool, limit int64) bool {
	end := time.Now().Add(time.Duration(limit))
	last := d.clock.now + limit
	c := choice{forced: forced, needed: func() *lane { return d.needed(s) }}
	for {
		if d.flight != nil {
			left := int64(driver.Forever)
			if limit > 0 {
				left = max(0, int64(time.Until(end)))
			}
			landed, goOn := d.land(left)
			if !goOn {
				return false
			}
			if !landed {
				return true
			}
		}
		if done != nil && done() {
			return true
		}
		l := d.policy.next(c)
		if l == nil {
			if forced && d.expire() {
				continue
			}
			return true
		}
		d.ready--
		if limit > 0 && !d.fits(l, last) {
			return true
		}
		d.run(l)
	}
}

// fits reports whether the head of l ends before a time. A delay that does not
// takes the time until then and stays.
func (d *deterministic) fits(l *lane, last int64) bool {
	w, ok := l.s.q.front().ref.(delayWork)
	if !ok || l.s.q.front().kind != opWork || d.clock.now+w.ns-l.spent <= last {
		return true
	}
	l.spent += last - d.clock.now
	d.clock.now = last
	d.ready++
	d.policy.add(l)
	return false
}

// run runs the head operation of a ready lane, or starts it on another thread.
func (d *deterministic) run(l *lane) {
	e, s := d.eng, l.s
	o := s.q.front()
	d.steps = append(d.steps, driver.Step{Stream: l.number, Op: l.head(), Tag: o.tag})
	delete(d.asked, s)
	s.began = d.clock.now
	d.clock.now += cost(o) - l.spent
	switch o.kind {
	case opPass:
		// What it lets go of must not happen at a time of its own choice.
		o.kind = opCall
	case opWork:
		switch w := o.ref.(work).(type) {
		case delayWork:
			e.finish(s)
			e.advance(s)
			return
		case *copyWork:
			if w.Width*w.Height <= inlineMostDet {
				d.inline(s, func() { w.copyAll() })
				return
			}
		case *fillWork:
			if w.Count*uint64(w.Size) <= inlineMostDet {
				d.inline(s, func() { w.run() })
				return
			}
		}
	}
	f := &flight{s: s, seq: s.completed.Load() + 1, began: time.Now()}
	if o.kind == opCall {
		f.token = o.arg
	}
	report := o.kind == opReport
	d.r.Run(s)
	if !f.landed() && !report {
		d.flight = f
	}
}

func (d *deterministic) inline(s *Stream, f func()) {
	s.state = running
	d.r.Unlock()
	f()
	d.r.Lock()
	d.eng.finish(s)
	d.eng.advance(s)
}

// land waits for the end of the operation that runs on another thread, for at
// most limit nanoseconds, and reports whether nothing is in flight any more and
// whether the call may go on. The lock is released meanwhile.
func (d *deterministic) land(limit int64) (landed, goOn bool) {
	f := d.flight
	end := time.Now().Add(time.Duration(limit))
	for !f.landed() {
		age := time.Since(f.began)
		if age >= d.stall {
			break
		}
		left := min(lookNS, int64(d.stall-age))
		if age < earlyNS && f.token != 0 {
			left = min(left, firstNS)
		}
		if limit > 0 {
			left = min(left, max(0, int64(time.Until(end))))
		}
		if limit == 0 || left == 0 {
			return false, true
		}
		w := park.Get()
		d.waiter = w
		wait := d.caller.Wait
		if d.alone {
			wait = plainWait
		}
		// The lock goes once the wait has let other threads of the program run, or
		// the one that is woken by it would find them held up by this one.
		woken, raised := wait(&parked{w, d.r.Unlock}, left)
		if !woken && !raised && f.token != 0 {
			if f.stuck++; !d.caller.Stuck(f.token) {
				f.stuck = 0
			}
		}
		d.r.Lock()
		sent := d.waiter != w
		if !sent {
			d.waiter = nil
		}
		if sent && !woken {
			d.r.Unlock()
			w.Park(driver.Forever, 0) // its permit is on the way
			d.r.Lock()
		}
		park.Put(w)
		if raised {
			return false, false
		}
		if f.stuck == stuckLooks {
			break
		}
		if d.flight != f {
			return true, true // another thread saw it land
		}
	}
	d.flight = nil // landed, or left to itself
	return true, true
}

func plainWait(p driver.Point, limit int64) (reached, interrupted bool) { return p.Wait(limit), false }

// parked is the point at which a thread is woken; before is called first, once.
type parked struct {
	p      *park.Parker
	before func()
}

// Wait implements driver.Point.
func (w *parked) Wait(limit int64) bool {
	if w.before != nil {
		w.before()
		w.before = nil
	}
	return w.p.Park(limit, funcSpinNS)
}

// funcSpinNS is how long the thread looks before it sleeps: most functions are
// short, and waking it takes microseconds.
const funcSpinNS = 20_000
