package order

import (
	"slices"

	"halstream/hal"
)

// callIndex finds what fixes refer to in recorded calls without looking through all of them for
// each fix.
type callIndex struct {
	calls   []*recordedCall
	streams map[[2]uint64]*hal.Stream // by device and index
	events  map[uint64]*hal.Event     // by id
	bySite  map[uint32][]int          // numbers of the calls of operations, ascending
	records map[*hal.Event][]int      // likewise, of its records
	// For each call of an operation, how many of its thread with a known site there were by then.
	rank []int
}

func indexed(calls []*recordedCall) *callIndex {
	x := &callIndex{
		calls: calls, streams: map[[2]uint64]*hal.Stream{}, events: map[uint64]*hal.Event{},
		bySite: map[uint32][]int{}, records: map[*hal.Event][]int{}, rank: make([]int, len(calls)),
	}
	ranks := map[uint64]int{}
	for i, call := range calls {
		for _, s := range []*hal.Stream{call.op.Stream, call.op.Other} {
			if s != nil {
				x.streams[[2]uint64{uint64(s.Device().Ordinal()), s.Index()}] = s
			}
		}
		if e := call.op.Event; e != nil {
			x.events[e.ID()] = e
			if call.op.Kind == "record" {
				x.records[e] = append(x.records[e], i)
			}
		}
		if call.what != toHandle {
			continue
		}
		if call.op.Site != 0 {
			ranks[call.thread]++
			x.bySite[call.op.Site] = append(x.bySite[call.op.Site], i)
		}
		x.rank[i] = ranks[call.thread]
	}
	delete(x.events, 0) // of a fix without an event
	return x
}

// version returns the latest record of an event in front of the call with a number, 0 without one.
func (x *callIndex) version(before int, event *hal.Event) uint64 {
	records := x.records[event]
	at, _ := slices.BinarySearch(records, before)
	if at == 0 {
		return 0
	}
	return x.calls[records[at-1]].op.Version
}

// execution is the calls of one execution of a statement, by their numbers.
type execution struct {
	thread     uint64
	begin, end int
	on         bool // one of them is on the stream that was asked for
}

// executions returns when a statement with some call sites was executed with an operation on a
// stream, or at all if that is nil. The calls of one thread in a row are of one execution up
// to a call that is like the first one.
func (x *callIndex) executions(sites []uint32, on *hal.Stream) []execution {
	var inside []int
	for _, site := range sites {
		inside = append(inside, x.bySite[site]...)
	}
	slices.Sort(inside)
	inside = slices.Compact(inside)
	var all []*execution
	open := map[uint64]*execution{}
	for _, i := range inside {
		call := x.calls[i]
		now := open[call.thread]
		if now != nil && x.rank[i] != x.rank[now.end]+1 {
			now = nil // a call of another statement came between
		}
		if now != nil {
			if first := &x.calls[now.begin].op; first.Site == call.op.Site && first.Kind == call.op.Kind {
				now = nil
			}
		}
		if now == nil {
			now = &execution{thread: call.thread, begin: i}
			open[call.thread] = now
			all = append(all, now)
		}
		now.end = i
		now.on = now.on || on == nil || call.op.Stream == on && !call.op.Host
	}
	var out []execution
	for _, one := range all {
		if one.on {
			out = append(out, *one)
		}
	}
	return out
}
