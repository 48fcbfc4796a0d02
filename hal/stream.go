package hal

import (
	"fmt"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// StreamOptions are the properties of a new stream. The zero value is the
// default: least urgent, ordered with the legacy default stream.
type StreamOptions struct {
	// Priority: lower is more urgent, clamped to Device.GreatestPriority and 0.
	Priority int
	// NonBlocking streams take no part in the order with the legacy default stream.
	NonBlocking bool
	// BlockHost makes every call that enqueues wait until the work is done.
	BlockHost bool
}

// Stream is a queue of work on a device, done in the order in which it was enqueued.
type Stream struct {
	dev       *Device
	d         driver.Stream
	index     uint64
	level     uint8
	isDefault bool // a default stream, which cannot be closed
	external  bool // created by another library
	closed    atomic.Bool
	capture   atomic.Pointer[Capture] // nil unless the stream captures
	deferred  atomic.Pointer[error]   // returned by the next EndCapture: closing the stream has ended its capture
	opts      StreamOptions
	ctx       *Context
	failures  atomic.Uint64
	queue     atomic.Pointer[Queue]
	mark      logMark
}

// Device returns the stream's device.
func (s *Stream) Device() *Device { return s.dev }

// Index returns the stream's number on its device: 0 for the legacy default
// stream; the numbers of other streams are not reused.
func (s *Stream) Index() uint64 { return s.index }

// Options returns the options the stream was made with, the priority clamped.
func (s *Stream) Options() StreamOptions { return s.opts }

// IsDefault reports whether this is a default stream, which cannot be closed.
func (s *Stream) IsDefault() bool { return s.isDefault }

// Ordered reports whether the stream takes part in the order with the legacy
// default stream.
func (s *Stream) Ordered() bool { return !s.opts.NonBlocking && s.ctx == nil }

// PerThread reports whether this is a thread's default stream.
func (s *Stream) PerThread() bool { return s.isDefault && s.index != 0 && s.ctx == nil }

// BlocksHost reports whether calls that enqueue wait for completion.
func (s *Stream) BlocksHost() bool { return s.opts.BlockHost }

// Failures returns how many functions on the stream have failed.
//
// Contract: H2.
func (s *Stream) Failures() uint64 { return s.failures.Load() }

// Closed reports whether Close was called.
func (s *Stream) Closed() bool { return s.closed.Load() }

// Describe returns a text that names what is pending and what the head operation waits for.
//
// Contract: O2.
func (s *Stream) Describe() string { return s.d.Describe() + s.dev.rt.Funcs.DescribeBusy() }

// checkEnqueue checks what every call that enqueues requires: no function runs on the
// calling thread, the stream and its runtime are open, its context is current, and its
// device works.
func (s *Stream) checkEnqueue(t *Thread, op string) error {
	if err := s.checkUsable(t, op); err != nil {
		return err
	}
	return s.dev.checkWorks()
}

// checkFollowed is checkEnqueue for what tools follow through a program: while there are
// listeners they see it on a lost device as well, where it does not run.
func (s *Stream) checkFollowed(t *Thread, op string) error {
	if !s.listened() {
		return s.checkEnqueue(t, op)
	}
	return s.checkUsable(t, op)
}

func (s *Stream) checkUsable(t *Thread, op string) error {
	if t != nil && t.inFunction {
		return t.checkCaller(op)
	}
	if s.closed.Load() {
		return closedError(op, "stream")
	}
	if s.dev.rt.ended.Load() {
		return closedError(op, "runtime")
	}
	if s.ctx != nil {
		return s.ctx.check(t, op)
	}
	return nil
}

// settle ends a call that gave the backend operation id (0 without listeners): it
// notifies the listeners, and waits where the stream blocks the host.
func (s *Stream) settle(t *Thread, id uint32, err error) error {
	if id != 0 {
		s.dev.rt.listeners.endAnnounce(id, err)
	}
	if err != nil || !s.opts.BlockHost || (t != nil && t.WaitsItself) {
		return err
	}
	s.point(t).Wait(driver.Forever)
	return s.dev.Lost()
}

// Record makes e stand for all work enqueued on s so far. An event that is
// not bound to a device yet is bound to the stream's.
//
// # Errors
//   - [ErrClosed]: s or e is closed.
//   - [ErrWrongDevice]: e belongs to another device or another Runtime.
//   - [ErrWrongContext], [ErrNoContext]: s belongs to a context that is not current.
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//
// Contract: E3, E4, E7, D4, H3. Source: CUDA driver API, cuEventRecord.
func (s *Stream) Record(t *Thread, e *Event) error {
	if err := s.checkFollowed(t, "record"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		if e.opts.External {
			return s.captureExternal(t, "record", driver.RecordNode, e)
		}
		return c.record(s, e)
	}
	d, err := e.bind(s.dev)
	if err != nil {
		return err
	}
	if e.captured.Load() != nil {
		e.captured.Store(nil)
	}
	var shared sharedRecord
	if records := e.shared.Load(); records != nil {
		if shared, err = records.begin(); err != nil {
			return err
		}
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpRecord, Thread: t, Event: e})
	}
	err = s.d.Record(d, id)
	if shared.of != nil {
		shared.made(e, err)
	}
	if err == nil && id == 0 {
		// Only now: a query that saw the new version before the backend had the
		// record would take the pending record for a completed one. With listeners
		// the version counts where the record gets its place among the others.
		e.version.Add(1)
	}
	if err == nil {
		e.recordedOn.Store(s)
	}
	return s.settle(t, id, err)
}

