package capi

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"

	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/driver"
)

//export halstreamDeviceCount
func halstreamDeviceCount(who C.int64_t, count *C.int32_t) C.int {
	begin(who)
	r, err := runtimeInUse()
	if err == nil {
		*count = C.int32_t(r.Devices())
	}
	return result(err)
}

//export halstreamDeviceName
func halstreamDeviceName(who C.int64_t, ordinal C.int32_t, text *C.char, room C.size_t) C.int {
	begin(who)
	d, err := deviceOf(ordinal)
	if err == nil {
		writeText(text, room, d.Name())
	}
	return result(err)
}

//export halstreamDeviceSynchronize
func halstreamDeviceSynchronize(who C.int64_t, ordinal C.int32_t, limit C.int64_t) C.int {
	c := begin(who)
	d, err := deviceOf(ordinal)
	if err != nil {
		return result(err)
	}
	p, err := d.Point(c.t)
	if err == nil {
		err = timedOut(c.await(p, int64(limit)), d.Describe)
	}
	if err == nil {
		err = d.Failure()
	}
	if err == nil {
		err = d.Lost()
	}
	return result(err)
}

//export halstreamDeviceFailure
func halstreamDeviceFailure(who C.int64_t, ordinal C.int32_t, text *C.char, room C.size_t) C.int {
	begin(who)
	d, err := deviceOf(ordinal)
	if err == nil {
		writeText(text, room, python.LossText(d.Lost()))
	}
	return result(err)
}

// writeText writes as much of s as there is room for, with a final 0.
func writeText(text *C.char, room C.size_t, s string) {
	out := unsafe.Slice((*byte)(unsafe.Pointer(text)), int(room))
	out[copy(out[:room-1], s)] = 0
}

//export halstreamDeviceNow
func halstreamDeviceNow(who C.int64_t, ordinal C.int32_t, ns *C.int64_t) C.int {
	begin(who)
	if _, err := deviceOf(ordinal); err != nil {
		return result(err)
	}
	r, err := runtimeInUse()
	if err == nil {
		*ns = C.int64_t(r.Now())
	}
	return result(err)
}

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

func truth(b bool) C.int {
	if b {
		return 1
	}
	return 0
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
