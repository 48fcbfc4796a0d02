package pybuild

import (
	"errors"

	"halstream/bindings/python"
	"halstream/hal"
)

// wantsOrder is set while the check that is on asks for operations in the order of the calls.
var wantsOrder bool

// orderCalls has r run operations as the check that is on asks for; see hal.Runtime.OrderCalls.
func orderCalls(r *hal.Runtime) (err error) {
	if python.Over() { // a thread that releases Python's lock now does not get it back
		return nil
	}
	t := caller()
	unlocked(func() { err = r.OrderCalls(t, wantsOrder, whoCalls()) })
	deterministic = r.Deterministic()
	if errors.Is(err, hal.ErrInHostFunction) { // the check goes on in the order that there is
		return nil
	}
	return raise(err)
}
