package sched

import (
	"time"

	"halstream/hal/driver"
	"halstream/hal/park"
)

const (
	// checkNS is how often, in nanoseconds, a thread that waits for a function checks
	// whether that function waits for the host.
	checkNS = 10_000_000
	// earlyCheckNS is how often it checks while the function has run no longer than
	// earlyNS: most functions that wait for the host do so at once.
	earlyCheckNS = 1_000_000
	earlyNS      = 6_000_000
	// stuckChecks is after how many such checks in a row the function is not waited
	// for any more.
	stuckChecks = 3
)

// inFlight is an operation that runs on another thread.
type inFlight struct {
	s     Stream
	seq   uint64
	token uint64 // of a function, 0 for an engine's work
	began time.Time
	stuck int // checks in a row that found it waiting for the host
}

func (f *inFlight) completed() bool { return f.s.Completed() >= f.seq }

// run runs the head operation of a ready stream, or starts it on another thread.
func (d *deterministic) run(l *streamRun) {
	s := l.s
	began := d.clock.now
	d.advance(began + s.Head().Cost - l.spent)
	o := s.Head() // another one if the stream was aborted while a timer fired
	d.moves++
	if d.logged {
		d.steps = append(d.steps, driver.Step{Stream: l.number, Op: l.head(), Tag: o.Tag})
	}
	l.begun = s.Completed() + 1
	delete(d.queries, s)
	f := &inFlight{s: s, seq: s.Completed() + 1, token: o.Token, began: time.Now()}
	d.r.Step(s, began)
	if !f.completed() && !o.Report && !o.Spreads {
		d.inFlight = f
	}
}

// awaitInFlight waits for the operation that runs on another thread, for at most
// limit nanoseconds. It reports whether no operation is in flight any more, and
// whether the call may proceed. The lock is released meanwhile.
func (d *deterministic) awaitInFlight(limit int64) (ended, proceed bool) {
	f := d.inFlight
	end := time.Now().Add(time.Duration(limit))
	for !f.completed() {
		age := time.Since(f.began)
		if age >= d.stall {
			break
		}
		left := min(checkNS, int64(d.stall-age))
		if age < earlyNS && f.token != 0 {
			left = min(left, earlyCheckNS)
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
		if d.unattended {
			wait = plainWait
		}
		// The lock is released only after the wait has let other threads of the program
		// run: the thread that is woken by the release may need one of them.
		woken, raised := wait(&parkerPoint{w, d.r.Unlock}, left)
		if !woken && !raised && f.token != 0 {
			var stuck bool
			if stuck, raised = d.caller.Stuck(f.token); stuck {
				f.stuck++
			} else {
				f.stuck = 0
			}
		}
		d.r.Lock()
		unparked := d.waiter != w
		if !unparked {
			d.waiter = nil
		}
		if unparked && !woken {
			d.r.Unlock()
			w.Park(driver.Forever, 0) // another thread is about to unpark it
			d.r.Lock()
		}
		park.Put(w)
		if raised {
			return false, false
		}
		if f.stuck == stuckChecks {
			break
		}
		if d.inFlight != f {
			return true, true // another thread saw it complete
		}
	}
	d.inFlight = nil // completed, or no longer waited for
	return true, true
}

func plainWait(p driver.Point, limit int64) (reached, interrupted bool) { return p.Wait(limit), false }

// parkerPoint is a point that is reached when a parker is unparked. before is called
// by the first Wait, before it parks.
type parkerPoint struct {
	p      *park.Parker
	before func()
}

// Wait implements driver.Point.
func (w *parkerPoint) Wait(limit int64) bool {
	if w.before != nil {
		w.before()
		w.before = nil
	}
	return w.p.Park(limit, funcSpinNS)
}

// funcSpinNS is for how many nanoseconds the thread spins before it sleeps: most
// functions are short, and waking a thread takes microseconds.
const funcSpinNS = 20_000
