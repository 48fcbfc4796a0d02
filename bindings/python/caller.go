package python

/*
#cgo CFLAGS: -std=gnu17
#include "atexit.h"
#include "caller.h"
#include "stall.h"

// Python's functions, by the names the process that loads us has; absent in
// Go's own tests, where there is no lock to release.
extern void *PyEval_SaveThread(void) __attribute__((weak));
extern void PyEval_RestoreThread(void *state) __attribute__((weak));
extern int PyErr_CheckSignals(void) __attribute__((weak));
extern void *PyErr_Occurred(void) __attribute__((weak));

static void halstream_self_slot(int32_t slot) { halstream_self.slot = slot; }

// A wait inside a wait finds the lock released already.
static void *gil_release(void)
{
	if (halstream_self.released++ || !PyEval_SaveThread) return NULL;
	return PyEval_SaveThread();
}
static void gil_acquire(void *state)
{
	if (--halstream_self.released != 0) return;
	if (!PyEval_RestoreThread) return; // in Go's tests threads end, and nobody tells who calls next
	PyEval_RestoreThread(state);
	halstream_caller = &halstream_self; // others have called meanwhile
}

// Takes the lock, runs the handlers of signals that came and, if told to, asks
// whether the wait can end. It keeps the lock if one of them raised; else it
// returns what the latter answered.
static int gil_interrupted(void **state, int ask)
{
	if (!PyEval_RestoreThread || !PyErr_CheckSignals || halstream_self.released > 1) return STALL_NO;
	PyEval_RestoreThread(*state);
	halstream_self.released = 0;
	halstream_self.handling = 1;
	// A handler may have raised already, in a wait inside this one.
	int answer = PyErr_Occurred() != NULL || PyErr_CheckSignals() != 0 ? STALL_RAISED : STALL_NO;
	halstream_self.handling = 0;
	if (answer == STALL_NO && ask) answer = halstream_stall_ask();
	halstream_caller = &halstream_self; // others have called while Python's code ran
	if (answer == STALL_RAISED) return answer;
	halstream_self.released = 1;
	*state = PyEval_SaveThread();
	return answer;
}
*/
import "C"

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"halstream/bindings/threads"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// Who calls, and Python's lock: threads of the program, waits that release the lock and let handlers of signals run, and
// the end of the runtime.

// Thread is a thread of the program.
type Thread struct {
	Hal    *hal.Thread
	Ident  uint64 // what pthread_self returns on it
	System int    // its number in the system
}

// Threads is the table of the program's threads by their slots; slot 0 is nobody.
//
// Most variables of the extension are guarded by Python's lock, which is held when a function of the extension for
// Python begins and until it waits, or calls package hal: a backend may release it around each call of its library.
// What was read of these variables before such a call is old after it.
var Threads threads.Table[Thread]

// ThreadAt returns the thread with a slot, for one that calls for the first time a new one.
func ThreadAt(slot int32) *hal.Thread {
	if slot != 0 {
		return Threads.At(uint32(slot)).Hal
	}
	return register()
}

// Caller returns the calling thread, which holds Python's lock. What the collector took meanwhile has left its
// captures then.
func Caller() *hal.Thread {
	LeaveCaptures()
	return ThreadAt(int32(C.halstream_caller.slot))
}

// halstreamRegister is called by C code for a thread that calls for the first time.
//
//export halstreamRegister
func halstreamRegister() { register() }

// register makes a token for a thread that calls for the first time, and takes back
// those of threads that ended.
func register() *hal.Thread {
	t := &Thread{hal.NewThread(), threads.Ident(), threads.System()}
	t.Hal.WaitsItself, t.Hal.Bound = true, true
	slot, ended := Threads.Enter(t)
	C.halstream_self_slot(C.int32_t(slot))
	// Their streams are closed by a thread that is known, so that it need not
	// hold Python's lock meanwhile.
	for _, one := range ended {
		one.Hal.Retire()
	}
	if len(ended) > 0 {
		forgetOwn()
	}
	return t.Hal
}

// over is set by End.
var over atomic.Bool

// Over reports whether the runtime has shut down: no call enqueues anything after it, and threads that
// wait in the extension stay there.
func Over() bool { return over.Load() }

// End shuts the runtime down for all callers.
func End() {
	over.Store(true)
	C.halstream_end()
}

func interrupted(state *unsafe.Pointer, w *stall.Wait) (raised bool) {
	due := w.Due()
	ask := C.int(0)
	if due {
		ask = 1
	}
	s := *state
	answer := C.gil_interrupted(&s, ask)
	*state = s
	if due {
		w.Answered(answer == C.STALL_MAYBE)
	}
	return answer == C.STALL_RAISED
}

// Unlocked runs f, which may block, with Python's lock released. Once the
// interpreter is ending it does not return: a thread that takes the lock then
// is ended by Python, in the middle of Go's frames. Where f panics the lock is
// not taken again: a thread that has it may wait for a lock that f holds, and
// the process could not end.
func Unlocked(f func()) {
	state := C.gil_release()
	f()
	if over.Load() {
		select {}
	}
	C.gil_acquire(state)
}

// WithLock runs f with Python's lock, on a thread that calls without it, and reports whether it could. An exception that f
// leaves is printed, or raised once the thread runs Python code again.
func WithLock(f func()) bool {
	var lock C.halstream_lock
	if C.halstream_take_lock(&lock) == 0 {
		return false
	}
	f()
	C.halstream_end_exception()
	C.halstream_give_lock(&lock)
	return true
}

// AtExit has Python call end, a function of C without arguments, when the interpreter begins to end. Python's lock is held.
func AtExit(end unsafe.Pointer) bool { return C.halstream_at_exit((*[0]byte)(end)) != 0 }

// SlowAt is from how many bytes on giving memory back to the system may take milliseconds, for which Python's lock is
// released.
const SlowAt = 4 << 20

// Await waits for a point, which is not reached yet, with Python's lock released, for at most limit nanoseconds
// (negative: no limit). It tells whether a signal handler raised meanwhile, or the wait was found to have no end: Python's
// exception is set then.
func Await(p driver.Point, limit int64) (done, raised bool) {
	var r *hal.Runtime
	if now := Current(); now != nil {
		r = now.Runtime
	}
	state := C.gil_release()
	w := waits.Wait{Point: p, End: waits.After(limit), Slice: stall.Slice(r, limit, slice.Load()), Signals: true,
		List: func() *stall.Wait { return BeginWait(r, p) }}
	w.Look = func(early bool) error {
		listed := w.Listed
		if early {
			listed = nil
		}
		if over.Load() {
			select {} // the interpreter is ending: it must not be entered any more
		}
		if interrupted(&state, listed) {
			return errRaised
		}
		return nil
	}
	done, err := w.Do()
	if err != nil {
		return false, true
	}
	if over.Load() {
		select {}
	}
	C.gil_acquire(state)
	return done, false
}

// errRaised ends a wait with Python's lock held.
var errRaised = errors.New("a handler of a signal raised")

// slice is how many nanoseconds a wait goes without looking for signals that did not end it.
var slice atomic.Int64

func init() { slice.Store(50_000_000) }

// SetSlice sets how many nanoseconds a wait goes without looking for signals that did not end it, for tests, and returns
// how many it was.
func SetSlice(ns int64) (before int64) { return slice.Swap(ns) }
