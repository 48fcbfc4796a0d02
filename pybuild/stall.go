package pybuild

// #include "caller.h"
// #include "stall.h"
import "C"

import (
	"slices"
	"sync"

	"halstream/hal"
	"halstream/hal/driver"
)

const (
	// steppedNS is how long a slice of a wait is where devices move only during
	// calls: what is stuck there is to be told within 0.1 s.
	steppedNS = 10_000_000
	// calmMost is for how many slices nothing must have moved before Python is
	// asked whether anything still can.
	calmMost        = 3
	calmMostStepped = 1
	// restMost is how many slices are let go by after Python has found somebody
	// who can still act, and between two looks at functions.
	restMost = 4
)

// blocked is a wait of a host thread that has no limit.
type blocked struct {
	ident uint64
	self  *C.halstream_thread
	point driver.Point
	queue *hal.Queue // it waits for a report there
}

// waiting are those waits. It has a lock of its own, since they end without Python's.
var waiting struct {
	sync.Mutex
	list []*blocked
}

// enroll notes a wait of the calling thread.
func enroll(b *blocked) {
	b.ident, b.self = uint64(C.halstream_ident()), C.halstream_this()
	waiting.Lock()
	waiting.list = append(waiting.list, b)
	waiting.Unlock()
}

// missing returns the places that it waits for and that were not reached.
func (b *blocked) missing() []driver.Place {
	if b.queue != nil {
		return nil
	}
	return driver.Missing(b.point)
}

// ended reports whether the thread is about to go on.
func (b *blocked) ended() bool {
	if b.queue != nil {
		return b.queue.Waiting() > 0
	}
	return len(driver.Missing(b.point)) == 0
}

// watch decides during a wait when Python is asked whether it can ever end.
type watch struct {
	rt   *hal.Runtime
	wait blocked
	mark uint64
	calm int
	rest int
}

// newWatch returns the watch over a wait, nil where the backend cannot tell what
// it waits for.
func newWatch(r *hal.Runtime, p driver.Point) *watch {
	if r == nil || !r.ReportsWaits() {
		return nil
	}
	w := &watch{rt: r, wait: blocked{point: p}}
	if reports, ok := p.(reported); ok {
		w.wait.queue = reports.q
	}
	enroll(&w.wait)
	return w
}

// firstSlice returns how long a wait goes without looking at anything.
func firstSlice(r *hal.Runtime, limit int64) int64 {
	if limit < 0 && r != nil && r.Deterministic() {
		return steppedNS
	}
	return sliceNS
}

// due reports after a slice in vain whether Python is to be asked.
func (w *watch) due() bool {
	if w == nil {
		return false
	}
	quiet, mark := w.rt.Quiet()
	if !quiet || mark != w.mark {
		w.mark, w.calm = mark, 0
	} else {
		w.calm++
	}
	if w.rest > 0 {
		w.rest--
		return false
	}
	most := calmMost
	if w.rt.Deterministic() {
		most = calmMostStepped
	}
	if w.calm >= most {
		return true
	}
	if quiet {
		return false
	}
	// Other streams move, but this thread may wait for a function that waits for it.
	w.rest = restMost
	for _, b := range w.rt.Busy() {
		if b.Need == driver.NeedFunction {
			return true
		}
	}
	return false
}

// answered takes note of what Python said.
func (w *watch) answered(maybe bool) {
	w.rest = 0
	if !maybe {
		w.rest = restMost
	}
}

// leave takes the wait out of the list: the thread is blocked no more.
func (w *watch) leave() {
	if w == nil {
		return
	}
	waiting.Lock()
	defer waiting.Unlock()
	waiting.list = slices.DeleteFunc(waiting.list, func(b *blocked) bool { return b == &w.wait })
}

// stuckInPython reports whether the function with this token, which runs, waits
// for something that only another thread can give it, and whether none but the
// host threads that wait for it are there to do so; or that a signal handler
// raised meanwhile.
func stuckInPython(token uint64) (waits, certain, raised bool) {
	if over.Load() {
		return false, false, false
	}
	answer := C.halstream_stall_ask_anyhow(C.int64_t(token))
	return answer >= C.STALL_MAYBE, answer == C.STALL_CERTAIN, answer == C.STALL_RAISED
}

// StallHook sets what is asked whether a wait can ever end: the address of a
// Python callable, to which a reference is kept, or 0. It is called without arguments by the
// thread that waits. If it raises, the wait ends so; if it returns true it is
// called again soon.
func StallHook(object uint64) (zero int64, err error) {
	defer guard(&err)
	C.halstream_stall_hook(C.uint64_t(object))
	return 0, nil
}

// StallAsked returns the token of the function that the hook is asked about: does
// it wait for something that only another thread can give it (1), and can only
// those that wait for it (2)? 0: the hook is
// asked about the wait of its own thread.
func StallAsked() int64 { return int64(C.halstream_stall_asked()) }

// StallState returns whether anything can happen without another call: a stateRecord.
func StallState() (state string, err error) {
	defer guard(&err)
	if rt == nil {
		return encode(stateRecord{}), nil
	}
	quiet, _ := rt.Quiet()
	return encode(stateRecord{quiet, rt.Funcs.Waiting()}), nil
}

// StallWaits returns the waits of host threads that have no limit, but for those
// whose thread is about to go on: a list of waitRecord.
func StallWaits() (waits string, err error) {
	defer guard(&err)
	waiting.Lock()
	defer waiting.Unlock()
	list := []waitRecord{}
	for _, b := range waiting.list {
		if b.self.handling != 0 || b.ended() {
			continue
		}
		list = append(list, waitRecord{b.ident, b.queue != nil, placeRecords(b.missing())})
	}
	return encode(list), nil
}

// StallGraph returns the streams with pending work: a list of busyRecord.
func StallGraph() (streams string, err error) {
	defer guard(&err)
	list := []busyRecord{}
	if rt == nil {
		return encode(list), nil
	}
	for _, b := range rt.Busy() {
		list = append(list, busyRecord{placeRecord{b.At.Device, b.At.Stream}, b.Title, b.Pending, b.Head,
			int(b.Need), b.Number, siteOf(b), placeRecords(b.On)})
	}
	return encode(list), nil
}

func placeRecords(list []driver.Place) []placeRecord {
	records := make([]placeRecord, 0, len(list))
	for _, p := range list {
		records = append(records, placeRecord{p.Device, p.Stream})
	}
	return records
}
