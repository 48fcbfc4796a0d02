package host

import "halstream/hal/driver"

// Now implements driver.Simulator.
func (d *Driver) Now() int64 {
	if d.eng.parallel.Load() {
		return d.eng.real.Now()
	}
	d.eng.mu.Lock()
	defer d.eng.mu.Unlock()
	return d.eng.clock.Now()
}

// Follow implements driver.Simulator.
func (d *Driver) Follow(on bool) {
	d.eng.Lock()
	d.eng.following = on
	d.eng.executed = nil
	d.eng.Unlock()
}

// Executions implements driver.Simulator.
func (d *Driver) Executions() []driver.Execution {
	d.eng.Lock()
	defer d.eng.Unlock()
	done := d.eng.executed
	d.eng.executed = nil
	return done
}

// completedAtEnqueue notes an operation that was complete when it was enqueued.
func (e *engine) completedAtEnqueue(tag driver.Tag) {
	if e.following && tag != 0 {
		now := e.clock.Now()
		e.executed = append(e.executed, driver.Execution{Tag: tag, Began: now, Ended: now})
	}
}

// OnSequence implements driver.Sequencer.
func (d *Driver) OnSequence(f func(driver.Tag)) { d.eng.onSequence = f }

// sequenced reports an operation whose place is settled. The lock is held.
func (e *engine) sequenced(tag driver.Tag) {
	if tag != 0 && e.onSequence != nil {
		e.onSequence(tag)
	}
}
