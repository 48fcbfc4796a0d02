package pybuild

/*
#include "dispatch.h"
*/
import "C"

import (
	"halstream/hal"
)

// The functions of this file are called by dispatch.c, with Python's lock held.

// idleNS is how many nanoseconds a thread without a function waits before it ends, unless it is the only one.
const idleNS = 2_000_000_000

// halstreamHostNext ends the function that the thread has run, if ended is not 0, and
// takes the next one, for which it waits with Python's lock released. failure is nil, or
// how the function failed: '!' and the text to raise it at the stream's next synchronize,
// '?' and the text to count it. The result is a token with bits of dispatch.h.
//
//export halstreamHostNext
func halstreamHostNext(ended C.int, number int64, failure *C.char) int64 {
	t := caller()
	q := rt.Funcs
	if t.ServesOther(q) {
		return C.HOST_END // the backend was changed
	}
	var task hal.Task
	var unreported bool
	next := func() { task, _ = q.Next(t, 0) }
	if ended != 0 {
		text, raised := "", failure != nil
		if raised {
			text = C.GoString(failure)
		}
		next = func() { task, unreported = q.DoneNext(t, raised, failed(number, text)) }
	}
	// Under a schedule a thread waits for this end, and needs Python's lock next; where pages
	// are watched the next function waits for others.
	if deterministic && ended != 0 || rt.WatchesPages() {
		unlocked(next)
	} else {
		next()
	}
	if task == (hal.Task{}) && !unreported {
		// It takes a function only with Python's lock, so that one which was taken runs.
		unlocked(func() { task.End = q.Await(t, idleNS) })
	}
	return int64(task.Token)<<C.HOST_SHIFT | truth(task.Spawn)*C.HOST_SPAWN | truth(task.Drop)*C.HOST_DROP |
		truth(unreported)*C.HOST_UNREPORTED | truth(task.End)*C.HOST_END
}

// DispatchInstall puts the functions of dispatch.c for Python into a dictionary,
// and keeps those of Python's that it holds: see _core/_hostfunc.py. Its argument is
// the address of the dictionary.
func DispatchInstall(table uint64) (zero int64, err error) {
	defer guard(&err)
	C.halstream_dispatch_install(C.uint64_t(table))
	return 0, nil
}
