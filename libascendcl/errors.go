package main

// #include <stdlib.h>
// #include "callback.h"
// #include "thread.h"
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
)

// Codes that functions return; the headers have the names of all.
const (
	success               = 0
	invalidParam          = 100000
	repeatInitialize      = 100002
	invalidFile           = 100003
	parseFile             = 100006
	repeatFinalize        = 100037
	paramInvalid          = 107000
	contextNull           = 107002
	timestampInvalid      = 107006
	fileOpen              = 107009
	streamSubscribe       = 107011
	threadSubscribe       = 107012
	noCallback            = 107015
	invalidHandle         = 107017
	deviceTaskAbort       = 107022
	modelCaptured         = 107026
	captured              = 107027
	notCaptured           = 107029
	captureNotSupported   = 107030
	featureNotSupported   = 207000
	memoryAllocation      = 207001
	memoryFree            = 207002
	noStreamResource      = 207008
	noNotifyResource      = 207009
	libraryError          = 500000
	internalError         = 507000
	contextReleaseError   = 507007
	reportTimeout         = 507012
	abortTimeout          = 107019
	streamSyncTimeout     = 507046
	eventSyncTimeout      = 507047
	hostMemoryRegistered  = 507910
	hostMemoryNotRegister = 507911
)

// byKind is the code of each kind of hal's errors, where a function does not say otherwise.
var byKind = map[driver.Kind]int{
	driver.Unknown:        internalError,
	driver.NotReady:       timestampInvalid,
	driver.InvalidHandle:  invalidHandle,
	driver.Closed:         invalidHandle,
	driver.InvalidValue:   paramInvalid,
	driver.InvalidDevice:  107001,
	driver.WrongDevice:    paramInvalid,
	driver.WrongContext:   107003,
	driver.NoContext:      contextNull,
	driver.TimingDisabled: timestampInvalid,
	driver.Unrecorded:     internalError,
	driver.Capture:        captured,
	driver.NotSupported:   featureNotSupported,
	driver.NotSubscribed:  noCallback,
	driver.OutOfMemory:    memoryAllocation,
	driver.DeviceLost:     507899,
	driver.BackendAbsent:  207004,
	driver.HostFunction:   507018,
	// AscendCL leaves a call from inside a function on a stream undefined.
	driver.InHostFunction: 207006,
	driver.Forked:         507033,
	// A time limit of the stream's own, not of the call that reports it.
	driver.Timeout: 107020,
	driver.Aborted: 107023,
}

// byRule is the code of each rule of captures, which hal names by CUDA's numbers.
var byRule = map[int]int{
	401: captured,
	900: captured,
	901: 507903, // the capture was invalidated
	902: 107032, // two captures would be merged
	903: 107036, // it began on another stream
	904: 107025, // a stream was not joined
	905: 107024, // it would depend on work outside
	906: 107031, // the default stream cannot capture
	907: 107028, // the event was recorded in a capture
	908: 107038, // another thread began it
}

// kindCode is the code of a kind of errors for one function.
type kindCode struct {
	kind driver.Kind
	code int
}

// refusal is an error with a code of its own.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

func codeOf(err error, own []kindCode) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.code
	}
	var e *hal.Error
	if !errors.As(err, &e) {
		return internalError
	}
	for _, o := range own {
		if o.kind == e.Kind {
			return o.code
		}
	}
	if e.Kind == driver.Capture {
		if code, known := byRule[e.Code]; known {
			return code
		}
	}
	return byKind[e.Kind]
}

// call runs a function of the interface and returns its code.
func call(me C.uint32_t, f func(c *caller) error, own ...kindCode) C.int {
	c := callerOf(me)
	c.asked = nil
	err := f(c)
	switch {
	case err == nil:
		return success
	case err == errWaits:
		return C.HS_ACL_WAITS
	}
	if errors.Is(err, hal.ErrNoContext) && adopt(c) {
		if err = f(c); err == nil {
			return success
		}
	}
	return C.int(c.fail(err, own))
}

