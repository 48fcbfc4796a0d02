package main

// #include "thread.h"
import "C"

import (
	"sync"
	"sync/atomic"

	"halstream/hal"
)

// caller is a thread of the program.
type caller struct {
	t      *hal.Thread
	ident  uint64  // what pthread_self returns
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

// callers is the table of threads by their numbers, from 1. It is read without a lock.
var callers struct {
	list atomic.Pointer[[]*caller]
	mu   sync.Mutex
	free []uint32
}

//export hsAclRegister
func hsAclRegister() C.uint32_t {
	var ended []*caller
	callers.mu.Lock()
	var list []*caller
	if before := callers.list.Load(); before != nil {
		list = append(list, *before...)
	} else {
		list = []*caller{nil}
	}
	for number := uint32(C.hs_acl_next_ended()); number != 0; number = uint32(C.hs_acl_next_ended()) {
		ended = append(ended, list[number])
		callers.free = append(callers.free, number)
		list[number] = nil
	}
	c := &caller{t: hal.NewThread(), ident: uint64(C.hs_acl_ident()), system: int(C.hs_acl_system_number())}
	c.t.Bound = true
	var number uint32
	if n := len(callers.free); n > 0 {
		number, callers.free = callers.free[n-1], callers.free[:n-1]
		list[number] = c
	} else {
		number = uint32(len(list))
		list = append(list, c)
	}
	callers.list.Store(&list)
	callers.mu.Unlock()
	C.hs_acl_watch_end(C.uint32_t(number))
	for _, one := range ended {
		one.t.Retire()
		one.forgetText()
	}
	return C.uint32_t(number)
}

func callerOf(me C.uint32_t) *caller { return (*callers.list.Load())[me] }
