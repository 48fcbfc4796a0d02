package hal

import "halstream/hal/driver"

// SetSchedule begins a new run under a schedule: "parallel", the default, or
// the text of a deterministic one, under which the device moves only during
// calls and a program with one thread does the same each time.
//
// # Errors
//   - [ErrNotSupported]: the backend's order cannot be chosen.
//   - [ErrInvalidValue]: no schedule has this text.
//   - [ErrNotReady]: work is pending; the text says what.
//   - [ErrInHostFunction].
//
// Contract: X1.
func (rt *Runtime) SetSchedule(t *Thread, text string, c driver.Caller) error {
	const op = "set schedule"
	if err := t.enter(op); err != nil {
		return err
	}
	if rt.sim == nil {
		return driver.Errorf(driver.NotSupported, op, "schedules need the host device, and the backend in use is %s: "+
			"its hardware chooses the order; set HALSTREAM_BACKEND=host", rt.Name())
	}
	if err := rt.sim.SetSchedule(text, c); err != nil {
		return err
	}
	// What a run reads before it is written must not depend on what earlier runs
	// left: memory that is taken of a device anew is overwritten.
	rt.reapAll()
	for _, d := range rt.devices {
		d.pool.trim(d, 0)
	}
	return nil
}

// deterministic reports whether a deterministic schedule is in force.
func (rt *Runtime) deterministic() bool {
	return rt.sim != nil && rt.sim.Deterministic()
}

// Schedule returns the text of the schedule in force.
func (rt *Runtime) Schedule() string {
	if rt.sim != nil {
		return rt.sim.Schedule()
	}
	return "parallel"
}

// Run returns what happened since a deterministic schedule was set.
//
// Contract: X1.
func (rt *Runtime) Run() driver.Run {
	if rt.sim != nil {
		return rt.sim.Run()
	}
	return driver.Run{}
}

// Runs returns the thread that runs the function with this token, nil if none does.
func (q *Queue) Runs(token uint64) *Thread {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.workers {
		if t.running.token == token && t.running.stream != nil {
			return t
		}
	}
	return nil
}
