package hal

import (
	"fmt"
	"strings"
	"sync"

	"halstream/hal/driver"
	"halstream/hal/park"
	"halstream/hal/prio"
)

// funcSpinNS is how long a thread that waits for a function spins before it
// sleeps: waking a sleeping thread costs microseconds.
const funcSpinNS = 20_000

// ticket is a function whose turn has come.
type ticket struct {
	token  uint64
	stream *Stream
	c      driver.Completer // nil when the stream does not wait for the end
	drop   bool             // the function will not run; its token is to be forgotten
	watch  *watch           // nil unless somebody wants to know what it changes
}

// Queue hands functions whose turn has come to the threads that run them, the
// most urgent stream's first. The runtime's own queue has threads that come
// and go as needed; a report queue is served by whoever asks.
type Queue struct {
	mu      sync.Mutex
	tickets prio.Queue[ticket]
	idle    []*park.Parker
	workers []*Thread // that take functions; what each runs is guarded by mu
	coming  int       // threads that end a function and look for the next at once
	threads int       // started and not ended
	limit   int
	closed  bool
	reports bool
	streams int     // subscribed to this report queue
	dev     *Device // of the subscribed streams
}

// runtimeThreads stands in a stream's queue for the threads of the runtime, for
// a stream whose functions were asked to run there and nowhere else.
var runtimeThreads = newQueue(0)

func newQueue(limit int) *Queue {
	return &Queue{limit: limit}
}

// NewReportQueue returns a queue for functions of subscribed streams. Functions
// taken from it run on the program's own threads and may call the runtime.
//
// Contract: A10.
func NewReportQueue() *Queue {
	q := newQueue(0)
	q.reports = true
	return q
}

func (q *Queue) put(level uint8, k ticket) *park.Parker {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tickets.Push(level, k)
	// A thread on its way takes one without being woken, and without another
	// thread being woken to compete for it.
	if n := len(q.idle); n > 0 && q.tickets.Len() > q.coming {
		p := q.idle[n-1]
		q.idle = q.idle[:n-1]
		return p
	}
	return nil
}

// Ready implements driver.Sink: functions of a stream go to the runtime's queue.
func (s *Stream) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return s.dev.rt.Funcs.put(level, ticket{token: token, stream: s, c: c})
}

// Drop implements driver.Sink.
func (s *Stream) Drop(token uint64) *park.Parker {
	return s.dev.rt.Funcs.put(0, ticket{token: token, stream: s, drop: true})
}

// reportSink sends functions to a report queue.
type reportSink struct {
	s *Stream
	q *Queue
}

func (r reportSink) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return r.q.put(level, ticket{token: token, stream: r.s, c: c})
}

func (r reportSink) Drop(token uint64) *park.Parker {
	return r.q.put(0, ticket{token: token, stream: r.s, drop: true})
}

// HostFunc enqueues a function: when s gets there, a thread that serves the
// runtime's queue receives token, and later work waits until it reports the end.
//
// A report queue that s is subscribed to receives reports only, never these.
//
// # Errors
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: H1, H3, A10.
func (s *Stream) HostFunc(t *Thread, token uint64) error { return s.HostFuncOn(t, token, nil, nil) }

// HostFuncOn is HostFunc for a function that says what it reads and writes.
// Blocks it works on are not given back before it has ended.
//
// Contract: H1, H3, M11.
func (s *Stream) HostFuncOn(t *Thread, token uint64, reads, writes []Range) error {
	if err := s.admit(t, "call"); err != nil {
		return err
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "call", Thread: t, Token: token, Reads: reads, Writes: writes})
	}
	f := driver.HostFunc{Token: token, Sink: s, Tag: id}
	if id != 0 {
		if w := s.dev.rt.watching(id, reads); w != nil {
			f.Sink = watchSink{s, w}
		}
	}
	w, ok := s.d.(driver.Worker)
	if !ok || len(reads)+len(writes) == 0 {
		return s.settle(t, id, s.d.HostFunc(f))
	}
	blocks := s.blocks("a function", reads, writes)
	return s.settle(t, id, s.using(w, blocks, func() error { return s.d.HostFunc(f) }))
}

// Pass enqueues a function that later work, synchronize included, does not
// wait for: it is handed over when s gets there.
//
// Contract: H3, M12.
func (s *Stream) Pass(t *Thread, token uint64) error {
	if err := s.admit(t, "pass"); err != nil {
		return err
	}
	return s.settle(t, 0, s.d.HostFunc(driver.HostFunc{Token: token, Sink: s, Passing: true}))
}

