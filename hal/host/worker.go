package host

/*
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <time.h>
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Called on a worker, with no lock held. It sleeps on after a signal.
static void hs_delay(int64_t ns) {
	struct timespec left = {ns / 1000000000, ns % 1000000000};
	while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

#ifdef __linux__
static int64_t hs_thread(void) {
	static _Thread_local int64_t number; // a thread of Go's does not survive a fork
	if (number == 0) number = syscall(SYS_gettid);
	return number;
}
#else
static int64_t hs_thread(void) { return 0; }
#endif

static void hs_native(uint64_t fn, uint64_t arg, int64_t *thread) {
	__atomic_store_n(thread, hs_thread(), __ATOMIC_RELEASE);
	((void (*)(void *))(uintptr_t)fn)((void *)(uintptr_t)arg);
	__atomic_store_n(thread, 0, __ATOMIC_RELEASE);
}

static const char *hs_symbol(uint64_t address) {
	Dl_info found;
	if (!dladdr((void *)(uintptr_t)address, &found) || found.dli_saddr != (void *)(uintptr_t)address) return 0;
	return found.dli_sname;
}

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

import (
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/park"
)

// work is what a worker does for one operation. It runs in C, since a long
// loop in Go cannot be interrupted by the collector.
type work interface {
	run()
	short() bool
}

type delayWork struct{ ns int64 }

func (w delayWork) run() { delay(w.ns) }

func (w delayWork) short() bool { return false }

// delay keeps the calling worker busy for ns nanoseconds.
func delay(ns int64) { C.hs_delay(C.int64_t(ns)) }

type nativeWork struct {
	driver.Native
	stream *Stream
	// thread is the system's number of the thread that runs it; 0 while none does, and
	// where the system has no such number.
	thread atomic.Int64
}

func (w *nativeWork) run() {
	if w.Before != nil {
		w.Before()
	}
	if w.Call == nil {
		C.hs_native(C.uint64_t(w.Fn), C.uint64_t(w.Arg), (*C.int64_t)(unsafe.Pointer(&w.thread)))
	} else if err := w.call(); err != nil {
		w.stream.eng.Lock() // before the operation counts as done
		switch {
		case w.stream.completed.Load() < w.stream.forgiven: // an error of before does not count
		case err.Kind == driver.DeviceLost:
			w.stream.lose(err)
		default:
			w.stream.fail(err)
		}
		w.stream.eng.Unlock()
	}
	if w.After != nil {
		w.After()
	}
}

func (w *nativeWork) call() *driver.Error {
	if w.ShowsThread {
		w.thread.Store(int64(C.hs_thread()))
		defer w.thread.Store(0)
	}
	return w.Call.Run()
}

func (w *nativeWork) short() bool { return false }

// symbol returns the name of the function at an address, "" if no library exports it.
func symbol(address uint64) string {
	if name := C.hs_symbol(C.uint64_t(address)); name != nil {
		return C.GoString(name)
	}
	return ""
}

// worker is a thread that runs operations which take time. Without work it spins a little, then
// parks, and ends a while later: starting one costs more than most operations.
type worker struct {
	parker *park.Parker
	// stream and work are set by the thread that wakes an idle worker.
	stream *Stream
	work   work
	ended  bool // woken because the backend was closed
	helped bool // another thread has taken its work back, before the worker was awake
}

const (
	// lingerNS is for how many nanoseconds a worker stays without work.
	lingerNS = 100_000_000
	// workerSpinNS is for how many of them it spins before it parks.
	workerSpinNS = 50_000
)

// start has a worker run the head operation of a stream, the most urgent stream's first. The
// operation waits in the backlog while all workers are at work, and for one that is about to look
// there: waking another one costs the caller more. The lock is held.
func (e *engine) start(s *Stream) {
	d := s.dev
	s.state = sched.Queued
	d.backlog.Push(s.level, s)
	if d.busy == e.engines || d.backlog.Len() <= d.looking {
		return
	}
	s, w := e.take(d)
	d.busy++
	if n := len(d.idle); n > 0 {
		idle := d.idle[n-1]
		d.idle = d.idle[:n-1]
		idle.stream, idle.work = s, w
		e.woken = append(e.woken, idle)
		e.unpark(idle.parker)
		return
	}
	go e.work(d, s, w)
}

// take takes the most urgent operation from the backlog of a device; nil if there is none. The
// lock is held.
func (e *engine) take(d *Device) (*Stream, work) {
	s, ok := d.backlog.Pop()
	if !ok {
		return nil, nil
	}
	s.state = sched.Running
	if e.following {
		s.rareState().began = e.clock.Now()
	}
	return s, s.q.front().ref.(work)
}

// work is what a worker of a device does: it runs operations until none comes for a while.
func (e *engine) work(d *Device, s *Stream, w work) {
	defer yieldToWaker()()
	me := &worker{parker: park.Get()}
	defer park.Put(me.parker)
	for s != nil {
		w.run()
		e.Lock()
		e.finish(s)
		d.looking++ // what follows on this stream is often the next work
		e.advance(s)
		e.point(sched.Ended, s, nil, 0)
		d.looking--
		s, w = e.take(d)
		if s == nil {
			d.busy--
			d.idle = append(d.idle, me)
		}
		e.Unlock()
		if s == nil {
			s, w = e.waitForWork(d, me)
		}
	}
}

// waitForWork spins, then parks, and returns the work that another thread has given to the worker,
// nil if none came. The worker is in the device's list of idle ones.
func (e *engine) waitForWork(d *Device, me *worker) (s *Stream, w work) {
	for again := true; again; {
		woken := me.parker.Park(lingerNS, workerSpinNS)
		e.Lock()
		s, w = me.stream, me.work
		me.stream, me.work = nil, nil
		e.woken = slices.DeleteFunc(e.woken, func(o *worker) bool { return o == me })
		helped := s == nil && me.helped
		unparked := s != nil || me.ended || helped
		if again = helped && !e.closed; again {
			me.helped = false
			d.idle = append(d.idle, me)
		} else if s == nil {
			d.idle = slices.DeleteFunc(d.idle, func(o *worker) bool { return o == me })
		}
		e.Unlock()
		if unparked && !woken {
			me.parker.Park(driver.Forever, 0) // another thread is about to unpark it
		}
	}
	return s, w
}

// helpMost is the size in bytes up to which a thread that waits runs a copy or a fill: some milliseconds' worth, in which it
// looks neither at its limit nor for signals.
const helpMost = 16 << 20

// Help implements sched.Runner: waking a worker takes as long as a copy of some megabytes.
func (e *engine) Help() bool {
	for i, asleep := range e.woken {
		s, w := asleep.stream, asleep.work
		if bytes := moved(w); bytes == 0 || bytes > helpMost {
			continue
		}
		e.woken = slices.Delete(e.woken, i, i+1)
		asleep.stream, asleep.work, asleep.helped = nil, nil, true
		e.Unlock() // which also wakes those that need not wait for the copy
		w.run()
		e.Lock()
		e.finish(s)
		e.advance(s)
		s.dev.busy--
		if next, ok := s.dev.backlog.Pop(); ok {
			e.start(next)
		}
		return true
	}
	return false
}

// moved returns how many bytes a copy or a fill writes, 0 for other work.
func moved(w work) uint64 {
	switch w := w.(type) {
	case *copyWork:
		return w.Width * w.Height
	case *fillWork:
		return w.Count * uint64(w.Size)
	}
	return 0
}

// yieldToWaker makes the calling goroutine's thread one that does not interrupt the
// threads that wake it, until the returned function is called on the same goroutine.
// Where no processor is free the system runs a woken thread at once in place of the
// one that woke it, and an enqueue that wakes a worker returns only when the worker
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
