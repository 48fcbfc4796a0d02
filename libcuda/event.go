package libcuda

import "halstream/hal"

// Flags of events, and of their records and waits.
const (
	eventBlockingSync = 1
	eventNoTiming     = 2
	eventInterprocess = 4
	eventFlags        = eventBlockingSync | eventNoTiming | eventInterprocess
	external          = 1
)

// event is an event of the program.
type event struct {
	*hal.Event
	x     *context
	flags uint32
}

func (e *event) owner() *context     { return e.x }
func (e *event) end(c *caller) error { return e.Close(c.t) }

func eventOf(handle uintptr) (*event, error) {
	return find[*event](handle, invalidHandle, "event")
}

// onEvent returns a function for an event that is its first argument.
func onEvent(f func(c *caller, e *event, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		e, err := eventOf(a.handle(0))
		if err != nil {
			return err
		}
		return f(c, e, a)
	}
}

var eventFunctions = []function{
	{name: "cuEventCreate", version: 2000, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err == nil {
			err = a.need(0)
		}
		if err != nil {
			return err
		}
		flags := a.u32(1)
		if flags&^eventFlags != 0 || flags&(eventInterprocess|eventNoTiming) == eventInterprocess {
			return refuse(invalidValue, "an event has no flags %#x; one between processes has no timing", flags)
		}
		made, err := x.dev.Runtime().NewEvent(c.t, x.dev, hal.EventOptions{Timing: flags&eventNoTiming == 0,
			BlockingSync: flags&eventBlockingSync != 0, Interprocess: flags&eventInterprocess != 0})
		if err == nil {
			put(a, 0, newHandle(&event{made, x, flags}))
		}
		return err
	}},
	{name: "cuEventDestroy_v2", version: 4000, firstVersion: 2000, call: onEvent(func(c *caller, e *event, a *args) error {
		removeHandle(a.handle(0))
		return e.Close(c.t)
	})},
	{name: "cuEventRecord", version: 2000, twin: ptsz, call: func(c *caller, a *args) error { return c.record(a, 0) }},
	{name: "cuEventRecordWithFlags", version: 11010, twin: ptsz, call: func(c *caller, a *args) error {
		return c.record(a, a.u32(2))
	}},
	{name: "cuEventQuery", version: 2000, call: onEvent(func(c *caller, e *event, _ *args) error {
		if e.InCapture() {
			return refuse(capturedEvent, "the event was recorded last in a capture, which has not run")
		}
		done, err := e.Query(c.t)
		if err == nil && !done {
			err = refuse(notReady, "the event is pending")
		}
		if err == nil {
			err = failureOf(e.x.dev, nil)
		}
		return err
	})},
	{name: "cuEventSynchronize", version: 2000, call: onEvent(func(c *caller, e *event, _ *args) error {
		if e.InCapture() {
			return refuse(capturedEvent, "the event was recorded last in a capture, which has not run")
		}
		p, err := e.Point(c.t)
		if err != nil {
			return err
		}
		return c.wait(e.Runtime(), p, func() error { return failureOf(e.x.dev, nil) })
	})},
	{name: "cuEventElapsedTime", version: 2000, call: elapsed},
	{name: "cuEventElapsedTime_v2", version: 12080, call: elapsed},
}

func (c *caller) record(a *args, flags uint32) error {
	e, err := eventOf(a.handle(0))
	if err != nil {
		return err
	}
	s, err := c.stream(a.handle(1))
	if err != nil {
		return err
	}
	if flags&^external != 0 {
		return refuse(invalidValue, "a record has no flags %#x", flags)
	}
	if flags&external != 0 {
		return s.RecordExternal(c.t, e.Event)
	}
	return s.Record(c.t, e.Event)
}

func elapsed(c *caller, a *args) error {
	from, err := eventOf(a.handle(1))
	if err == nil {
		err = a.need(0)
	}
	if err != nil {
		return err
	}
	to, err := eventOf(a.handle(2))
	if err != nil {
		return err
	}
	ms, err := from.Elapsed(c.t, to.Event)
	if err == nil {
		put(a, 0, float32(ms))
	}
	return err
}