// Report enqueues a function for the report queue s is subscribed to. With
// block, later work of s waits for its end.
//
// # Errors
//   - [ErrNotSubscribed]: s is not subscribed to q.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: A10.
func (s *Stream) Report(t *Thread, q *Queue, token uint64, block bool) error {
	if err := s.admit(t, "report"); err != nil {
		return err
	}
	if s.queue.Load() != q {
		return driver.Errorf(driver.NotSubscribed, "report", "no thread is subscribed to stream %d", s.index)
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "report", Thread: t, Token: token})
	}
	return s.settle(t, id, s.d.HostFunc(driver.HostFunc{Token: token, Sink: reportSink{s, q}, Passing: !block, Report: true, Tag: id}))
}

// Subscribe sends the reports of s to q, which serves streams of one device.
//
// # Errors
//   - [ErrNotSubscribed]: s already has a queue, or its functions run on the
//     runtime's threads (UseRuntimeThreads).
//   - [ErrWrongDevice]: q serves streams of another device.
//
// Contract: A10.
func (s *Stream) Subscribe(t *Thread, q *Queue) error {
	if err := s.open(t, "subscribe"); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.streams > 0 && q.dev != s.dev {
		return driver.Errorf(driver.WrongDevice, "subscribe",
			"a report queue serves one device; this one serves device %d, the stream is on device %d",
			q.dev.ordinal, s.dev.ordinal)
	}
	if !s.queue.CompareAndSwap(nil, q) {
		return driver.Errorf(driver.NotSubscribed, "subscribe",
			"the functions of stream %d already have threads to run on", s.index)
	}
	q.streams++
	q.dev = s.dev
	return nil
}

// UseRuntimeThreads settles that the functions of s run on the runtime's own
// threads: from now on Subscribe is refused. Calling it again does nothing.
//
// # Errors
//   - [ErrNotSubscribed]: s is subscribed to a report queue.
//
// Contract: A10. Source: CANN runtime API, aclrtLaunchHostFunc.
func (s *Stream) UseRuntimeThreads(t *Thread) error {
	if err := s.open(t, "launch host function"); err != nil {
		return err
	}
	if !s.queue.CompareAndSwap(nil, runtimeThreads) && s.queue.Load() != runtimeThreads {
		return driver.Errorf(driver.NotSubscribed, "launch host function",
			"the functions of stream %d go to the thread that is subscribed to it", s.index)
	}
	return nil
}

// ReportQueue returns the queue that s is subscribed to, nil if there is none.
//
// Contract: A10.
func (s *Stream) ReportQueue() *Queue {
	if q := s.queue.Load(); q != runtimeThreads {
		return q
	}
	return nil
}

// Unsubscribe undoes Subscribe.
//
// # Errors
//   - [ErrNotSubscribed]: q does not serve s.
//
// Contract: A10.
func (s *Stream) Unsubscribe(t *Thread, q *Queue) error {
	if err := s.open(t, "unsubscribe"); err != nil {
		return err
	}
	if !s.leaveQueue(q) {
		return driver.Errorf(driver.NotSubscribed, "unsubscribe", "this queue does not serve stream %d", s.index)
	}
	return nil
}

// leaveQueue ends the subscription of s to q and reports whether there was one.
func (s *Stream) leaveQueue(q *Queue) bool {
	if q == nil || q == runtimeThreads || !s.queue.CompareAndSwap(q, nil) {
		return false
	}
	q.mu.Lock()
	q.streams--
	q.mu.Unlock()
	return true
}

// Unused reports whether no stream is subscribed to a report queue and no
// report waits in it.
//
// Contract: A10.
func (q *Queue) Unused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.streams == 0 && q.tickets.Len() == 0
}

// Task is what Next returns.
type Task struct {
	// Token is the function to run, 0 for none.
	Token uint64
	// Drop means: forget the function, it will not run.
	Drop bool
	// Spawn asks the caller to start one more thread; it is counted already.
	Spawn bool
	// End tells the thread to end: the queue is closed, or has too many threads.
	End bool
}

// Start counts one more thread that serves the queue.
func (q *Queue) Start() {
	q.mu.Lock()
	q.threads++
	q.mu.Unlock()
}

// Stop counts one less, for a thread that could not be started.
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

