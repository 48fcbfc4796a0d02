// Command libascendcl is libascendcl.so, a library with the runtime part of AscendCL's C
// interface over package hal: C programs run on its devices without Python.
//
// The C files convert arguments and keep who calls; the Go files of the same names do
// everything else. Objects
// are handles, numbers that are never given twice. The rules are those of package hal,
// and the codes those of the Python package's dialect of the same interface.
package main

/*
#cgo CFLAGS: -std=gnu11 -Wall -fvisibility=hidden -I${SRCDIR}/package/include
#include "thread.h"
*/
import "C"

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"halstream/bindings"
	_ "halstream/cuda" // registers itself
	"halstream/hal"
)

func main() {}

func init() {
	// A thread of the program must get a processor of the Go scheduler at once, also
	// while the device's engines keep theirs busy.
	runtime.GOMAXPROCS(runtime.NumCPU() + 4)
	debug.SetGCPercent(400)
}

// opened is the runtime once a call has needed it.
var opened struct {
	sync.Mutex
	rt atomic.Pointer[hal.Runtime]
}

// inUse returns the runtime, opened at the first use.
func inUse() (*hal.Runtime, error) {
	if rt := opened.rt.Load(); rt != nil {
		return rt, nil
	}
	opened.Lock()
	defer opened.Unlock()
	if rt := opened.rt.Load(); rt != nil {
		return rt, nil
	}
	rt, err := bindings.Open(bindings.BackendName(), "open backend")
	if err != nil {
		return nil, err
	}
	rt.SetKept(keepFunction)
	if err := tools(rt); err != nil {
		rt.Close()
		return nil, err
	}
	opened.rt.Store(rt)
	return rt, nil
}

// device returns a device by its number.
func device(ordinal C.int32_t) (*hal.Device, error) {
	rt, err := inUse()
	if err != nil {
		return nil, err
	}
	return rt.Device(int(ordinal))
}
