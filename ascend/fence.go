package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"

	"halstream/hal/vendor"
)

// mark is an event of the library with a reference count: several points and streams refer to its
// latest record. When the count is 0 it can be recorded again, even while waits for it are pending: these keep
// the record that was the latest at their call (aclrtCreateEventExWithFlag).
type mark struct {
	dev   *Device
	event C.uintptr_t
	timed bool
	refs  atomic.Int32
}

// hold adds a reference, and reports false if the count was 0.
func (m *mark) hold() bool { return holdCount(&m.refs) }

// holdCount adds a reference, and reports false if there was none.
func holdCount(refs *atomic.Int32) bool {
	for {
		n := refs.Load()
		if n == 0 {
			return false
		}
		if refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (m *mark) release() {
	if m.refs.Add(-1) == 0 {
		m.dev.marksOf(m.timed).put(m)
	}
}

// marks is a pool of unused marks. The library has few events, so each is used again.
type marks struct {
	mu    sync.Mutex
	spare []*mark
}

func (p *marks) put(m *mark) {
	p.mu.Lock()
	p.spare = append(p.spare, m)
	p.mu.Unlock()
}

func (p *marks) take() *mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.spare)
	if n == 0 {
		return nil
	}
	m := p.spare[n-1]
	p.spare = p.spare[:n-1]
	return m
}

// all removes and returns the unused marks.
func (p *marks) all() []*mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.spare
	p.spare = nil
	return list
}

// maxSpareMarks bounds how many unused marks of each kind a device keeps.
const maxSpareMarks = 4096

// point is a mark that host threads wait for. Once it is reached, so is a place of its stream.
type point struct {
	mark   *mark
	stream *Stream // nil for one of an event
	place  uint64
	state  atomic.Uint32
}

// States of a point.
const (
	waiting uint32 = iota
	watched        // a finalizer releases the mark if no wait is ever successful
	reached
)

// Wait implements driver.Point. Every point of a lost device is reached: Lost reports that the work was not done.
func (p *point) Wait(limit int64) bool {
	if p.state.Load() == reached || !p.mark.hold() {
		return true // another thread found it reached
	}
	defer p.mark.release()
	if p.state.Load() == reached { // the mark may have another user by now
		return true
	}
	const doing = "synchronize"
	d := p.mark.dev
	for clock := vendor.Stopwatch(); ; {
		if d.unusable() {
			return d.AwaitTasks(limit) && p.finish()
		}
		left := limit
		if limit > 0 {
			left = max(0, limit-clock())
		}
		s := C.na_await(p.mark.event, C.int64_t(left), spin)
		if s.code == 0 {
			return p.finish()
		}
		if s.code != codeNotReady {
			p.refused(s, doing, clock())
			if d.unusable() {
				continue
			}
			pause()
		}
		if limit >= 0 {
			if s.code != codeNotReady && clock() < limit {
				continue
			}
			p.watch()
			return false
		}
	}
}

// refusedMost is for how many nanoseconds every query of a wait may fail. A query that fails does not say that the
// work is done. A device whose work cannot be seen to end counts as lost then.
const refusedMost = 2_000_000_000

// refused takes a query that failed. The error becomes the stream's.
func (p *point) refused(s C.na_status, doing string, waited int64) {
	e := check(s, doing)
	if lasting(e.Code) || waited >= refusedMost {
		_ = p.mark.dev.Lose(e)
		return
	}
	if p.stream != nil {
		p.stream.Fail(e)
	}
}

// watch makes the collector release the mark of a point that nobody waits for any more.
func (p *point) watch() {
	if p.state.CompareAndSwap(waiting, watched) {
		runtime.SetFinalizer(p, func(p *point) { p.drop() })
	}
}

// finish makes the point reached, and the place of its stream. It returns true.
func (p *point) finish() bool {
	if p.drop() && p.stream != nil {
		p.stream.SetReached(p.place)
	}
	return true
}

// drop releases the mark, once, and reports whether this call did.
func (p *point) drop() bool {
	for {
		before := p.state.Load()
		if before == reached {
			return false
		}
		if p.state.CompareAndSwap(before, reached) {
			p.mark.release()
			return true
		}
	}
}

// reachedPoint is a point that is always reached.
type reachedPoint struct{}

func (reachedPoint) Wait(int64) bool { return true }
