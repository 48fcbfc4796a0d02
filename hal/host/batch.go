package host

/*
#ifdef __linux__
#define _GNU_SOURCE
#include <sched.h>
#endif

// Changes the calling thread's policy from the usual one to the batch policy, or back,
// and reports whether it did. It leaves other policies, which the program has chosen,
// and the system may not permit a change. A thread of the batch policy gets its share
// of the processors, but does not interrupt the thread that wakes it.
static int hs_batch(int on) {
#ifdef __linux__
	struct sched_param p = {0};
	if (sched_getscheduler(0) != (on ? SCHED_OTHER : SCHED_BATCH)) return 0;
	return sched_setscheduler(0, on ? SCHED_BATCH : SCHED_OTHER, &p) == 0;
#else
	(void)on;
	return 0;
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
	changed := C.hs_batch(1) == 1
	return func() {
		if changed {
			C.hs_batch(0)
		}
		runtime.UnlockOSThread()
	}
}
