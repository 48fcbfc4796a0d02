package host

import (
	"os"
	"strconv"
	"time"

	"halstream/hal/driver"
)

// SetSchedule implements driver.Scheduled.
func (d *Driver) SetSchedule(text string, c driver.Caller) error {
	e := d.eng
	var next Scheduler
	var clock Clock
	if text == "parallel" {
		next, clock = Parallel(), e.real
	} else {
		stall, err := stallLimit()
		if err != nil {
			return err
		}
		det, err := newDeterministic(text, e, c, stall)
		if err != nil {
			return err
		}
		next, clock = det, det.clock
	}
	e.Lock()
	for _, dev := range d.devices {
		if s := dev.active; s != nil {
			why := s.describe(chainMost)
			e.Unlock()
			return driver.Errorf(driver.NotReady, "set schedule",
				"a schedule begins with no work pending, but %s; synchronize first", why)
		}
	}
	// Attached first: once it is in e.sched, every thread that takes the lock uses it.
	next.Attach(e)
	before := e.sched
	e.sched, e.clock, e.spec = next, clock, text
	e.free.Store(text == "parallel")
	e.Unlock()
	before.Close()
	return nil
}

// stallLimit is how long a function may run before it is taken as waiting for
// the host.
func stallLimit() (time.Duration, error) {
	text := os.Getenv("HALSTREAM_STALL_S")
	if text == "" {
		return 5 * time.Second, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds <= 86400) {
		return 0, driver.Errorf(driver.InvalidValue, "set schedule",
			"HALSTREAM_STALL_S is %q; give a number of seconds above 0", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// Schedule implements driver.Scheduled.
func (d *Driver) Schedule() string {
	d.eng.Lock()
	defer d.eng.Unlock()
	return d.eng.spec
}

// Deterministic implements driver.Scheduled.
func (d *Driver) Deterministic() bool { return !d.eng.free.Load() }

// Run implements driver.Scheduled.
func (d *Driver) Run() driver.Run {
	d.eng.Lock()
	defer d.eng.Unlock()
	if det, ok := d.eng.sched.(*deterministic); ok {
		return driver.Run{Steps: det.steps, Calls: det.calls}
	}
	return driver.Run{}
}

// String returns the reason in a word.
func (r Reason) String() string {
	return [...]string{"enqueue", "query", "synchronize", "end", "open gate"}[r]
}

func (k opKind) String() string {
	return [...]string{"nop", "record", "wait", "wait", "reset", "gate", "call", "pass", "report", "report", "work"}[k]
}

var _ driver.Scheduled = (*Driver)(nil)
