package pybuild

import (
	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/driver"
)

// Short names of what nearly every function of this package uses.
var (
	find     = python.Find
	insert   = python.Insert
	remove   = python.Remove
	caller   = python.Caller
	unlocked = python.Unlocked
)

// unknown explains an id that has no object of the wanted type, in the form that
// Python reads.
func unknown(id int64, op, what string) error { return raise(python.Unknown(id, op, what)) }

func stream(t *hal.Thread, id int64, op string) (*hal.Stream, error) {
	if python.Over() {
		_, err := backend()
		return nil, err
	}
	s, err := python.StreamOf(t, id, op)
	return s, raise(err)
}

func event(id int64, op string) (*hal.Event, error) {
	e, err := python.EventNamed(id, op)
	return e, raise(err)
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
	done, _ := python.Await(p, limit)
	return truth(done)
}

// WaitSlice sets how many nanoseconds a wait goes without looking for signals
// that did not end it, for tests, and returns how many it was.
func WaitSlice(ns int64) (before int64) { return python.SetSlice(ns) }

// Nearly all functions of the extension look an object up, ask it something, and
// give errors the form that Python reads. The functions of this file do all but the
// asking. f is called at most once, on the calling thread.

// onRuntime asks the runtime, which is opened if no call has done so.
func onRuntime[T any](f func(*hal.Runtime) (T, error)) (value T, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return value, err
	}
	value, err = f(r)
	return value, raise(err)
}

// onDevice asks a device.
func onDevice[T any](ordinal int64, f func(*hal.Device) (T, error)) (value T, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return value, err
	}
	value, err = f(d)
	return value, raise(err)
}

// onStream asks a stream on behalf of the calling thread; op names the call in errors.
func onStream[T any](id int64, op string, f func(*hal.Thread, *hal.Stream) (T, error)) (value T, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, op)
	if err != nil {
		return value, err
	}
	value, err = f(t, s)
	return value, raise(err)
}

// on asks another object of type O; op and what name the call and the type in errors.
func on[O, T any](id int64, op, what string, f func(O) (T, error)) (value T, err error) {
	defer guard(&err)
	object, err := lookup[O](id, op, what)
	if err != nil {
		return value, err
	}
	value, err = f(object)
	return value, raise(err)
}

// lookup returns the object of type O with an id.
func lookup[O any](id int64, op, what string) (object O, err error) {
	object, ok := find(id).(O)
	if !ok {
		return object, unknown(id, op, what)
	}
	return object, nil
}

// nothing is the answer of a call that has none but its error: gopy gives the
// extension a value with every error.
func nothing(err error) (zero int64, _ error) { return 0, err }
