package pybuild

/*
#include <stdlib.h>

#include "dispatch.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal"
)

// The functions of this file are called by dispatch.c and dispatchcall.c, with
// Python's lock held.

// seats are the places in which dispatchers sleep, by thread.
var seats = map[*hal.Thread]*hal.Seat{}

//export halstreamHostSeat
func halstreamHostSeat(given *C.halstream_given) *C.hs_parker {
	seat := hal.NewSeat((*hal.Given)(unsafe.Pointer(given)))
	seats[caller()] = seat
	return (*C.hs_parker)(seat.Parker())
}

//export halstreamHostStand
func halstreamHostStand() {
	t := caller()
	seats[t].Free()
	delete(seats, t)
}

// packed is a task as dispatch.c reads it.
func packed(task hal.Task, unreported bool) int64 {
	return int64(task.Token)<<C.HOST_SHIFT | truth(task.Spawn)*C.HOST_SPAWN | truth(task.Drop)*C.HOST_DROP |
		truth(unreported)*C.HOST_UNREPORTED | truth(task.End)*C.HOST_END | truth(task.Sit)*C.HOST_SIT
}

// halstreamHostNext ends the burst that the thread has run, if ended is not 0, and
// takes the next one. failure is nil, or how its last function failed: '!' and the
// text to raise it at the stream's next synchronize, '?' and the text to count it.
//
//export halstreamHostNext
func halstreamHostNext(ended, number int64, failure *C.char) int64 {
	t := caller()
	q := rt.Funcs
	if t.ServesOther(q) {
		return C.HOST_END // the backend was changed
	}
	var task hal.Task
	var unreported bool
	seat := seats[t] // only with Python's lock
	next := func() { task, _ = q.NextOrSit(t, seat) }
	if ended != 0 {
		text, raised := "", failure != nil
		if raised {
			text = C.GoString(failure)
		}
		failure := failed(number, text)
		next = func() { task, unreported = q.DoneOrSit(t, raised, failure, seat) }
	}
	// Under a schedule a thread waits for this end, and needs Python's lock next; where pages
	// are watched the next function waits for others.
	if deterministic && ended != 0 || rt.WatchesPages() {
		unlocked(next)
	} else {
		next()
	}
	return packed(task, unreported)
}

// halstreamHostLeave ends a wait in vain: 0 if the thread was chosen meanwhile, 1 if
// it is to call halstreamHostNext, 2 if it is to end.
//
//export halstreamHostLeave
func halstreamHostLeave() C.int {
	t := caller()
	left, end := t.Queue().Leave(t, seats[t])
	switch {
	case end:
		return 2
	case left:
		return 1
	}
	return 0
}

//export halstreamHostWatch
func halstreamHostWatch() {
	t := caller()
	watch := func() { t.Queue().Watch(t) }
	if rt.WatchesPages() {
		unlocked(watch) // it waits for functions that may need Python's lock
	} else {
		watch()
	}
}

//export halstreamHostYield
func halstreamHostYield() int64 {
	t := caller()
	return packed(t.Queue().Yield(t), false)
}

// halstreamHostFail notes that a function has failed whose burst goes on; it returns
// 1 if no call will raise the exception.
//
//export halstreamHostFail
func halstreamHostFail(number int64, failure *C.char) C.int {
	t := caller()
	return C.int(truth(t.Queue().Fail(t, failed(number, C.GoString(failure)))))
}

// halstreamHostFuncs enqueues a burst: 0 if it was not, as the call needs what only
// StreamCall does, 1 if the burst cannot grow, 2 if it can.
//
//export halstreamHostFuncs
func halstreamHostFuncs(id, token int64, word *uint64) C.int {
	t := caller()
	s, ok := find(id).(*hal.Stream) // a per-thread default stream is another one on each thread
	if !ok || over.Load() || s.BlocksHost() || positions > 0 {
		return 0 // the innermost frame of a call's position is the package's own
	}
	growing, err := s.HostFuncs(t, uint64(token), (*hal.Burst)(unsafe.Pointer(word)))
	if err != nil {
		return 0
	}
	return C.int(1 + truth(growing))
}

// usePressure lets dispatch.c see whether functions wait and no thread is free.
func usePressure(r *hal.Runtime) {
	r.Funcs.SetPressure((*atomic.Uint32)(unsafe.Pointer(C.halstream_pressure_word())))
}

// DispatchInstall puts the functions of dispatch.c for Python into a dictionary,
// and keeps those of Python's that it holds: see _core/_hostfunc.py. Its argument is
// the address of the dictionary.
func DispatchInstall(table uint64) (zero int64, err error) {
	defer guard(&err)
	C.halstream_dispatch_install(C.uint64_t(table))
	return 0, nil
}
