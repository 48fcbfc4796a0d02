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

// The functions of halstream.h on streams.

//export halstreamStreamNew
func halstreamStreamNew(who C.int64_t, ordinal, priority C.int32_t, flags C.uint32_t, id *C.int64_t) (code C.int) {
	defer full(&code)
	c := begin(who)
	d, err := deviceOf(ordinal)
	if err == nil && flags&^C.HALSTREAM_STREAM_NON_BLOCKING != 0 {
		err = driver.Errorf(driver.InvalidValue, "create stream", "there are no flags %#x", flags)
	}
	if err != nil {
		return result(err)
	}
	s, err := d.NewStream(c.t, hal.StreamOptions{Priority: int(priority), NonBlocking: flags&C.HALSTREAM_STREAM_NON_BLOCKING != 0})
	if err != nil {
		return result(err)
	}
	*id = C.int64_t(python.Insert(s))
	return C.HALSTREAM_OK
}

//export halstreamStreamDefault
func halstreamStreamDefault(who C.int64_t, ordinal C.int32_t, id *C.int64_t) C.int {
	begin(who)
	d, err := deviceOf(ordinal)
	if err != nil {
		return result(err)
	}
	d.DefaultStream()
	*id = C.int64_t(python.Current().Legacy[ordinal])
	return C.HALSTREAM_OK
}

//export halstreamStreamDevice
func halstreamStreamDevice(who, id C.int64_t, ordinal *C.int32_t) C.int {
	s, err := begin(who).stream(id, "device")
	if err == nil {
		*ordinal = C.int32_t(s.Device().Ordinal())
	}
	return result(err)
}

//export halstreamStreamPriority
func halstreamStreamPriority(who, id C.int64_t, priority *C.int32_t) C.int {
	s, err := begin(who).stream(id, "priority")
	if err == nil {
		*priority = C.int32_t(s.Options().Priority)
	}
	return result(err)
}

//export halstreamStreamHandle
func halstreamStreamHandle(who, id C.int64_t, handle *C.uint64_t) C.int {
	s, err := begin(who).stream(id, "handle")
	if err != nil {
		return result(err)
	}
	number, ok := s.Handle()
	switch {
	case ok:
		*handle = C.uint64_t(number)
	case s == s.Device().Legacy():
		*handle = 0
	case s.PerThread():
		*handle = 2
	default:
		*handle = C.uint64_t(id)
	}
	return C.HALSTREAM_OK
}

//export halstreamStreamQuery
func halstreamStreamQuery(who, id C.int64_t, done *C.int) C.int {
	c := begin(who)
	s, err := c.stream(id, "query")
	if err != nil {
		return result(err)
	}
	ok, err := s.Query(c.t)
	if err == nil {
		*done = truth(ok)
	}
	return result(err)
}

//export halstreamStreamSynchronize
func halstreamStreamSynchronize(who, id, limit C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "synchronize")
	if err != nil {
		return result(err)
	}
	p, err := s.Point(c.t)
	if err == nil {
		err = timedOut(c.await(p, int64(limit)), s.Describe)
	}
	if err == nil {
		err = s.Failure()
	}
	if err == nil {
		err = s.Device().Lost()
	}
	return result(err)
}

//export halstreamStreamCapture
func halstreamStreamCapture(who, id C.int64_t, capture *C.uint64_t) C.int {
	s, err := begin(who).stream(id, "query capture")
	if err == nil {
		*capture = C.uint64_t(s.CaptureID())
	}
	return result(err)
}

//export halstreamStreamDrain
func halstreamStreamDrain(who, id, limit C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "synchronize")
	if err != nil {
		return result(err)
	}
	p, err := s.DrainPoint(c.t)
	if err == nil {
		err = timedOut(c.await(p, int64(limit)), s.Describe)
	}
	if err == nil {
		err = s.Device().Lost()
	}
	return result(err)
}

//export halstreamStreamWaitEvent
func halstreamStreamWaitEvent(who, id, eventID C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "wait event")
	if err != nil {
		return result(err)
	}
	e, err := c.event(eventID, "wait event")
	if err != nil {
		return result(err)
	}
	python.BlockedAt.WaitMade(s, e)
	return c.enqueued(s, s.Wait(c.t, e))
}

//export halstreamStreamWaitStream
func halstreamStreamWaitStream(who, id, other C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "wait stream")
	if err != nil {
		return result(err)
	}
	o, err := c.stream(other, "wait stream")
	if err != nil {
		return result(err)
	}
	return c.enqueued(s, s.WaitStream(c.t, o))
}
