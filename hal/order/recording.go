package order

import (
	"math"
	"slices"

	"halstream/hal"
)

const (
	// maxRecorded is how many calls a recording keeps; one that has more is given up.
	maxRecorded = 1 << 17
	// maxRanges is how many byte ranges its calls have together at most.
	maxRanges = 4 * maxRecorded
	// maxWhole is how many operations it keeps that have no short form.
	maxWhole = maxRecorded / 8
	// callsChunk and rangesChunk are how many calls, and ranges, are allocated at a time.
	callsChunk  = 512
	rangesChunk = 1024
)

// storedCall is a call of a method of a Checker, in 48 bytes without pointers, which the
// garbage collector does not look at. Objects, threads and names are numbers in the lists of
// its recording.
type storedCall struct {
	seq        uint64 // for Order the object
	number     uint64 // the operation's Version or Token
	id         uint32 // for Order what was done
	site       uint32
	thread     uint32
	stream     uint32
	target     uint32 // an event, another stream, or an operation that is kept as it is
	name       uint32
	ranges     uint32 // the index of the first one
	what       uint8  // a recordedKind, or for Handle toHandle plus the kind of the operation
	flags      storedFlags
	reads, all uint8 // how many ranges
}

// storedFlags are what a storedCall says in one bit each.
type storedFlags uint8

const (
	storedHost storedFlags = 1 << iota
	storedCached
	storedInOrder // of an allocation; of a function that it is complete
	storedInternal
	storedEvent // target is an event
	storedToken // number is a token
	storedNoWait
	storedWhole // target is an operation that is kept as it is
	// storedHandsIn is the same bit as storedNoWait, which only frees have.
	storedHandsIn = storedNoWait
)

// recording is what a checker was called with, in order, so that another checker can be
// called with the same and more. The checker's lock protects it; elements that its lists
// have do not change. It takes 48 bytes for a call and 16 for a byte range, and 32 MB at
// most together with what the calls are about.
type recording struct {
	chunks  [][]storedCall
	n       int
	ranges  [][]hal.Range // chunks of equal length, the last one may be shorter
	nRanges int           // with the unused ones at the ends of chunks
	whole   []hal.Operation
	full    bool

	threads interned[uint64]
	streams interned[*hal.Stream]
	events  interned[*hal.Event]
	names   interned[string]
}

// interned is a list of different elements, with the latest look-ups at hand.
type interned[T comparable] struct {
	list    []T
	numbers map[T]uint32
	latest  [16]struct {
		element T
		number  uint32
	}
}

// of returns the number of an element, from 1. Elements with the same hint displace each
// other among the latest ones.
func (p *interned[T]) of(element T, hint uint64) uint32 {
	at := &p.latest[hint%uint64(len(p.latest))]
	if at.number != 0 && at.element == element {
		return at.number
	}
	number, known := p.numbers[element]
	if !known {
		if p.numbers == nil {
			p.numbers = map[T]uint32{}
		}
		p.list = append(p.list, element)
		number = uint32(len(p.list))
		p.numbers[element] = number
	}
	at.element, at.number = element, number
	return number
}

// add returns the slot for a new call, nil if nothing is recorded or the recording is full.
func (r *recording) add(nRanges int) *storedCall {
	if r == nil || r.full {
		return nil
	}
	if r.n == maxRecorded || r.nRanges+nRanges > maxRanges || len(r.whole) > maxWhole {
		*r = recording{full: true}
		return nil
	}
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last]) == callsChunk {
		r.chunks = append(r.chunks, make([]storedCall, 0, callsChunk))
		last++
	}
	chunk := &r.chunks[last]
	*chunk = (*chunk)[:len(*chunk)+1]
	r.n++
	return &(*chunk)[len(*chunk)-1]
}

// addRanges keeps byte ranges, at most 255 together.
func (r *recording) addRanges(at *storedCall, reads, writes []hal.Range) {
	n := len(reads) + len(writes)
	if n == 0 {
		return
	}
	last := len(r.ranges) - 1
	if last < 0 || len(r.ranges[last])+n > rangesChunk {
		r.ranges = append(r.ranges, make([]hal.Range, 0, rangesChunk))
		last++
		r.nRanges = last * rangesChunk
	}
	at.ranges, at.reads, at.all = uint32(r.nRanges), uint8(len(reads)), uint8(n)
	r.ranges[last] = append(append(r.ranges[last], reads...), writes...)
	r.nRanges += n
}

