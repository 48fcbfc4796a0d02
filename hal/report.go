package hal

import (
	"halstream/hal/driver"
	"halstream/hal/park"
)

// runtimeThreads stands in a stream's queue for the threads of the runtime, for
// a stream for which UseRuntimeThreads was called.
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

// reportSink sends functions to a report queue.
type reportSink struct {
	s *Stream
	q *Queue
}

func (r reportSink) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return r.q.put(level, ticket{token: token, stream: r.s, c: c, queue: r.q})
}

func (r reportSink) Drop(token uint64) *park.Parker {
	return r.q.put(0, ticket{token: token, stream: r.s, drop: true, queue: r.q})
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
	q.reported.Add(1) // before the look at the subscription, or Unused could miss it
	if s.queue.Load() != q {
		q.reported.Add(-1)
		return driver.Errorf(driver.NotSubscribed, "report", "no thread is subscribed to stream %d", s.index)
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "report", Thread: t, Token: token})
	}
	err := s.d.HostFunc(driver.HostFunc{Token: token, Sink: reportSink{s, q}, Passing: !block, Report: true, Tag: id})
	if err != nil {
		q.reported.Add(-1)
	}
	return s.settle(t, id, err)
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

// Unused reports whether no stream is subscribed to a report queue and each
// report that was enqueued for it has ended or was dropped.
//
// Contract: A10.
func (q *Queue) Unused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.streams == 0 && q.reported.Load() == 0
}
