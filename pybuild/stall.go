package pybuild

// #include "stall.h"
import "C"

import (
	"encoding/json"

	"halstream/bindings/python"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// stuckInPython asks Python about the running function with this token: whether it
// waits for another thread, whether it is certain that no thread can end this wait but
// those that wait for the function, and whether a signal handler raised meanwhile.
func stuckInPython(token uint64) (waits, certain, raised bool) {
	if python.Over() {
		return false, false, false
	}
	answer := C.halstream_stall_ask_function(C.int64_t(token))
	return answer >= C.STALL_MAYBE, answer == C.STALL_CERTAIN, answer == C.STALL_RAISED
}

// StallHook sets the Python callable that is asked whether a wait can ever end, by its
// address; 0 for none. It is called without arguments by the thread that waits. If it
// raises, the wait raises; if it returns 1 it is called again soon.
func StallHook(object uint64) (zero int64, err error) {
	defer guard(&err)
	C.halstream_stall_hook(C.uint64_t(object))
	return 0, nil
}

// StallAsked returns the token of the function that the hook is asked about, 0 if it
// is asked about the wait of its own thread, -1 if it is asked on a thread of the
// extension whether the main thread can go on, and -2 on the main thread, after
// StallInterrupt. About a function it returns 1 if that
// waits for another thread, 2 if only threads that wait for the function could help.
func StallAsked() int64 { return int64(C.halstream_stall_asked()) }

// StallState returns whether anything can happen without another call: a stateRecord.
func StallState() (state string, err error) {
	defer guard(&err)
	if rt == nil {
		return encode(stateRecord{}), nil
	}
	quiet, mark := rt.Quiet()
	return encode(stateRecord{quiet, mark, rt.Funcs.Waiting()}), nil
}

// StallWaits returns the waits of host threads that have no limit, but for those
// whose thread is about to go on: a list of waitRecord.
func StallWaits() (waiting string, err error) {
	defer guard(&err)
	list := []waitRecord{}
	for _, b := range python.Blocked.Blocked() {
		list = append(list, waitRecord{b.Thread, b.Report, placeRecords(b.On)})
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
			int(b.Need), b.Number, python.BlockedAt.Of(b), placeRecords(b.On)})
	}
	return encode(list), nil
}

// StallStuck returns who can never go on, the thread start and whom it waits for
// among them, empty if start may go on: a list of partyRecord. graph is a graphRecord.
func StallStuck(graph string, start uint64) (stuck string, err error) {
	defer guard(&err)
	var r graphRecord
	if err := json.Unmarshal([]byte(graph), &r); err != nil {
		return "", raise(driver.Errorf(driver.InvalidValue, "find stall", "%s", err))
	}
	g := stall.Graph{Others: r.Others}
	for _, b := range r.Blocked {
		g.Blocked = append(g.Blocked, stall.Blocked{Thread: b.Ident, Report: b.Report, On: places(b.On)})
	}
	for _, b := range r.Streams {
		g.Streams = append(g.Streams, driver.Busy{At: places([]placeRecord{b.At})[0], Need: driver.Need(b.Need),
			Number: b.Number, On: places(b.On)})
	}
	for _, h := range r.Held {
		g.Held = append(g.Held, stall.Held{Thread: h.Ident, By: h.Owner})
	}
	for _, f := range r.Running {
		g.Running = append(g.Running, stall.Running{Thread: f.Ident, Token: f.Token, Report: f.Report})
	}
	list := []partyRecord{}
	for _, p := range g.Stuck(start) {
		list = append(list, partyRecord(p))
	}
	return encode(list), nil
}

func placeRecords(list []driver.Fence) []placeRecord {
	records := make([]placeRecord, 0, len(list))
	for _, p := range list {
		records = append(records, placeRecord{p.Device, p.Stream})
	}
	return records
}

func places(records []placeRecord) []driver.Fence {
	list := make([]driver.Fence, 0, len(records))
	for _, r := range records {
		list = append(list, driver.Fence{Device: r.Device, Stream: r.Stream})
	}
	return list
}