// Wait makes work enqueued on s after this call start only when the latest
// record of e at this call is done. The host does not block. Closing e
// afterwards is allowed.
//
// # Errors
//   - [ErrClosed]: s or e is closed.
//   - [ErrUnrecorded]: e is of kind Recorded and was never recorded.
//   - [ErrNotSupported]: e was made NotWaitable.
//   - [ErrWrongDevice]: e belongs to another Runtime.
//   - [ErrWrongContext], [ErrNoContext]: s belongs to a context that is not current.
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//
// Contract: E1, E2, E3, A2, A3, H3. Source: CUDA driver API, cuStreamWaitEvent.
func (s *Stream) Wait(t *Thread, e *Event) error { return s.WaitLimited(t, e, driver.Forever) }

// WaitLimited is Wait with a limit in nanoseconds; when it passes first the
// stream continues, and its next synchronize or query returns an [ErrTimeout].
//
// # Errors: as for Wait.
//
// Contract: A6.
func (s *Stream) WaitLimited(t *Thread, e *Event, limit int64) error {
	if err := s.checkFollowed(t, "wait event"); err != nil {
		return err
	}
	if s.capture.Load() != nil && e.opts.External {
		return s.captureExternal(t, "wait event", driver.WaitNode, e)
	}
	if number, shared := e.elsewhere(); number != 0 && !e.closed.Load() {
		return shared.wait(t, s, number, limit)
	}
	if s.capture.Load() != nil || e.captured.Load() != nil {
		return s.waitCaptured(t, e)
	}
	d, err := e.waitable(s.dev)
	if err != nil || d == nil {
		return s.vainWait(t, e, err)
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpWait, Thread: t, Event: e})
	}
	return s.settle(t, id, s.d.Wait(d, limit, id))
}

// WaitStream makes work enqueued on s after this call start only when all work
// enqueued on o before this call is done.
//
// # Errors: as for Wait.
//
// Contract: S6, H3.
func (s *Stream) WaitStream(t *Thread, o *Stream) error {
	if err := s.checkFollowed(t, "wait stream"); err != nil {
		return err
	}
	if o.closed.Load() {
		return closedError("wait stream", "stream to wait for")
	}
	if s.capture.Load() != nil || o.capture.Load() != nil {
		return s.waitStreamCaptured(o)
	}
	if o.dev.rt != s.dev.rt {
		return otherRuntimeError("wait stream", fmt.Sprintf("stream %d", o.index))
	}
	if o.dev != s.dev {
		if err := o.dev.checkWorks(); err != nil {
			return err
		}
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpWaitStream, Thread: t, Other: o})
	}
	return s.settle(t, id, s.d.WaitStream(o.d, id))
}

// Query reports whether all work on s is done. It never blocks.
//
// # Errors
//   - [ErrClosed], [ErrInHostFunction].
//   - The first error of a function or wait on s, once.
//
// Contract: S3, S4.
func (s *Stream) Query(t *Thread) (bool, error) {
	if err := s.checkNotCaptured(t, "query"); err != nil {
		return false, err
	}
	if err := s.Failure(); err != nil {
		return false, err
	}
	done, err := s.done(t, OpQueryStream)
	if done && err == nil {
		err = s.Failure() // of work that has ended since the look before
	}
	return done && err == nil, err
}

// done is the query itself; kind is what listeners see if the answer is true.
func (s *Stream) done(t *Thread, kind OperationKind) (bool, error) {
	done, err := s.d.Query()
	if done && err == nil {
		err = s.dev.checkWorks() // the work may have been dropped since the call began
	}
	if err != nil {
		return false, err
	}
	if done && s.listened() {
		s.dev.rt.CompareSources() // before listeners take the host to come after the copies
		s.dev.rt.notifyHost(Operation{Kind: kind, Stream: s, Thread: t})
	}
	return done, nil
}

