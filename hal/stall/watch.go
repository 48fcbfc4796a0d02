package stall

import (
	"time"

	"halstream/hal"
)

const (
	// watchPeriod is the time between two ticks of a watch, while work is pending.
	watchPeriod = 100 * time.Millisecond
	// mostPause is for how many ticks a watch lets a program alone at most.
	mostPause = 64
)

// Watch says when it is time to look whether a program can go on whose threads wait
// for something else than the runtime: for a lock, or for what a function of a stream
// would give them. Such threads do not ask by themselves. Its methods are for one
// goroutine.
type Watch struct {
	rt    *hal.Runtime
	mark  uint64
	quiet int // ticks for which nothing moved
	pause int // ticks for which Tick says no
	next  int // the pause after the next answer that the program can go on
}

// NewWatch returns a watch of a runtime, nil where its backend does not know what its
// streams wait for.
func NewWatch(rt *hal.Runtime) *Watch {
	if !rt.ReportsWaits() {
		return nil
	}
	return &Watch{rt: rt, next: pauseSlices}
}

// Tick is to be called after each Wait. It reports whether it is time to look: work is
// pending, and none of it has moved for some ticks. Report the answer with Answered.
func (w *Watch) Tick() bool {
	quiet, mark := w.rt.Quiet()
	if !quiet || mark != w.mark {
		w.mark, w.quiet, w.pause, w.next = mark, 0, 0, pauseSlices
		return false
	}
	w.quiet++
	if w.pause > 0 {
		w.pause--
		return false
	}
	return mark != 0 && w.quiet >= quietMost
}

// Answered says what was found after Tick: with suspect the program may be one that
// cannot go on, and the next Tick returns true again if nothing moves. After each other
// answer about the same work Tick returns false for twice as long.
func (w *Watch) Answered(suspect bool) {
	w.pause = 0
	if !suspect {
		w.pause, w.next = w.next, min(2*w.next, mostPause)
	}
}

// Wait returns when the next tick is due. Where the latest tick found nothing pending, or
// there was none yet, it sleeps until something is: a process that does nothing is not woken
// up. It returns false as soon as stop is closed.
//
// Contract: W5.
func (w *Watch) Wait(stop <-chan struct{}) bool {
	if w.mark == 0 {
		select {
		case <-w.rt.WorkPending():
		case <-stop:
			return false
		}
	}
	due := time.NewTimer(watchPeriod)
	defer due.Stop()
	select {
	case <-due.C:
		return true
	case <-stop:
		return false
	}
}
