package main

// #include "acl/acl_rt_types.h"
import "C"

import (
	"sync"
	"sync/atomic"

	"halstream/hal"
	"halstream/hal/driver"
)

// recorded is what a capture has made: a graph, ready to run. A capture that was asked for its model has one
// without a graph until it ends.
type recorded struct {
	made atomic.Pointer[captureGraph]
}

type captureGraph struct {
	graph *hal.Graph
	exec  *hal.GraphExec
	id    uint32
	modelFacts
}

// models numbers those that there were.
var models atomic.Uint32

// underWay are the handles of models of captures that have not ended, by the numbers of the captures.
var underWay struct {
	sync.Mutex
	by map[uint64]uintptr
}

// modelOf returns the handle of the model of a capture that has not ended.
func modelOf(capture uint64) uintptr {
	underWay.Lock()
	defer underWay.Unlock()
	handle := underWay.by[capture]
	if handle == 0 {
		if underWay.by == nil {
			underWay.by = map[uint64]uintptr{}
		}
		handle = add(&recorded{})
		underWay.by[capture] = handle
	}
	return handle
}

// ended forgets that a capture is under way, and returns the handle of its model, 0 where nobody has asked for it.
func ended(capture uint64) uintptr {
	underWay.Lock()
	defer underWay.Unlock()
	handle := underWay.by[capture]
	delete(underWay.by, capture)
	return handle
}

func recordedOf(handle C.uintptr_t) (*captureGraph, error) {
	if handle == 0 {
		return nil, missing("the model")
	}
	if r, ok := find(uintptr(handle)).(*recorded); ok {
		if made := r.made.Load(); made != nil {
			return made, nil
		}
		return nil, refuse(modelCaptured, "the capture of the model %#x has not ended", handle)
	}
	return nil, refuse(invalidHandle, "no model has the handle %#x", handle)
}

//export hsAclCaptureBegin
func hsAclCaptureBegin(me C.uint32_t, handle C.uintptr_t, mode C.int32_t) C.int {
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

//export hsAclCaptureEnd
func hsAclCaptureEnd(me C.uint32_t, handle C.uintptr_t, model *C.uintptr_t) C.int {
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
		capture := s.CaptureID()
		g, err := s.EndCapture(c.t)
		var handle uintptr
		if s.CaptureID() != capture { // it has ended, with or without an error
			handle = ended(capture)
		}
		var x *hal.GraphExec
		if err == nil {
			if x, err = g.Instantiate(c.t); err != nil {
				_ = g.Close(c.t)
			}
		}
		if err != nil {
			if handle != 0 {
				remove(handle)
			}
			return err
		}
		if handle == 0 {
			handle = add(&recorded{})
		}
		find(handle).(*recorded).made.Store(&captureGraph{graph: g, exec: x, id: models.Add(1)})
		*model = C.uintptr_t(handle)
		return nil
	})
}

//export hsAclCaptureGetInfo
func hsAclCaptureGetInfo(me C.uint32_t, handle C.uintptr_t, status *C.int32_t, model *C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		if status == nil {
			return missing("the status")
		}
		state, err := s.IsCapturing(c.t)
		if err == nil {
			*status = C.int32_t(state) // the numbers are the same
			if capture := s.CaptureID(); model != nil && state == hal.Capturing && capture != 0 {
				*model = C.uintptr_t(modelOf(capture))
			}
		}
		return err
	})
}

//export hsAclCaptureThreadExchangeMode
func hsAclCaptureThreadExchangeMode(me C.uint32_t, mode *C.int32_t) C.int {
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

//export hsAclExecuteAsync
func hsAclExecuteAsync(me C.uint32_t, model, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		r, err := recordedOf(model)
		if err != nil {
			return err
		}
		return r.exec.Launch(c.t, s.Stream)
	})
}

//export hsAclExecute
func hsAclExecute(me C.uint32_t, model C.uintptr_t, ms C.int32_t) C.int {
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
		return c.synchronize(s, limit, ms, func(err error) error { return err }, kindCode{driver.Timeout, streamSyncTimeout})
	}, kindCode{driver.Timeout, streamSyncTimeout})
}

//export hsAclDestroyModel
func hsAclDestroyModel(me C.uint32_t, model C.uintptr_t) C.int {
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
		r.callAtEnd()
		return err
	})
}
