package main

// #include <string.h>
// #include "thread.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"unsafe"

	"halstream/hal"
)

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
			return refuse(paramInvalid, "the name needs %d bytes, not %d", len(text), room)
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
			return refuse(paramInvalid, "the function is not registered for the end of this model")
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
	Task   int           `json:"task"`
	Kind   string        `json:"kind"`
	Device int           `json:"device"`
	Stream *uint64       `json:"stream"` // of the capture, null for a task that was made without one
	After  []int         `json:"after"`
	Reads  []rangeRecord `json:"reads"`
	Writes []rangeRecord `json:"writes"`
}

func tasksOf(g *hal.Graph) []taskRecord {
	list := []taskRecord{}
	for _, n := range g.Nodes() {
		reads, writes := n.Accesses()
		r := taskRecord{Task: n.Index(), Kind: n.Kind(), Device: n.Device(), After: []int{}, Reads: rangesOf(reads),
			Writes: rangesOf(writes)}
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
			return refuse(fileOpen, "%v", err)
		}
		return nil
	})
}
