// Package waits waits for work with a limit, in slices between which the caller looks at what else has happened.
package waits

import (
	"time"

	"halstream/hal/driver"
	"halstream/hal/stall"
)

// HeldLimit bounds the wait of an allocation for memory, in nanoseconds, while a stream waits for the host: for a gate, a
// value or a record that may be the caller's to come. Another thread has so long.
const HeldLimit = 2_000_000_000

// Deadline is the moment at which a limit ends; the zero value never comes. Waits that consist of several parts share
// one.
type Deadline struct{ at time.Time }

// After returns the deadline of a limit in nanoseconds that begins now; a negative one never ends.
func After(limit int64) (d Deadline) {
	if limit >= 0 {
		d.at = time.Now().Add(time.Duration(limit))
	}
	return d
}

// Left returns how many nanoseconds remain, at least 0; [driver.Forever] without a limit.
func (d Deadline) Left() int64 {
	if d.at.IsZero() {
		return driver.Forever
	}
	return max(0, int64(time.Until(d.at)))
}

// Wait is a wait of a thread of the program.
type Wait struct {
	Point driver.Point
	End   Deadline
	// Slice is for how many nanoseconds the thread sleeps before it looks.
	Slice int64
	// Signals says that a signal of the thread ends a slice early, where the backend can do so.
	Signals bool
	// List puts the wait on the list of those without a limit, after a first slice; nil for a wait that is not on it.
	List func() *stall.Wait
	// Listed is the wait on that list, which Do takes from it at its end; nil before it is there.
	Listed *stall.Wait
	// Look is called between two slices; an error ends the wait. A signal has ended the slice early if so.
	Look func(early bool) error
}

// Do waits. It returns whether the point was reached before the deadline, or the error of Look.
func (w *Wait) Do() (done bool, err error) {
	defer driver.Announce(w.Point)()
	defer func() { w.Listed.End() }()
	slice := After(w.Slice)
	for {
		ns, left := slice.Left(), w.End.Left()
		if left != driver.Forever {
			ns = min(ns, left)
		}
		if w.Signals {
			driver.EndWaitsOnSignal(true)
		}
		done = w.Point.Wait(ns)
		early := w.Signals && driver.EndWaitsOnSignal(false) && slice.Left() > 0
		if done || left == 0 {
			return done, nil
		}
		if !early && w.List != nil && w.Listed == nil && left == driver.Forever {
			w.Listed = w.List()
		}
		if err := w.Look(early); err != nil {
			return false, err
		}
		if !early {
			slice = After(w.Slice)
		}
	}
}
