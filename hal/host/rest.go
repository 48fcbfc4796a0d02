package host

import (
	"slices"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

// lookFor is how long an engine looks for work after work that took so long.
func lookFor(took int64) int64 { return min(max(2*took, lookNS), lookMostNS) }

// rest waits for work and returns it, nil when none came. It looks for some time
// before it sleeps. The engine is in the
// device's list, with the lock released since.
func (e *engine) rest(d *Device, r *resting, look int64) (*Stream, work) {
	woken := r.parker.Park(lingerNS, look)
	e.Lock()
	s, w := r.stream, r.work
	d.runsOn = sched.Processor()
	if s == nil {
		d.resting = slices.DeleteFunc(d.resting, func(o *resting) bool { return o == r })
	}
	e.Unlock()
	if (s != nil || r.ended) && !woken {
		r.parker.Park(driver.Forever, 0) // another thread is about to unpark it
	}
	park.Put(r.parker)
	return s, w
}
