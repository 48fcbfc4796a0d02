package host

// #include "copy.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/touch"
)

const (
	// shareLeast is the size from which a copy is cut into slices, which the
	// engine and the threads that wait for it take in turn.
	shareLeast = 1 << 20
	// sliceMost bounds a slice: a thread that waits looks at its limit between two,
	// and at the end one thread may wait for the slice of another.
	sliceMost  = 1 << 20
	sliceLeast = 256 << 10
	// soonNS is how long a thread that took part looks for the end of the last
	// slices before it sleeps: waking it would take as long as one of them.
	soonNS = 50_000
)

// streamingFrom is the size from which copies use streaming stores.
var streamingFrom = uint64(C.hs_streaming_from())

// streaming says whether a copy of that size uses streaming stores.
func streaming(size uint64) C.int {
	if size > streamingFrom {
		return 1
	}
	return 0
}

// share is how far a shared copy is.
type share struct {
	taken atomic.Uint64 // bytes that somebody copies or has copied
	done  atomic.Uint64
}

// shared reports whether others may take part: not where something comes before
// the first byte.
func (w *copyWork) shared() bool {
	return w.Height == 1 && w.Width >= shareLeast && w.Release == 0 && w.Before == nil
}

// runShared copies slices until none is left or limit nanoseconds are over
// (negative: no limit), and reports whether it copied the last one of all.
func (w *copyWork) runShared(limit int64) bool {
	slice := min(max(w.Width/16, sliceLeast), sliceMost)
	return C.hs_copy_slices((*C.uint64_t)(unsafe.Pointer(&w.share.taken)), (*C.uint64_t)(unsafe.Pointer(&w.share.done)),
		C.uint64_t(touch.Alias(w.Dst)), C.uint64_t(touch.Alias(w.Src)), C.uint64_t(w.Width), C.uint64_t(slice), streaming(w.Width),
		C.int64_t(limit)) == 1
}

// share lets the thread that waits for p take part in the copies that run on
// p's stream. It reports whether p is reached, and for how long it may be worth
// looking before going to sleep. The lock is held before and after. Nothing that
// takes long runs here, so the wait's limit holds.
func (e *engine) share(p point, limit int64) (reached bool, soon int64) {
	if !e.parallel.Load() {
		return false, 0
	}
	s := p.at.on
	clock := machineClock()
	left := limit
	for s.state == sched.Running && left != 0 {
		w, ok := s.q.front().ref.(*copyWork)
		if !ok || !w.shared() || w.share.taken.Load() >= w.Width {
			break
		}
		soon = soonNS
		p.at.announce()
		e.Unlock()
		done := w.runShared(left)
		e.Lock()
		p.at.withdraw()
		if limit != driver.Forever {
			left = max(0, limit-clock.Now())
		}
		if done {
			s.dev.leaving++
			e.finish(s)
			e.advance(s)
			e.point(sched.Ended, s, nil, 0)
			if !p.at.reached() {
				e.point(sched.Blocked, s, p.at.reached, 0)
			}
		}
		if p.at.reached() {
			return true, 0
		}
	}
	return false, soon
}
