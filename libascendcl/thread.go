package main

// #include "thread.h"
import "C"

import (
	"sync/atomic"

	"halstream/bindings/threads"
	"halstream/hal"
)

// caller is a thread of the program.
type caller struct {
	t      *hal.Thread
	ident  uint64  // what pthread_self returns on it
	system int     // its number in the system
	asked  *stream // the one that the call in progress is about, nil if it is about none or several
	code   int     // of its last failure
	text   string  // of it, "" once the program has it
	given  *C.char

	waiting   *waiting              // a wait that goes on in hsAclGoOn
	stack     atomic.Pointer[stack] // of a wait that may never end
	reporting atomic.Uint64         // the token of the callback of a subscribed stream that runs here
	reports   []uint64              // of those that run here, each inside of the one before
}

// callers is the table of threads by their numbers.
var callers threads.Table[caller]

//export hsAclRegister
func hsAclRegister() C.uint32_t {
	c := &caller{t: hal.NewThread(), ident: threads.Ident(), system: threads.System()}
	c.t.Bound = true
	number, ended := callers.Enter(c)
	for _, one := range ended {
		one.t.Retire()
		one.forgetText()
	}
	return C.uint32_t(number)
}

func callerOf(me C.uint32_t) *caller { return callers.At(uint32(me)) }
