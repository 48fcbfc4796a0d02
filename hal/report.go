package hal

import (
	"halstream/hal/driver"
	"halstream/hal/park"
)

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

// Report enqueues a function for the report queue s is subscribed to. With
// block, later work of s waits for its end, and so does the reuse of the memory of blocks
// that it declares to access.
//
// # Errors
//   - [ErrNotSubscribed]: s is not subscribed to q.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: A10, M11.
func (s *Stream) Report(t *Thread, q *Queue, token uint64, block bool, a Accesses) error {
	if err := s.checkEnqueue(t, "report"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, "report", "launch the graph, and enqueue the report behind it")
	}
	q.reported.Add(1) // before the check of the subscription, or Unused could miss it
	if s.queue.Load() != q {
		q.reported.Add(-1)
		return driver.Errorf(driver.NotSubscribed, "report", "no thread is subscribed to stream %d", s.index)
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpReport, Thread: t, Token: token, Reads: a.Reads, Writes: a.Writes})
	}
	sink := reportSink{s: s, q: q}
	if id != 0 && block { // later work changes memory while one that does not block runs
		sink.w = s.dev.rt.newWideWatch(id, a)
	}
	f := driver.HostFunc{Token: token, Sink: sink, Passing: !block, Report: true, Tag: id}
	blocks := s.beginUses("a report", a.Reads, a.Writes)
	err := s.using(blocks, func() error { return s.d.HostFunc(f) })
	if err != nil {
		q.reported.Add(-1)
	}
	return s.settle(t, id, err)
}

// Subscribe sends the reports of s to q, which serves streams of one device.
//
// # Errors
//   - [ErrClosed], [ErrInHostFunction].
//   - [ErrNotSubscribed]: s already has a queue, or its functions run on the
//     runtime's threads (UseRuntimeThreads).
//   - [ErrWrongDevice]: q serves streams of another device.
//
// Contract: A10.
func (s *Stream) Subscribe(t *Thread, q *Queue) error {
	if err := s.checkOpen(t, "subscribe"); err != nil {
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

// UseRuntimeThreads makes the functions of s run on the runtime's own threads: from
// now on Subscribe is refused. Calling it again does nothing.
//
// # Errors
//   - [ErrClosed], [ErrInHostFunction].
//   - [ErrNotSubscribed]: s is subscribed to a report queue.
//
// Contract: A10. Source: CANN runtime API, aclrtLaunchHostFunc.
func (s *Stream) UseRuntimeThreads(t *Thread) error {
	if err := s.checkOpen(t, "launch host function"); err != nil {
		return err
	}
	if !s.queue.CompareAndSwap(nil, runtimeThreads) && s.queue.Load() != runtimeThreads {
		return driver.Errorf(driver.NotSubscribed, "launch host function",
			"the functions of stream %d run on the thread that is subscribed to it", s.index)
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
//   - [ErrClosed], [ErrInHostFunction].
//   - [ErrNotSubscribed]: q does not serve s.
//
// Contract: A10.
func (s *Stream) Unsubscribe(t *Thread, q *Queue) error {
	if err := s.checkOpen(t, "unsubscribe"); err != nil {
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

// Unused reports whether no stream is subscribed to a report queue and each
// report that was enqueued for it has ended or was dropped.
//
// Contract: A10.
func (q *Queue) Unused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.streams == 0 && q.reported.Load() == 0
}
