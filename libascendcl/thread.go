package main

// #include "thread.h"
import "C"

import (
	"halstream/bindings/program"
	"halstream/hal"
)

// caller is a thread of the program.
type caller struct {
	*program.Thread
	t      *hal.Thread
	number uint32
	asked  *stream // the one that the call in progress is about, nil if it is about none or several
	code   int     // of its last failure
	text   string  // of it, "" once the program has it
	given  *C.char

	waiting *waiting // a wait that goes on in hsAclGoOn
	reports []uint64 // the tokens of the callbacks of subscribed streams that run here, each inside of the one before
}

func init() {
	program.Ended = func(t *program.Thread) {
		if c, ok := t.Own.(*caller); ok {
			c.forgetText()
		}
	}
	program.ReportAdvice = "Let a thread call aclrtProcessReport while the host waits for the stream."
}

// callerOf returns the thread with a number, which calls.
func callerOf(me C.uint32_t) *caller {
	t := program.Threads.At(uint32(me))
	c, ok := t.Own.(*caller)
	if !ok {
		c = &caller{Thread: t, t: t.T, number: uint32(me)}
		t.Own = c
	}
	return c
}
