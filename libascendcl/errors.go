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

	"halstream/bindings/ascendcl"
	"halstream/bindings/program"
	"halstream/hal"
	"halstream/hal/driver"
)

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
		return ascendcl.InternalError
	}
	for _, o := range own {
		if o.kind == e.Kind {
			return o.code
		}
	}
	return ascendcl.CodeOf(e)
}

// call runs a function of the interface and returns its code.
func call(me C.uint32_t, f func(c *caller) error, own ...kindCode) C.int {
	c := callerOf(me)
	c.asked = nil
	err := f(c)
	switch {
	case err == nil:
		return ascendcl.Success
	case err == errWaits:
		return C.HS_ACL_WAITS
	}
	if errors.Is(err, hal.ErrNoContext) && adopt(c) {
		if err = f(c); err == nil {
			return ascendcl.Success
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
	text := fmt.Sprintf("%s: %s failed, error code is %d.\n        %v", ascendcl.Line(code), program.Function(), code, err)
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
		C.hs_acl_report(callback, C.uint32_t(c.Ident), C.uint32_t(dev), C.uint32_t(stream), C.uint32_t(code))
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
			return refuse(ascendcl.ParamInvalid, "the callback is not registered")
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
	return ascendcl.Success
}

// missing refuses an output that is NULL.
func missing(what string) error { return refuse(ascendcl.InvalidParam, "%s is NULL", what) }

//export hsAclMissing
func hsAclMissing(me C.uint32_t) C.int {
	return call(me, func(*caller) error {
		return refuse(ascendcl.InvalidParam, "a pointer is NULL or a value is none of the known ones")
	})
}

//export hsAclUnsupported
func hsAclUnsupported(me C.uint32_t) C.int {
	return call(me, func(*caller) error {
		return refuse(ascendcl.FeatureNotSupported, "this needs a chip, another process or a model, which the look-alike does not have")
	})
}
