package main

// #include <string.h>
// #include "acl/acl_rt_types.h"
// #include "callback.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/bindings/ascendcl"
	"halstream/bindings/records"
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
		return nil, refuse(ascendcl.ModelCaptured, "the capture of the model %#x has not ended", handle)
	}
	return nil, refuse(ascendcl.InvalidHandle, "no model has the handle %#x", handle)
}

//export hsAclCaptureBegin
func hsAclCaptureBegin(me C.uint32_t, handle C.uintptr_t, mode C.int32_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		switch {
		case mode < 0 || mode > C.ACL_MODEL_RI_CAPTURE_MODE_RELAXED:
			return refuse(ascendcl.ParamInvalid, "there is no mode %d", mode)
		case s.standing:
			return refuse(ascendcl.ByRule[906], "the default stream cannot capture; use another stream")
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
			return refuse(ascendcl.NotCaptured, "the stream does not capture; call aclmdlRICaptureBegin first")
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
			return refuse(ascendcl.ParamInvalid, "there is no mode %d", *mode)
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
		return c.synchronize(s, limit, ms, func(err error) error { return err }, kindCode{driver.Timeout, ascendcl.StreamSyncTimeout})
	}, kindCode{driver.Timeout, ascendcl.StreamSyncTimeout})
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

// modelFacts is what a program has said of a model.
type modelFacts struct {
	mu    sync.Mutex
	name  string
	atEnd []atEnd
}

// atEnd is a function of the program that is called when a model has been destroyed.
type atEnd struct{ function, argument C.uintptr_t }

// ofModel calls f with the model of a handle.
func ofModel(me C.uint32_t, model C.uintptr_t, f func(g *captureGraph) error) C.int {
	return call(me, func(*caller) error {
		g, err := recordedOf(model)
		if err != nil {
			return err
		}
		return f(g)
	})
}

//export hsAclModelSetName
func hsAclModelSetName(me C.uint32_t, model C.uintptr_t, name *C.char) C.int {
	return ofModel(me, model, func(g *captureGraph) error {
		if name == nil {
			return missing("the name")
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.name = C.GoString(name)
		return nil
	})
}

//export hsAclModelGetName
func hsAclModelGetName(me C.uint32_t, model C.uintptr_t, room C.uint32_t, name *C.char) C.int {
	return ofModel(me, model, func(g *captureGraph) error {
		if name == nil {
			return missing("the name")
		}
		g.mu.Lock()
		text := append([]byte(g.name), 0)
		g.mu.Unlock()
		if len(text) > int(room) {
			return refuse(ascendcl.ParamInvalid, "the name needs %d bytes, not %d", len(text), room)
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(name)), len(text)), text)
		return nil
	})
}

//export hsAclModelGetId
func hsAclModelGetId(me C.uint32_t, model C.uintptr_t, id *C.uint32_t) C.int {
	return ofModel(me, model, func(g *captureGraph) error {
		if id == nil {
			return missing("the number")
		}
		*id = C.uint32_t(g.id)
		return nil
	})
}

//export hsAclModelAtEnd
func hsAclModelAtEnd(me C.uint32_t, model, function, argument C.uintptr_t, add C.int) C.int {
	return ofModel(me, model, func(g *captureGraph) error {
		if function == 0 {
			return missing("the function")
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if add != 0 {
			g.atEnd = append(g.atEnd, atEnd{function, argument})
			return nil
		}
		i := slices.IndexFunc(g.atEnd, func(a atEnd) bool { return a.function == function })
		if i < 0 {
			return refuse(ascendcl.ParamInvalid, "the function is not registered for the end of this model")
		}
		g.atEnd = slices.Delete(g.atEnd, i, i+1)
		return nil
	})
}

// callAtEnd calls the functions that the program has registered for the end of a model.
func (g *captureGraph) callAtEnd() {
	g.mu.Lock()
	list := g.atEnd
	g.atEnd = nil
	g.mu.Unlock()
	for _, one := range list {
		C.hs_acl_call(one.function, one.argument)
	}
}

// taskRecord is one task of a model as aclmdlRIDebugJsonPrint writes it.
type taskRecord struct {
	Task   int             `json:"task"`
	Kind   string          `json:"kind"`
	Device int             `json:"device"`
	Stream *uint64         `json:"stream"` // of the capture, null for a task that was made without one
	After  []int           `json:"after"`
	Reads  []records.Range `json:"reads"`
	Writes []records.Range `json:"writes"`
}

func tasksOf(g *hal.Graph) []taskRecord {
	list := []taskRecord{}
	for _, n := range g.Nodes() {
		reads, writes := n.Accesses()
		r := taskRecord{Task: n.Index(), Kind: n.Kind().String(), Device: n.Device(), After: []int{}, Reads: records.Ranges(reads),
			Writes: records.Ranges(writes)}
		if s := n.Stream(); s != nil {
			index := s.Index()
			r.Stream = &index
		}
		for _, before := range n.After() {
			r.After = append(r.After, before.Index())
		}
		list = append(list, r)
	}
	return list
}

//export hsAclModelPrint
func hsAclModelPrint(me C.uint32_t, model C.uintptr_t) C.int {
	return ofModel(me, model, func(g *captureGraph) error {
		g.mu.Lock()
		name := g.name
		g.mu.Unlock()
		text := fmt.Sprintf("model %d %q\n", g.id, name)
		for _, t := range tasksOf(g.graph) {
			text += fmt.Sprintf("  task %d: %s", t.Task, t.Kind)
			if t.Stream != nil {
				text += fmt.Sprintf(" on stream %d of device %d", *t.Stream, t.Device)
			}
			if len(t.After) > 0 {
				text += fmt.Sprintf(", after %v", t.After)
			}
			text += "\n"
		}
		_, err := os.Stderr.WriteString(text)
		return err
	})
}

//export hsAclModelWrite
func hsAclModelWrite(me C.uint32_t, model C.uintptr_t, path *C.char) C.int {
	return ofModel(me, model, func(g *captureGraph) error {
		if path == nil {
			return missing("the path")
		}
		g.mu.Lock()
		name := g.name
		g.mu.Unlock()
		text, err := json.MarshalIndent(map[string]any{"model": g.id, "name": name, "tasks": tasksOf(g.graph)}, "", "  ")
		if err == nil {
			err = os.WriteFile(C.GoString(path), append(text, '\n'), 0o666)
		}
		if err != nil {
			return refuse(ascendcl.FileOpen, "%v", err)
		}
		return nil
	})
}
