package order

import "halstream/hal"

const (
	// maxRecorded is how many calls a recording keeps; one that has more is given up.
	maxRecorded = 1 << 17
	// recordedChunk is how many calls are allocated at a time.
	recordedChunk = 512
)

// recordedKind is which method of a Checker was called.
type recordedKind uint8

const (
	toHandle recordedKind = iota
	toObserved
	toSource
	toRefilled
	toOrder
	toObserveThreads
	toFinish
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

// recording is what a checker was called with, in order, so that another checker can be
// called with the same and more. The checker's lock protects it; full chunks do not change.
type recording struct {
	chunks [][]recordedCall
	n      int
	full   bool
}

// Record makes c keep what it is called with from now on, for [Session.Prove].
func (c *Checker) Record() {
	c.mu.Lock()
	c.recording = &recording{}
	c.mu.Unlock()
}

// add returns the place of a new call, nil if there is no recording.
func (r *recording) add() *recordedCall {
	if r == nil || r.full {
		return nil
	}
	if r.n == maxRecorded {
		r.full, r.chunks, r.n = true, nil, 0
		return nil
	}
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last]) == recordedChunk {
		r.chunks = append(r.chunks, make([]recordedCall, 0, recordedChunk))
		last++
	}
	r.chunks[last] = append(r.chunks[last], recordedCall{})
	r.n++
	return &r.chunks[last][len(r.chunks[last])-1]
}

func (r *recording) handled(op *hal.Operation) {
	if at := r.add(); at != nil {
		at.op = *op
		at.op.Thread = nil // whose end the checker would not notice
		if op.Thread != nil {
			at.thread = op.Thread.ID
		}
	}
}

// called adds a call of another method than Handle.
func (r *recording) called(what recordedKind, id uint32, ranges ...hal.Range) {
	if at := r.add(); at != nil {
		at.what, at.op.ID, at.op.Reads = what, id, ranges
	}
}

func (r *recording) ordered(t *hal.Thread, what HostOrder, object, token uint64) {
	if at := r.add(); at != nil {
		at.what, at.order, at.thread, at.object, at.op.Token = toOrder, what, t.ID, object, token
	}
}

// calls returns what was recorded so far; the caller holds the checker's lock.
func (r *recording) calls() []*recordedCall {
	if r == nil {
		return nil
	}
	all := make([]*recordedCall, 0, r.n)
	for _, chunk := range r.chunks {
		for i := range chunk {
			all = append(all, &chunk[i])
		}
	}
	return all
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
	case toSource:
		c.Source(call.op.ID, call.op.Reads[0])
	case toRefilled:
		c.Refilled(call.op.ID, call.op.Reads[0])
	case toOrder:
		c.Order(t, call.order, call.object, call.op.Token)
	case toObserveThreads:
		c.mu.Lock()
		c.host.oldest = call.object
		c.mu.Unlock()
	case toFinish:
		c.Finish()
	}
}
