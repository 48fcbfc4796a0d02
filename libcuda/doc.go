// Package libcuda is the CUDA driver's interface over package hal: what a program calls in libcuda.so.1.
//
// The library that a program loads (shim/) has every function by its name and nothing else: it hands the arguments, as
// numbers, to the one entry in entry.c, with the number of the function in the table of functions.go. Each file in Go
// has one noun: its functions, and the entries of the table for them.
//
// The entry is in the extension for Python, so that programs in Python share one runtime with package halstream and its
// tools, and in a library of its own (standalone/) for programs in other languages. What differs between the two is a
// [Process].
//
// The rules are those of package hal; the numbers, structures and documented behaviour are those of the CUDA driver API.
package libcuda

import (
	"sync/atomic"

	"halstream/hal"
	"halstream/hal/driver"
)

// Process is what the functions need of what they are part of.
type Process struct {
	// Runtime returns the runtime in use, which the first call opens.
	Runtime func() (*hal.Runtime, error)
	// Thread returns the calling thread, which has a number. Numbers are given again after a thread's end.
	Thread func(number uint32) *hal.Thread
	// Wait waits for a point on the thread with a number. The error says that the wait can never end, or was interrupted.
	Wait func(number uint32, rt *hal.Runtime, p driver.Point) error
}

var process atomic.Pointer[Process]

// Use makes the functions part of a process. It is called before the first of them is.
func Use(p *Process) { process.Store(p) }
