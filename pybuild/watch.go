package pybuild

// #include "stall.h"
import "C"

import (
	"sync/atomic"

	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/stall"
)

// watched is what a goroutine watches.
var watched atomic.Pointer[watching]

type watching struct {
	rt   *hal.Runtime
	stop chan struct{}
}

// watch has Python asked from time to time whether the program's main thread can go on,
// while r is the runtime in use: a thread that waits in Python does not ask itself.
func watch(r *hal.Runtime) {
	before := watched.Load()
	if before != nil && before.rt == r {
		return
	}
	now := &watching{r, make(chan struct{})}
	watched.Store(now)
	if before != nil {
		close(before.stop)
	}
	w := stall.NewWatch(r)
	if w == nil {
		return
	}
	go func() {
		for w.Wait(now.stop) && !python.Over() {
			if w.Tick() {
				w.Answered(C.halstream_stall_watch() == C.STALL_MAYBE)
			}
		}
	}()
}

// StallInterrupt makes the main thread ask what became of it: the hook is called on it,
// with -2 for StallAsked, also where the thread waits for a lock. The
// argument is what threading.get_ident returns on it.
func StallInterrupt(thread uint64) (zero int64, err error) {
	defer guard(&err)
	C.halstream_stall_interrupt(C.uint64_t(thread))
	return 0, nil
}
