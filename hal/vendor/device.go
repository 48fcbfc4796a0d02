package vendor

import (
	"fmt"
	"sync/atomic"

	"halstream/hal/driver"
)

// DeviceCalls is what this package asks of a backend's device.
type DeviceCalls interface {
	// Pause lets the calling thread sleep for a moment with Python's lock released, and reports whether a signal has
	// ended the sleep.
	Pause() bool
	// Enter returns the device's context, which stays until Leave even if the driver is closed meanwhile; nil where it was
	// closed before.
	Enter() Context
	// DropBlocked drops what waits for the host on streams of a device that was just lost: pending work never runs.
	DropBlocked()
}

// Context is what a device has in the library from its first use on.
type Context interface {
	// Await waits for the work behind which an event was recorded: for limit nanoseconds, without a limit if it is negative.
	// With 0 it looks once. It reports whether the work is done; an error says that the library has refused to tell, and has
	// made the device lost if it is lasting. doing says what the call is for.
	Await(e *FenceEvent, limit int64, doing string) (done bool, refused *driver.Error)
	// Leave ends what Enter has begun.
	Leave()
}

// Device is the part of a device that backends share: whether it is of use, and its work on threads of the host.
type Device struct {
	calls DeviceCalls
	lost  atomic.Pointer[driver.Error]
	ended atomic.Bool
	tasks atomic.Int64
}

// Init is called once, before the device is used.
func (d *Device) Init(calls DeviceCalls) { d.calls = calls }

// IsLost reports whether every call of the library for the device fails until the process ends.
func (d *Device) IsLost() bool { return d.lost.Load() != nil }

// Cause returns the error with which the device was lost, nil if it was not.
func (d *Device) Cause() *driver.Error { return d.lost.Load() }

// End notes that the driver was closed.
func (d *Device) End() { d.ended.Store(true) }

// Ended reports whether the driver was closed.
func (d *Device) Ended() bool { return d.ended.Load() }

// Unusable reports whether the library answers no call about the device any more.
func (d *Device) Unusable() bool { return d.IsLost() || d.Ended() }

// enter returns the device's context until Leave, nil if the library answers no call about the device any more.
func (d *Device) enter() Context {
	if d.Unusable() {
		return nil
	}
	return d.calls.Enter()
}

// Lost implements driver.VendorDevice.
func (d *Device) Lost() *driver.Error {
	if !d.IsLost() {
		return nil
	}
	return d.LostError("synchronize")
}

// LostError returns the error of a call for a device that was lost.
func (d *Device) LostError(doing string) *driver.Error {
	e := *d.lost.Load()
	e.Text = fmt.Sprintf("the device is lost since %s: %s; restart the process to use it again", e.Op, e.Text)
	e.Op, e.Kind = doing, driver.DeviceLost
	return &e
}

// Lose makes a device lost, unless it is already, and returns an error with the first cause. What waits for the host on
// its streams is dropped.
func (d *Device) Lose(cause *driver.Error) error {
	if d.lost.CompareAndSwap(nil, cause) {
		d.calls.DropBlocked()
	}
	return d.LostError(cause.Op)
}

// BeginTask begins work on a thread of the host that may use memory of the program. It reports false if the device is
// lost: a wait for the work may have ended for that reason already.
func (d *Device) BeginTask() bool {
	d.tasks.Add(1)
	if d.IsLost() {
		d.EndTask()
		return false
	}
	return true
}

// EndTask ends BeginTask.
func (d *Device) EndTask() { d.tasks.Add(-1) }

// AwaitTasks waits until no task uses memory of the program. The library itself does no more work for a device that was
// lost, so afterwards the program may free the memory. It reports false after limit nanoseconds (no limit if it is
// negative), or after a signal.
func (d *Device) AwaitTasks(limit int64) bool {
	for clock := Stopwatch(); d.tasks.Load() > 0; {
		if limit >= 0 && clock() >= limit {
			return false
		}
		if d.calls.Pause() && limit >= 0 {
			return false
		}
	}
	return true
}

// AwaitIdle waits until no work is pending. It reports false after limit nanoseconds.
func (d *Device) AwaitIdle(pending func() int, limit int64) bool {
	for clock := Stopwatch(); pending() > 0; d.calls.Pause() {
		if clock() >= limit {
			return false
		}
	}
	return true
}
