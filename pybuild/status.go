package pybuild

/*
#include "calls.h"

static void halstream_use(void *word) { halstream_status = word; }
static halstream_launch *halstream_launch_at(int64_t address) { return (halstream_launch *)(uintptr_t)address; }
static int64_t *halstream_ids(int64_t address) { return (int64_t *)(uintptr_t)address; }
*/
import "C"

import (
	"slices"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
)

// useStatus makes the word of a runtime the one by which C code sees what the runtime does.
func useStatus(r *hal.Runtime) {
	C.halstream_use(unsafe.Pointer(r.Status()))
}

// noteBlock tells C code which block was found, or made.
func noteBlock(start, size uint64, ordinal int) {
	C.halstream_found = C.halstream_block{C.uint64_t(start), C.uint64_t(size), C.int64_t(ordinal)}
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
	if _, err = enqueued(t, s, err); err != nil {
		_ = e.Close(nil)
		return 0, err
	}
	return insert(e), nil
}

// ReapIds is Reap for count ids, which lie at an address, in their order. It closes all of them, also where one fails,
// whose error it returns.
func ReapIds(address, count int64) (released int64, err error) {
	defer guard(&err)
	ids := slices.Clone(unsafe.Slice((*int64)(C.halstream_ids(C.int64_t(address))), count))
	slices.Sort(ids)
	for _, id := range ids {
		one, failed := Reap(id)
		released |= one
		if err == nil {
			err = failed
		}
	}
	return released, err
}

// launchAt returns the halstream_launch at an address, whose parts stay as they are during the call only.
func launchAt(address int64) (spec hal.LaunchSpec, modes string) {
	l := C.halstream_launch_at(C.int64_t(address))
	n := (*[11]uint32)(unsafe.Pointer(l.size))
	modes = unsafe.String((*byte)(unsafe.Pointer(l.modes)), int(l.count))
	return hal.LaunchSpec{Grid: [3]uint32(n[:3]), Block: [3]uint32(n[3:6]), Shared: n[6], Cooperative: n[7] != 0,
		Cluster: [3]uint32(n[8:]),
		Args:    unsafe.Slice((*byte)(l.cells), int(l.count)*driver.Cell)}, modes
}
