package main

// #include "known.h"
import "C"

import (
	"unsafe"

	"halstream/hal"
)

// showRuntime makes C know the word that says whether each call has to enter Go.
func showRuntime(rt *hal.Runtime) {
	C.lookalike_word = (*C.uint32_t)(unsafe.Pointer(rt.Status()))
}

// showStream makes C know the words of a new stream of the program. Default streams of contexts are not shown: NULL
// stands for them.
func showStream(handle uintptr, s *hal.Stream) {
	if words := s.Status(); words != nil {
		C.lookalike_know(C.uint64_t(handle), unsafe.Pointer(words), C.uint64_t(words.ID.Load()), 0)
	}
}

// hideHandle makes C know nothing of a handle.
func hideHandle(handle uintptr) { C.lookalike_know(C.uint64_t(handle), nil, 0, 0) }

// record records an event and makes C know what the record stands for, or nothing while another thread records it
// as well: only a thread that does so alone may look at the record.
func (e *event) record(handle uintptr, c *caller, s *stream) error {
	e.showing.Lock()
	e.recording++
	e.showing.Unlock()
	err := s.Record(c.t, e.Event)
	e.showing.Lock()
	defer e.showing.Unlock()
	if e.recording == 1 {
		words, place := e.Place()
		C.lookalike_know(C.uint64_t(handle), unsafe.Pointer(words), C.uint64_t(place), 1)
	} else {
		hideHandle(handle)
	}
	e.recording--
	return err
}