// Next takes the next function, waiting at most limit nanoseconds for it. Each
// one that is taken is ended by a call of Done on the same thread. A function of
// a report queue may call Next of a report queue in turn; Done ends the one that
// was taken last.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//
// Contract: H1, H3, H5, A10.
func (q *Queue) Next(t *Thread, limit int64) (Task, error) {
	if err := t.enter("take a function"); err != nil {
		return Task{}, err
	}
	q.mu.Lock()
	if t.serves.Load() != q && !q.reports {
		t.serves.Store(q)
		q.workers = append(q.workers, t)
	}
	for {
		if k, ok := q.tickets.Pop(); ok {
			task := Task{Token: k.token, Drop: k.drop}
			if !k.drop {
				if t.running.stream != nil {
					t.outer = append(t.outer, t.running)
				}
				t.running = k
				t.inside = !q.reports
			}
			// One thread is always kept free: this one may be busy for long.
			if !q.reports && len(q.idle) == 0 && q.threads < q.limit && !q.closed {
				q.threads++
				task.Spawn = true
			}
			q.mu.Unlock()
			if k.watch != nil && !k.drop {
				k.watch.begin()
			}
			return task, nil
		}
		if q.closed {
			q.dismiss(t)
			q.mu.Unlock()
			return Task{End: true}, nil
		}
		if limit == 0 {
			q.mu.Unlock()
			return Task{}, nil
		}
		p := park.Get()
		q.idle = append(q.idle, p)
		q.mu.Unlock()
		got := p.Park(limit, funcSpinNS)
		q.mu.Lock()
		if !got && !q.leave(p) {
			q.mu.Unlock()
			p.Park(driver.Forever, 0) // its permit is on the way
			q.mu.Lock()
			got = true
		}
		park.Put(p)
		if !got {
			// Nothing for the whole limit: one spare thread is enough.
			end := !q.reports && len(q.idle) > 0
			if end {
				q.threads--
				q.dismiss(t)
			}
			q.mu.Unlock()
			return Task{End: end}, nil
		}
	}
}

// dismiss forgets a thread that ends.
func (q *Queue) dismiss(t *Thread) {
	t.serves.Store(nil)
	for i, o := range q.workers {
		if o == t {
			q.workers = append(q.workers[:i], q.workers[i+1:]...)
			return
		}
	}
}

// leave takes a thread out of the idle ones and reports whether it was there.
func (q *Queue) leave(p *park.Parker) bool {
	for i, o := range q.idle {
		if o == p {
			q.idle = append(q.idle[:i], q.idle[i+1:]...)
			return true
		}
	}
	return false
}

// Done ends the function that t took last. failed says that it raised; err, if
// not nil, becomes the stream's error.
//
// Contract: H1, H2.
func (q *Queue) Done(t *Thread, failed bool, err *Error) {
	q.mu.Lock()
	k := t.running
	t.running = ticket{}
	if n := len(t.outer); n > 0 {
		t.running, t.outer[n-1] = t.outer[n-1], ticket{}
		t.outer = t.outer[:n-1]
	}
	t.inside = false
	q.mu.Unlock()
	if k.stream == nil {
		return
	}
	if k.watch != nil {
		k.watch.end()
	}
	if failed {
		k.stream.failures.Add(1)
	}
	if k.c != nil {
		k.c.Complete(err)
	}
}

// DoneNext is Done followed by Next without waiting: the function that the
// stream of the ended one comes to is taken here, and no other thread woken.
//
// Contract: H1, H2.
func (q *Queue) DoneNext(t *Thread, failed bool, err *Error) Task {
	q.mu.Lock()
	q.coming++
	q.mu.Unlock()
	q.Done(t, failed, err)
	q.mu.Lock()
	q.coming--
	q.mu.Unlock()
	task, _ := q.Next(t, 0) // t runs no function now
	return task
}

// Close sends away the threads that wait and those that come.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	idle := q.idle
	q.idle = nil
	q.mu.Unlock()
	for _, p := range idle {
		p.Unpark()
	}
}

// Held says who holds the threads when all are busy, else nothing.
//
// Contract: H5.
func (q *Queue) Held() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reports || q.threads < q.limit || len(q.idle) > 0 || q.tickets.Len() == 0 {
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
		"raise HALSTREAM_HOST_THREADS or let functions end", q.limit, strings.Join(holders, ", "), q.tickets.Len())
}
