package sched

import (
	"maps"
	"time"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// maxQueries is how many queries in a row may find a stream pending before its head
// operation runs: this bounds the unfairness of every schedule.
const maxQueries = 64

// deterministic moves the device only at schedule points, one operation at a
// time, as its policy says. So a program with one thread runs the same way each
// time.
//
// The thread at a schedule point chooses and runs operations. While a function of the
// program runs on its own thread, or long work on an engine, that thread waits for
// its end with no lock held; it stops waiting for a function that itself waits for
// the host.
type deterministic struct {
	r      Runner
	policy policy
	caller driver.Caller
	clock  *virtual
	stall  time.Duration
	tick   time.Duration

	streams  []*streamRun // by number-1
	byStream map[Stream]*streamRun
	keys     uint32
	ready    int // streams that the policy holds
	moves    int // how many calls and operations there were
	logged   bool
	steps    []driver.Step     // with logged
	calls    []driver.Call     // with logged
	threads  map[uint64]uint32 // their numbers in the run
	waits    map[uint64]fence  // what each thread waited for in its last call
	queries  map[Stream]int    // queries in a row that found it pending while nothing ran
	most     int               // how many streams are known when idle ones are forgotten, without a log

	added string // kind of the operation that the present call enqueued

	dispatching bool // a thread chooses and runs operations
	unattended  bool // that thread is the scheduler's own
	inFlight    *inFlight
	waiter      *park.Parker   // the thread that waits for inFlight
	idle        []*park.Parker // threads that wait and have nothing to run
	stop        chan struct{}
	closed      bool
	chain       []fence // see needed
}

// streamRun is the state of a stream in the present run.
type streamRun struct {
	s        Stream
	number   uint32
	base     uint64   // operations completed before the run
	first    uint64   // how many operations of the run there were before those of keys
	keys     []uint32 // the numbers of the calls that enqueued its operations, from the one at its head on
	key      uint32   // that of the head operation, once it is ready
	begun    uint64   // the number of the operation that began last, counted as Completed does
	again    uint32   // how often operations have begun that had begun before
	priority uint64   // under pct
	spent    int64    // nanoseconds of the delay at its head that have passed
}

// head is the number of the head operation. Where an operation begins again, as that of a loop does, it
// has a number for each time, so that each step of a run has a name of its own.
func (l *streamRun) head() uint32 { return uint32(l.s.Completed()-l.base) + 1 + l.again }

// passed reports whether the operation with a number has run. One that puts others on other streams has
// done all that it does itself when it has begun.
func (l *streamRun) passed(number uint32) bool {
	if at := l.head(); number != at {
		return number < at
	}
	return l.begun == l.s.Completed()+1 && l.s.Head().Spreads
}

func newDeterministic(text string, o Options) (*deterministic, error) {
	d := &deterministic{caller: o.Caller, clock: &virtual{}, stall: o.Stall, tick: o.Tick, stop: make(chan struct{}),
		byStream: map[Stream]*streamRun{}, logged: text != driver.Unlogged, most: keptIdle, threads: map[uint64]uint32{}, waits: map[uint64]fence{}, queries: map[Stream]int{}}
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
	go d.runUnattended()
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
func (d *deterministic) Run() driver.Run {
	return driver.Run{Moves: d.moves, Steps: d.steps, Calls: d.calls}
}

// Added implements Scheduler.
func (d *deterministic) Added(s Stream, kind string) {
	l := d.byStream[s]
	if l == nil {
		l = d.number(s, s.Enqueued()-1)
	}
	d.keys++
	l.keys = append(l.keys, d.keys)
	if !d.dispatching { // else a launch of a graph that runs has added it, not the present call
		d.added = kind
	}
}

// number gives a stream the next number; base of its operations are not of this run. Without a log
// the number means nothing.
func (d *deterministic) number(s Stream, base uint64) *streamRun {
	l := &streamRun{s: s, number: uint32(len(d.streams)) + 1, base: base}
	if d.logged {
		d.streams = append(d.streams, l)
	} else if len(d.byStream) >= d.most {
		d.forgetIdle()
	}
	d.byStream[s] = l
	return l
}

// keptIdle is how many streams, and how many waits, are kept without a log before those are forgotten that are over.
const keptIdle = 256

// forgetIdle forgets what a long run without a log needs no more: streams without work, and waits that are over.
func (d *deterministic) forgetIdle() {
	maps.DeleteFunc(d.byStream, func(s Stream, _ *streamRun) bool { return s.State() == Idle })
	maps.DeleteFunc(d.waits, func(_ uint64, at fence) bool { return at.on.Completed() >= at.seq })
	d.most = max(keptIdle, 2*len(d.byStream))
}

// Numbered implements Scheduler.
func (d *deterministic) Numbered(s Stream) {
	if d.byStream[s] == nil {
		d.number(s, s.Enqueued())
	}
}

// Ready implements Scheduler.
func (d *deterministic) Ready(s Stream) {
	l := d.byStream[s]
	done := s.Completed() - l.base
	l.keys = l.keys[done-l.first:]
	l.first = done
	l.key = l.keys[0]
	if l.begun == s.Completed()+1 {
		l.begun = 0
		l.again++
	}
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
		if d.inFlight != nil && d.inFlight.completed() && d.waiter != nil {
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
	if d.dispatching || again {
		return
	}
	if s == nil || why != Queried && why != Blocked {
		d.dispatch(s, nil, false, driver.Forever)
		return
	}
	if !s.Pending() {
		delete(d.queries, s)
	} else {
		d.queries[s]++
	}
	if d.dispatch(s, done, false, driver.Forever) && d.queries[s] > maxQueries {
		moves := d.moves
		d.dispatch(s, func() bool { return d.moves > moves }, true, driver.Forever)
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
		if !d.dispatching {
			now := d.clock.now
			if !d.dispatch(s, done, true, left) || done() {
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

// leave removes a thread from the idle ones and reports whether it was there.
func (d *deterministic) leave(w *park.Parker) bool {
	for i, p := range d.idle {
		if p == w {
			d.idle = append(d.idle[:i], d.idle[i+1:]...)
			return true
		}
	}
	return false
}

// dispatch runs the operations that the policy chooses, until it chooses none or done
// reports true. It returns false if the call must end at once.
func (d *deterministic) dispatch(s Stream, done func() bool, forced bool, limit int64) bool {
	d.dispatching = true
	proceed := d.dispatchLoop(s, done, forced, limit)
	d.dispatching = false
	d.wakeIdle()
	return proceed
}

func (d *deterministic) dispatchLoop(s Stream, done func() bool, forced bool, limit int64) bool {
	end := time.Now().Add(time.Duration(limit))
	last := d.clock.now + limit
	c := choice{forced: forced, needed: func() *streamRun { return d.needed(s) }}
	for {
		if d.inFlight != nil {
			left := int64(driver.Forever)
			if limit > 0 {
				left = max(0, int64(time.Until(end)))
			}
			ended, proceed := d.awaitInFlight(left)
			if !proceed {
				return false
			}
			if !ended {
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

// fits reports whether the head of l ends before a time. A longer delay is advanced to
// that time and stays at the head.
func (d *deterministic) fits(l *streamRun, last int64) bool {
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
