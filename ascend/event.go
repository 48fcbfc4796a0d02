package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"math"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// Event is an event of the program. Each record takes another fence event.
type Event struct {
	dev  *Device
	opts driver.EventOptions
	own  vendor.Record
	// set is an event of the library's older kind, which a settable event has from its first use on: it is set by its
	// record until a reset, and a wait before the record waits for it (aclrtCreateEventWithFlag).
	set atomic.Pointer[settable]

	waits vendor.Waits
}

// record records e on a stream.
func (e *Event) record(s *Stream) error {
	const doing = "record"
	fresh, err := s.recordFenceEvent(e.opts.Timing, doing)
	if err != nil {
		return err
	}
	s.Count()
	e.own.Replace(fresh)
	if !e.opts.Settable {
		return nil
	}
	old, err := e.settable(doing)
	if err != nil {
		return err
	}
	defer old.Release()
	return s.took(C.na_record(s.dev.ctx(), old.event, s.h), doing)
}

// settable is an event of the library's older kind, with a reference count: a thread may look at it for a wait with a
// limit when the program has closed its event.
type settable struct {
	vendor.References
	dev   *Device
	event C.uintptr_t
}

// Release gives a reference up. The library lets enqueued waits for an event that is destroyed end.
func (o *settable) Release() {
	if o.References.Release() && o.dev.opened() {
		_ = o.dev.check(C.na_event_destroy(o.dev.ctx(), o.event), "close event")
	}
}

// settable returns the library's event of the older kind, with a reference for the caller.
func (e *Event) settable(doing string) (*settable, error) {
	for {
		old := e.set.Load()
		if old != nil && old.Hold() {
			return old, nil
		}
		made := &settable{dev: e.dev}
		if err := e.dev.check(C.na_old_event_new(e.dev.ctx(), &made.event), doing); err != nil {
			return nil, err
		}
		made.Set(2) // the event's, and the caller's
		if e.set.CompareAndSwap(old, made) {
			return made, nil
		}
		made.Set(1)
		made.Release()
	}
}

// Query implements driver.Event.
func (e *Event) Query() (bool, error) {
	const doing = "query event"
	if err := e.dev.usable(doing); err != nil {
		return false, err
	}
	m := e.own.Latest()
	if m == nil {
		return true, nil
	}
	defer m.Release()
	return e.dev.answer(C.na_event_query(C.uintptr_t(m.Event)), doing)
}

// Point implements driver.Event.
func (e *Event) Point() driver.Point {
	m := e.own.Latest()
	if m == nil {
		return vendor.ReachedFence()
	}
	return vendor.NewFence(m, nil, 0)
}

// recorded returns the fence event of the latest record, if it is done, with a reference for the caller.
func (e *Event) recorded(doing string) (*vendor.FenceEvent, error) {
	if err := e.dev.usable(doing); err != nil {
		return nil, err
	}
	m := e.own.Latest()
	if m == nil {
		return nil, driver.Errorf(driver.Unrecorded, doing, "an event was never recorded; record both events first")
	}
	done, err := e.dev.answer(C.na_event_query(C.uintptr_t(m.Event)), doing)
	if err == nil && !done {
		err = driver.Errorf(driver.NotReady, doing, "an event is still pending; synchronize it first")
	}
	if err != nil {
		m.Release()
		return nil, err
	}
	return m, nil
}

// Elapsed implements driver.Event: as far as the library's milliseconds of 24 bits tell.
func (e *Event) Elapsed(end driver.Event) (int64, error) {
	const doing = "elapsed"
	from, err := e.recorded(doing)
	if err != nil {
		return 0, err
	}
	defer from.Release()
	to, err := end.(*Event).recorded(doing)
	if err != nil {
		return 0, err
	}
	defer to.Release()
	var ms C.float
	if err := e.dev.check(C.na_elapsed(e.dev.ctx(), C.uintptr_t(from.Event), C.uintptr_t(to.Event), &ms), doing); err != nil {
		return 0, err
	}
	return int64(math.Round(float64(ms) * 1e6)), nil
}

// Time implements driver.Event: nanoseconds of the device's clock, in steps of a microsecond.
func (e *Event) Time() (int64, error) {
	const doing = "timestamp"
	m, err := e.recorded(doing)
	if err != nil {
		return 0, err
	}
	defer m.Release()
	var us C.uint64_t
	if err := e.dev.check(C.na_timestamp(e.dev.ctx(), C.uintptr_t(m.Event), &us), doing); err != nil {
		return 0, err
	}
	return int64(us) * 1000, nil
}

// WaitsPending implements driver.Event.
func (e *Event) WaitsPending() int { return e.waits.Pending() }

// Close implements driver.Event.
func (e *Event) Close() {
	e.own.Replace(nil)
	if old := e.set.Swap(nil); old != nil {
		old.Release()
	}
	if e.dev.opened() {
		e.dev.trimFenceEvents(vendor.MaxFenceEvents)
	}
}

// Describe implements driver.Event.
func (e *Event) Describe() string {
	m := e.own.Latest()
	if m == nil {
		return fmt.Sprintf("event %d was never recorded", e.opts.ID)
	}
	defer m.Release()
	state := "is pending"
	if done, err := e.dev.answer(C.na_event_query(C.uintptr_t(m.Event)), "query event"); err != nil {
		state = "failed: " + err.Error()
	} else if done {
		state = "is done"
	}
	return fmt.Sprintf("the latest record of event %d %s", e.opts.ID, state)
}

// setPoint is reached when a settable event is set. It has a reference of the event.
type setPoint struct{ *settable }

// Wait implements driver.Point.
func (p setPoint) Wait(limit int64) bool {
	s := C.na_await(p.event, C.int64_t(limit), 0)
	return code(s) == 0 || p.dev.unusable()
}
