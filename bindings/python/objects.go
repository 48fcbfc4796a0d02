package python

import (
	"sync"

	"halstream/bindings/ids"
	"halstream/hal"
)

// The objects that the ids of the extension name, and how they are found by other things.

// PerThread is the object of a device's per-thread default stream, which is
// another stream on each thread.
type PerThread struct{ Device *hal.Device }

// objects are what the ids of the extension name.
var objects = &ids.Shared

// streamOfOther is a stream of another binding.
type streamOfOther interface{ Core() *hal.Stream }

// index finds ids of streams and events by other things.
var index = struct {
	sync.Mutex
	// streams are the ids of streams.
	streams map[*hal.Stream]int64
	// events are the ids of events by their handle in the vendor's library, of those whose handle was asked for.
	events map[uint64]int64
	// own are the ids of per-thread default streams that were asked for, until their thread ends.
	own map[*hal.Stream]int64
}{streams: map[*hal.Stream]int64{}, events: map[uint64]int64{}, own: map[*hal.Stream]int64{}}

// Find returns the object of an id, nil if there is none.
func Find(id int64) any { return objects.Find(id) }

// Unknown explains to the caller of op why an id names no object that is called what.
func Unknown(id int64, op, what string) *hal.Error { return objects.Unknown(id, op, what) }

// Insert gives an object its id. It panics with an Error of the core if there are too many.
func Insert(object any) int64 {
	s, ok := object.(*hal.Stream)
	if !ok {
		return objects.Insert(object)
	}
	index.Lock()
	defer index.Unlock()
	return insertStream(s)
}

// insertStream is Insert for a stream; the caller holds the index's lock.
func insertStream(s *hal.Stream) int64 {
	id := objects.Insert(s)
	index.streams[s] = id
	return id
}

// Remove gives an id up, also one that was given up already.
func Remove(id int64) {
	index.Lock()
	defer index.Unlock()
	removeLocked(id)
}

func removeLocked(id int64) {
	switch o := objects.Find(id).(type) {
	case *hal.Stream:
		if index.streams[o] == id {
			delete(index.streams, o)
		}
	case *hal.Event:
		if number := o.GivenHandle(); number != 0 && index.events[number] == id {
			delete(index.events, number)
		}
	}
	objects.Remove(id)
}

// InsertOwn returns the id of a per-thread default stream, which stays that stream on every thread.
func InsertOwn(s *hal.Stream) int64 {
	index.Lock()
	defer index.Unlock()
	id, ok := index.own[s]
	if !ok {
		id = insertStream(s)
		index.own[s] = id
	}
	return id
}

// forgetOwn gives up the ids of per-thread default streams whose thread has ended.
func forgetOwn() {
	index.Lock()
	defer index.Unlock()
	for s, id := range index.own {
		if s.Closed() {
			delete(index.own, s)
			removeLocked(id)
		}
	}
}

// IDOf returns the id of a stream, 0 for one that has none.
func IDOf(s *hal.Stream) int64 {
	index.Lock()
	defer index.Unlock()
	return index.streams[s]
}

// InsertHandled returns the id of a stream that was found by its handle of the vendor's.
func InsertHandled(s *hal.Stream) int64 {
	index.Lock()
	defer index.Unlock()
	if id, ok := index.streams[s]; ok {
		return id
	}
	id := insertStream(s)
	if s.PerThread() {
		index.own[s] = id
	}
	return id
}

// NoteHandle lets EventOf find an event by its handle of the vendor's; it returns whether the event is open.
func NoteHandle(id int64, e *hal.Event, handle uint64) (open bool) {
	index.Lock()
	defer index.Unlock()
	if objects.Find(id) != e {
		return false
	}
	index.events[handle] = id
	return true
}

// EventOf returns the id of the open event with a handle that NoteHandle was told.
func EventOf(handle uint64) (id int64, known bool) {
	index.Lock()
	defer index.Unlock()
	id, known = index.events[handle]
	return id, known
}

// StreamOf returns the stream of an id for a thread; op names the call in errors.
func StreamOf(t *hal.Thread, id int64, op string) (*hal.Stream, error) {
	switch o := objects.Find(id).(type) {
	case *hal.Stream:
		return o, nil
	case PerThread:
		return o.Device.PerThreadStream(t)
	case streamOfOther:
		return o.Core(), nil
	}
	return nil, Unknown(id, op, "stream")
}

// EventNamed returns the event of an id; op names the call in errors.
func EventNamed(id int64, op string) (*hal.Event, error) {
	if e, ok := objects.Find(id).(*hal.Event); ok {
		return e, nil
	}
	return nil, Unknown(id, op, "event")
}
