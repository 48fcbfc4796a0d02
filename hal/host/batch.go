package host

/*
#ifdef __linux__
#define _GNU_SOURCE
#include <sched.h>
#endif

// Called on the thread that it concerns. A thread of the batch policy gets its share
// of the processors, but does not interrupt the thread that wakes it. Where the system
// does not permit it nothing changes.
static void hs_batch(int on) {
#ifdef __linux__
	struct sched_param p = {0};
	sched_setscheduler(0, on ? SCHED_BATCH : SCHED_OTHER, &p);
#else
	(void)on;
#endif
}
*/
import "C"

import "runtime"

// yieldToWaker makes the calling goroutine's thread one that does not interrupt the
// threads that wake it, until the returned function is called on the same goroutine.
// Where no processor is free the system runs a woken thread at once in place of the
// one that woke it, and an enqueue that wakes an engine returns only when the engine
// has used up its slice of time, milliseconds later.
func yieldToWaker() (end func()) {
	runtime.LockOSThread()
	C.hs_batch(1)
	return func() {
		C.hs_batch(0)
		runtime.UnlockOSThread()
	}
}
