package main

// #include "acl/acl_rt_types.h"
import "C"

import (
	"unsafe"

	"halstream/bindings/ascendcl"
	"halstream/hal"
	"halstream/hal/driver"
)

// event is an event of the program; ex is true for the newer kind.
type event struct {
	*hal.Event
	flags uint32
	ex    bool
}

// eventOf returns the event of a handle.
func eventOf(handle C.uintptr_t) (*event, error) {
	if handle == 0 {
		return nil, missing("the event")
	}
	if e, ok := find(uintptr(handle)).(*event); ok {
		return e, nil
	}
	return nil, refuse(ascendcl.InvalidHandle, "no event has the handle %#x; it was destroyed, or is no event", handle)
}

// newEvent makes an event of the current context's device.
func (c *caller) newEvent(flags uint32, ex bool) (*event, error) {
	now, err := c.t.Context()
	if err != nil {
		return nil, err
	}
	d := now.Device()
	made, err := d.Runtime().NewEvent(c.t, d, ascendcl.EventOptions(flags, ex))
	if err != nil {
		return nil, err
	}
	return &event{Event: made, flags: flags, ex: ex}, nil
}

// What hsAclCreateEvent makes.
const (
	plainEvent = iota
	flagEvent
	exEvent
)

//export hsAclCreateEvent
func hsAclCreateEvent(me C.uint32_t, handle *C.uintptr_t, kind C.int, flag C.uint32_t) C.int {
	return call(me, func(c *caller) error {
		if handle == nil {
			return missing("the event")
		}
		flags, ex := uint32(flag), kind == exEvent
		if kind == plainEvent {
			flags = ascendcl.DefaultEventFlags
		}
		if !ascendcl.EventFlagsExist(flags, ex) {
			return refuse(ascendcl.ParamInvalid, "an event is made with bits of 0xf, or with one that stands alone, not %#x", flags)
		}
		made, err := c.newEvent(flags, ex)
		if err == nil {
			*handle = C.uintptr_t(add(made))
		}
		return err
	})
}

// marked calls f with the event of a handle.
func marked(me C.uint32_t, handle C.uintptr_t, f func(c *caller, e *event) error, own ...kindCode) C.int {
	return call(me, func(c *caller) error {
		e, err := eventOf(handle)
		if err != nil {
			return err
		}
		return f(c, e)
	}, own...)
}

// ownOnly refuses what an event for captures, or one that other processes can have, cannot do.
func (e *event) ownOnly(what string) error {
	return e.no(e.Options().Interprocess, what) // which is one of the newer kind
}

// no refuses what an event for captures, or with ex one of the newer kind, cannot do.
func (e *event) no(ex bool, what string) error {
	if e.flags&C.ACL_EVENT_EXTERNAL != 0 || ex && e.ex {
		return refuse(ascendcl.FeatureNotSupported, "an event made with flag %#x cannot %s", e.flags, what)
	}
	return nil
}

// capturable refuses what a capture cannot order by: events of the older kind, and those that no stream can wait for.
func (e *event) capturable(s *stream) error {
	if s.CaptureID() != 0 && !ascendcl.Capturable(e.flags, e.ex) {
		return refuse(ascendcl.FeatureNotSupported, "the stream captures, where events are those of aclrtCreateEventExWithFlag "+
			"with ACL_EVENT_SYNC; this one is of another kind")
	}
	return nil
}

//export hsAclDestroyEvent
func hsAclDestroyEvent(me C.uint32_t, handle C.uintptr_t) C.int {
	return marked(me, handle, func(c *caller, e *event) error {
		remove(uintptr(handle))
		return e.Close(c.t)
	})
}

//export hsAclRecordEvent
func hsAclRecordEvent(me C.uint32_t, marker, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		s, err := c.streamOf(handle)
		if marker == 0 {
			err = missing("the event")
		}
		if err != nil {
			return err
		}
		e, err := eventOf(marker)
		if err == nil {
			err = e.capturable(s)
		}
		if err != nil {
			return err
		}
		return s.Record(c.t, e.Event)
	})
}

//export hsAclResetEvent
func hsAclResetEvent(me C.uint32_t, marker, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		e, err := eventOf(marker)
		if err == nil {
			err = e.capturable(s)
		}
		if err != nil {
			return err
		}
		if !e.ex && e.flags == ascendcl.DefaultEventFlags {
			return s.Nop(c.t) // needs no reset; an enqueue is what checks the context
		}
		return s.Reset(c.t, e.Event)
	})
}

// What hsAclQueryEvent looks at.
const (
	queryOld = iota
	queryRecorded
	queryWaits
)