// fail keeps a failure as the thread's last one and returns its code.
func (c *caller) fail(err error, own []kindCode) int {
	code := codeOf(err, own)
	if errors.Is(err, hal.ErrHostFunction) || errors.Is(err, hal.ErrTimeout) {
		reportFailure(c, code)
	}
	line := map[int]string{1: "EE1001", 2: "EE2002"}[code/100000]
	if line == "" {
		line = "EE9999"
	}
	text := fmt.Sprintf("%s: %s failed, error code is %d.\n        %v", line, C.GoString(C.hs_acl_self_function()), code, err)
	c.code = code
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.oneText {
		session.text = text
	} else {
		c.text = text
	}
	return code
}

// takeText returns the text of the last failure, once.
func (c *caller) takeText() *C.char {
	c.forgetText()
	session.mu.Lock()
	text := &c.text
	if session.oneText {
		text = &session.text
	}
	taken := *text
	*text = ""
	session.mu.Unlock()
	if taken != "" {
		c.given = C.CString(taken)
	}
	return c.given
}

func (c *caller) forgetText() {
	C.free(unsafe.Pointer(c.given))
	c.given = nil
}

// exceptions are the program's callbacks for work that failed: the one that it set, 0 for none, and those that it
// registered.
var exceptions struct {
	mu         sync.Mutex
	callback   C.uintptr_t
	registered []C.uintptr_t
}

// reportFailure calls the program's callbacks for work that failed.
func reportFailure(c *caller, code int) {
	exceptions.mu.Lock()
	callbacks := slices.Clone(exceptions.registered)
	if exceptions.callback != 0 {
		callbacks = append(callbacks, exceptions.callback)
	}
	exceptions.mu.Unlock()
	if len(callbacks) == 0 {
		return
	}
	dev, stream := ^uint32(0), ^uint32(0)
	if s := c.asked; s != nil {
		dev, stream = uint32(s.Device().Ordinal()), uint32(s.Index())
	} else if now, err := c.t.Context(); err == nil {
		dev = uint32(now.Device().Ordinal())
	}
	for _, callback := range callbacks {
		C.hs_acl_report(callback, C.uint32_t(c.ident), C.uint32_t(dev), C.uint32_t(stream), C.uint32_t(code))
	}
}

//export hsAclExceptionCallback
func hsAclExceptionCallback(me C.uint32_t, callback C.uintptr_t, add C.int) C.int {
	return call(me, func(*caller) error {
		if callback == 0 {
			return missing("the callback")
		}
		exceptions.mu.Lock()
		defer exceptions.mu.Unlock()
		i := slices.Index(exceptions.registered, callback)
		switch {
		case add != 0 && i < 0:
			exceptions.registered = append(exceptions.registered, callback)
		case add == 0 && i < 0:
			return refuse(paramInvalid, "the callback is not registered")
		case add == 0:
			exceptions.registered = slices.Delete(exceptions.registered, i, i+1)
		}
		return nil
	})
}

//export hsAclSetExceptionInfoCallback
func hsAclSetExceptionInfoCallback(_ C.uint32_t, callback C.uintptr_t) C.int {
	exceptions.mu.Lock()
	defer exceptions.mu.Unlock()
	exceptions.callback = callback
	return success
}

// missing refuses an output that is NULL.
func missing(what string) error { return refuse(invalidParam, "%s is NULL", what) }

//export hsAclMissing
func hsAclMissing(me C.uint32_t) C.int {
	return call(me, func(*caller) error {
		return refuse(invalidParam, "a pointer is NULL or a value is none of the known ones")
	})
}

//export hsAclUnsupported
func hsAclUnsupported(me C.uint32_t) C.int {
	return call(me, func(*caller) error {
		return refuse(featureNotSupported, "this needs a chip, another process or a model, which the look-alike does not have")
	})
}
