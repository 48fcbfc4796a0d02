package pybuild

/*
#include "api.h"
#include "caller.h"
#include "collected.h"
#include "sites.h"
#include <stdlib.h>
*/
import "C"

import (
	"strings"
	"sync/atomic"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// The functions of the files api*.go are the Go half of those of halstream.h. Unlike
// the others of this package they may be called without Python's lock, so they use only
// what is safe then: the table of objects, the table of threads, and current.

// inUse is the runtime in use, as calls without Python's lock see it.
type inUse struct {
	rt      *hal.Runtime
	legacy  []int64 // ids of the devices' legacy default streams
	counted []allocationCounts
}

// allocationCounts counts the blocks of a device that were made and freed.
type allocationCounts struct{ made, freed atomic.Uint64 }

var current atomic.Pointer[inUse]

// useForAPI makes r the runtime of the calls of halstream.h.
func useForAPI(r *hal.Runtime) {
	current.Store(&inUse{rt: r, legacy: legacyIDs, counted: make([]allocationCounts, r.Devices())})
	atomic.AddUint64((*uint64)(unsafe.Pointer(&C.halstream_generation)), 1)
}

// apiCall is a call of halstream.h.
type apiCall struct {
	t     *hal.Thread
	holds bool // Python's lock
}

// begin returns the call that a thread makes, after closing what could not be closed
// when its number was given up.
func begin(who C.int64_t) apiCall {
	slot, holds := int32(who>>C.WHO_SHIFT), who&C.WHO_HOLDS != 0
	c := apiCall{holds: holds}
	if slot != 0 {
		c.t = thread(slot)
	} else {
		c.t = register()
	}
	if atomic.LoadUint64((*uint64)(unsafe.Pointer(&C.halstream_late))) != 0 {
		c.closeLate()
	}
	if atomic.LoadInt32((*int32)(unsafe.Pointer(&C.halstream_noted))) != 0 {
		leaveCaptures()
	}
	return c
}

// closeLate closes what releases of operations have closed.
func (c apiCall) closeLate() {
	var late [64]C.int64_t
	for n := C.size_t(len(late)); n == C.size_t(len(late)); {
		n = C.halstream_take_late(&late[0], C.size_t(len(late)))
		for _, id := range late[:n] {
			_ = c.close(int64(id))
		}
	}
}

//export halstreamRegister
func halstreamRegister(C.int64_t) { register() }

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

// errorText returns what was done and what is wrong, and of the function with which a device
// was lost the line of the program that enqueued it.
func errorText(e *hal.Error) string {
	if e.Op == "" || strings.HasPrefix(e.Text, e.Op+": ") { // it begins with a function's name
		return e.Text + lineOf(e)
	}
	return e.Op + ": " + e.Text + lineOf(e)
}

// lossText is errorText of the error of a lost device, "" for nil.
func lossText(err error) string {
	if e, ok := err.(*hal.Error); ok && e != nil {
		return errorText(e)
	}
	return ""
}

// lineOf returns the line of the program of an error in parentheses, "" if there is none.
func lineOf(e *hal.Error) string {
	if e.Site == 0 {
		return ""
	}
	line, known := lineOfSite(e.Site)
	if !known {
		return ""
	}
	return " (" + line + ")"
}

// result returns the code of an error, whose text it keeps for error_text.
func result(err error) C.int {
	if err == nil {
		return C.HALSTREAM_OK
	}
	e, ok := err.(*hal.Error)
	if !ok {
		e = driver.Errorf(driver.Unknown, "call", "%s", err)
	}
	text := errorText(e)
	C.halstream_set_error((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
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
	if r := current.Load(); r != nil {
		r.rt.NoteLossesReported()
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
func runtimeInUse() (*inUse, error) {
	if r := current.Load(); r != nil {
		return r, nil
	}
	return nil, driver.Errorf(driver.BackendAbsent, "use runtime", "no backend is open; call halstream.get_api() first")
}

func apiDevice(ordinal C.int32_t) (*hal.Device, error) {
	r, err := runtimeInUse()
	if err != nil {
		return nil, err
	}
	return r.rt.Device(int(ordinal))
}

// stream returns the stream of an id; op names the call in errors.
func (c apiCall) stream(id C.int64_t, op string) (*hal.Stream, error) {
	switch o := find(int64(id)).(type) {
	case *hal.Stream:
		return o, nil
	case perThread:
		return o.dev.PerThreadStream(c.t)
	}
	return nil, unknownError(int64(id), op, "stream")
}

func (c apiCall) event(id C.int64_t, op string) (*hal.Event, error) {
	e, ok := find(int64(id)).(*hal.Event)
	if !ok {
		return nil, unknownError(int64(id), op, "event")
	}
	return e, nil
}

// apiSlice is how long a wait goes, in nanoseconds, without looking whether the
// runtime has shut down.
const apiSlice = 50_000_000

// await waits for p for at most limit nanoseconds, negative for no limit.
func (c apiCall) await(p driver.Point, limit int64) error {
	if p == nil || p.Wait(0) {
		return nil
	}
	if c.holds && limit != 0 {
		done, raised := outside(p, limit)
		switch {
		case raised:
			return errInterrupted
		case done:
			return nil
		}
		return errTimeout
	}
	end := deadlineAfter(limit)
	var w *stall.Wait
	defer func() { w.End() }()
	defer driver.Announce(p)()
	for {
		slice, left := int64(apiSlice), end.left()
		if left != driver.Forever {
			slice = min(slice, left)
		}
		if p.Wait(slice) {
			return nil
		}
		if over.Load() {
			return errShutDown
		}
		if left == 0 {
			return errTimeout
		}
		if r := current.Load(); limit < 0 && w == nil && r != nil {
			w = beginWait(r.rt, p)
		}
	}
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
func (c apiCall) enqueued(s *hal.Stream, err error) C.int {
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
func (c apiCall) memoryWait() waiter {
	return func(p driver.Point) bool {
		limit := int64(driver.Forever)
		if r := current.Load(); blockedAt.AnyGate() || r != nil && r.rt.AwaitsHost() {
			limit = heldLimit
		}
		return c.await(p, limit) == nil
	}
}

// outsideLock runs f, which may take milliseconds, with Python's lock released if the
// thread holds it.
func (c apiCall) outsideLock(f func() error) (err error) {
	if !c.holds {
		return f()
	}
	unlocked(func() { err = f() })
	return err
}
