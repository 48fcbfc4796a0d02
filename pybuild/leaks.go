package pybuild

import (
	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/stall"
)

// LeaksStart begins to track what is made, closed and freed, and returns a handle.
func LeaksStart() (handle int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return insert(stall.Track(r)), nil })
}

// LeaksTake returns what is alive, in the order in which it was made, and then the
// gates that are closed: a list of objectRecord.
func LeaksTake(handle int64) (list string, err error) {
	return on(handle, "list what is alive", "list", func(l *stall.Leaks) (string, error) {
		alive := []objectRecord{}
		for _, o := range append(l.Alive(), python.BlockedAt.Gates()...) {
			alive = append(alive, objectRecord(o))
		}
		return encode(alive), nil
	})
}

// LeaksStop ends what LeaksStart began.
func LeaksStop(handle int64) (zero int64, err error) {
	return on(handle, "list what is alive", "list", func(l *stall.Leaks) (int64, error) {
		l.Stop()
		remove(handle)
		return 0, nil
	})
}
