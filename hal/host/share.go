package host

/*
#include <stdint.h>
#include <string.h>

static void hs_slice(uint64_t dst, uint64_t src, uint64_t size) {
	memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, size);
}
*/
import "C"

import (
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

const (
	// shareLeast is the size from which a copy is cut into slices, which the
	// engine and the threads that wait for it take in turn.
	shareLeast = 1 << 20
	// sliceMost bounds a slice: a thread that waits looks at its limit between two.
	sliceMost  = 4 << 20
	sliceLeast = 256 << 10
	// soonNS is how long a thread that took part looks for the end of the last
	// slices before it sleeps: waking it would take as long as one of them.
	soonNS = 50_000
)

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

// runShared copies slices until none is left or stop says so, and reports
// whether it copied the last one of all.
func (w *copyWork) runShared(stop func() bool) bool {
	slice := min(max(w.Width/16, sliceLeast), sliceMost)
	for stop == nil || !stop() {
		from := w.share.taken.Add(slice) - slice
		if from >= w.Width {
			return false
		}
		n := min(slice, w.Width-from)
		C.hs_slice(C.uint64_t(w.Dst+from), C.uint64_t(w.Src+from), C.uint64_t(n))
		if w.share.done.Add(n) == w.Width {
			return true
		}
	}
	return false
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
	clock := RealTime()
	end := clock.Now() + limit
	stop := func() bool { return limit != driver.Forever && clock.Now() >= end }
	for s.state == sched.Running && !stop() {
		w, ok := s.q.front().ref.(*copyWork)
		if !ok || !w.shared() || w.share.taken.Load() >= w.Width {
			break
		}
		soon = soonNS
		e.Unlock()
		done := w.runShared(stop)
		e.Lock()
		if done {
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
