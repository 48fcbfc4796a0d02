package host

import (
	"os"
	"strconv"
	"time"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// SetSchedule implements driver.Simulator.
func (d *Driver) SetSchedule(text string, c driver.Caller) error {
	stall, err := stallLimit()
	if err != nil && text != "parallel" {
		return err
	}
	next, err := sched.New(text, sched.Options{Caller: c, Stall: stall, Tick: unattendedTick})
	if err != nil {
		return err
	}
	e := d.eng
	e.Lock()
	if e.closed {
		e.Unlock()
		return errClosed("set schedule")
	}
	for _, dev := range d.devices {
		if s := dev.active; s != nil {
			why, titles := s.describe(maxChain), e.titles
			e.titles = nil
			e.Unlock()
			why = withTitles(why, titles)
			return driver.Errorf(driver.NotReady, "set schedule",
				"a schedule begins with no work pending, but %s; synchronize first", why)
		}
	}
	// Attached first: once it is in e.sched, every thread that takes the lock uses it.
	next.Attach(e)
	before := e.sched
	e.use(next, text)
	e.Unlock()
	before.Close()
	return nil
}

// use sets the engine's scheduler. The lock is held, or no other thread uses the
// engine yet.
func (e *engine) use(s sched.Scheduler, text string) {
	e.sched, e.clock, e.spec = s, s.Clock(e.real), text
	e.parallel.Store(s.Parallel())
}

// unattendedTick is how often a deterministic schedule looks whether the program
// waits for the device outside the runtime.
var unattendedTick = 50 * time.Millisecond

// stallLimit returns how long a function may run before it counts as waiting for the
// host. It fails with InvalidValue.
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

// Schedule implements driver.Simulator.
func (d *Driver) Schedule() string {
	d.eng.Lock()
	defer d.eng.Unlock()
	return d.eng.spec
}

// Deterministic implements driver.Simulator.
func (d *Driver) Deterministic() bool { return !d.eng.parallel.Load() }

// Run implements driver.Simulator.
func (d *Driver) Run() driver.Run {
	d.eng.Lock()
	defer d.eng.Unlock()
	return d.eng.sched.Run()
}

// String returns the kind in a word.
func (k opKind) String() string {
	return [...]string{"nop", "record", "wait", "wait", "reset", "gate", "call", "pass", "report", "report", "work",
		"write value", "wait value", "launch graph", "end of a branch", "body of a node"}[k]
}
