package sched

import (
	"time"

	"halstream/hal/driver"
	"halstream/hal/park"
)

const (
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

// flight is an operation that runs on another thread.
type flight struct {
	s     Stream
	seq   uint64
	token uint64 // of a function, 0 for an engine's work
	began time.Time
	stuck int // looks in a row at which it waited for the host
}

func (f *flight) landed() bool { return f.s.Completed() >= f.seq }

// run runs the head operation of a ready lane, or starts it on another thread.
func (d *deterministic) run(l *lane) {
	s := l.s
	began := d.clock.now
	d.advance(began + s.Head().Cost - l.spent)
	o := s.Head() // another one if the stream was aborted while a timer fired
	d.steps = append(d.steps, driver.Step{Stream: l.number, Op: l.head(), Tag: o.Tag})
	delete(d.asked, s)
	f := &flight{s: s, seq: s.Completed() + 1, token: o.Token, began: time.Now()}
	d.r.Step(s, began)
	if !f.landed() && !o.Report {
		d.flight = f
	}
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
			var stuck bool
			if stuck, raised = d.caller.Stuck(f.token); stuck {
				f.stuck++
			} else {
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
			w.Park(driver.Forever, 0) // another thread is about to unpark it
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
