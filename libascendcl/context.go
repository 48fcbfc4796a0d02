package main

// #include "thread.h"
import "C"

import (
	"sync"

	"halstream/bindings/ascendcl"
	"halstream/hal"
	"halstream/hal/driver"
)

// context is what belongs to one of hal's contexts here.
type context struct {
	*hal.Context
	handle uintptr
	stream uintptr // of its default stream

	mu    sync.Mutex
	aside *hal.Stream // for calls that block and wait for no other stream
}

// contexts are those that a program has a handle of, or has used.
var contexts struct {
	sync.Mutex
	of map[*hal.Context]*context
}

func contextOf(c *hal.Context) *context {
	contexts.Lock()
	defer contexts.Unlock()
	found := contexts.of[c]
	if found == nil {
		if contexts.of == nil {
			contexts.of = map[*hal.Context]*context{}
		}
		found = &context{Context: c}
		found.handle = add(found)
		found.stream = add(&stream{Stream: c.DefaultStream(), standing: true})
		contexts.of[c] = found
	}
	return found
}

// current returns the context that is current on the calling thread.
func (c *caller) current() (*context, error) {
	now, err := c.t.Context()
	if err != nil {
		return nil, err
	}
	return contextOf(now), nil
}

// beside returns a stream of the context for calls that block and wait for no other stream.
func (c *context) beside(t *hal.Thread) (*hal.Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aside == nil || c.aside.Closed() {
		s, err := c.NewStream(t, hal.StreamOptions{})
		if err != nil {
			return nil, err
		}
		c.aside = s
	}
	return c.aside, nil
}

// finish waits for a context's work and ends it and its streams.
func finish(t *hal.Thread, c *hal.Context) error {
	p, err := c.Point(t)
	if err != nil {
		return err
	}
	if p != nil {
		p.Wait(driver.Forever)
	}
	c.End()
	contexts.Lock()
	found := contexts.of[c]
	delete(contexts.of, c)
	contexts.Unlock()
	if found != nil {
		remove(found.handle)
	}
	each(func(handle uintptr, is any) {
		if s, ok := is.(*stream); ok && s.Closed() {
			remove(handle)
		}
	})
	forgetUnusedQueues()
	return nil
}

//export hsAclCreateContext
func hsAclCreateContext(me C.uint32_t, handle *C.uintptr_t, ordinal C.int32_t) C.int {
	return call(me, func(c *caller) error {
		if handle == nil {
			return missing("the context")
		}
		d, err := device(ordinal)
		if err != nil {
			return err
		}
		made, err := d.NewContext(c.t)
		if err == nil {
			*handle = C.uintptr_t(contextOf(made).handle)
		}
		return err
	})
}

// named returns the context of a handle.
func named(handle C.uintptr_t) (*context, error) {
	if handle == 0 {
		return nil, missing("the context")
	}
	if c, ok := find(uintptr(handle)).(*context); ok {
		return c, nil
	}
	return nil, refuse(ascendcl.InvalidHandle, "no context has the handle %#x", handle)
}

//export hsAclDestroyContext
func hsAclDestroyContext(me C.uint32_t, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		found, err := named(handle)
		if err != nil {
			return err
		}
		if err := found.CheckDestroy(c.t); err != nil {
			return err
		}
		return finish(c.t, found.Context)
	}, kindCode{driver.InvalidValue, ascendcl.ContextNull})
}

//export hsAclSetCurrentContext
func hsAclSetCurrentContext(me C.uint32_t, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		found, err := named(handle)
		if err != nil {
			return err
		}
		return c.t.SetContext(found.Context)
	})
}

//export hsAclGetCurrentContext
func hsAclGetCurrentContext(me C.uint32_t, handle *C.uintptr_t, stream C.int) C.int {
	return call(me, func(c *caller) error {
		if handle == nil {
			return missing("the handle")
		}
		now, err := c.current()
		switch {
		case err != nil:
		case stream != 0:
			*handle = C.uintptr_t(now.stream)
		default:
			*handle = C.uintptr_t(now.handle)
		}
		return err
	})
}
