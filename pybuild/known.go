package pybuild

/*
#include <stdlib.h>

#include "api.h"
*/
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"halstream/hal"
	"halstream/hal/status"
)

// known is what api.c knows of a stream or an event; the layout is halstream_known's.
type known struct {
	id      atomic.Int64
	words   unsafe.Pointer
	place   atomic.Uint64
	stream  atomic.Int64
	ahead   atomic.Uint32
	ordinal atomic.Int32
	plain   atomic.Uint32
	lock    atomic.Uint32
}

const knownSize = 1 << C.KNOWN_CHUNK_BITS

func knownChunk(slot int64) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Pointer(&C.halstream_known_chunks[slot>>C.KNOWN_CHUNK_BITS]))
}

// knownAt returns what C knows of a slot, nil if it has never known anything.
func knownAt(slot int64) *known {
	chunk := atomic.LoadPointer(knownChunk(slot))
	if chunk == nil {
		return nil
	}
	return &(*[knownSize]known)(chunk)[slot&(knownSize-1)]
}

// makeKnown returns what C is to know of an object that has an id. The caller holds the
// table's lock.
func makeKnown(id int64) *known {
	slot := slotOf(id)
	if at := knownChunk(slot); atomic.LoadPointer(at) == nil {
		if made := C.calloc(knownSize, C.sizeof_halstream_known); made != nil {
			atomic.StorePointer(at, made)
		}
	}
	return knownAt(slot)
}

// forgetKnown makes C know nothing of a slot. The caller holds the table's lock.
func forgetKnown(slot int64) {
	if k := knownAt(slot); k != nil {
		k.id.Store(0)
	}
}

// keepKnown stores what C is to know of an object that still has its id.
func keepKnown(id int64, set func(*known)) {
	table.mu.Lock()
	defer table.mu.Unlock()
	if find(id) == nil {
		return
	}
	if k := makeKnown(id); k != nil && k.id.Load() != id {
		set(k)
		k.id.Store(id)
	}
}

// showStream makes C know the words of a stream.
func showStream(id int64, s *hal.Stream) {
	if w := s.Status(); w != nil {
		if k := knownAt(slotOf(id)); k == nil || k.id.Load() != id {
			keepKnown(id, func(k *known) { atomic.StorePointer(&k.words, unsafe.Pointer(w)) })
		}
	}
}

// showEvent makes C know a new event that was not recorded yet.
func showEvent(id int64, e *hal.Event, ordinal int) {
	if rt := current.Load(); rt == nil || !rt.words {
		return
	}
	keepKnown(id, func(k *known) {
		// A thread may still be about to store a record of the event that had the slot.
		for !k.lock.CompareAndSwap(0, 1) {
			runtime.Gosched()
		}
		defer k.lock.Store(0)
		k.ahead.Store(0)
		k.place.Store(0)
		k.ordinal.Store(int32(ordinal))
		o := e.Options()
		k.plain.Store(uint32(truth(!o.Timing && o.Kind == hal.Standard && !o.NotWaitable && !o.Interprocess)))
		atomic.StorePointer(&k.words, unsafe.Pointer(&C.halstream_idle_words))
	})
}

// knownEvent returns what C knows of the event with an id, locked; nil if it knows
// nothing.
func knownEvent(id int64) *known {
	k := knownAt(slotOf(id))
	if k == nil || k.id.Load() != id {
		return nil
	}
	for !k.lock.CompareAndSwap(0, 1) {
		runtime.Gosched() // whoever has it stores a few words
	}
	return k
}

// showRecord makes C know which place an event stands for after a record by the core.
func showRecord(id int64, e *hal.Event) {
	k := knownEvent(id)
	if k == nil {
		return
	}
	defer k.lock.Store(0)
	k.ahead.Store(0)
	atomic.StorePointer(&k.words, nil) // before the place changes, as in api.c
	w, place := e.Place()
	if w == nil {
		return
	}
	if d := e.Device(); d != nil {
		k.ordinal.Store(int32(d.Ordinal()))
	}
	k.place.Store(place)
	atomic.StorePointer(&k.words, unsafe.Pointer(w))
}

// mayHaveRecorded reports whether a record that has returned err may have taken place. What C knows is left alone
// otherwise: it may have made a record for another thread meanwhile.
func mayHaveRecorded(s *hal.Stream, err error) bool { return err == nil || s.BlocksHost() }

// hideRecord makes C ask the core about an event.
func hideRecord(id int64) {
	if k := knownEvent(id); k != nil {
		k.ahead.Store(0)
		atomic.StorePointer(&k.words, nil)
		k.lock.Store(0)
	}
}

// catchUp makes the core know of a record of the event that was made without it.
func catchUp(id int64, e *hal.Event) error {
	if k := knownAt(slotOf(id)); k == nil || k.ahead.Load() == 0 {
		return nil
	}
	k := knownEvent(id)
	if k == nil {
		return nil
	}
	// Two threads may come here: the second one goes on when the core knows.
	defer k.lock.Store(0)
	if k.ahead.Load() == 0 {
		return nil
	}
	d, err := e.Runtime().Device(int(k.ordinal.Load()))
	if err != nil {
		return err
	}
	s, _ := find(k.stream.Load()).(*hal.Stream)
	err = e.NoteRecorded(d, s, (*status.Stream)(atomic.LoadPointer(&k.words)), k.place.Load())
	k.ahead.Store(0)
	return err
}
