package hal

import (
	"fmt"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/status"
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
	capture   atomic.Pointer[Capture] // in which it takes part, nil for none
	lost      atomic.Pointer[error]   // of the capture that began here and ended as this was closed, until it is reported
	opts      StreamOptions
	ctx       *Context
	words     *status.Stream // nil where the backend has none
	failures  atomic.Uint64
	queue     atomic.Pointer[Queue]
	mark      logMark
}

// NewStream makes a stream.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//
// Contract: S1, S7, H3.
func (d *Device) NewStream(t *Thread, o StreamOptions) (*Stream, error) {
	if err := t.checkCaller("create stream"); err != nil {
		return nil, err
	}
	s, err := d.newStream(o, nil)
	if err != nil {
		return nil, err
	}
	d.rt.live.Add(1)
	d.rt.notifyHost(Operation{Kind: OpNewStream, Stream: s, Thread: t})
	return s, nil
}

// newStream makes a stream of d, or of a context of d if ctx is not nil.
func (d *Device) newStream(o StreamOptions, ctx *Context) (*Stream, error) {
	d.used.Store(true)
	o.Priority = min(0, max(d.GreatestPriority(), o.Priority))
	s := &Stream{dev: d, index: d.indexes.Add(1), opts: o, ctx: ctx}
	s.level = uint8(o.Priority - d.GreatestPriority())
	var err error
	s.d, err = d.d.NewStream(driver.StreamOptions{
		Level:   s.level,
		Ordered: !o.NonBlocking && ctx == nil,
		ID:      s.index,
	})
	if err != nil {
		return nil, err
	}
	s.keepStatus()
	d.handles.add(s)
	return s, nil
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
// calling thread, the stream and its runtime are open, its context is current.
func (s *Stream) checkEnqueue(t *Thread, op string) error {
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
	if err := s.checkEnqueue(t, "record"); err != nil {
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
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpRecord, Thread: t, Event: e})
	}
	err = s.d.Record(d, id)
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
	if err := s.checkEnqueue(t, "wait event"); err != nil {
		return err
	}
	if s.capture.Load() != nil && e.opts.External {
		return s.captureExternal(t, "wait event", driver.WaitNode, e)
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
	if err := s.checkEnqueue(t, "wait stream"); err != nil {
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
	return s.done(t, OpQueryStream)
}

// done is the query itself; kind is what listeners see if the answer is true.
func (s *Stream) done(t *Thread, kind OperationKind) (bool, error) {
	done, err := s.d.Query()
	if done && s.listened() {
		s.dev.rt.notifyHost(Operation{Kind: kind, Stream: s, Thread: t})
	}
	return done, err
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

// Failure returns the first error of s that was not reported yet, and clears it.
//
// Contract: S4.
func (s *Stream) Failure() error {
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