//export hsAclQueryEvent
func hsAclQueryEvent(me C.uint32_t, handle C.uintptr_t, which C.int, status *C.int32_t) C.int {
	return marked(me, handle, func(c *caller, e *event) error {
		if status == nil {
			return missing("the status")
		}
		what := "be queried"
		switch which {
		case queryOld:
			what = "be queried this way; use aclrtQueryEventStatus"
		case queryWaits:
			what = "track who waits for it"
		}
		if err := e.no(which != queryRecorded, what); err != nil {
			return err
		}
		var done bool
		var err error
		switch which {
		case queryWaits:
			var n int
			n, err = e.WaitsPending(c.t)
			done = n == 0
		default:
			done, err = e.Query(c.t)
			done = done || which == queryOld && e.Version() == 0
		}
		if err == nil {
			// The recorded status has the other order than the rest.
			*status = C.int32_t(truth(done == (which == queryRecorded)))
		}
		return err
	})
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

//export hsAclSynchronizeEvent
func hsAclSynchronizeEvent(me C.uint32_t, handle C.uintptr_t, ms C.int32_t) C.int {
	return marked(me, handle, func(c *caller, e *event) error {
		limit, err := limitOf(ms)
		if err == nil {
			err = e.no(false, "be synchronized")
		}
		if err != nil {
			return err
		}
		p, err := e.Point(c.t)
		if err != nil {
			return err
		}
		return c.wait(e.Runtime(), p, limit, ascendcl.EventSyncTimeout, func(done bool) error {
			return waited(done, nil, ascendcl.EventSyncTimeout, e.Device(), ms)
		}, kindCode{driver.Timeout, ascendcl.EventSyncTimeout})
	}, kindCode{driver.Timeout, ascendcl.EventSyncTimeout})
}

//export hsAclEventElapsedTime
func hsAclEventElapsedTime(me C.uint32_t, ms *C.float, start, end C.uintptr_t) C.int {
	return marked(me, start, func(c *caller, first *event) error {
		last, err := eventOf(end)
		switch {
		case ms == nil:
			return missing("the time")
		case err != nil:
			return err
		}
		if err := first.ownOnly("be timed"); err != nil {
			return err
		}
		if err := last.ownOnly("be timed"); err != nil {
			return err
		}
		elapsed, err := first.Elapsed(c.t, last.Event)
		if err == nil {
			*ms = C.float(elapsed)
		}
		return err
	})
}

//export hsAclEventGetTimestamp
func hsAclEventGetTimestamp(me C.uint32_t, handle C.uintptr_t, us *C.uint64_t) C.int {
	return marked(me, handle, func(c *caller, e *event) error {
		if us == nil {
			return missing("the time")
		}
		if err := e.ownOnly("be timed"); err != nil {
			return err
		}
		ns, err := e.Time(c.t)
		if err == nil {
			*us = C.uint64_t(ns / 1000)
		}
		return err
	})
}

//export hsAclGetEventId
func hsAclGetEventId(me C.uint32_t, handle C.uintptr_t, id *C.uint32_t) C.int {
	return marked(me, handle, func(_ *caller, e *event) error {
		if id == nil {
			return missing("the number")
		}
		if err := e.ownOnly("be numbered"); err != nil {
			return err
		}
		if e.flags&ascendcl.WaitableEventFlags == 0 {
			return refuse(ascendcl.InternalError, "an event made with flag %#x has no number", e.flags)
		}
		*id = C.uint32_t(e.ID())
		return nil
	})
}

//export hsAclGetEventAvailNum
func hsAclGetEventAvailNum(me C.uint32_t, count *C.uint32_t) C.int {
	return call(me, func(c *caller) error {
		if count == nil {
			return missing("the count")
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		n := ascendcl.MostEvents
		each(func(_ uintptr, is any) {
			if e, ok := is.(*event); ok && e.Device() == now.Device() {
				n--
			}
		})
		*count = C.uint32_t(max(0, n))
		return nil
	})
}

//export hsAclIpcGetEventHandle
func hsAclIpcGetEventHandle(me C.uint32_t, handle C.uintptr_t, out *C.char) C.int {
	return marked(me, handle, func(c *caller, e *event) error {
		if out == nil {
			return missing("the handle")
		}
		made, err := e.Share(c.t, e.Device())
		if err == nil {
			*(*hal.ShareHandle)(unsafe.Pointer(out)) = made
		}
		return err
	})
}

//export hsAclIpcOpenEventHandle
func hsAclIpcOpenEventHandle(me C.uint32_t, in *C.char, handle *C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		if handle == nil {
			return missing("the event")
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		made, err := now.Device().Runtime().OpenEvent(c.t, *(*hal.ShareHandle)(unsafe.Pointer(in)))
		if err == nil {
			*handle = C.uintptr_t(add(&event{Event: made, flags: C.ACL_EVENT_IPC, ex: true}))
		}
		return err
	})
}

// hsAclExternal refuses a record or a wait for captures on a stream.
//
//export hsAclExternal
func hsAclExternal(me C.uint32_t, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		state, err := s.IsCapturing(c.t)
		if err == nil && state == hal.NotCapturing {
			err = refuse(ascendcl.NotCaptured, "the stream does not capture; the flag is for captures")
		}
		if err == nil {
			err = refuse(ascendcl.FeatureNotSupported, "captures have no external events here")
		}
		return err
	})
}
