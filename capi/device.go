package capi

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"

	"halstream/bindings/python"
)

// The functions of halstream.h on devices.

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
