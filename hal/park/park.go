// Package park puts threads to sleep and wakes them.
//
// It is a futex, or a C condition variable where there is none, behind one
// atomic word instead of a Go channel:
// the threads that wait come from C, and waking such a thread through a channel
// costs two scheduler hand-offs (measured: 71 µs against 9 µs).
package park

/*
#include "park.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
)

// Parker is a place where one thread at a time sleeps until another unparks it. What a
// thread does before Unpark happens before what follows the Park that takes its permit.
type Parker struct {
	c *C.hs_parker
	// given is how many permits there were. It orders the two threads for Go as well, whose race detector
	// does not see what C and the kernel do.
	given atomic.Uint32
}

var (
	mu   sync.Mutex
	free []*Parker
	made uint64
)

// Made returns how many parkers were ever created. Those returned with Put are used
// again, so the number stops growing in a program that returns all of them: tests of
// packages that use parkers look at it.
func Made() uint64 {
	mu.Lock()
	defer mu.Unlock()
	return made
}

// Get returns a parker without a permit; return it with Put.
func Get() *Parker {
	mu.Lock()
	if n := len(free); n > 0 {
		p := free[n-1]
		free = free[:n-1]
		mu.Unlock()
		return p
	}
	made++
	mu.Unlock()
	return &Parker{c: C.hs_park_new()}
}

// Put returns a parker for use by later calls of Get. No Unpark of it may be in
// flight or follow.
func Put(p *Parker) {
	mu.Lock()
	free = append(free, p)
	mu.Unlock()
}

// EndOnSignal sets whether a limited wait of this thread ends without a permit when a
// signal handler has run on the thread, so that its caller can react to it. It reports
// whether one has ended so since the last call. The caller must be locked to its
// thread, as a call from C is. On systems other than Linux no Park ends so.
func EndOnSignal(on bool) (ended bool) {
	var n C.int
	if on {
		n = 1
	}
	return C.hs_park_end_on_signal(n) == 2
}

// Park blocks until there is a permit, limit nanoseconds have passed (negative: no
// limit), or a signal ends it as EndOnSignal says, and reports whether it took a
// permit. It spins for spin nanoseconds before it sleeps.
func (p *Parker) Park(limit, spin int64) bool {
	taken := atomic.CompareAndSwapInt32((*int32)(&p.c.state), 1, 0) ||
		C.hs_park_wait(p.c, C.int64_t(limit), C.int64_t(spin)) == 1
	p.given.Load()
	return taken
}

// Unpark gives the permit; a second one before it is taken is the same permit.
// A thread that still spins is reached without a system call.
func (p *Parker) Unpark() {
	p.given.Add(1)
	if atomic.SwapInt32((*int32)(&p.c.state), 1) == -1 {
		C.hs_park_signal(p.c)
	}
}