// Done is Query except that it leaves the stream's errors for the next synchronize
// or query.
//
// # Errors: [ErrClosed], [ErrInHostFunction].
func (s *Stream) Done(t *Thread) (bool, error) {
	if err := s.checkNotCaptured(t, "query"); err != nil {
		return false, err
	}
	return s.done(t, OpQueryStream)
}

// Idle reports whether all work enqueued on s so far is done. It is for internal
// purposes: listeners are not notified, and s may be closed.
func (s *Stream) Idle() bool { return s.d.Point().Wait(0) }

// workDone reports whether all work of s is known to be done. It is not a schedule
// point and does not call a vendor's library, so it may be called under locks.
func (s *Stream) workDone() bool {
	return s.d.Reached(s.d.Last())
}

// TryFinish reports whether the stream is idle, without waiting. Listeners are
// notified of it as of a synchronize.
//
// # Errors: [ErrClosed], [ErrInHostFunction].
func (s *Stream) TryFinish(t *Thread) (bool, error) {
	if err := s.checkNotCaptured(t, "synchronize"); err != nil {
		return false, err
	}
	return s.done(t, OpSynchronizeStream)
}

// Synchronize blocks until all work enqueued on s before the call is done, for
// at most limit nanoseconds (0 does not block), and reports whether it is.
//
// # Errors
//   - [ErrClosed], [ErrInHostFunction].
//   - The first error of a function or wait on s, once.
//
// Contract: S4, S8.
func (s *Stream) Synchronize(t *Thread, limit int64) (bool, error) {
	p, err := s.Point(t)
	if err != nil {
		return false, err
	}
	if !p.Wait(limit) {
		return false, s.dev.Lost()
	}
	if err := s.Failure(); err != nil {
		return true, err
	}
	return true, s.dev.Lost()
}

// Point returns the point at which all work enqueued on s so far is done.
//
// # Errors: [ErrClosed], [ErrInHostFunction].
func (s *Stream) Point(t *Thread) (driver.Point, error) {
	if err := s.checkNotCaptured(t, "synchronize"); err != nil {
		return nil, err
	}
	return s.point(t), nil
}

func (s *Stream) point(t *Thread) driver.Point { return s.observe(t, s.d.Point()) }

// observe returns p as a point of which listeners are notified as the end of a
// synchronize of s.
func (s *Stream) observe(t *Thread, p driver.Point) driver.Point {
	return s.dev.rt.observe(p, Operation{Kind: OpSynchronizeStream, Stream: s, Thread: t})
}

// Failure returns the error of a device that was lost, or else the first error of s that
// was not reported yet, which it clears.
//
// Contract: S4, D7.
func (s *Stream) Failure() error {
	if err := s.dev.checkWorks(); err != nil {
		return err
	}
	if err := s.d.Failure(); err != nil {
		return err
	}
	return nil
}

// checkOpen checks what calls that enqueue nothing require; they need no current context.
func (s *Stream) checkOpen(t *Thread, op string) error {
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if s.closed.Load() {
		return closedError(op, "stream")
	}
	return nil
}

// Close ends the use of s. Pending work still runs. Closing again does nothing.
//
// # Errors
//   - [ErrInvalidValue]: s is a default stream.
//   - [ErrInHostFunction].
//
// Contract: L1, L2.
func (s *Stream) Close(t *Thread) error {
	if err := t.checkCaller("close stream"); err != nil {
		return err
	}
	if s.isDefault {
		return driver.Errorf(driver.InvalidValue, "close stream", "a default stream cannot be closed")
	}
	if !s.closed.Load() {
		s.dev.rt.notifyHost(Operation{Kind: OpCloseStream, Stream: s, Thread: t})
	}
	s.close()
	return nil
}

// close is Close without its checks, also for default streams.
func (s *Stream) close() {
	if s.closed.CompareAndSwap(false, true) {
		if c := s.capture.Load(); c != nil && c.legacy == nil {
			c.abandon(s)
		}
		s.dev.handles.remove(s) // the library may reuse the number at once
		s.leaveQueue(s.queue.Load())
		s.dropFailure()
		s.d.Close()
		if !s.isDefault {
			s.dev.rt.live.Add(-1)
		}
	}
}

// dropFailure returns the token of an error that no call can report any more to
// the threads that run functions, which free what belongs to it.
func (s *Stream) dropFailure() {
	if err := s.d.Failure(); err != nil && err.Token != 0 {
		if p := s.Drop(err.Token); p != nil {
			p.Unpark()
		}
	}
}

