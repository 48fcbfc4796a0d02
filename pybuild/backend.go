package pybuild

// #cgo CFLAGS: -I${SRCDIR}/../bindings/python
// #include "stall.h"
import "C"

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	_ "halstream/ascend" // registers itself
	"halstream/bindings"
	"halstream/bindings/python"
	_ "halstream/capi" // registers itself
	_ "halstream/cuda" // registers itself
	"halstream/hal"
	"halstream/hal/driver"
)

var rt *hal.Runtime

func init() {
	// A Python thread that calls the extension must get a processor of the Go scheduler
	// at once, also while the pump and the engines keep theirs busy.
	runtime.GOMAXPROCS(runtime.NumCPU() + 4)
	// The heap is small and short-lived events fill it: collect less often.
	debug.SetGCPercent(400)
}

// opening is closed when the thread that opens a backend is done; nil while none
// does. That thread lets others call meanwhile.
var opening chan struct{}

// lockOpening waits until no other thread opens a backend; none does until unlock is
// called.
func lockOpening() (unlock func()) {
	for opening != nil {
		ended := opening
		unlocked(func() { <-ended })
	}
	ended := make(chan struct{})
	opening = ended
	return func() {
		opening = nil
		close(ended)
	}
}

// backend returns the runtime, opened at the first use. The calling thread is
// known after it: only such threads release Python's lock in a backend.
func backend() (*hal.Runtime, error) {
	if python.Over() {
		return nil, raise(driver.Errorf(driver.Closed, "use runtime",
			"the interpreter is ending and the runtime has shut down; do this before the program's end"))
	}
	caller()
	if rt == nil {
		defer lockOpening()()
		if rt == nil { // no other thread has opened it meanwhile
			if err := refreshEnviron(); err != nil {
				return nil, raise(err)
			}
			opened, err := open(bindings.BackendName())
			if err != nil {
				return nil, err
			}
			if err := adopt(opened); err != nil {
				return nil, err
			}
		}
	}
	return rt, nil
}

// open opens a backend, with Python's lock released.
func open(name string) (opened *hal.Runtime, err error) {
	unlocked(func() { opened, err = bindings.Open(name, "use backend") })
	return opened, raise(err)
}

// adopt makes r the runtime that all calls use.
func adopt(r *hal.Runtime) error {
	rt = r
	deterministic = r.Schedule() != "parallel"
	err := followCheck(r)
	python.Use(r)
	watch(r)
	useGraphs(r)
	return err
}

// Backend returns the name of the backend in use.
func Backend() (name string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) { return r.Name(), nil })
}

// BackendPassed returns why other backends were not taken, where the first usable
// one was asked for: a list of texts.
func BackendPassed() (reasons string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) {
		return encode(append([]string{}, r.Skipped()...)), nil
	})
}

// UseBackend changes the backend. No stream or event may be alive but the streams
// of kept, a list of ids, which are closed when the backend changes.
// With dry not 0 it only checks the streams and events. A refused call changes nothing.
func UseBackend(name, kept string, dry int64) (done int64, err error) {
	defer guard(&err)
	caller()
	defer lockOpening()()
	var ids []int64
	if err := json.Unmarshal([]byte(kept), &ids); err != nil {
		return 0, raise(driver.Errorf(driver.InvalidValue, "use backend", "the streams to close are no list of ids: %s", err))
	}
	ids = slices.DeleteFunc(ids, func(id int64) bool {
		_, open := find(id).(*hal.Stream)
		return !open
	})
	if err := unused(rt, len(ids), dry != 0); err != nil || dry != 0 {
		return 0, err
	}
	if err := refreshEnviron(); err != nil {
		return 0, raise(err)
	}
	opened, err := open(name)
	if err != nil {
		return 0, err
	}
	if err := unused(rt, len(ids), false); err != nil { // others could go on with it meanwhile
		unlocked(opened.Close)
		return 0, err
	}
	for _, id := range ids {
		_ = closeAs(nil, id) // the runtime that it belongs to ends
	}
	before := python.Current()
	err = adopt(opened)
	if before != nil {
		for _, id := range slices.Concat(before.Legacy, before.PerThread) {
			remove(id)
		}
		unlocked(before.Close)
	}
	return 1, err
}

// unused returns why a runtime cannot be closed, nil if it can; so many streams of it
// may be open. With streamsOnly blocks of memory may be, too: the caller frees those
// that it keeps once it knows that nothing else is in the way.
func unused(r *hal.Runtime, streams int, streamsOnly bool) error {
	if r == nil {
		return nil
	}
	if n := r.Live() - streams; n > 0 {
		return raise(driver.Errorf(driver.InvalidValue, "use backend",
			"%d stream(s) and event(s) are alive; close them first", n))
	}
	if r.Pending() > 0 {
		return raise(driver.Errorf(driver.NotReady, "use backend",
			"work is pending; synchronize the devices first"))
	}
	if n := r.Blocks(); n > 0 && !streamsOnly {
		return raise(driver.Errorf(driver.InvalidValue, "use backend",
			"%d block(s) of memory are alive; free them first", n))
	}
	return nil
}

// Live returns how many streams and events are open.
func Live() (n int64, err error) {
	defer guard(&err)
	if rt == nil {
		return 0, nil
	}
	return int64(rt.Live()), nil
}

// Threads returns how many host threads the runtime knows.
func Threads() (n int64, err error) {
	defer guard(&err)
	return int64(python.Threads.Len()), nil
}

// Pending returns how many operations are enqueued and not done, on all devices. It waits
// for none, and listeners are not notified.
func Pending() (n int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return int64(r.Pending()), nil })
}

// Goroutines returns how many goroutines there are, for tests of leaks.
func Goroutines() int64 { return int64(runtime.NumGoroutine()) }

// Shutdown waits at most limit nanoseconds for all pending work, ends the threads
// that run functions, and returns how many operations were left. A second call, as
// of a package that was imported twice, does nothing: a thread that releases Python's
// lock now does not get it back.
func Shutdown(limit int64) (left int64, err error) {
	defer guard(&err)
	if rt == nil || python.Over() {
		return 0, nil
	}
	caller()
	// The program has ended, and a stall is no finding any more; what a look imports can also
	// make CPython forget that an interrupt ended it. A look that has begun needs Python's lock.
	unlocked(func() { C.halstream_stall_end() })
	end := time.Now().Add(time.Duration(limit))
	for i := range rt.Devices() {
		d, _ := rt.Device(i)
		await(d.EnqueuedPoint(), max(0, int64(time.Until(end))))
	}
	left = int64(rt.Pending())
	python.End()
	rt.Funcs.Close()
	return left, nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
