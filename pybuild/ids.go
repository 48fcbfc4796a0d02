package pybuild

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

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

// perThread is the entry of a device's per-thread default stream, which is
// another stream on each thread.
type perThread struct{ dev *hal.Device }

// entry is a slot. Readers take no lock: they look at the id before and after the two
// words of the object, which are those of an interface value.
type entry struct {
	id         atomic.Int64 // 0 while the slot is free
	kind, data unsafe.Pointer
	generation int64
}

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
)

// table finds objects by their ids. find may be called by any thread at any time,
// insert and remove as well: also without Python's lock.
var table struct {
	chunks [1 << (slotBits - chunkBits)]atomic.Pointer[[chunkSize]entry]
	mu     sync.Mutex // guards the rest, and changes of entries
	count  int32      // slots ever used; slot 0 is none
	free   []int32
	// streams are the ids of streams.
	streams map[*hal.Stream]int64
	// events are the ids of events by their handle in the vendor's library, of those whose handle was asked for.
	events map[uint64]int64
	// own are the ids of per-thread default streams that were asked for by StreamOwn,
	// until their thread ends.
	own map[*hal.Stream]int64
}

func init() {
	table.count = 1
	table.events = map[uint64]int64{}
	table.streams, table.own = map[*hal.Stream]int64{}, map[*hal.Stream]int64{}
}

// entryAt returns a slot, nil if it was never used.
func entryAt(slot int64) *entry {
	if c := table.chunks[slot>>chunkBits].Load(); c != nil {
		return &c[slot&(chunkSize-1)]
	}
	return nil
}

// slotOf returns the slot that an id names, 0 if no id has this form.
func slotOf(id int64) int64 {
	if id <= 0 || id&(1<<lowBits-1) != 0 {
		return 0
	}
	return id >> lowBits & (1<<slotBits - 1)
}

// insert gives an object its id. It panics, which guard turns into an error,
// when there are more objects than slots.
func insert(object any) int64 {
	table.mu.Lock()
	defer table.mu.Unlock()
	return insertLocked(object)
}

// insertLocked is insert; the caller holds the table's lock.
func insertLocked(object any) int64 {
	var slot int32
	if n := len(table.free); n > 0 {
		slot = table.free[n-1]
		table.free = table.free[:n-1]
	} else {
		if table.count == 1<<slotBits {
			panic(driver.Errorf(driver.OutOfMemory, "create",
				"%d streams, events and gates are alive; close some", table.count-1))
		}
		slot = table.count
		table.count++
		if chunk := &table.chunks[slot>>chunkBits]; chunk.Load() == nil {
			chunk.Store(new([chunkSize]entry))
		}
	}
	e := entryAt(int64(slot))
	if e.generation == 0 {
		e.generation = 1
	}
	id := (e.generation<<slotBits | int64(slot)) << lowBits
	if s, ok := object.(*hal.Stream); ok {
		table.streams[s] = id
	}
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(&object))
	atomic.StorePointer(&e.kind, words[0])
	atomic.StorePointer(&e.data, words[1])
	e.id.Store(id) // last: from now on it is found
	return id
}

// find returns the object of an id, nil if there is none.
func find(id int64) (object any) {
	slot := slotOf(id)
	if slot == 0 {
		return nil
	}
	e := entryAt(slot)
	if e == nil || e.id.Load() != id {
		return nil
	}
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(&object))
	kind, data := atomic.LoadPointer(&e.kind), atomic.LoadPointer(&e.data)
	if e.id.Load() != id {
		return nil // removed meanwhile: they may belong to different objects
	}
	words[0], words[1] = kind, data
	return object
}

// idOfStream returns the id of a stream, 0 for one that has none.
func idOfStream(s *hal.Stream) int64 {
	table.mu.Lock()
	defer table.mu.Unlock()
	return table.streams[s]
}

// remove gives an id up. It may have been given up already: who closes an object
// may let other threads call meanwhile, which close it, too.
func remove(id int64) {
	table.mu.Lock()
	defer table.mu.Unlock()
	removeLocked(id)
}

// removeLocked is remove; the caller holds the table's lock.
func removeLocked(id int64) {
	object := find(id)
	if object == nil {
		return
	}
	if s, ok := object.(*hal.Stream); ok {
		if table.streams[s] == id {
			delete(table.streams, s)
		}
	}
	if e, ok := object.(*hal.Event); ok {
		if number := e.GivenHandle(); number != 0 && table.events[number] == id {
			delete(table.events, number)
		}
	}
	slot := slotOf(id)
	e := entryAt(slot)
	e.id.Store(0) // first: from now on it is not found
	atomic.StorePointer(&e.kind, nil)
	atomic.StorePointer(&e.data, nil)
	e.generation++
	table.free = append(table.free, int32(slot))
}

// unknown explains an id that has no object of the wanted type, in the form that
// Python reads.
func unknown(id int64, op, what string) error { return raise(unknownError(id, op, what)) }

// unknownError explains an id that has no object of the wanted type.
func unknownError(id int64, op, what string) *hal.Error {
	if slot := slotOf(id); slot != 0 {
		if e := entryAt(slot); e != nil {
			table.mu.Lock()
			past := e.generation
			table.mu.Unlock()
			if generation := id >> (lowBits + slotBits); generation > 0 && generation < past {
				return driver.Errorf(driver.Closed, op, "the %s is closed; create a new one", what)
			}
		}
	}
	return driver.Errorf(driver.InvalidHandle, op, "%d is not the handle of a live %s", id, what)
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
	if e.Kind == driver.Interrupted {
		return nil // Python's exception is set
	}
	if e.Kind == driver.DeviceLost && rt != nil {
		rt.NoteLossesReported() // Python raises it
	}
	return &flatError{errorPrefix + encode(errorRecord{e.Kind.String(), e.Code, e.Op, e.Token, e.Text + lineOf(e)})}
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
