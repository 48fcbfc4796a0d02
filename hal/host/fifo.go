package host

// Chunks are small at first, so that a stream with few operations stays small,
// and then large, so that a million pending operations cost little each.
const (
	firstChunk = 4
	laterChunk = 73 // fill 4 KiB, with the word by which Go's collector knows their type
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
