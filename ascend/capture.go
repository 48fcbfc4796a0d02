package main

// #include "acl/acl_rt_types.h"
import "C"

import (
	"halstream/hal"
	"halstream/hal/driver"
)

// recorded is what a capture has made: a graph, ready to run.
type recorded struct {
	graph *hal.Graph
	exec  *hal.GraphExec
}

func recordedOf(handle C.uintptr_t) (*recorded, error) {
	if handle == 0 {
		return nil, missing("the model")
	}
	if r, ok := find(uintptr(handle)).(*recorded); ok {
		return r, nil
	}
	return nil, refuse(invalidHandle, "no model has the handle %#x", handle)
}

//export lookalikeCaptureBegin
func lookalikeCaptureBegin(me C.uint32_t, handle C.uintptr_t, mode C.int32_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		switch {
		case mode < 0 || mode > C.ACL_MODEL_RI_CAPTURE_MODE_RELAXED:
			return refuse(paramInvalid, "there is no mode %d", mode)
		case s.standing:
			return refuse(byRule[906], "the default stream cannot capture; use another stream")
		}
		return s.BeginCapture(c.t, hal.CaptureMode(mode))
	})
}

//export lookalikeCaptureEnd
func lookalikeCaptureEnd(me C.uint32_t, handle C.uintptr_t, model *C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		if model == nil {
			return missing("the model")
		}
		state, err := s.IsCapturing(c.t)
		if err != nil {
			return err
		}
		if state == hal.NotCapturing {
			return refuse(notCaptured, "the stream does not capture; call aclmdlRICaptureBegin first")
		}
		g, err := s.EndCapture(c.t)
		if err != nil {
			return err
		}
		x, err := g.Instantiate(c.t)
		if err != nil {
			_ = g.Close(c.t)
			return err
		}
		*model = C.uintptr_t(add(&recorded{g, x}))
		return nil
	})
}

//export lookalikeCaptureGetInfo
func lookalikeCaptureGetInfo(me C.uint32_t, handle C.uintptr_t, status *C.int32_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		if status == nil {
			return missing("the status")
		}
		state, err := s.IsCapturing(c.t)
		if err == nil {
			*status = C.int32_t(state) // the numbers are the same
		}
		return err
	})
}

//export lookalikeCaptureThreadExchangeMode
func lookalikeCaptureThreadExchangeMode(me C.uint32_t, mode *C.int32_t) C.int {
	return call(me, func(c *caller) error {
		if mode == nil {
			return missing("the mode")
		}
		if *mode < 0 || *mode > C.ACL_MODEL_RI_CAPTURE_MODE_RELAXED {
			return refuse(paramInvalid, "there is no mode %d", *mode)
		}
		before, err := c.t.ExchangeCaptureMode(hal.CaptureMode(*mode))
		if err == nil {
			*mode = C.int32_t(before)
		}
		return err
	})
}

//export lookalikeExecuteAsync
func lookalikeExecuteAsync(me C.uint32_t, model, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		r, err := recordedOf(model)
		if err != nil {
			return err
		}
		return r.exec.Launch(c.t, s.Stream)
	})
}

//export lookalikeExecute
func lookalikeExecute(me C.uint32_t, model C.uintptr_t, ms C.int32_t) C.int {
	return call(me, func(c *caller) error {
		r, err := recordedOf(model)
		if err != nil {
			return err
		}
		limit, err := limitOf(ms)
		if err != nil {
			return err
		}
		now, err := c.current()
		if err != nil {
			return err
		}
		s, err := now.beside(c.t)
		if err != nil {
			return err
		}
		if err := r.exec.Launch(c.t, s); err != nil {
			return err
		}
		done, err := s.Synchronize(c.t, limit)
		return waited(done, err, streamSyncTimeout, s.Device(), ms)
	}, kindCode{driver.Timeout, streamSyncTimeout})
}

//export lookalikeDestroyModel
func lookalikeDestroyModel(me C.uint32_t, model C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		r, err := recordedOf(model)
		if err != nil {
			return err
		}
		remove(uintptr(model))
		err = r.exec.Close(c.t)
		if closed := r.graph.Close(c.t); err == nil {
			err = closed
		}
		return err
	})
}
