package host

import (
	"halstream/hal/driver"
)

// opKind is the kind of an operation.
type opKind uint8

const (
	opNop opKind = iota
	opRecord
	opWait    // for a fence of another stream
	opWaitSet // for a settable event
	opReset
	opGate
	opCall   // host function: the stream waits for its end
	opPass   // host function whose end the stream does not wait for
	opReport // the same two for functions that the program's own threads take
	opReportPass
	opWork // for a worker
	opWriteValue
	opWaitValue
	opLaunch    // a run of a graph, whose nodes are on branches
	opBranchEnd // behind the nodes of a launch on a branch
	opBody      // the body of a node with a condition
)

// String returns the kind in a word.
func (k opKind) String() string {
	return [...]string{"nop", "record", "wait", "wait", "reset", "gate", "call", "pass", "report", "report", "work",
		"write value", "wait value", "launch graph", "end of a branch", "body of a node"}[k]
}

// changes reports whether an operation may have changed memory.
func (k opKind) changes() bool {
	switch k {
	case opWriteValue, opWork, opCall, opReport:
		return true
	}
	return false
}

// op is an operation on a stream. It is small, since a stream may have a million.
type op struct {
	kind  opKind
	tag   driver.Tag
	arg   uint64  // wait, record: sequence number; call: token
	on    *Stream // wait, record: the stream of that number; launch: with arg, the fence of the launch before
	ep    *epoch  // for streams in the legacy order
	ref   any     // *Event, *gate, driver.Sink, work, *valueOp, *launch or *bodyRun
	limit int64   // wait: nanoseconds from when it is the head, or driver.Forever
}

// description says what an operation is.
func (o *op) description() string {
	switch o.kind {
	case opRecord:
		return "a record of event " + name(o.ref.(*Event).opts.ID)
	case opReset:
		return "a reset of event " + name(o.ref.(*Event).opts.ID)
	case opWait:
		if event, ok := o.ref.(*Event); ok {
			return "a wait for event " + name(event.opts.ID)
		}
		return "a wait for a stream"
	case opWaitSet:
		return "a wait for event " + name(o.ref.(*Event).opts.ID)
	case opGate:
		return "gate " + name(o.ref.(*gate).id)
	case opCall, opPass:
		return "a function"
	case opReport, opReportPass:
		return "a report"
	case opWork:
		return title(o.ref.(work))
	case opWriteValue:
		return "a write of a value"
	case opWaitValue:
		return o.ref.(*valueOp).description()
	case opLaunch:
		return "a launch of a graph"
	case opBranchEnd:
		return "the end of a branch of a graph"
	case opBody:
		return "the body of a node of a graph"
	}
	return "an empty operation"
}

// waitsForPlace describes a wait for an event without a number, by its record.
// The virtual time that operations take under a deterministic schedule.
const (
	minCostNS  = 1_000  // of every operation
	callCostNS = 10_000 // of a function
	bytesPerNS = 10     // bytes of a copy or fill in a nanosecond
)

func cost(o *op) int64 {
	switch o.kind {
	case opCall, opPass, opReport, opReportPass:
		return callCostNS
	case opWork:
		switch w := o.ref.(work).(type) {
		case delayWork:
			return w.ns
		case *copyWork:
			return minCostNS + int64(w.Width*w.Height/bytesPerNS)
		case *fillWork:
			return minCostNS + int64(w.Count*uint64(w.Size)/bytesPerNS)
		}
		return callCostNS
	}
	return minCostNS
}

// Chunks are small at first, so that a stream with few operations stays small,
// and then large, so that a million pending operations cost little each.
const (
	firstChunk = 4
	laterChunk = 73 // fill 4 KiB, with the header by which Go's collector knows their type
)

type chunk struct {
	ops  []op
	next *chunk
}

// fifo is the queue of a stream. The zero value is empty and holds no memory.
type fifo struct {
	first, last *chunk
	head        int32 // index of the front in first
	n           int32
}

// reserve makes room for n operations, fewer than laterChunk, which stays. The queue is empty.
func (q *fifo) reserve(n int) {
	c := &chunk{ops: make([]op, 0, n)}
	*q = fifo{first: c, last: c}
}

func (q *fifo) push(o *op) {
	if q.last == nil {
		c := &chunk{ops: make([]op, 0, firstChunk)}
		q.first, q.last, q.head = c, c, 0
	} else if len(q.last.ops) == cap(q.last.ops) {
		c := &chunk{ops: make([]op, 0, laterChunk)}
		q.last.next, q.last = c, c
	}
	n := len(q.last.ops)
	q.last.ops = q.last.ops[:n+1]
	// Field by field: the processor reads a struct in wide words, and those would
	// have to wait for the narrow writes with which the caller has just filled *o.
	free := &q.last.ops[n]
	free.kind, free.tag, free.arg, free.limit = o.kind, o.tag, o.arg, o.limit
	free.on, free.ep, free.ref = o.on, o.ep, o.ref
	q.n++
}

// front returns the oldest operation; the queue is not empty.
func (q *fifo) front() *op { return &q.first.ops[q.head] }

func (q *fifo) pop() {
	q.first.ops[q.head] = op{} // the collector must not keep what it points to
	q.head++
	q.n--
	if q.n == 0 {
		// A stream that goes idle often keeps one small chunk; a long queue's
		// memory goes back.
		if cap(q.last.ops) == laterChunk {
			q.first, q.last = nil, nil
		} else {
			q.last.ops = q.last.ops[:0]
		}
		q.head = 0
	} else if int(q.head) == len(q.first.ops) {
		q.first, q.head = q.first.next, 0
	}
}

// drop empties the queue behind its front and returns what was there.
func (q *fifo) drop() []op {
	if q.n < 2 {
		return nil
	}
	kept := *q.front()
	rest := make([]op, 0, q.n-1)
	at := int(q.head) + 1
	for c := q.first; c != nil; c, at = c.next, 0 {
		rest = append(rest, c.ops[at:]...)
	}
	*q = fifo{}
	q.push(&kept)
	return rest
}
