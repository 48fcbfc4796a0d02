package pybuild

import (
	"halstream/bindings"
	"halstream/bindings/python"
	"halstream/hal"
)

// EventNew makes an event; ordinal -1 leaves its device to the first record.
func EventNew(ordinal, flags int64) (id int64, err error) {
	defer guard(&err)
	t := caller()
	r, err := backend()
	if err != nil {
		return 0, err
	}
	var d *hal.Device
	if ordinal >= 0 {
		if d, err = device(ordinal); err != nil {
			return 0, err
		}
	}
	e, err := r.NewEvent(t, d, eventOptions(flags))
	if err != nil {
		return 0, raise(err)
	}
	return insert(e), nil
}

// StreamRecordNew makes an event as EventNew does, records it and returns its id.
func StreamRecordNew(id, ordinal, flags int64) (eventID int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "record")
	if err != nil {
		return 0, err
	}
	d := s.Device()
	if ordinal >= 0 && ordinal != int64(d.Ordinal()) {
		if d, err = device(ordinal); err != nil {
			return 0, err
		}
	}
	e, err := rt.NewEvent(t, d, eventOptions(flags))
	if err != nil {
		return 0, raise(err)
	}
	err = s.Record(t, e)
	if _, err = enqueued(t, s, err); err != nil {
		_ = e.Close(nil)
		return 0, err
	}
	return insert(e), nil
}

var eventOptions = bindings.EventOptions

// EventFlags returns the flags the event was made with.
func EventFlags(id int64) (flags int64, err error) {
	defer guard(&err)
	e, err := event(id, "flags")
	if err != nil {
		return 0, err
	}
	o := e.Options()
	return truth(o.Timing)*bindings.EventTiming | truth(o.BlockingSync)*bindings.EventBlockingSync |
		truth(o.Interprocess)*bindings.EventInterprocess | truth(o.NotWaitable)*bindings.EventNotWaitable | truth(o.External)*bindings.EventExternal |
		int64(o.Kind)<<bindings.EventKindShift, nil
}

// EventQuery returns 1 if the latest record is done.
func EventQuery(id int64) (done int64, err error) {
	defer guard(&err)
	e, err := event(id, "query event")
	if err != nil {
		return 0, err
	}
	ok, err := e.Query(caller())
	return truth(ok), raise(err)
}

// EventPassed is EventQuery for the runtime's own purposes.
func EventPassed(id int64) (done int64, err error) {
	defer guard(&err)
	e, err := event(id, "query event")
	if err != nil {
		return 0, err
	}
	ok, err := e.QueryInternal(caller())
	return truth(ok), raise(err)
}

// EventSync waits for the latest record, at most limit nanoseconds; 1 if it is done.
func EventSync(id, limit int64) (done int64, err error) {
	defer guard(&err)
	e, err := event(id, "synchronize event")
	if err != nil {
		return 0, err
	}
	p, err := e.Point(caller())
	if err != nil {
		return 0, raise(err)
	}
	done = await(p, limit)
	if d := e.Device(); d != nil {
		return outcome(d, done)
	}
	return done, nil
}

// EventElapsed returns the milliseconds between two records.
func EventElapsed(startID, endID int64) (ms float64, err error) {
	defer guard(&err)
	start, err := event(startID, "elapsed")
	if err != nil {
		return 0, err
	}
	end, err := event(endID, "elapsed")
	if err != nil {
		return 0, err
	}
	ms, err = start.Elapsed(caller(), end)
	return ms, raise(err)
}

// EventDevice returns the ordinal of the event's device, -1 if it has none yet.
func EventDevice(id int64) (ordinal int64, err error) {
	defer guard(&err)
	e, err := event(id, "device")
	if err != nil {
		return 0, err
	}
	if d := e.Device(); d != nil {
		return int64(d.Ordinal()), nil
	}
	return -1, nil
}

// EventHandle returns the raw handle, 0 while the event has no device.
func EventHandle(id int64) (handle int64, err error) {
	defer guard(&err)
	e, err := event(id, "handle")
	if err != nil || e.Device() == nil {
		return 0, err
	}
	number, err := e.Handle(caller())
	if err != nil {
		return 0, raise(err)
	}
	if number == 0 { // the backend has no library that could know it
		return id, nil
	}
	if !python.NoteHandle(id, e, number) {
		return 0, unknown(id, "handle", "event") // closed meanwhile
	}
	return int64(number), nil
}

// EventFind returns the id of the open event with a handle that EventHandle has returned.
func EventFind(handle int64) (id int64, err error) {
	defer guard(&err)
	if _, ok := find(handle).(*hal.Event); ok {
		return handle, nil
	}
	id, ok := python.EventOf(uint64(handle))
	if !ok {
		return 0, unknown(handle, "handle", "event")
	}
	return id, nil
}

// EventWasRecorded returns 1 if the event was recorded, in a capture or outside of one.
func EventWasRecorded(id int64) (recorded int64, err error) {
	defer guard(&err)
	e, err := event(id, "query records")
	if err != nil {
		return 0, err
	}
	return truth(e.WasRecorded()), nil
}

// EventNumber returns the number of an event by which findings name it.
func EventNumber(id int64) (number int64, err error) {
	defer guard(&err)
	e, err := event(id, "number")
	if err != nil {
		return 0, err
	}
	return int64(e.ID()), nil
}

// EventInCapture returns 1 if the latest record is in a capture, so that a query would be refused.
func EventInCapture(id int64) (captured int64, err error) {
	defer guard(&err)
	e, err := event(id, "query records")
	if err != nil {
		return 0, err
	}
	return truth(e.InCapture()), nil
}

// EventReset clears an event in stream order.
func EventReset(streamID, eventID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, streamID, "reset event")
	if err != nil {
		return 0, err
	}
	e, err := event(eventID, "reset event")
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.Reset(t, e))
}

// EventWaits returns how many enqueued waits have not been passed.
func EventWaits(id int64) (n int64, err error) {
	defer guard(&err)
	e, err := event(id, "query waits")
	if err != nil {
		return 0, err
	}
	pending, err := e.WaitsPending(caller())
	return int64(pending), raise(err)
}

// EventTime returns when the latest record was done, nanoseconds.
func EventTime(id int64) (ns int64, err error) {
	defer guard(&err)
	e, err := event(id, "timestamp")
	if err != nil {
		return 0, err
	}
	ns, err = e.Time(caller())
	return ns, raise(err)
}
