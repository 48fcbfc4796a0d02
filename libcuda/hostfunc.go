package libcuda

// #include <stdlib.h>
// #include "entry.h"
import "C"

import (
	"unsafe"

	"halstream/hal"
)

// Functions of the program on streams. They run below C, so that they may end their thread or the process.

var hostFunctions = []function{
	{name: "cuLaunchHostFunc", version: 10000, twin: ptsz, call: launchHostFunc},
	{name: "cuLaunchHostFunc_v2", version: 13010, twin: ptsz, wholeName: true, call: func(c *caller, a *args) error {
		const spinning = 1 // how the thread that calls the function waits, which is a hint
		if a.u32(3) > spinning {
			return refuse(invalidValue, "there is no way %d in which host functions are waited for", a.u32(3))
		}
		return launchHostFunc(c, a)
	}},
	{name: "cuStreamAddCallback", version: 5000, twin: ptsz, call: onStream(0, func(c *caller, s *stream, a *args) error {
		if err := a.need(1); err != nil {
			return err
		}
		if a.u32(3) != 0 {
			return refuse(invalidValue, "a callback has no flags %#x", a.u32(3))
		}
		if s.Captures() {
			return refuse(captureUnsupported, "a callback cannot be captured; use cuLaunchHostFunc")
		}
		return c.callProgram(s.Stream, C.hs_cuda_call{function: C.uintptr_t(a[1]), argument: C.uintptr_t(a[2]),
			stream: C.uintptr_t(a[0]), callback: 1})
	})},
}

var launchHostFunc = onStream(0, func(c *caller, s *stream, a *args) error {
	if err := a.need(1); err != nil {
		return err
	}
	return c.callProgram(s.Stream, C.hs_cuda_call{function: C.uintptr_t(a[1]), argument: C.uintptr_t(a[2])})
})

// callProgram enqueues a call of a function of the program. What it works on is not known.
func (c *caller) callProgram(s *hal.Stream, f C.hs_cuda_call) error {
	made := (*C.hs_cuda_call)(C.malloc(C.sizeof_hs_cuda_call))
	*made = f
	err := s.NativeFunc(c.t, &hal.NativeFunc{Name: "a host function", Function: uint64(uintptr(C.hs_cuda_run)),
		Argument: uint64(uintptr(unsafe.Pointer(made))), Release: uint64(uintptr(C.hs_cuda_release))})
	if err != nil {
		C.free(unsafe.Pointer(made))
	}
	return err
}
