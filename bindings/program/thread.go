package program

// #include "thread.h"
import "C"

import (
	"sync/atomic"

	"halstream/bindings/threads"
	"halstream/hal"
)

// Thread is a thread of the program.
type Thread struct {
	T      *hal.Thread
	Ident  uint64 // what pthread_self returns on it
	System int    // its number in the system
	Own    any    // what the library keeps of it; only the thread itself looks at it

	stack     atomic.Pointer[stack] // of a wait that may never end
	Reporting atomic.Uint64         // the token of the function of a report queue that runs here, 0 for none
}

// Threads is the table of threads by their numbers.
var Threads threads.Table[Thread]

// Ended is called with each thread that has ended; nil where the library keeps nothing that it has to give back.
var Ended func(*Thread)

//export halstreamProgramRegister
func halstreamProgramRegister() C.uint32_t {
	t := &Thread{T: hal.NewThread(), Ident: threads.Ident(), System: threads.System()}
	t.T.Bound = true
	number, ended := Threads.Enter(t)
	for _, one := range ended {
		one.T.Retire()
		if Ended != nil {
			Ended(one)
		}
	}
	return C.uint32_t(number)
}

// Function returns the name of the call that is in progress on the calling thread.
func Function() string { return C.GoString(C.hs_program_self_function()) }
