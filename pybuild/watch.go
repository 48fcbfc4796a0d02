package pybuild

// #include "stall.h"
import "C"

import (
	"sync/atomic"
	"time"

	"halstream/hal"
	"halstream/hal/stall"
)

// watched is the runtime that a goroutine watches.
var watched atomic.Pointer[hal.Runtime]

// watch has Python asked from time to time whether the program's main thread can go on,
// while r is the runtime in use: a thread that waits in Python does not ask itself.
func watch(r *hal.Runtime) {
	if watched.Swap(r) == r {
		return
	}
	w := stall.NewWatch(r)
	if w == nil {
		return
	}
	go func() {
		for {
			time.Sleep(w.Period())
			if over.Load() || watched.Load() != r {
				return
			}
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
