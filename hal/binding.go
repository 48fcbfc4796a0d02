package hal

import "halstream/hal/driver"

// How an event gets its device: at its creation, or at its first record.

// bind returns the backend's event, made on d if there is none yet.
func (e *Event) bind(d *Device) (driver.Event, error) {
	if e.closed.Load() {
		return nil, closedError("record", "event")
	}
	// Bound to d, it also belongs to d's runtime.
	if b := e.bound.Load(); b != nil && b.dev == d {
		return b.d, nil
	}
	return e.bindSlow(d)
}

// bindSlow is bind for an event that is not bound to d yet.
func (e *Event) bindSlow(d *Device) (driver.Event, error) {
	if e.rt != d.rt {
		return nil, e.otherRuntime("record")
	}
	b := e.bound.Load()
	if b == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if b = e.bound.Load(); b == nil {
			// The lock may be held here: a backend calls its library for an event
			// only at the first record.
			if err := e.make(d); err != nil {
				return nil, err
			}
			b = &e.made
		}
	}
	if b.dev != d {
		return nil, driver.Errorf(driver.WrongDevice, "record",
			"event %d belongs to device %d and the stream to device %d; "+
				"an event is recorded on streams of its own device", e.id, b.dev.ordinal, d.ordinal)
	}
	return b.d, nil
}

// make makes the backend's event on d. No other thread does so meanwhile.
func (e *Event) make(d *Device) error {
	if e.opts.Interprocess && e.opts.Timing {
		return driver.Errorf(driver.InvalidValue, "create event",
			"an event for other processes cannot have timing; make it without one of the two")
	}
	made, err := d.d.NewEvent(driver.EventOptions{
		Timing: e.opts.Timing, BlockingSync: e.opts.BlockingSync,
		Settable: e.opts.Kind == Future, Counted: e.opts.Kind != Standard, ID: e.id,
	})
	if err != nil {
		return err
	}
	e.made = boundEvent{d, made}
	e.bound.Store(&e.made)
	return nil
}
