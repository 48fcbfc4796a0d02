package host

import (
	"runtime"
	"time"

	"halstream/hal/host/sched"
)

// Work of a branch waits for so long for one of the engines that are at work before it gets one of its own: at
// first the least time; twice as long, up to the most, each time that all of it had got an engine by then, since
// the timer disturbs a program that launches short graphs again and again.
const (
	branchDelayLeast = 50 * time.Microsecond
	branchDelayMost  = 5 * time.Millisecond
)

// branches spreads the work of a launch over engines. Its functions are often shorter than the time in
// which an engine wakes up, so an engine takes the next function of any branch when one has ended, and
// further engines come a while later, if work still waits then: a function may wait for one of another
// branch. Guarded by the engine's lock.
type branches struct {
	timer *time.Timer
	armed bool
	delay time.Duration
	// taken says that all that waited when the timer was armed has got an engine since.
	taken bool
	took  int64 // nanoseconds of the work of a branch that ended last
}

// wait reports whether new work of a branch is to wait in the backlog.
func (b *branches) wait(d *Device) bool {
	if d.busy == 0 || b.took > int64(branchDelayLeast) || !d.eng.parallel.Load() {
		return false
	}
	b.later(d)
	return true
}

// later has the backlog looked at after a while.
func (b *branches) later(d *Device) {
	if b.armed {
		return
	}
	b.armed, b.taken = true, false
	b.delay = min(max(b.delay, branchDelayLeast), branchDelayMost)
	if b.timer == nil {
		b.timer = time.AfterFunc(b.delay, d.spread)
	} else {
		b.timer.Reset(b.delay)
	}
}

// spread gives engines to work that has waited, as many as there are processors for; the others
// wait once more, so that each gets one if those before it do not end.
func (d *Device) spread() {
	e, b := d.eng, &d.branches
	e.Lock()
	defer e.Unlock()
	b.armed = false
	if b.taken {
		b.delay *= 2
	} else {
		b.delay = branchDelayLeast
		for n := runtime.NumCPU(); n > 0 && d.busy < e.engines; n-- {
			s, ok := d.backlog.Pop()
			if !ok {
				break
			}
			s.state = sched.Running
			if e.following {
				s.extra().began = e.clock.Now()
			}
			e.assign(d, s, s.q.front().ref.(work))
		}
	}
	if d.backlog.Len() > 0 && d.busy < e.engines {
		b.later(d)
	}
}
