package sched

import (
	"time"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// queriesMost is how often in a row a stream may be asked in vain before what
// is asked for runs: every schedule is fair to this bound.
const queriesMost = 64

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
	policy policy
	caller driver.Caller
	clock  *virtual
	stall  time.Duration
	tick   time.Duration

	lanes   []*lane // by number-1
	byOwn   map[Stream]*lane
	keys    uint32
	ready   int // lanes in the policy
	steps   []driver.Step
	calls   []driver.Call
	threads map[uint64]uint32 // their numbers in the run
	waits   map[uint64]place  // what each thread waited for in its last call
	asked   map[Stream]int    // queries in a row that found it busy, and nothing ran

	added string // kind of the operation that the present call enqueued

	moving bool // a thread chooses and runs
	alone  bool // it is the device's own
	flight *flight
	waiter *park.Parker   // the thread that waits for the flight
	idle   []*park.Parker // threads that wait and have nothing to run
	stop   chan struct{}
	closed bool
	chain  []place // see needed
}

// lane is what a run knows of a stream.
type lane struct {
	s        Stream
	number   uint32
	base     uint64   // operations done before the run
	keys     []uint32 // of its operations, in the order of the calls
	key      uint32   // of the head, once it is ready
	priority uint64   // under pct
	spent    int64    // time that the delay at its head has taken
}

// head is the number of the head operation.
func (l *lane) head() uint32 { return uint32(l.s.Completed()-l.base) + 1 }

func newDeterministic(text string, o Options) (*deterministic, error) {
	d := &deterministic{caller: o.Caller, clock: &virtual{}, stall: o.Stall, tick: o.Tick, stop: make(chan struct{}),
		byOwn: map[Stream]*lane{}, threads: map[uint64]uint32{}, waits: map[uint64]place{}, asked: map[Stream]int{}}
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
		d.caller.Stuck = func(uint64) (bool, bool) { return false, false }
	}
	if d.caller.Asleep == nil {
		d.caller.Asleep = func() bool { return true }
	}
	return d, nil
}

// Attach implements Scheduler.
func (d *deterministic) Attach(r Runner) {
	d.r = r
	go d.moveAlone()
}

// Close implements Scheduler. Threads that wait in a schedule point leave it.
func (d *deterministic) Close() {
	close(d.stop)
	d.r.Lock()
	d.closed = true
	d.wakeIdle()
	d.r.Unlock()
}

// Clock implements Scheduler.
func (d *deterministic) Clock(Clock) Clock { return d.clock }

// Parallel implements Scheduler.
func (d *deterministic) Parallel() bool { return false }

// Run implements Scheduler.
func (d *deterministic) Run() driver.Run { return driver.Run{Steps: d.steps, Calls: d.calls} }

// Added implements Scheduler.
func (d *deterministic) Added(s Stream, kind string) {
	l := d.byOwn[s]
	if l == nil {
		l = &lane{s: s, number: uint32(len(d.lanes)) + 1, base: s.Enqueued() - 1}
		d.lanes = append(d.lanes, l)
		d.byOwn[s] = l
	}
	d.keys++
	l.keys = append(l.keys, d.keys)
	d.added = kind
}

// Ready implements Scheduler.
func (d *deterministic) Ready(s Stream) {
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
		d.r.Wake(p)
	}
	d.idle = nil
}

// Point implements Scheduler.
func (d *deterministic) Point(why Reason, s Stream, done func() bool, limit int64) {
	if why == Ended {
		if d.flight != nil && d.flight.landed() && d.waiter != nil {
			d.r.Wake(d.waiter)
			d.waiter = nil
		}
		d.wakeIdle()
		return
	}
	id, inside := d.caller.Thread()
	if inside || d.closed {
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
	if !s.Pending() {
		delete(d.asked, s)
	} else {
		d.asked[s]++
	}
	if d.move(s, done, false, driver.Forever) && d.asked[s] > queriesMost {
		steps := len(d.steps)
		d.move(s, func() bool { return len(d.steps) > steps }, true, driver.Forever)
	}
}

// block runs operations until done, or for limit nanoseconds.
func (d *deterministic) block(s Stream, done func() bool, limit int64) {
	end := time.Now().Add(time.Duration(limit))
	for !done() && !d.closed {
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
			w.Park(driver.Forever, 0) // another thread is about to unpark it
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
func (d *deterministic) move(s Stream, done func() bool, forced bool, limit int64) bool {
	d.moving = true
	goOn := d.moves(s, done, forced, limit)
	d.moving = false
	d.wakeIdle()
	return goOn
}

func (d *deterministic) moves(s Stream, done func() bool, forced bool, limit int64) bool {
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
		if done != nil && done() || d.closed {
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
	o := l.s.Head()
	if !o.Delay || d.clock.now+o.Cost-l.spent <= last {
		return true
	}
	l.spent += last - d.clock.now
	d.advance(last)
	d.ready++
	d.policy.add(l)
	return false
}
