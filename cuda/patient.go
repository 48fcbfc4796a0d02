package cuda

/*
#include "calls.h"
#include "gil.h"
*/
import "C"

import (
	"sync/atomic"
	"time"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// Calls of the driver that may wait until the device is idle. While a device may wait for the host,
// maybe for the calling thread, they are made on another thread: no signal ends a call of the driver.

// patienceSlice is for how many nanoseconds a thread that waits for such a call does not look for
// signals that have not ended its sleep.
const patienceSlice = 50_000_000

// What has become of a call that another thread makes.
const (
	callPending int32 = iota
	callReturned
	callLeft // by who waited for it
)

// pythonLock is what a call does with Python's lock; tests replace it.
var pythonLock = struct {
	unlock      func() unsafe.Pointer
	relock      func(unsafe.Pointer)
	interrupted func(*unsafe.Pointer) bool
}{
	func() unsafe.Pointer { return C.hs_unlock() },
	func(lock unsafe.Pointer) { C.hs_relock(lock) },
	func(lock *unsafe.Pointer) bool { return C.hs_interrupted(lock) != 0 },
}

// patiently makes a call of the driver that may wait until the device is idle, and returns its status.
// A thread of Python's can be interrupted there by a handler of a signal that raises: then the error
// is of the kind Interrupted, and when the call returns, undo gives back what it has made. do keeps
// what it has made in variables of its own, as it may run on after this call.
func (d *Device) patiently(call, doing string, do func() C.hs_status, undo func()) (C.hs_status, error) {
	if !d.drv.stalls() {
		return do(), nil
	}
	lock := pythonLock.unlock()
	if lock == nil {
		defer d.mayDrain(call)()
		return do(), nil
	}
	status, _, err := d.onAnotherThread(lock, forever, call, doing, do, undo)
	return status, err
}

// forever is no limit.
const forever = -1

// withLimit is patiently for a call that needs memory or gives it back, and reports whether it has returned. While a
// device may wait for the host it waits stallMost at most: the work that the driver waits for may wait for the caller.
func (d *Device) withLimit(call, doing string, do func() C.hs_status, undo func()) (C.hs_status, bool, error) {
	if !d.drv.stalls() {
		return do(), true, nil
	}
	limit := stallMost
	if l := d.state(); l != nil && l.drains.Load() {
		limit = min(limit, asideLimit) // no call waits as long again
	}
	status, returned, err := d.onAnotherThread(pythonLock.unlock(), limit, call, doing, do, undo)
	if l := d.live.Load(); l != nil && err == nil {
		l.drains.Store(!returned)
	}
	return status, returned, err
}

// onAnotherThread lets another thread make a call, for at most limit nanoseconds, and takes Python's lock back if lock is one.
func (d *Device) onAnotherThread(lock unsafe.Pointer, limit int64, call, doing string, do func() C.hs_status,
	undo func()) (status C.hs_status, returned bool, err error) {
	var answer C.hs_status
	w := d.apart(call, func() bool { answer = do(); return answer == 0 }, undo)
	for clock := stopwatch(); ; {
		slice := int64(patienceSlice)
		if limit != forever {
			slice = max(0, min(slice, limit-clock()))
		}
		if w.wait(slice) {
			w.end()
			status, returned = answer, true
			break
		}
		if lock != nil && pythonLock.interrupted(&lock) {
			w.leave(d)
			return 0, false, driver.Errorf(driver.Interrupted, doing,
				"a handler of a signal raised while the driver was in %s", call)
		}
		if limit != forever && clock() >= limit {
			w.leave(d)
			break
		}
	}
	if lock != nil {
		pythonLock.relock(lock)
	}
	return status, returned, nil
}

// asideLimit is for how many nanoseconds a thread waits for a call that gives something back.
const asideLimit = 20_000_000

// aside makes a call of the driver that gives something back, and may wait until the device is idle.
// If it does so while the device may wait for the host, it is left to another thread.
func (d *Device) aside(call string, limit int64, do func()) {
	if !d.drv.stalls() {
		do()
		return
	}
	w := d.apart(call, func() bool { do(); return false }, nil)
	lock := pythonLock.unlock()
	if w.wait(limit) {
		w.end()
	} else {
		w.leave(d)
	}
	pythonLock.relock(lock)
}

// apartCall is a call that another thread makes.
type apartCall struct {
	call   string
	parker *park.Parker
	state  atomic.Int32
	undo   func()
	made   bool // whether there is something to undo; read after callReturned
}

// apart begins a call on another thread; do reports whether there is something to undo.
func (d *Device) apart(call string, do func() bool, undo func()) *apartCall {
	w := &apartCall{call: call, parker: park.Get(), undo: undo}
	d.apartCalls.Add(1)
	l := d.live.Load()
	kept := l != nil && l.hold()
	go func() {
		defer func() {
			d.apartCalls.Add(-1)
			if kept {
				l.release(d)
			}
		}()
		end := d.mayDrain(call)
		w.made = do()
		end()
		if w.state.CompareAndSwap(callPending, callReturned) {
			w.parker.Unpark()
			return
		}
		w.discard()
	}()
	return w
}

// wait reports whether the call has returned within limit nanoseconds. A signal may end it early.
func (w *apartCall) wait(limit int64) bool {
	driver.EndWaitsOnSignal(true)
	defer driver.EndWaitsOnSignal(false)
	returned := w.parker.Park(limit, 0)
	if returned {
		w.state.Load() // what the call has written is seen behind this
	}
	return returned
}

// end is for who has seen the call return.
func (w *apartCall) end() { park.Put(w.parker) }

// leave is for who waits no longer. What the call makes is given back, on another thread: that may wait, too.
func (w *apartCall) leave(d *Device) {
	if !w.state.CompareAndSwap(callPending, callLeft) {
		w.parker.Park(-1, 0) // it has returned just now
		d.apart("what undoes "+w.call, func() bool { w.discard(); return false }, nil).leave(d)
	}
	park.Put(w.parker)
}

func (w *apartCall) discard() {
	if w.made && w.undo != nil {
		w.undo()
	}
}

// stalls reports whether work of a device may wait for the host. Where work of one device waits for
// another's all of them may. It calls no driver, so what the host has done already may count.
func (d *Driver) stalls() bool {
	if d.reports.Load() > 0 || d.poller.anyHeld() {
		return true
	}
	for _, dev := range d.devices {
		if dev == nil || !dev.opened() {
			continue
		}
		if dev.calling.Load() > 0 {
			return true
		}
		for _, s := range dev.streams.all() {
			if s.reached.Load() < s.hostWait.Load() && !dev.unusable() {
				return true
			}
		}
	}
	return false
}

// awaitApart waits until no other thread is in a call of the driver for the device any more. It
// reports false after limit nanoseconds.
func (d *Device) awaitApart(limit int64) bool {
	end := time.Now().Add(time.Duration(limit))
	for d.apartCalls.Load() > 0 {
		if time.Now().After(end) {
			return false
		}
		C.hs_pause()
	}
	return true
}
