package hal

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/park"
	"halstream/hal/prio"
)

// funcSpinNS is the time that a thread which waits for a function spins before it
// sleeps, since waking a sleeping thread costs microseconds.
const funcSpinNS = 20_000

// readyFunc is a function that its stream has reached.
type readyFunc struct {
	token  uint64
	stream *Stream
	c      driver.Completer // nil if the stream does not wait for the end
	drop   bool             // the function will not run, or its error cannot be reported
	watch  *watch           // nil unless its changes of memory are observed
	queue  *Queue           // the report queue that counts it, else nil
}

// Queue holds the functions that streams have reached until threads take them, those
// of the most urgent streams first. The runtime's own queue is served by threads
// that start and end as needed, a report queue by the threads that call Next.
type Queue struct {
	mu        sync.Mutex
	ready     prio.Queue[readyFunc]
	idle      []idler
	workers   []*Thread // that take functions; mu guards their running
	switching int       // threads between the end of a function and the next one
	threads   int       // started and not ended; for the runtime's own queue
	limit     int
	closed    bool
	reports   bool
	streams   int     // subscribed to this report queue
	dev       *Device // of the subscribed streams
	// pressure is not 0 while functions wait and no thread is free; nil without a user.
	pressure *atomic.Uint32
	// reported counts reports from their enqueue until they have ended or were
	// dropped, since a backend may pass one on after its stream has completed.
	reported atomic.Int64
}

// newQueue makes a queue for at most limit threads, 0 for a report queue.
func newQueue(limit int) *Queue {
	return &Queue{limit: limit}
}

// push adds a function, and returns the parker of a thread to wake, nil for none.
func (q *Queue) push(level uint8, k readyFunc) *park.Parker {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready.Push(level, k)
	// A thread between two functions takes one itself: no other thread is woken to
	// compete for it.
	n := len(q.idle)
	if n == 0 || q.ready.Len() <= q.switching {
		q.press()
		return nil
	}
	w := q.idle[n-1]
	q.idle = q.idle[:n-1]
	if w.seat != nil {
		k, _ = q.ready.Pop()
		q.give(w, k)
	} else {
		waking.Add(1)
	}
	return w.p
}

// waking counts the threads that were woken in Next, of any queue, and do not run yet.
var waking atomic.Int32

// Ready implements driver.Sink: functions of a stream go to the runtime's queue.
func (s *Stream) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return s.dev.rt.Funcs.push(level, readyFunc{token: token, stream: s, c: c})
}

// Drop implements driver.Sink.
func (s *Stream) Drop(token uint64) *park.Parker {
	return s.dev.rt.Funcs.push(0, readyFunc{token: token, stream: s, drop: true})
}

// Task is what Next returns.
type Task struct {
	// Token is the function to run, 0 for none.
	Token uint64
	// Drop means that the function of Token will not run; or that it has run and its
	// error, which its closed stream had kept, will not be returned by any call.
	// Whatever belongs to the token can be freed.
	Drop bool
	// Spawn asks the caller to start one more thread, which is counted already.
	Spawn bool
	// End means that the thread must end: the queue is closed, or has too many threads.
	End bool
	// Sit means that there is no function, and that the thread is to wait in its seat.
	Sit bool
}

// Start counts one more thread that serves the queue. The caller starts it.
func (q *Queue) Start() {
	q.mu.Lock()
	q.threads++
	q.mu.Unlock()
}

// Stop undoes Start for a thread that could not be started.
func (q *Queue) Stop() {
	q.mu.Lock()
	q.threads--
	q.mu.Unlock()
}

// ServesOther reports whether t takes functions from another queue than q.
func (t *Thread) ServesOther(q *Queue) bool {
	s := t.serves.Load()
	return s != nil && s != q
}

// Next takes the next function, waiting at most limit nanoseconds for it. The caller
// runs it and then calls Done on the same thread. A function taken from a report
// queue may itself call Next of a report queue; Done ends the one taken last.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//
// Contract: H1, H3, H5, A10.
func (q *Queue) Next(t *Thread, limit int64) (Task, error) {
	if err := t.checkCaller("take a function"); err != nil {
		return Task{}, err
	}
	q.mu.Lock()
	return q.take(t, limit, nil), nil
}

// begin makes t the thread that runs the function of k. The caller holds mu.
func (q *Queue) begin(t *Thread, k readyFunc) Task {
	task := Task{Token: k.token, Drop: k.drop}
	if !k.drop {
		if t.running.stream != nil {
			t.outerFuncs = append(t.outerFuncs, t.running)
		}
		t.running = k
		t.inFunction = !q.reports
	} else {
		k.endReport()
	}
	// One thread is always kept free: this one may be busy for long.
	if !q.reports && len(q.idle) == 0 && q.threads < q.limit && !q.closed {
		q.threads++
		task.Spawn = true
	}
	q.press()
	return task
}

