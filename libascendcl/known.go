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
	context         atomic.Uint64
	ahead           atomic.Uint64
	queue           unsafe.Pointer
	ofEvent         atomic.Int32
	ordinal         atomic.Int32
}

var _ = [1]int{}[unsafe.Sizeof(known{})-C.sizeof_lookalike_known]

// knownOf returns what C knows of a handle, which has memory of C's that is never freed; nil without memory.
func knownOf(handle uintptr) *known {
	return (*known)(unsafe.Pointer(C.lookalike_entry(C.uint64_t(handle))))
}

// change calls f while no other thread reads or changes what C knows.
func (k *known) change(f func()) {
	version := k.version.Load()
	for version%2 != 0 || !k.version.CompareAndSwap(version, version+1) {
		runtime.Gosched() // whoever has it stores a few words
		version = k.version.Load()
	}
	f()
	k.version.Store(version + 2)
}

// showRuntime makes C know the word that says whether each call has to enter Go.
func showRuntime(rt *hal.Runtime) {
	C.lookalike_word = (*C.uint32_t)(unsafe.Pointer(rt.Status()))
	rt.Funcs.SetPressure((*atomic.Uint32)(unsafe.Pointer(&C.lookalike_pressure)))
}

// showStream makes C know the words of a new stream of the program, and the context that has to be current where work is
// enqueued. Default streams of contexts are not shown: NULL stands for them.
func showStream(handle, context uintptr, s *hal.Stream) {
	k, words := knownOf(handle), s.Status()
	if k == nil || words == nil {
		return
	}
	k.change(func() {
		k.handle.Store(uint64(handle))
		k.ofEvent.Store(0)
		k.context.Store(uint64(context))
		k.place.Store(words.ID.Load())
		atomic.StorePointer(&k.words, unsafe.Pointer(words))
	})
}

// showEvent makes C know a new event, and whether it may record it.
func showEvent(handle uintptr, e *hal.Event) *known {
	k := knownOf(handle)
	if k == nil {
		return nil
	}
	ordinal := -1
	if o := e.Options(); e.Device() != nil && o.Kind == hal.Standard && !o.Timing && !o.NotWaitable && !o.Interprocess {
		ordinal = e.Device().Ordinal()
	}
	k.change(func() {
		k.handle.Store(uint64(handle))
		k.ofEvent.Store(1)
		k.ahead.Store(0)
		k.ordinal.Store(int32(ordinal))
		atomic.StorePointer(&k.words, nil)
	})
	return k
}

// hideHandle makes C know nothing of a handle.
func hideHandle(handle uintptr) {
	if k := knownOf(handle); k != nil {
		k.change(func() {
			k.handle.Store(0)
			k.ahead.Store(0)
			atomic.StorePointer(&k.words, nil)
		})
	}
}

// show makes C know what the latest record of an event stands for, with nil words that only Go can tell.
func (k *known) show(handle uintptr, words *status.Stream, place uint64) {
	if k == nil {
		return
	}
	k.change(func() {
		if k.handle.Load() != uint64(handle) {
			return // it was destroyed meanwhile
		}
		k.ahead.Store(0)
		k.place.Store(place)
		atomic.StorePointer(&k.words, unsafe.Pointer(words))
	})
}

// catchUp makes the core know of a record of the event that C has made.
func (e *event) catchUp(handle uintptr) (err error) {
	k := e.known
	if k == nil || k.ahead.Load() == 0 {
		return nil
	}
	k.change(func() {
		on := uintptr(k.ahead.Load())
		if on == 0 || k.handle.Load() != uint64(handle) {
			return // another thread was here first
		}
		var s *hal.Stream
		if found, ok := find(on).(*stream); ok {
			s = found.Stream
		}
		err = e.NoteRecorded(e.Device(), s, (*status.Stream)(atomic.LoadPointer(&k.words)), k.place.Load())
		k.ahead.Store(0)
	})
	return err
}

// looking is set in the number of threads that record an event while one looks at the record.
const looking = 1 << 30

// record records an event and makes C know what the record stands for, or nothing if another thread records it as
// well: only a thread that does so alone may look at the record.
func (e *event) record(handle uintptr, c *caller, s *stream) error {
	for n := e.recording.Load(); n >= looking || !e.recording.CompareAndSwap(n, n+1); n = e.recording.Load() {
		runtime.Gosched()
	}
	err := s.Record(c.t, e.Event)
	if err != nil { // nothing has changed, and C may have made a record of another thread
		e.recording.Add(-1)
		return err
	}
	if e.recording.CompareAndSwap(1, looking) {
		words, place := e.Place()
		e.known.show(handle, words, place)
		e.recording.Store(0)
		return nil
	}
	e.known.show(handle, nil, 0)
	e.recording.Add(-1)
	return nil
}
