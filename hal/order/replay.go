package order

import (
	"slices"

	"halstream/hal"
)

// recordedKind is which method of a Checker was called.
type recordedKind uint8

const (
	toObserved recordedKind = iota
	toObservedReads
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

// calls returns what was recorded so far, which is put together here: only a run with
// findings needs it.
func (c *Checker) calls() []*recordedCall {
	c.mu.Lock()
	if c.recording == nil {
		c.mu.Unlock()
		return nil
	}
	r := recording{
		n: c.recording.n, chunks: slices.Clone(c.recording.chunks), ranges: slices.Clone(c.recording.ranges),
		whole: c.recording.whole,
	}
	r.threads.list, r.streams.list = c.recording.threads.list, c.recording.streams.list
	r.events.list, r.names.list = c.recording.events.list, c.recording.names.list
	c.mu.Unlock()
	all := make([]recordedCall, r.n)
	places := make([]*recordedCall, r.n)
	for i := range all {
		r.get(&r.chunks[i/callsChunk][i%callsChunk], &all[i])
		places[i] = &all[i]
	}
	return places
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
	op.Kind, op.Seq = storedKinds[recordedKind(s.what)-toHandle], s.seq
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
	op.InOrder, op.Internal = s.flags&storedInOrder != 0, s.flags&storedInternal != 0
	op.NoWait = s.flags&storedNoWait != 0
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

// replay calls another checker's method.
func (c *Checker) replay(call *recordedCall, threads replayThreads) {
	t := threads.get(call.thread)
	switch call.what {
	case toHandle:
		op := call.op
		op.Thread = t
		op.Seq *= 2 // leaves room for one between each two
		c.Handle(op)
	case toObserved:
		c.Observed(call.op.ID, call.op.Reads)
	case toObservedReads:
		c.ObservedReads(call.op.ID, call.op.Reads)
	case toSource:
		c.Source(call.op.ID, call.op.Reads[0])
	case toRefilled:
		c.Refilled(call.op.ID, call.op.Reads[0])
	case toOverwritten:
		c.Overwritten(call.op.ID, call.op.Reads[0])
	case toOrder:
		c.Order(t, call.order, call.object, call.op.Token)
	case toObserveThreads:
		c.ObserveThreads()
	case toFinish:
		c.Finish()
	}
}
