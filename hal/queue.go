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
	idle      []*park.Parker
	workers   []*Thread // that take functions; mu guards their running
	switching int       // threads between the end of a function and the next one
	threads   int       // started and not ended; for the runtime's own queue
	limit     int
	closed    bool
	reports   bool
	streams   int     // subscribed to this report queue
	dev       *Device // of the subscribed streams
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
		return nil
	}
	p := q.idle[n-1]
	q.idle = q.idle[:n-1]
	waking.Add(1)
	return p
}

// waking counts the threads that were woken for a function, of any queue, and do not run yet.
var waking atomic.Int32

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
	for {
		task, w, found := q.take(t)
		if found || limit == 0 {
			q.mu.Unlock()
			if w != nil {
				w.begin()
			}
			return task, nil
		}
		if !q.await(limit) {
			task.End = q.endSpare(t)
			q.mu.Unlock()
			return task, nil
		}
	}
}

// DoneNext is Done followed by Next without waiting. If the stream reaches its next
// function at once, this thread takes it, and no other thread is woken.
//
// Contract: H1, H2.
func (q *Queue) DoneNext(t *Thread, failed bool, err *Error) (task Task, unreported bool) {
	q.mu.Lock()
	q.switching++
	unreported = q.end(t, failed, err)
	q.mu.Lock()
	q.switching--
	task, w, _ := q.take(t)
	q.mu.Unlock()
	if w != nil {
		w.begin()
	}
	return task, unreported
}

// Await waits until a thread that calls Next without waiting may find a function, or
// the queue is closed, for at most limit nanoseconds. end says that the limit has
// passed and that the thread must end: there are enough of them. The caller has
// found no function before. Until it calls Next it counts as one that is about to go on.
//
// Contract: H1, H5, W2.
func (q *Queue) Await(t *Thread, limit int64) (end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ready.Len() > 0 || q.closed || q.await(limit) {
		return false
	}
	return q.endSpare(t)
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
	return task
}

// take takes the next function, and reports whether there was one, or the thread must
// end. The caller holds mu, and then begins w, nil where nothing observes what the
// function changes.
func (q *Queue) take(t *Thread) (task Task, w *watch, found bool) {
	if t.serves.Load() != q && !q.reports {
		t.serves.Store(q)
		q.workers = append(q.workers, t)
	}
	if k, ok := q.ready.Pop(); ok {
		if !k.drop {
			w = k.watch
		}
		return q.begin(t, k), w, true
	}
	if q.closed {
		q.removeWorker(t)
		return Task{End: true}, nil, true
	}
	return Task{}, nil, false
}

// await waits until push or Close wakes the calling thread, for at most limit
// nanoseconds, and reports whether that happened. The caller holds mu, which is
// released meanwhile.
func (q *Queue) await(limit int64) (woken bool) {
	p := park.Get()
	q.idle = append(q.idle, p)
	q.mu.Unlock()
	woken = p.Park(limit, funcSpinNS)
	q.mu.Lock()
	if !woken && !q.removeIdle(p) {
		q.mu.Unlock()
		p.Park(driver.Forever, 0) // push has chosen this thread: Unpark follows
		q.mu.Lock()
		woken = true
	}
	if woken {
		waking.Add(-1)
	}
	park.Put(p)
	return woken
}

// endSpare ends a thread that has waited in vain, unless it is the only one that
// waits, and reports whether it did. The caller holds mu.
func (q *Queue) endSpare(t *Thread) (end bool) {
	end = !q.reports && len(q.idle) > 0
	if end {
		q.threads--
		q.removeWorker(t)
	}
	return end
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
		if o == p {
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

// Close makes calls of Next, waiting and later ones, return that the thread ends.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	idle := q.idle
	q.idle = nil
	waking.Add(int32(len(idle)))
	q.mu.Unlock()
	for _, p := range idle {
		p.Unpark()
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
			busy++
		}
	}
	// A thread that neither runs a function nor sleeps is about to take one, or to sleep.
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

// Abandon lets the streams go on that wait for a function which a thread of the queue
// runs: each counts as ended, and its stream has [ErrAborted] unless it has an earlier
// error. It returns how many functions there were. They still run, in no order with
// later work, and their threads serve the queue again when they end.
//
// Contract: H7.
func (q *Queue) Abandon() int {
	q.mu.Lock()
	var left []readyFunc
	for _, t := range q.workers {
		if t.running.c != nil {
			left = append(left, t.running)
			t.running.c = nil // its end completes nothing
		}
	}
	q.mu.Unlock()
	for _, k := range left {
		err := driver.Errorf(driver.Aborted, "call", "function %d of stream %d did not end, and was abandoned",
			k.token, k.stream.index)
		k.stream.keeps(k.c.Complete(err), err)
	}
	return len(left)
}

// runtimeThreads is the queue of a stream for which UseRuntimeThreads was called. It
// stays empty: such functions go to the runtime's own queue.
var runtimeThreads = newQueue(0)

// NewReportQueue returns a queue for functions of subscribed streams. Functions
// taken from it run on the program's own threads and may call the runtime.
//
// Contract: A10.
func NewReportQueue() *Queue {
	q := newQueue(0)
	q.reports = true
	return q
}

// reportSink is the driver.Sink that adds functions to a report queue.
type reportSink struct {
	s *Stream
	q *Queue
	w *watch
}

// Ready implements driver.Sink.
func (r reportSink) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return r.q.push(level, readyFunc{token: token, stream: r.s, c: c, queue: r.q, watch: r.w})
}

// Drop implements driver.Sink.
func (r reportSink) Drop(token uint64) *park.Parker {
	return r.q.push(0, readyFunc{token: token, stream: r.s, drop: true, queue: r.q})
}

// Unused reports whether no stream is subscribed to a report queue and each
// report that was enqueued for it has ended or was dropped.
//
// Contract: A10.
func (q *Queue) Unused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.streams == 0 && q.reported.Load() == 0
}
