// Package python has what the ways into the core share that are parts of the extension for Python: the package pybuild
// and the functions of halstream.h (package capi). They are used in one process, so they have one runtime, one table of
// objects and one of threads. A call comes with Python's lock or without it; what waits releases the lock.
//
// Nothing here is linked with libpython: functions of CPython's are found by name in the process that loads the
// extension, and are absent in Go's own tests.
package python

/*
#include "caller.h"

static void halstream_use(void *word) { halstream_status = word; }
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal"
)

// Runtime is the runtime in use.
type Runtime struct {
	*hal.Runtime
	Legacy, PerThread []int64 // ids of the devices' default streams
}

var current atomic.Pointer[Runtime]

// Current returns the runtime in use, nil if no backend is open. Python's lock is not needed.
func Current() *Runtime { return current.Load() }

// Use makes r the runtime in use. Python's lock is held.
func Use(r *hal.Runtime) {
	now := &Runtime{Runtime: r}
	for i := range r.Devices() {
		d, _ := r.Device(i)
		now.Legacy = append(now.Legacy, Insert(d.Legacy()))
		now.PerThread = append(now.PerThread, Insert(PerThread{d}))
	}
	current.Store(now)
	C.halstream_use(unsafe.Pointer(r.Status()))
	atomic.AddUint64((*uint64)(unsafe.Pointer(&C.halstream_generation)), 1)
}