// take is Next after the check of the thread, or NextOrSit with a seat. The caller
// holds mu, which take releases.
func (q *Queue) take(t *Thread, limit int64, seat *Seat) Task {
	if t.serves.Load() != q && !q.reports {
		t.serves.Store(q)
		q.workers = append(q.workers, t)
	}
	for {
		if k, ok := q.ready.Pop(); ok {
			task := q.begin(t, k)
			q.mu.Unlock()
			if k.watch != nil && !k.drop {
				k.watch.begin()
			}
			return task
		}
		if q.closed {
			q.removeWorker(t)
			q.mu.Unlock()
			return Task{End: true}
		}
		if seat != nil {
			*seat.given = Given{}
			q.idle = append(q.idle, idler{seat.parker, t, seat})
			q.press()
			q.mu.Unlock()
			return Task{Sit: true}
		}
		if limit == 0 {
			q.mu.Unlock()
			return Task{}
		}
		p := park.Get()
		q.idle = append(q.idle, idler{p: p, t: t})
		q.press()
		q.mu.Unlock()
		got := p.Park(limit, funcSpinNS)
		q.mu.Lock()
		if !got && !q.removeIdle(p) {
			q.mu.Unlock()
			p.Park(driver.Forever, 0) // push has chosen this thread: Unpark follows
			q.mu.Lock()
			got = true
		}
		if got {
			waking.Add(-1)
		}
		park.Put(p)
		if !got {
			// There was no function within the limit: one spare thread is enough.
			end := !q.reports && len(q.idle) > 0
			if end {
				q.threads--
				q.removeWorker(t)
			}
			q.mu.Unlock()
			return Task{End: end}
		}
	}
}

// endReport removes a report that ended, or was dropped, from its queue's count.
func (k readyFunc) endReport() {
	if k.queue != nil {
		k.queue.reported.Add(-1)
	}
}

// removeWorker removes a thread that ends from those that serve the queue. The caller
// holds mu.
func (q *Queue) removeWorker(t *Thread) {
	t.serves.Store(nil)
	t.given = nil // its seat's memory is about to go
	for i, o := range q.workers {
		if o == t {
			q.workers = append(q.workers[:i], q.workers[i+1:]...)
			return
		}
	}
}

// removeIdle removes a thread from the idle ones and reports whether it was one. The
// caller holds mu.
func (q *Queue) removeIdle(p *park.Parker) bool {
	for i, o := range q.idle {
		if o.p == p {
			q.idle = append(q.idle[:i], q.idle[i+1:]...)
			return true
		}
	}
	return false
}

// Done ends the function that t took last; failed means that it raised an error.
// err, if not nil, becomes the stream's error. If the stream has an earlier error or
// is closed, no call can return err, and unreported is true.
//
// Contract: H1, H2.
func (q *Queue) Done(t *Thread, failed bool, err *Error) (unreported bool) {
	q.mu.Lock()
	return q.end(t, failed, err)
}

// end is Done. The caller holds mu, which end releases.
func (q *Queue) end(t *Thread, failed bool, err *Error) (unreported bool) {
	k := t.leave()
	q.mu.Unlock()
	if k.stream == nil {
		return err != nil
	}
	k.endReport() // before a thread that synchronizes with the stream goes on
	if k.watch != nil {
		k.watch.end()
	}
	if failed {
		k.stream.failures.Add(1)
		if err == nil {
			k.stream.faulty(k.c)
		}
	}
	kept := k.stream.keeps(k.c != nil && k.c.Complete(err), err)
	return err != nil && !kept
}

// leave makes the function that t runs end there; t goes on with the one inside of
// which it took it. The lock of its queue is held.
func (t *Thread) leave() readyFunc {
	k := t.running
	t.running = readyFunc{}
	if n := len(t.outerFuncs); n > 0 {
		t.running, t.outerFuncs[n-1] = t.outerFuncs[n-1], readyFunc{}
		t.outerFuncs = t.outerFuncs[:n-1]
	}
	t.inFunction = false
	return k
}

// Close makes calls of Next, waiting and later ones, return that the thread ends.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	idle := q.idle
	q.idle = nil
	for _, w := range idle {
		if w.seat == nil {
			waking.Add(1)
		}
	}
	q.mu.Unlock()
	for _, w := range idle {
		w.p.Unpark()
	}
}

// DescribeBusy returns a text that names the functions on all threads if functions
// wait and no thread is free, "" if not.
//
// Contract: H5.
func (q *Queue) DescribeBusy() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reports || q.threads < q.limit || len(q.idle) > 0 || q.ready.Len() == 0 {
		return ""
	}
	var holders []string
	for _, t := range q.workers {
		if t.running.stream == nil {
			continue
		}
		if len(holders) == 8 {
			holders = append(holders, "...")
			break
		}
		holders = append(holders, fmt.Sprintf("function %d of stream %d", t.running.token, t.running.stream.index))
	}
	return fmt.Sprintf("; all %d threads for functions are busy (%s) and %d more wait; "+
		"raise HALSTREAM_HOST_THREADS or let functions end", q.limit, strings.Join(holders, ", "), q.ready.Len())
}

// settled reports whether no thread will take a function before another function
// has ended.
func (q *Queue) settled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	busy := 0
	for _, t := range q.workers {
		if t.running.stream != nil {
			if !t.awake() {
				return false
			}
			busy++
		}
	}
	// A thread that neither runs a function nor sleeps is about to take one.
	return q.switching == 0 && busy+len(q.idle) >= q.threads && (q.ready.Len() == 0 || len(q.idle) == 0)
}

// Waiting returns how many functions no thread has taken yet.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.Len()
}

// Runner returns the thread that runs the function with this token, nil if none does.
func (q *Queue) Runner(token uint64) *Thread {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.workers {
		if t.running.token == token && t.running.stream != nil {
			return t
		}
	}
	return nil
}
