package pybuild

import (
	"fmt"
	"os"

	"halstream/bindings/python"
	"halstream/bindings/records"
	"halstream/hal"
	"halstream/hal/driver"
)

// How errors reach Python: as text that its half takes apart.

// flatError is an error in the form that Python reads.
type flatError struct{ text string }

func (e *flatError) Error() string { return e.text }

// raise gives an error the form that Python reads: records.ErrorPrefix and an errorRecord.
func raise(err error) error {
	if err == nil {
		return nil
	}
	e, ok := err.(*hal.Error)
	if !ok {
		if flat, done := err.(*flatError); done {
			return flat
		}
		e = driver.Errorf(driver.Unknown, "", "%s", err)
	}
	if e.Kind == driver.Interrupted {
		return nil // Python's exception is set
	}
	if e.Kind == driver.DeviceLost && rt != nil {
		rt.NoteLossesReported() // Python raises it
	}
	return &flatError{records.ErrorPrefix + encode(errorRecord{e.Kind.String(), e.Code, e.Op, e.Token, e.Text + python.LineOf(e)})}
}

// guard turns a panic with an Error of the runtime (there is one: no id is left)
// into the call's error. Every other panic is a defect, and the panicking
// function may hold a lock: the process ends with the panic's text and stack,
// because the next call that needs the lock would block for ever.
func guard(err *error) {
	switch r := recover().(type) {
	case nil:
	case *hal.Error:
		*err = raise(r)
	default:
		fmt.Fprintln(os.Stderr, "halstream: a defect of the runtime, please report it with the text below")
		panic(r)
	}
}
