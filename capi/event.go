package capi

/*
#include "capi.h"
*/
import "C"

import (
	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/driver"
)

// The functions of halstream.h on events.

//export halstreamEventNew
func halstreamEventNew(who C.int64_t, ordinal C.int32_t, flags C.uint32_t, id *C.int64_t) (code C.int) {
	defer full(&code)
	c := begin(who)
	r, err := runtimeInUse()
	var d *hal.Device
	if err == nil && ordinal != -1 {
		d, err = r.Device(int(ordinal))
	}
	if err == nil {
		err = checkEventFlags(flags)
	}
	if err != nil {
		return result(err)
	}
	e, err := r.NewEvent(c.t, d, eventOptions(flags))
	if err != nil {
		return result(err)
	}
	*id = C.int64_t(python.Insert(e))
	return C.HALSTREAM_OK
}

func eventOptions(flags C.uint32_t) hal.EventOptions {
	return hal.EventOptions{
		Timing:       flags&C.HALSTREAM_EVENT_TIMING != 0,
		BlockingSync: flags&C.HALSTREAM_EVENT_BLOCKING_SYNC != 0,
		Interprocess: flags&C.HALSTREAM_EVENT_IPC != 0,
	}
}

func checkEventFlags(flags C.uint32_t) error {
	if flags&^(C.HALSTREAM_EVENT_TIMING|C.HALSTREAM_EVENT_BLOCKING_SYNC|C.HALSTREAM_EVENT_IPC) != 0 {
		return driver.Errorf(driver.InvalidValue, "create event", "there are no flags %#x", flags)
	}
	return nil
}

//export halstreamEventRecord
func halstreamEventRecord(who, id, streamID C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(streamID, "record")
	if err != nil {
		return result(err)
	}
	e, err := c.event(id, "record")
	if err != nil {
		return result(err)
	}
	return c.enqueued(s, s.Record(c.t, e))
}

//export halstreamEventRecordNew
func halstreamEventRecordNew(who, streamID C.int64_t, flags C.uint32_t, id *C.int64_t) (code C.int) {
	defer full(&code)
	c := begin(who)
	s, err := c.stream(streamID, "record")
	if err == nil {
		err = checkEventFlags(flags)
	}
	if err != nil {
		return result(err)
	}
	d := s.Device()
	e, err := d.Runtime().NewEvent(c.t, d, eventOptions(flags))
	if err != nil {
		return result(err)
	}
	if err = s.Record(c.t, e); err != nil {
		_ = e.Close(nil)
		return result(err)
	}
	*id = C.int64_t(python.Insert(e))
	return c.enqueued(s, nil)
}

//export halstreamEventQuery
func halstreamEventQuery(who, id C.int64_t, done *C.int) C.int {
	c := begin(who)
	e, err := c.event(id, "query event")
	if err != nil {
		return result(err)
	}
	ok, err := e.Query(c.t)
	if err == nil {
		*done = truth(ok)
	}
	return result(err)
}

//export halstreamEventSynchronize
func halstreamEventSynchronize(who, id, limit C.int64_t) C.int {
	c := begin(who)
	e, err := c.event(id, "synchronize event")
	if err != nil {
		return result(err)
	}
	p, err := e.Point(c.t)
	if err == nil {
		err = timedOut(c.await(p, int64(limit)), e.Describe)
	}
	if err == nil {
		err = e.Failure()
	}
	if d := e.Device(); err == nil && d != nil {
		err = d.Lost()
	}
	return result(err)
}

//export halstreamEventElapsed
func halstreamEventElapsed(who, start, end C.int64_t, ms *C.double) C.int {
	c := begin(who)
	a, err := c.event(start, "elapsed")
	if err != nil {
		return result(err)
	}
	b, err := c.event(end, "elapsed")
	if err != nil {
		return result(err)
	}
	elapsed, err := a.Elapsed(c.t, b)
	if err == nil {
		*ms = C.double(elapsed)
	}
	return result(err)
}
