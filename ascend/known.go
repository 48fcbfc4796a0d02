package main

// #include "known.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"halstream/hal"
	"halstream/hal/status"
)

// known is what C knows of a handle; the layout is lookalike_known's.
type known struct {
	version, handle atomic.Uint64
	words           unsafe.Pointer
	place           atomic.Uint64
	ofEvent         atomic.Int32
	_               int32
}

var _ = [1]int{}[unsafe.Sizeof(known{})-C.sizeof_lookalike_known]

// knownOf returns what C knows of a handle, which has memory of C's that is never freed; nil without memory.
func knownOf(handle uintptr) *known {
	return (*known)(unsafe.Pointer(C.lookalike_entry(C.uint64_t(handle))))
}

// set makes C know a handle, or with nil words forget it.
func (k *known) set(handle uintptr, words *status.Stream, place uint64, ofEvent bool) {
	if k == nil {
		return
	}
	version := k.version.Load()
	for version%2 != 0 || !k.version.CompareAndSwap(version, version+1) {
		runtime.Gosched() // whoever has it stores a few words
		version = k.version.Load()
	}
	k.handle.Store(uint64(handle))
	atomic.StorePointer(&k.words, unsafe.Pointer(words))
	k.place.Store(place)
	k.ofEvent.Store(int32(truth(ofEvent)))
	k.version.Store(version + 2)
}

// showRuntime makes C know the word that says whether each call has to enter Go.
func showRuntime(rt *hal.Runtime) {
	C.lookalike_word = (*C.uint32_t)(unsafe.Pointer(rt.Status()))
}

// showStream makes C know the words of a new stream of the program. Default streams of contexts are not shown: NULL
// stands for them.
func showStream(handle uintptr, s *hal.Stream) {
	if words := s.Status(); words != nil {
		knownOf(handle).set(handle, words, words.ID.Load(), false)
	}
}

// hideHandle makes C know nothing of a handle.
func hideHandle(handle uintptr) { knownOf(handle).set(handle, nil, 0, false) }

// looking is set in the number of threads that record an event while one looks at the record.
const looking = 1 << 30

// record records an event and makes C know what the record stands for, or nothing if another thread records it as
// well: only a thread that does so alone may look at the record.
func (e *event) record(handle uintptr, c *caller, s *stream) error {
	for n := e.recording.Load(); n >= looking || !e.recording.CompareAndSwap(n, n+1); n = e.recording.Load() {
		runtime.Gosched()
	}
	err := s.Record(c.t, e.Event)
	if e.recording.CompareAndSwap(1, looking) {
		words, place := e.Place()
		e.known.set(handle, words, place, true)
		e.recording.Store(0)
		return err
	}
	e.known.set(handle, nil, 0, true)
	e.recording.Add(-1)
	return err
}
