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

// The functions of halstream.h that enqueue work on a stream.

//export halstreamEnqueue
func halstreamEnqueue(who, id C.int64_t, operation unsafe.Pointer, name *C.char, site, flags C.uint32_t, ranges unsafe.Pointer,
	count C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "enqueue")
	if err != nil {
		return result(err)
	}
	f := hal.NativeFunc{
		Name: C.GoString(name), Site: uint32(site), Accesses: unsafe.Slice((*hal.Access)(ranges), int(count)),
		Function: runOperation, Argument: uint64(uintptr(operation)), Release: releaseOperation,
		LosesDevice: flags&C.HALSTREAM_LOSES_DEVICE != 0, HandsIn: flags&C.HALSTREAM_HANDS_IN != 0,
		AwaitsOthers: flags&C.HALSTREAM_AWAITS_OTHERS != 0,
	}
	return c.enqueued(s, s.NativeFunc(c.t, &f))
}

// The layouts are the same.
var _ [unsafe.Sizeof(hal.Access{})]byte = [C.sizeof_halstream_range]byte{}

var (
	runOperation     = uint64(uintptr(C.halstream_run_operation))
	releaseOperation = uint64(uintptr(C.halstream_release_operation))
)

//export halstreamCopy
func halstreamCopy(who, id C.int64_t, dst, dpitch, src, spitch, width, height C.uint64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "copy")
	if err != nil {
		return result(err)
	}
	p, err := s.Copy(c.t, hal.CopySpec{Dst: uint64(dst), DstPitch: uint64(dpitch), Src: uint64(src),
		SrcPitch: uint64(spitch), Width: uint64(width), Height: uint64(height)})
	if err != nil || p == nil {
		return c.enqueued(s, err)
	}
	if err = c.await(p, driver.Forever); err == nil {
		err = s.Failure() // an abort may have dropped the copy
	}
	if err == nil {
		err = s.Device().Lost()
	}
	return result(err)
}

//export halstreamFill
func halstreamFill(who, id C.int64_t, dst C.uint64_t, value, size C.uint32_t, count C.uint64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "fill")
	if err == nil && size > 8 {
		err = driver.Errorf(driver.InvalidValue, "fill", "a value has at most 4 bytes")
	}
	if err != nil {
		return result(err)
	}
	return c.enqueued(s, s.Fill(c.t, uint64(dst), uint32(value), uint8(size), uint64(count)))
}

//export halstreamNop
func halstreamNop(who, id C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "nop")
	if err != nil {
		return result(err)
	}
	return c.enqueued(s, s.Nop(c.t))
}

//export halstreamDelay
func halstreamDelay(who, id, ns C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "delay")
	if err != nil {
		return result(err)
	}
	return c.enqueued(s, s.Delay(c.t, int64(ns)))
}

//export halstreamGateNew
func halstreamGateNew(who, id C.int64_t, gate *C.int64_t) (code C.int) {
	defer full(&code)
	c := begin(who)
	s, err := c.stream(id, "gate")
	if err != nil {
		return result(err)
	}
	g, err := s.Gate(c.t)
	if err != nil {
		return result(err)
	}
	python.BlockedAt.GateMade(g)
	*gate = C.int64_t(python.Insert(g))
	return C.HALSTREAM_OK
}

//export halstreamGateOpen
func halstreamGateOpen(_, id C.int64_t) C.int {
	g, ok := python.Find(int64(id)).(driver.Gate)
	if !ok {
		err := python.Unknown(int64(id), "open gate", "gate")
		if err.Kind == driver.Closed {
			return C.HALSTREAM_OK // it was opened, and its number given up
		}
		return result(err)
	}
	g.Open()
	python.BlockedAt.GateOpened(g)
	python.Remove(int64(id))
	return C.HALSTREAM_OK
}
