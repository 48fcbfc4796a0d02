package host

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/touch"
)

// valueOp is a write of 64 or 32 bits, or a wait for them.
type valueOp struct {
	driver.Value
	// shared memory lies outside the runtime's own: other processes may map it.
	shared bool
}

// at is where the value lies. Its block stays allocated while the operation
// is pending.
func (v *valueOp) at() *uint64 {
	addr := touch.Alias(v.Addr)
	return *(**uint64)(unsafe.Pointer(&addr))
}

func (v *valueOp) found() uint64 {
	if v.Condition.IsNarrow() {
		return uint64(atomic.LoadUint32((*uint32)(unsafe.Pointer(v.at()))))
	}
	return atomic.LoadUint64(v.at())
}

// write stores the value.
func (v *valueOp) write() {
	if v.Condition.IsNarrow() {
		atomic.StoreUint32((*uint32)(unsafe.Pointer(v.at())), uint32(v.Value.Value))
		return
	}
	atomic.StoreUint64(v.at(), v.Value.Value)
}

func (v *valueOp) met() bool { return v.Condition.Met(v.found(), v.Value.Value) }

func (v *valueOp) description() string { return fmt.Sprintf("a wait for the value at %#x", v.Addr) }

func (v *valueOp) describe() string {
	return fmt.Sprintf("%s, which is %d, to be %v %d", v.description(), v.found(), v.Condition, v.Value.Value)
}

// values are the streams whose head operation waits for a value in memory. What
// streams write is noticed at once. What the program writes by itself is noticed
// when it calls the runtime under a deterministic schedule, and otherwise by a
// timer, which runs while there are such streams.
type values struct {
	waiting []*Stream
	armed   bool
	// unseen counts the ticks of the timer in a row that found a condition met
	// under a deterministic schedule, whose next schedule point had not come.
	unseen int
	ticks  int // of the timer, since it started
}

// valueTick is how often the timer polls.
const valueTick = time.Millisecond

// goneTicks is after how many ticks the timer looks whether others may still write the values that streams wait for.
const goneTicks = 100

// unseenMost is after how many such ticks the device continues by itself: the program
// waits for it outside the runtime.
const unseenMost = 50

// awaitValue blocks s, whose head operation waits for a value. The lock is held.
func (e *engine) awaitValue(s *Stream) {
	e.values.waiting = append(e.values.waiting, s)
	e.startValueTimer()
}

func (e *engine) startValueTimer() {
	if !e.values.armed {
		e.values.armed = true
		e.real.After(int64(valueTick), e.pollValues)
	}
}

// checkValues lets the streams go on whose value is what they wait for. The lock
// is held.
func (e *engine) checkValues() {
	if len(e.values.waiting) == 0 {
		return
	}
	e.values.waiting = slices.DeleteFunc(e.values.waiting, func(s *Stream) bool {
		if !s.q.front().ref.(*valueOp).met() {
			return false
		}
		e.ready(s)
		return true
	})
}

// pollValues is what the timer does.
func (e *engine) pollValues() {
	e.failGone()
	e.Lock()
	defer e.Unlock()
	e.values.armed = false
	if e.closed {
		return
	}
	met := slices.IndexFunc(e.values.waiting, func(s *Stream) bool { return s.q.front().ref.(*valueOp).met() })
	switch {
	case met < 0:
		e.values.unseen = 0
	case e.parallel.Load() || e.values.unseen >= unseenMost:
		e.checkValues()
		e.values.unseen = 0
	default:
		// The threads that wait look again at their own schedule point: a run must
		// not depend on when the timer fires.
		e.values.unseen++
		e.point(sched.Ended, e.values.waiting[met], nil, 0)
	}
	if len(e.values.waiting) > 0 {
		e.startValueTimer()
	}
}

// failGone lets streams go on with an error that wait for a value which nobody will write any more.
func (e *engine) failGone() {
	type wait struct {
		s *Stream
		v *valueOp
	}
	var asked []wait
	e.Lock()
	if e.values.ticks++; e.values.ticks%goneTicks == 0 {
		for _, s := range e.values.waiting {
			if v := s.q.front().ref.(*valueOp); v.Gone != nil {
				asked = append(asked, wait{s, v})
			}
		}
	}
	e.Unlock()
	for _, w := range asked {
		err := w.v.Gone()
		if err == nil {
			continue
		}
		e.Lock()
		if !e.closed && slices.Contains(e.values.waiting, w.s) && w.s.q.front().ref == any(w.v) && !w.v.met() {
			w.s.fail(err)
			w.s.leaveList()
			e.finish(w.s)
			e.advance(w.s)
		}
		e.Unlock()
	}
}
