package stall

import (
	"slices"
	"sync"

	"halstream/hal"
	"halstream/hal/driver"
)

const (
	// steppedSlice is, in nanoseconds, how long a slice of a wait is where devices
	// move only during calls: what can never end is to be reported within 0.1 s.
	steppedSlice = 10_000_000
	// quietMost is for how many slices nothing must have moved before Due says so.
	quietMost        = 3
	quietMostStepped = 1
	// pauseSlices is for how many slices Due lets a wait alone after an answer that
	// it can still end, and between two looks at functions.
	pauseSlices = 4
)

// Slice returns for how many nanoseconds a wait should sleep before it calls
// [Wait.Due] or looks at anything else; usual is what suits the caller otherwise.
// A negative limit is a wait without one.
func Slice(rt *hal.Runtime, limit, usual int64) int64 {
	if limit < 0 && rt != nil && rt.Deterministic() {
		return steppedSlice
	}
	return usual
}

// Waiter is a host thread that waits for work of the device.
type Waiter struct {
	// Thread is the number by which the caller knows the thread.
	Thread uint64
	// Point is what it waits for.
	Point driver.Point
	// Reports is the queue that it waits for a report of, nil for another wait.
	Reports *hal.Queue
	// Active reports whether the thread does something else in the middle of its
	// wait, as handlers of signals do; nil where it never does. It must not block:
	// the thread cannot end its wait meanwhile.
	Active func() bool
}

// goesOn reports whether the thread is about to return from its wait.
func (w *Waiter) goesOn() bool {
	if w.Active != nil && w.Active() {
		return true
	}
	if w.Reports != nil {
		return w.Reports.Waiting() > 0
	}
	return len(driver.Missing(w.Point)) == 0
}

// Blocked is a thread in a wait without a limit.
type Blocked struct {
	Thread uint64
	// Report says that it waits for a report.
	Report bool
	// On are the fences that it waits for and that were not reached.
	On []driver.Fence
}

// Waits are the waits without a limit of a program's threads. The zero value has
// none. Its methods, and those of a [Wait], may be called on any thread.
type Waits struct {
	mu   sync.Mutex
	list []*Wait
}

// Wait is a wait without a limit that goes on.
type Wait struct {
	waits *Waits
	rt    *hal.Runtime
	who   Waiter

	// The policy of Due, for the waiting thread only.
	mark  uint64 // what was pending at the last look
	quiet int    // slices for which nothing moved
	pause int    // slices for which Due says no
}

// Begin lists a wait until End is called. It returns nil, on which all methods do
// nothing, where the backend does not know what its streams wait for.
func (l *Waits) Begin(rt *hal.Runtime, who Waiter) *Wait {
	if rt == nil || !rt.ReportsWaits() {
		return nil
	}
	w := &Wait{waits: l, rt: rt, who: who}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, w)
	return w
}

// End takes the wait out of the list. Call it as soon as the thread is not blocked
// any more.
func (w *Wait) End() {
	if w == nil {
		return
	}
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.waits.list = slices.DeleteFunc(w.waits.list, func(other *Wait) bool { return other == w })
}

// Blocked returns the threads that wait, without those that are about to go on.
func (l *Waits) Blocked() []Blocked {
	l.mu.Lock() // none of them ends its wait, and so its thread, before this returns
	defer l.mu.Unlock()
	blocked := make([]Blocked, 0, len(l.list))
	for _, w := range l.list {
		if w.who.goesOn() {
			continue
		}
		b := Blocked{Thread: w.who.Thread, Report: w.who.Reports != nil}
		if !b.Report {
			b.On = driver.Missing(w.who.Point)
		}
		blocked = append(blocked, b)
	}
	return blocked
}

// Due is called by the waiting thread after each slice in which what it waits for
// was not reached. It reports whether it is time to find out whether the wait can
// ever end: nothing of the runtime has moved for some slices, or a function runs
// that may wait for this thread. Report the answer with Answered.
func (w *Wait) Due() bool {
	if w == nil {
		return false
	}
	quiet, mark := w.rt.Quiet()
	if !quiet || mark != w.mark {
		w.mark, w.quiet = mark, 0
	} else {
		w.quiet++
	}
	if w.pause > 0 {
		w.pause--
		return false
	}
	most := quietMost
	if w.rt.Deterministic() {
		most = quietMostStepped
	}
	if w.quiet >= most {
		return true
	}
	if quiet {
		return false
	}
	// Other streams move, but this thread may wait for a function that waits for it.
	w.pause = pauseSlices
	return slices.ContainsFunc(w.rt.Busy(), func(b driver.Busy) bool { return b.Need == driver.NeedFunction })
}

// Answered says what was found after Due: with suspect the wait may be one that
// never ends, and Due soon returns true again.
func (w *Wait) Answered(suspect bool) {
	w.pause = 0
	if !suspect {
		w.pause = pauseSlices
	}
}
