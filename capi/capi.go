// Package capi is halstream.h: functions of the core for other libraries in C and C++, which find them in the extension
// for Python by the capsule or by the name halstream_get_api.
//
// capi.c has the functions, and the files in Go what they do. They may be called without Python's lock, so they use only
// what is safe then: the tables of objects and threads, and the runtime in use.
package capi

/*
#cgo CFLAGS: -std=gnu17 -I${SRCDIR}/../bindings/python
#include "capi.h"
#include "caller.h"
#include <stdlib.h>
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"halstream/bindings/python"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// call is a call of halstream.h.
type call struct {
	t     *hal.Thread
	holds bool // Python's lock
}

// begin returns the call that a thread makes, after closing what could not be closed
// when its number was given up.
func begin(who C.int64_t) call {
	slot, holds := int32(who>>C.WHO_SHIFT), who&C.WHO_HOLDS != 0
	c := call{t: python.ThreadAt(slot), holds: holds}
	if atomic.LoadUint64((*uint64)(unsafe.Pointer(&C.halstream_late))) != 0 {
		c.closeLate()
	}
	python.LeaveCaptures()
	return c
}

// closeLate closes what releases of operations have closed.
func (c call) closeLate() {
	var late [64]C.int64_t
	for n := C.size_t(len(late)); n == C.size_t(len(late)); {
		n = C.halstream_take_late(&late[0], C.size_t(len(late)))
		for _, id := range late[:n] {
			_ = c.close(int64(id))
		}
	}
}

// codes are the numbers of halstream.h for the kinds of errors.
var codes = map[driver.Kind]C.int{
	driver.Unknown: C.HALSTREAM_UNKNOWN, driver.NotReady: C.HALSTREAM_NOT_READY,
	driver.InvalidHandle: C.HALSTREAM_INVALID_HANDLE, driver.Closed: C.HALSTREAM_CLOSED,
	driver.InvalidValue: C.HALSTREAM_INVALID_VALUE, driver.InvalidDevice: C.HALSTREAM_INVALID_DEVICE,
	driver.WrongDevice: C.HALSTREAM_WRONG_DEVICE, driver.WrongContext: C.HALSTREAM_WRONG_CONTEXT,
	driver.NoContext: C.HALSTREAM_NO_CONTEXT, driver.TimingDisabled: C.HALSTREAM_TIMING_DISABLED,
	driver.Unrecorded: C.HALSTREAM_UNRECORDED, driver.Capture: C.HALSTREAM_CAPTURE,
	driver.NotSupported: C.HALSTREAM_NOT_SUPPORTED, driver.NotSubscribed: C.HALSTREAM_NOT_SUBSCRIBED,
	driver.OutOfMemory: C.HALSTREAM_OUT_OF_MEMORY, driver.DeviceLost: C.HALSTREAM_DEVICE_LOST,
	driver.BackendAbsent: C.HALSTREAM_BACKEND_ABSENT, driver.HostFunction: C.HALSTREAM_FUNCTION_FAILED,
	driver.InHostFunction: C.HALSTREAM_IN_HOST_FUNCTION, driver.Forked: C.HALSTREAM_FORKED,
	driver.Timeout: C.HALSTREAM_TIMEOUT, driver.Aborted: C.HALSTREAM_ABORTED,
	driver.Interrupted: C.HALSTREAM_INTERRUPTED,
}

// Errors that are no errors of package hal.
var (
	errInterrupted = driver.Errorf(driver.Unknown, "synchronize", "a handler of a signal raised; its exception is set")
	errShutDown    = driver.Errorf(driver.Unknown, "synchronize", "the interpreter is ending and the runtime has shut down")
)

// result returns the code of an error, whose text it keeps for error_text.
func result(err error) C.int {
	if err == nil {
		return C.HALSTREAM_OK
	}
	e, ok := err.(*hal.Error)
	if !ok {
		e = driver.Errorf(driver.Unknown, "call", "%s", err)
	}
	text := python.ErrorText(e)
	C.halstream_set_error((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
	C.halstream_set_error_number(C.int32_t(e.Code))
	if e.Kind == driver.DeviceLost {
		C.halstream_set_lost()
	}
	switch e {
	case errInterrupted:
		return C.HALSTREAM_INTERRUPTED
	case errShutDown:
		return C.HALSTREAM_SHUT_DOWN
	}
	if code, ok := codes[e.Kind]; ok {
		return code
	}
	return C.HALSTREAM_UNKNOWN
}

// halstreamLossSeen is called when a thread asks for the text of an error of a lost device:
// who does so tells the program.
//
//export halstreamLossSeen
func halstreamLossSeen() {
	if r := python.Current(); r != nil {
		r.NoteLossesReported()
	}
}

// full makes the panic of a full table of objects the call's error, as guard does.
func full(code *C.int) {
	switch r := recover().(type) {
	case nil:
	case *hal.Error:
		*code = result(r)
	default:
		panic(r)
	}
}

// runtimeInUse returns the runtime.
func runtimeInUse() (*python.Runtime, error) {
	if r := python.Current(); r != nil {
		return r, nil
	}
	return nil, driver.Errorf(driver.BackendAbsent, "use runtime", "no backend is open; call halstream.get_api() first")
}

func deviceOf(ordinal C.int32_t) (*hal.Device, error) {
	r, err := runtimeInUse()
	if err != nil {
		return nil, err
	}
	return r.Device(int(ordinal))
}

// stream returns the stream of an id; op names the call in errors.
func (c call) stream(id C.int64_t, op string) (*hal.Stream, error) {
	return python.StreamOf(c.t, int64(id), op)
}

func (c call) event(id C.int64_t, op string) (*hal.Event, error) {
	return python.EventNamed(int64(id), op)
}

// slice is how long a wait goes, in nanoseconds, without looking whether the
// runtime has shut down.
const slice = 50_000_000

// await waits for p for at most limit nanoseconds, negative for no limit.
func (c call) await(p driver.Point, limit int64) error {
	if p == nil || p.Wait(0) {
		return nil
	}
	if c.holds && limit != 0 {
		done, raised := python.Await(p, limit)
		switch {
		case raised:
			return errInterrupted
		case done:
			return nil
		}
		return errTimeout
	}
	w := waits.Wait{Point: p, End: waits.After(limit), Slice: slice}
	w.List = func() *stall.Wait {
		if r := python.Current(); r != nil {
			return python.BeginWait(r.Runtime, p)
		}
		return nil
	}
	w.Look = func(bool) error {
		if python.Over() {
			return errShutDown
		}
		return nil
	}
	done, err := w.Do()
	if err == nil && !done {
		return errTimeout
	}
	return err
}

var errTimeout = driver.Errorf(driver.Timeout, "synchronize", "the limit passed first")

// timedOut adds where the work stands to the error of a wait whose limit passed.
func timedOut(err error, describe func() string) error {
	if err == error(errTimeout) {
		return driver.Errorf(driver.Timeout, "synchronize", "the limit passed first: %s", describe())
	}
	return err
}

// enqueued ends a call that enqueued work: on a host-blocking stream it waits.
func (c call) enqueued(s *hal.Stream, err error) C.int {
	if err == nil && s.BlocksHost() {
		var p driver.Point
		if p, err = s.Point(c.t); err == nil {
			if err = c.await(p, driver.Forever); err == nil {
				err = s.Device().Lost()
			}
		}
	}
	return result(err)
}

// memoryWait returns what allocations call to wait for memory. While a stream waits for
// the host, whose thread may be the calling one, the wait has a limit.
func (c call) memoryWait() func(driver.Point) bool {
	return func(p driver.Point) bool { return c.await(p, python.RoomLimit()) == nil }
}

// outsideLock runs f, which may take milliseconds, with Python's lock released if the
// thread holds it.
func (c call) outsideLock(f func() error) (err error) {
	if !c.holds {
		return f()
	}
	python.Unlocked(func() { err = f() })
	return err
}

func truth(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