// handled adds a call of Handle, without the thread's object, whose end the checker would
// not notice.
func (r *recording) handled(op *hal.Operation) {
	at := r.add(len(op.Reads) + len(op.Writes))
	if at == nil {
		return
	}
	if op.Thread != nil {
		at.thread = r.threads.of(op.Thread.ID, op.Thread.ID)
	}
	at.what = uint8(toHandle)
	if op.Exec != nil || op.Graph != nil || op.Value != nil || op.Users != nil || op.Event != nil && op.Other != nil ||
		op.Version != 0 && op.Token != 0 || len(op.Reads)+len(op.Writes) > math.MaxUint8 {
		at.flags = storedWhole
		r.whole = append(r.whole, *op)
		r.whole[len(r.whole)-1].Thread = nil
		at.target = uint32(len(r.whole))
		return
	}
	at.what += uint8(op.Kind)
	at.seq, at.id, at.site, at.number = op.Seq, op.ID, op.Site, op.Version
	if op.Token != 0 {
		at.number, at.flags = op.Token, storedToken
	}
	if op.Stream != nil {
		at.stream = r.streams.of(op.Stream, op.Stream.Index())
	}
	switch {
	case op.Event != nil:
		at.target, at.flags = r.events.of(op.Event, op.Event.ID()), at.flags|storedEvent
	case op.Other != nil:
		at.target = r.streams.of(op.Other, op.Other.Index())
	}
	if op.Name != "" {
		at.name = r.names.of(op.Name, uint64(op.Site))
	}
	r.addRanges(at, op.Reads, op.Writes)
	at.set(storedHost, op.Host)
	at.set(storedCached, op.Cached)
	at.set(storedInOrder, op.InOrder || op.Complete)
	at.set(storedInternal, op.Internal)
	at.set(storedNoWait, op.NoWait || op.HandsIn)
}

// handedIn adds a call of HandedIn.
func (r *recording) handedIn(id uint32, reads, writes []hal.Range) {
	n := len(reads) + len(writes)
	at := r.add(n)
	if at == nil {
		return
	}
	at.what, at.id = uint8(toHandedIn), id
	if n > math.MaxUint8 {
		at.flags = storedWhole
		r.whole = append(r.whole, hal.Operation{ID: id, Reads: reads, Writes: writes})
		at.target = uint32(len(r.whole))
		return
	}
	r.addRanges(at, reads, writes)
}

func (s *storedCall) set(flag storedFlags, on bool) {
	if on {
		s.flags |= flag
	}
}

// called adds a call of another method than Handle.
func (r *recording) called(what recordedKind, id uint32, ranges ...hal.Range) {
	for first := true; first || len(ranges) > 0; first = false {
		some := ranges[:min(len(ranges), math.MaxUint8)]
		ranges = ranges[len(some):]
		if at := r.add(len(some)); at != nil {
			at.what, at.id = uint8(what), id
			r.addRanges(at, some, nil)
		}
	}
}

// ordered adds a call of Order.
func (r *recording) ordered(t *hal.Thread, what HostOrder, object, token uint64) {
	if at := r.add(0); at != nil {
		at.what, at.thread, at.seq, at.number = uint8(toOrder), r.threads.of(t.ID, t.ID), object, token
		at.id = uint32(what)
	}
}

// recordedKind is which method of a Checker was called.
type recordedKind uint8

const (
	toObserved recordedKind = iota
	toObservedReads
	toHandedIn
	toSource
	toRefilled
	toOverwritten
	toOrder
	toObserveThreads
	toFinish
	toHandle // the last one: the kinds of operations follow it
)

// recordedCall is a call of a method of a Checker.
type recordedCall struct {
	what   recordedKind
	order  HostOrder
	thread uint64
	object uint64
	// op is the operation of Handle, without its thread. Of the other methods it has the
	// arguments: ID, Reads, Token.
	op hal.Operation
}