func (s *Stream) listened() bool { return s.dev.rt.listened() }

// announce prepares the notification of an operation that s is about to give to the
// backend, and returns its ID; settle completes the notification. There are
// listeners: the caller has checked that. It keeps a copy of o.
func (s *Stream) announce(o *Operation) uint32 {
	o.Stream = s
	rt := s.dev.rt
	rt.fillIn(o)
	rt.listeners.notifier.announce(o)
	return o.ID
}

// notify notifies the listeners of an operation on s at once, whether or not the
// backend accepts it afterwards, and returns its ID.
func (s *Stream) notify(o Operation) uint32 {
	o.Stream = s
	return s.dev.rt.notify(o)
}

// vainWait notifies the listeners that s was to wait for e, which has no record, unless the
// call failed with err. It returns err.
func (s *Stream) vainWait(t *Thread, e *Event, err error) error {
	if err == nil {
		s.dev.rt.notifyHost(Operation{Kind: OpWaitForNoRecord, Stream: s, Event: e, Thread: t})
	}
	return err
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

// Ready implements driver.Sink: functions of a stream go to the runtime's queue.
func (s *Stream) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return s.dev.rt.Funcs.push(level, readyFunc{token: token, stream: s, c: c})
}

// Drop implements driver.Sink.
func (s *Stream) Drop(token uint64) *park.Parker {
	return s.dev.rt.Funcs.push(0, readyFunc{token: token, stream: s, drop: true})
}

// keeps reports whether a call can still return err, which is the stream's error if
// kept says so.
func (s *Stream) keeps(kept bool, err *Error) bool {
	if kept && s.closed.Load() {
		// Whoever takes the error from the closed stream first disposes of it.
		kept = s.d.Failure() != err
	}
	return kept
}

// Notify begins a wait for all work enqueued on s so far, and reports whether that is
// pending. If it is not, the call has done what Synchronize does. number names the wait
// in n, which has no other one of that number.
//
// # Errors: as for Synchronize, of work that is done; [ErrClosed] for closed Notices.
//
// Contract: Z1, Z2, Z3.
func (s *Stream) Notify(t *Thread, n *Notices, number uint64) (pending bool, err error) {
	outcome := func() error {
		if err := s.Failure(); err != nil {
			return err
		}
		return s.dev.Lost()
	}
	if !s.dev.rt.Deterministic() { // there it would be a call of its own, whose answer the order decides
		if done, err := s.TryFinish(t); err != nil {
			return false, err
		} else if done {
			return false, outcome()
		}
	}
	if err := s.checkNotCaptured(t, "synchronize"); err != nil {
		return false, err
	}
	return n.begin(s.dev.rt, s.observe(t, s.exactPoint()), number, outcome, s.hasNoFailure)
}

// exactPoint is the backend's Point, except that it does not wait for work that is enqueued
// later where a vendor's Point would: a task that waits is where more is enqueued meanwhile.
func (s *Stream) exactPoint() driver.Point {
	v, ok := s.d.(driver.VendorStream)
	if !ok || s.isDefault || !s.dev.Legacy().workDone() { // a fence would wait for the legacy stream
		return s.d.Point()
	}
	place := s.d.Last()
	v.Keep()
	return s.d.At(place)
}

// hasNoFailure reports whether s certainly has no error to report; it leaves what it has.
func (s *Stream) hasNoFailure() bool {
	return !s.d.MayHaveFailed() && s.dev.loss() == nil
}

// Handle returns the handle of the stream in the vendor's library, and whether it has
// one.
func (s *Stream) Handle() (uint64, bool) {
	if h, ok := s.d.(driver.VendorStream); ok {
		return h.Handle(), true
	}
	return 0, false
}

// External reports whether another library created the stream. Closing s does not
// close the stream of that library.
func (s *Stream) External() bool { return s.external }

// Reset clears a Future event, in the order of stream s.
//
// # Errors
//   - [ErrNotSupported]: e is of another kind.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: A4.
func (s *Stream) Reset(t *Thread, e *Event) error {
	if err := s.checkEnqueue(t, "reset event"); err != nil {
		return err
	}
	if e.opts.Kind != Future {
		return driver.Errorf(driver.NotSupported, "reset event",
			"event %d is of a kind that is used again without a reset", e.id)
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, "reset event", "reset it outside of the capture")
	}
	d, err := e.waitable(s.dev)
	if err != nil {
		return err
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpReset, Thread: t, Event: e})
	}
	return s.settle(t, id, s.d.Reset(d, id))
}
