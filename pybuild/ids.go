package pybuild

import (
	"fmt"
	"os"

	"halstream/hal"
	"halstream/hal/driver"
)

// An id is a slot of the table of objects, with a generation above it so that
// no id is ever given twice. The low four bits are free: ids are multiples of
// 16, which no handle of a default stream (0, 1, 2) is.
const (
	slotBits = 24
	lowBits  = 4
)

type entry struct {
	generation int64
	object     any
}

// perThread is the entry of a device's per-thread default stream, which is
// another stream on each thread.
type perThread struct{ dev *hal.Device }

var (
	entries = make([]entry, 1, 1024)
	freeIDs []int32
)

// insert gives an object its id. It panics, which guard turns into an error,
// when there are more objects than slots.
func insert(object any) int64 {
	var slot int32
	if n := len(freeIDs); n > 0 {
		slot = freeIDs[n-1]
		freeIDs = freeIDs[:n-1]
	} else {
		if len(entries) == 1<<slotBits {
			panic(driver.Errorf(driver.OutOfMemory, "create",
				"%d streams, events and gates are alive; close some", len(entries)-1))
		}
		slot = int32(len(entries))
		entries = append(entries, entry{generation: 1})
	}
	e := &entries[slot]
	e.object = object
	id := (e.generation<<slotBits | int64(slot)) << lowBits
	if s, ok := object.(*hal.Stream); ok {
		if _, handled := s.Handle(); handled {
			handledIDs[s] = id
		}
		if w := s.Status(); w != nil {
			w.ID.Store(uint64(id))
		}
	}
	return id
}

// handledIDs are the ids of streams that the vendor's library knows by a handle,
// by which other libraries may name them.
var handledIDs = map[*hal.Stream]int64{}

// find returns the object of an id, nil if there is none.
func find(id int64) any {
	slot := id >> lowBits & (1<<slotBits - 1)
	if id < 0 || slot >= int64(len(entries)) {
		return nil
	}
	if e := &entries[slot]; e.generation == id>>(lowBits+slotBits) && id&(1<<lowBits-1) == 0 {
		return e.object
	}
	return nil
}

// remove gives an id up. It may have been given up already: who closes an object
// may let other threads call meanwhile, which close it, too.
func remove(id int64) {
	object := find(id)
	if object == nil {
		return
	}
	if s, ok := object.(*hal.Stream); ok {
		if handledIDs[s] == id {
			delete(handledIDs, s)
		}
		if w := s.Status(); w != nil {
			w.ID.Store(0)
		}
	}
	slot := id >> lowBits & (1<<slotBits - 1)
	entries[slot].object = nil
	entries[slot].generation++
	freeIDs = append(freeIDs, int32(slot))
}

// unknown explains an id that has no object of the wanted type.
func unknown(id int64, op, what string) error {
	slot := id >> lowBits & (1<<slotBits - 1)
	generation := id >> (lowBits + slotBits)
	if id > 0 && id&(1<<lowBits-1) == 0 && slot < int64(len(entries)) && slot > 0 &&
		generation > 0 && generation < entries[slot].generation {
		return raise(driver.Errorf(driver.Closed, op, "the %s is closed; create a new one", what))
	}
	return raise(driver.Errorf(driver.InvalidHandle, op, "%d is not the handle of a live %s", id, what))
}

func stream(t *hal.Thread, id int64, op string) (*hal.Stream, error) {
	if over.Load() {
		_, err := backend()
		return nil, err
	}
	switch o := find(id).(type) {
	case *hal.Stream:
		return o, nil
	case perThread:
		s, err := o.dev.PerThreadStream(t)
		return s, raise(err)
	}
	return nil, unknown(id, op, "stream")
}

func event(id int64, op string) (*hal.Event, error) {
	if e, ok := find(id).(*hal.Event); ok {
		return e, nil
	}
	return nil, unknown(id, op, "event")
}

// flatError is an error in the form that Python reads.
type flatError struct{ text string }

func (e *flatError) Error() string { return e.text }

// raise gives an error the form that Python reads: errorPrefix and an errorRecord.
func raise(err error) error {
	if err == nil {
		return nil
	}
	e, ok := err.(*hal.Error)
	if !ok {
		if flat, done := err.(*flatError); done {
			return flat
		}
		e = driver.Errorf(driver.Unknown, "", "%s", err)
	}
	return &flatError{errorPrefix + encode(errorRecord{e.Kind.String(), e.Code, e.Op, e.Token, e.Text})}
}

// guard turns a panic with an Error of the runtime (there is one: no id is left)
// into the call's error. Every other panic is a defect, and the panicking
// function may hold a lock: the process ends with the panic's text and stack,
// because the next call that needs the lock would block for ever.
func guard(err *error) {
	switch r := recover().(type) {
	case nil:
	case *hal.Error:
		*err = raise(r)
	default:
		fmt.Fprintln(os.Stderr, "halstream: a defect of the runtime, please report it with the text below")
		panic(r)
	}
}
