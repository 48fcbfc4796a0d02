package pybuild

import "halstream/hal"

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
