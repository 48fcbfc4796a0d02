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
	"halstream/bindings/program"
	_ "halstream/cuda" // registers itself
	"halstream/hal"
)

func main() {}

// inUse returns the runtime, opened at the first use.
func inUse() (*hal.Runtime, error) {
	return program.Runtime(func(rt *hal.Runtime) { rt.SetKept(keepFunction) })
}

// device returns a device by its number.
func device(ordinal C.int32_t) (*hal.Device, error) {
	rt, err := inUse()
	if err != nil {
		return nil, err
	}
	return rt.Device(int(ordinal))
}
