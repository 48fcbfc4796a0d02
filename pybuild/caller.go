package pybuild

/*
#include "caller.h"
#include "collected.h"
#include "stall.h"

extern void halstream_keep(int32_t slot);
extern int32_t halstream_next_ended(void);

// Python's functions, by the names the process that loads us has; absent in
// Go's own tests, where there is no lock to release.
extern void *PyEval_SaveThread(void) __attribute__((weak));
extern void PyEval_RestoreThread(void *state) __attribute__((weak));
extern int PyErr_CheckSignals(void) __attribute__((weak));
extern void *PyErr_Occurred(void) __attribute__((weak));

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
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// sliceNS is how long a wait goes without looking for signals that did not end it.
var sliceNS int64 = 50_000_000

// WaitSlice sets how many nanoseconds a wait goes without looking for signals
// that did not end it, for tests, and returns how many it was.
func WaitSlice(ns int64) (before int64) {
	before, sliceNS = sliceNS, ns
	return before
}

// threads is the table of host threads by slot; slot 0 is nobody. Slots are read
// without a lock. Most other variables of this package are guarded by Python's lock,
// which is held when a function of the extension begins and until it waits, or calls
// package hal: a backend may release it around each call of its library. What was read
// of these variables before such a call is old after it.
var threads struct {
	chunks [1 << 10]atomic.Pointer[[1 << 10]atomic.Pointer[hal.Thread]]
	mu     sync.Mutex // guards the rest
	count  int32
	free   []int32
}

// thread returns the token of the thread with a slot.
func thread(slot int32) *hal.Thread { return threads.chunks[slot>>10].Load()[slot&(1<<10-1)].Load() }

// caller returns the token of the calling thread. What the collector took meanwhile has left its captures then.
func caller() *hal.Thread {
	if C.halstream_noted != 0 {
		leaveCaptures()
	}
	if slot := C.halstream_caller.slot; slot != 0 {
		return thread(int32(slot))
	}
	return register()
}

// register makes a token for a thread that calls for the first time, and takes back
// those of threads that ended.
func register() *hal.Thread {
	var ended []*hal.Thread
	threads.mu.Lock()
	for {
		slot := int32(C.halstream_next_ended())
		if slot == 0 {
			break
		}
		t := thread(slot)
		ended = append(ended, t)
		dropTid(slot, t)
		threads.chunks[slot>>10].Load()[slot&(1<<10-1)].Store(nil)
		threads.free = append(threads.free, slot)
	}
	t := enlistLocked()
	threads.mu.Unlock()
	// Their streams are closed by a thread that is known, so that it need not
	// hold Python's lock meanwhile.
	for _, one := range ended {
		one.Retire()
	}
	if len(ended) > 0 {
		table.mu.Lock()
		defer table.mu.Unlock()
		for s, id := range table.own {
			if s.Closed() {
				delete(table.own, s)
				removeLocked(id)
			}
		}
	}
	return t
}

// enlistLocked gives the calling thread a slot. The caller holds the table's lock.
func enlistLocked() *hal.Thread {
	t := hal.NewThread()
	t.WaitsItself, t.Bound = true, true
	var slot int32
	if n := len(threads.free); n > 0 {
		slot = threads.free[n-1]
		threads.free = threads.free[:n-1]
	} else {
		if threads.count == 1<<20-1 {
			panic(driver.Errorf(driver.OutOfMemory, "call", "%d threads use the runtime", threads.count))
		}
		threads.count++
		slot = threads.count
		if chunk := &threads.chunks[slot>>10]; chunk.Load() == nil {
			chunk.Store(new([1 << 10]atomic.Pointer[hal.Thread]))
		}
	}
	threads.chunks[slot>>10].Load()[slot&(1<<10-1)].Store(t)
	C.halstream_keep(C.int32_t(slot))
	keepTid(slot, t)
	return t
}

// deadline is the moment at which a limit that begins now ends; the zero value
// never comes. Waits that consist of several parts share one deadline.
type deadline struct{ at time.Time }

func deadlineAfter(limit int64) (d deadline) {
	if limit >= 0 {
		d.at = time.Now().Add(time.Duration(limit))
	}
	return d
}

// left returns how many nanoseconds remain, at least 0; driver.Forever without a limit.
func (d deadline) left() int64 {
	if d.at.IsZero() {
		return driver.Forever
	}
	return max(0, int64(time.Until(d.at)))
}

// await waits for p with Python's lock released, in slices between which
// signals are handled. It returns 1 when p was reached and 0 when limit
// nanoseconds (negative: no limit) passed first or a signal handler raised, in
// which case Python's exception is set.
func await(p driver.Point, limit int64) int64 {
	if p == nil || p.Wait(0) {
		return 1
	}
	if limit == 0 {
		return 0
	}
	done, _ := outside(p, limit)
	return truth(done)
}

// outside is await for who has looked at p already. It tells whether a signal
// handler raised, or the wait was found to have no end.
func outside(p driver.Point, limit int64) (done, raised bool) {
	r := rt
	var w *stall.Wait
	withdraw := driver.Announce(p)
	defer withdraw()
	most := stall.Slice(r, limit, sliceNS)
	end := deadlineAfter(limit)
	state := C.gil_release()
	full := deadlineAfter(most) // the end of this slice, however often signals end it early
	rest := most
	for {
		slice, left := rest, end.left()
		if left != driver.Forever {
			slice = min(slice, left)
		}
		driver.EndWaitsOnSignal(true)
		done = p.Wait(slice)
		signaled := driver.EndWaitsOnSignal(false)
		if over.Load() {
			select {} // the interpreter is ending: it must not be entered any more
		}
		if done || left == 0 {
			break
		}
		if signaled && full.left() > 0 {
			if interrupted(&state, nil) {
				w.End()
				return false, true
			}
			rest = full.left()
			continue
		}
		full, rest = deadlineAfter(most), most
		if limit < 0 && w == nil {
			w = beginWait(r, p)
		}
		if interrupted(&state, w) {
			w.End()
			return false, true
		}
	}
	w.End() // before it waits for Python's lock: it is blocked no more
	C.gil_acquire(state)
	return done, false
}

func interrupted(state *unsafe.Pointer, w *stall.Wait) bool {
	due := w.Due()
	s := *state
	answer := C.gil_interrupted(&s, C.int(truth(due)))
	*state = s
	if due {
		w.Answered(answer == C.STALL_MAYBE)
	}
	return answer == C.STALL_RAISED
}

// unlocked runs f, which may block, with Python's lock released. Once the
// interpreter is ending it does not return: a thread that takes the lock then
// is ended by Python, in the middle of Go's frames. Where f panics the lock is
// not taken again: a thread that has it may wait for a lock that f holds, and
// the process could not end.
func unlocked(f func()) {
	state := C.gil_release()
	f()
	if over.Load() {
		select {}
	}
	C.gil_acquire(state)
}