// get sets call to what is stored.
func (r *recording) get(s *storedCall, call *recordedCall) {
	call.what = min(recordedKind(s.what), toHandle)
	if s.thread != 0 {
		call.thread = r.threads.list[s.thread-1]
	}
	op := &call.op
	switch {
	case call.what == toOrder:
		call.order, call.object, op.Token = HostOrder(s.id), s.seq, s.number
		return
	case s.flags&storedWhole != 0:
		*op = r.whole[s.target-1]
		return
	}
	op.ID, op.Site = s.id, s.site
	if s.all > 0 {
		op.Reads = r.ranges[s.ranges/rangesChunk][s.ranges%rangesChunk:][:s.all:s.all]
	}
	if s.all > s.reads {
		op.Reads, op.Writes = op.Reads[:s.reads:s.reads], op.Reads[s.reads:]
	}
	if s.reads == 0 {
		op.Reads = nil
	}
	if call.what != toHandle {
		return
	}
	op.Kind, op.Seq = hal.OperationKind(recordedKind(s.what)-toHandle), s.seq
	if s.flags&storedToken != 0 {
		op.Token = s.number
	} else {
		op.Version = s.number
	}
	if s.stream != 0 {
		op.Stream = r.streams.list[s.stream-1]
	}
	switch {
	case s.target == 0:
	case s.flags&storedEvent != 0:
		op.Event = r.events.list[s.target-1]
	default:
		op.Other = r.streams.list[s.target-1]
	}
	if s.name != 0 {
		op.Name = r.names.list[s.name-1]
	}
	op.Host, op.Cached = s.flags&storedHost != 0, s.flags&storedCached != 0
	op.Internal = s.flags&storedInternal != 0
	op.NoWait = s.flags&storedNoWait != 0 && op.Kind == hal.OpFreeMemory
	op.HandsIn = s.flags&storedHandsIn != 0 && op.Kind != hal.OpFreeMemory
	if op.Kind == hal.OpAllocate {
		op.InOrder = s.flags&storedInOrder != 0
	} else {
		op.Complete = s.flags&storedInOrder != 0
	}
}

// replayThreads stand for the threads of a recording, by their numbers.
type replayThreads map[uint64]*hal.Thread

func (r replayThreads) get(id uint64) *hal.Thread {
	t := r[id]
	if t == nil {
		t = &hal.Thread{ID: id}
		r[id] = t
	}
	return t
}

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
	// The numbers of the calls of operations with a known site, and of the first call of any kind, of each thread.
	ofThread map[uint64][]int
}

func indexed(calls []*recordedCall) *callIndex {
	x := &callIndex{
		calls: calls, streams: map[[2]uint64]*hal.Stream{}, events: map[uint64]*hal.Event{},
		bySite: map[uint32][]int{}, records: map[*hal.Event][]int{}, rank: make([]int, len(calls)),
		ofThread: map[uint64][]int{},
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
			if call.op.Kind == hal.OpRecord {
				x.records[e] = append(x.records[e], i)
			}
		}
		if call.thread != 0 && len(x.ofThread[call.thread]) == 0 {
			x.ofThread[call.thread] = append(x.ofThread[call.thread], i)
		}
		if call.what != toHandle {
			continue
		}
		if call.op.Site != 0 {
			if known := x.ofThread[call.thread]; len(known) > 0 && known[len(known)-1] != i {
				x.ofThread[call.thread] = append(known, i)
			}
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

// behindThePrevious returns the number of the call in front of which a statement may have begun at the earliest: behind
// its thread's call of a statement before it.
func (x *callIndex) behindThePrevious(g execution) int {
	list := x.ofThread[g.thread]
	at, _ := slices.BinarySearch(list, g.begin)
	if at == 0 {
		return g.begin
	}
	return list[at-1] + 1
}

// execution is the calls of one execution of a statement, by their numbers.
type execution struct {
	thread     uint64
	begin, end int
	on         bool // one of them is on the stream that was asked for
}

// executions returns when a statement with some call sites was executed with an operation on a
// stream, or at all if that is nil. The calls of one thread in a row are of one execution up
// to a call that is like the first one; of a statement whose function may have loops, all of them are.
func (x *callIndex) executions(sites []uint32, on *hal.Stream, loops bool) []execution {
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
		if now != nil && !loops {
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
