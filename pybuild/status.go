package pybuild

/*
#include "caller.h"
#include "calls.h"

static void halstream_use(void *word) { halstream_slow = word; }
static void *halstream_words(int64_t address) { return (void *)(uintptr_t)address; }
static halstream_launch *halstream_launch_at(int64_t address) { return (halstream_launch *)(uintptr_t)address; }
static int64_t *halstream_ids(int64_t address) { return (int64_t *)(uintptr_t)address; }
*/
import "C"

import (
	"slices"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/status"
)

// useStatus makes the word of a runtime the one by which C code sees whether calls
// need the core.
func useStatus(r *hal.Runtime) {
	C.halstream_devices = C.int64_t(r.Devices())
	C.halstream_use(unsafe.Pointer(r.Status()))
}

// plainEvents returns how many open events only the C classes know: they were never
// recorded, or on streams without work.
func plainEvents() int { return int(C.halstream_plain) }

// notePlace tells C code which place an event stands for.
func notePlace(e *hal.Event) {
	w, place := e.Place()
	C.halstream_recorded = C.halstream_place{(*C.halstream_status)(unsafe.Pointer(w)), C.uint64_t(place)}
}

// noteBlock tells C code which block was found, or made.
func noteBlock(start, size uint64, ordinal int) {
	C.halstream_found = C.halstream_block{C.uint64_t(start), C.uint64_t(size), C.int64_t(ordinal)}
}

// StreamStatus returns the address of the words of a stream, 0 where there are none.
func StreamStatus(id int64) (address int64, err error) {
	defer guard(&err)
	if s, ok := find(id).(*hal.Stream); ok && s.Status() != nil {
		return int64(uintptr(unsafe.Pointer(s.Status()))), nil
	}
	return 0, nil
}

// StreamRecordNew makes an event as EventNew does, records it and returns its id.
func StreamRecordNew(id, ordinal, flags int64) (eventID int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "record")
	if err != nil {
		return 0, err
	}
	d := s.Device()
	if ordinal >= 0 && ordinal != int64(d.Ordinal()) {
		if d, err = device(ordinal); err != nil {
			return 0, err
		}
	}
	e, err := rt.NewEvent(t, d, eventOptions(flags))
	if err != nil {
		return 0, raise(err)
	}
	err = s.Record(t, e)
	notePlace(e)
	if _, err = enqueued(t, s, err); err != nil {
		_ = e.Close(nil)
		return 0, err
	}
	return insert(e), nil
}

// EventRecorded makes an event that was recorded, without a call, on a stream of a
// device that had no work.
func EventRecorded(ordinal, flags int64) (id int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	e, err := rt.NewRecordedEvent(caller(), d, eventOptions(flags))
	if err != nil {
		return 0, raise(err)
	}
	return insert(e), nil
}

// statusWords returns the words at an address, the stream with an id that has them (nil
// if it was closed since), and their device.
func statusWords(id, address int64) (*status.Stream, *hal.Stream, *hal.Device, error) {
	w := (*status.Stream)(C.halstream_words(C.int64_t(address)))
	s, _ := find(id).(*hal.Stream)
	if s != nil && s.Status() == w {
		return w, s, s.Device(), nil
	}
	d, err := device(int64(w.Ordinal))
	return w, nil, d, err
}

// EventPlaced makes an event that was recorded, without a call, at a place of the
// stream with an id and words at an address.
func EventPlaced(stream, words, place, flags int64) (id int64, err error) {
	defer guard(&err)
	w, s, d, err := statusWords(stream, words)
	if err != nil {
		return 0, err
	}
	e, err := rt.NewPlacedEvent(caller(), d, eventOptions(flags), s, w, uint64(place))
	if err != nil {
		return 0, raise(err)
	}
	return insert(e), nil
}

// StreamWaitPlace is StreamWaitEvent for an event as EventPlaced makes one.
func StreamWaitPlace(id, other, words, place int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "wait event")
	if err != nil {
		return 0, err
	}
	w, o, d, err := statusWords(other, words)
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.WaitPlace(t, d, o, w, uint64(place)))
}

// ReapEvents is Reap for count ids, which lie at an address: those of events that
// were collected since the last call, of the standard kind.
func ReapEvents(address, count int64) (zero int64, err error) {
	defer guard(&err)
	caller()
	ids := slices.Clone(unsafe.Slice((*int64)(C.halstream_ids(C.int64_t(address))), count))
	slices.Sort(ids)
	defer reap()() // the collector decides when: no call of the program
	for _, id := range ids {
		if e, ok := find(id).(*hal.Event); ok {
			if err := e.Close(nil); err != nil {
				return 0, raise(err)
			}
			remove(id)
		}
	}
	return 0, nil
}

// launchAt returns the halstream_launch at an address, whose parts stay as they are during the call only.
func launchAt(address int64) (spec hal.LaunchSpec, modes string) {
	l := C.halstream_launch_at(C.int64_t(address))
	n := (*[11]uint32)(unsafe.Pointer(l.size))
	modes = unsafe.String((*byte)(unsafe.Pointer(l.modes)), int(l.count))
	return hal.LaunchSpec{Grid: [3]uint32(n[:3]), Block: [3]uint32(n[3:6]), Shared: n[6], Cooperative: n[7] != 0,
		Cluster: [3]uint32(n[8:]), Site: uint32(C.halstream_caller.site),
		Args: unsafe.Slice((*byte)(l.cells), int(l.count)*driver.Cell)}, modes
}
