package hal

import (
	"fmt"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// EventKind is the behaviour of an event before its first record and after it.
type EventKind uint8

const (
	// Standard events are CUDA's: one that was never recorded is complete, and
	// waiting for it does nothing.
	Standard EventKind = iota
	// Future events make a wait that was enqueued before their record wait for
	// it; they stay set until a Reset (AscendCL, CreateEventWithFlag).
	Future
	// Recorded events refuse a wait before the first record, and are pending
	// until then (AscendCL, CreateEvent).
	Recorded
)

// EventOptions are the properties of a new event. The zero value is the default.
type EventOptions struct {
	// Timing makes the event keep the time of its latest record.
	Timing bool
	// BlockingSync asks for a sleeping rather than a spinning wait.
	BlockingSync bool
	Kind         EventKind
	// NotWaitable events cannot be waited for by a stream.
	NotWaitable bool
	// Interprocess events can be shared with other processes (see Event.Share), so
	// they have no timing.
	Interprocess bool
	// External events are recorded and waited for by captures as RecordExternal and
	// WaitExternal do, whichever call it is.
	External bool
}

// Event is a point on a stream. Its version grows with each record; a wait
// binds to the version current at its call.
type Event struct {
	rt      *Runtime
	id      uint64
	opts    EventOptions
	mu      sync.Mutex                 // guards the first binding
	bound   atomic.Pointer[boundEvent] // to made, once that is there
	made    boundEvent
	version atomic.Uint64
	closed  atomic.Bool
	// captured is what the latest record stands for if it was made in a capture.
	captured atomic.Pointer[capturedRecord]
	// byGraphs is set once a node of a graph records it, which happens without a call.
	byGraphs atomic.Bool
	// handle is the number of the event in the vendor's library, 0 before it was asked for. From
	// then on other libraries may record the event.
	handle atomic.Uint64
	// recordedOn is the stream of the latest record, nil without one.
	recordedOn atomic.Pointer[Stream]
	// shared is what other processes have of the event, nil without any.
	shared atomic.Pointer[sharedRecords]
	mark   logMark
}

// boundEvent is the backend's event, which belongs to one device.
type boundEvent struct {
	dev *Device
	d   driver.Event
}

// waitable returns the backend's event for a wait on a stream of d, nil if the
// event counts as complete.
func (e *Event) waitable(d *Device) (driver.Event, error) {
	const op = "wait event"
	if e.closed.Load() {
		return nil, closedError(op, "event")
	}
	if e.rt != d.rt {
		return nil, e.otherRuntime(op)
	}
	if e.opts.NotWaitable {
		return nil, driver.Errorf(driver.NotSupported, op,
			"event %d was made as one that no stream can wait for", e.id)
	}
	if e.opts.Kind != Future && !e.recorded() {
		if e.opts.Kind == Recorded {
			return nil, driver.Errorf(driver.Unrecorded, op,
				"event %d was never recorded; record it before a stream waits for it", e.id)
		}
		return nil, nil
	}
	b := e.bound.Load()
	switch {
	case b == nil:
		return e.bind(d)
	case b.dev == d:
		return b.d, nil
	}
	return b.d, b.dev.checkWorks()
}

// otherRuntime is the error of a stream of another Runtime than the event's: the
// two have no common lock, clock or order.
func (e *Event) otherRuntime(op string) error {
	return otherRuntimeError(op, fmt.Sprintf("event %d", e.id))
}

// checkOpen rejects a closed event, and calls from inside a function on a stream.
func (e *Event) checkOpen(t *Thread, op string) error {
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if e.closed.Load() {
		return closedError(op, "event")
	}
	if r := e.captured.Load(); r != nil {
		return r.refuse(e, op)
	}
	if b := e.bound.Load(); b != nil {
		return b.dev.checkWorks()
	}
	return nil
}

// Query reports whether the latest record is done. An event that was never
// recorded is done if it is a Standard one, and pending if not. Query never blocks.
//
// # Errors: [ErrClosed], [ErrInHostFunction].
//
// Contract: E1, E4, A5.
func (e *Event) Query(t *Thread) (bool, error) {
	if err := e.checkOpen(t, "query event"); err != nil {
		return false, err
	}
	return e.query(t, false)
}

// QueryInternal is Query for the runtime's own purposes: listeners see it marked
// as internal, since the program does not get the answer. It asks no vendor's library about
// an event that another library captures, which would break that capture.
//
// # Errors: [ErrClosed], [ErrInHostFunction].
func (e *Event) QueryInternal(t *Thread) (bool, error) {
	const op = "query event"
	if err := e.checkOpen(t, op); err != nil {
		return false, err
	}
	if s := e.inOtherCapture(); s != nil {
		return false, captureError(codeCaptured, op, "%s", e.inOtherGraph(s))
	}
	return e.query(t, true)
}

func (e *Event) query(t *Thread, internal bool) (bool, error) {
	if number, shared := e.elsewhere(); number != 0 {
		return shared.page.isDone(number), nil
	}
	b, version := e.bound.Load(), e.version.Load()
	if b == nil || !e.recorded() {
		return e.opts.Kind == Standard, nil
	}
	done, err := b.d.Query()
	if done && err == nil {
		err = b.dev.checkWorks() // the work may have been dropped since the call began
	}
	if err != nil {
		return false, err
	}
	if done && e.rt.listened() {
		if !internal {
			e.rt.CompareSources()
		}
		e.rt.notifyHost(Operation{Kind: OpQueryEvent, Event: e, Version: version, Thread: t, Internal: internal})
	}
	return done, nil
}

// Failure returns the first error, not returned yet, of the stream on which e was
// recorded last, and clears it; nil if there is none.
//
// Contract: C2.
func (e *Event) Failure() error {
	if s := e.recordedOn.Load(); s != nil {
		return s.Failure()
	}
	return nil
}

// Synchronize blocks until the latest record is done, for at most limit
// nanoseconds, and reports whether it is. An event that was never recorded is done.
//
// # Errors: [ErrClosed], [ErrInHostFunction], [ErrDeviceLost].
//
// Contract: E1, E6, S8.
func (e *Event) Synchronize(t *Thread, limit int64) (bool, error) {
	p, err := e.Point(t)
	if err != nil || p == nil {
		return err == nil, err
	}
	return e.Device().waitResult(p.Wait(limit))
}

// Point returns the point of the latest record, nil if there is none.
//
// # Errors: [ErrClosed], [ErrInHostFunction].
func (e *Event) Point(t *Thread) (driver.Point, error) {
	if err := e.checkOpen(t, "synchronize event"); err != nil {
		return nil, err
	}
	if number, shared := e.elsewhere(); number != 0 {
		return shared.point(t, number)
	}
	b, version := e.bound.Load(), e.version.Load()
	if b == nil || !e.recorded() {
		return nil, nil
	}
	p := b.d.Point()
	if err := refused(p); err != nil {
		return nil, err
	}
	return e.rt.observe(p, Operation{Kind: OpSynchronizeEvent, Event: e, Version: version, Thread: t}), nil
}

// Share lets other processes of the machine record the event and wait for it, until it is closed here, and returns what
// OpenEvent finds it by. An event without a device gets d.
//
// # Errors
//   - [ErrInvalidValue]: the event was made without Interprocess, is no Standard one, or was opened here.
//   - [ErrNotSupported]: this backend or system cannot.
//   - [ErrWrongDevice]: the event belongs to another device.
//   - [ErrClosed], [ErrInHostFunction], [ErrOutOfMemory].
//
// Contract: E10. Source: CUDA driver API, cuIpcGetEventHandle.
func (e *Event) Share(t *Thread, d *Device) (ShareHandle, error) {
	const op = "share event with other processes"
	if err := e.checkOpen(t, op); err != nil {
		return ShareHandle{}, err
	}
	if !e.opts.Interprocess || e.opts.Kind != Standard {
		return ShareHandle{}, driver.Errorf(driver.InvalidValue, op, "event %d was made for this process alone; make it as an interprocess one", e.id)
	}
	if _, err := e.bind(d); err != nil {
		return ShareHandle{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if shared := e.shared.Load(); shared != nil {
		if !shared.own {
			return ShareHandle{}, driver.Errorf(driver.InvalidValue, op, "the event belongs to another process, which can share it itself")
		}
		return shared.handle, nil
	}
	device, err := sharingOf(d, op)
	if err != nil {
		return ShareHandle{}, err
	}
	addr, m, err := device.Provide(recordPageSize)
	if err != nil {
		return ShareHandle{}, err
	}
	shared := newSharedRecords(d, device, addr, m, true)
	e.shared.Store(shared)
	if e.recorded() {
		r, err := shared.begin()
		if err == nil {
			r.made(e, nil)
		}
	}
	return shared.handle, nil
}

// Elapsed returns the milliseconds from this event's latest record to end's.
//
// # Errors
//   - [ErrUnrecorded]: either was never recorded.
//   - [ErrTiming]: either was made without Timing.
//   - [ErrWrongDevice]: they belong to different devices or runtimes.
//   - [ErrNotReady]: either is still pending.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: E5. Source: CUDA driver API, cuEventElapsedTime.
func (e *Event) Elapsed(t *Thread, end *Event) (float64, error) {
	const op = "elapsed"
	if e.rt != end.rt {
		return 0, otherRuntimeError(op, fmt.Sprintf("event %d", end.id))
	}
	for _, ev := range []*Event{e, end} {
		if err := ev.checkOpen(t, op); err != nil {
			return 0, err
		}
		if !ev.recorded() {
			return 0, driver.Errorf(driver.Unrecorded, op,
				"event %d was never recorded; record both events first", ev.id)
		}
	}
	for _, ev := range []*Event{e, end} {
		if !ev.opts.Timing {
			return 0, driver.Errorf(driver.TimingDisabled, op,
				"event %d was made without timing; make both with timing enabled", ev.id)
		}
	}
	a, b := e.bound.Load(), end.bound.Load()
	if a.dev != b.dev {
		return 0, driver.Errorf(driver.WrongDevice, op,
			"the events belong to devices %d and %d, which have no common clock", a.dev.ordinal, b.dev.ordinal)
	}
	ns, err := a.d.Elapsed(b.d)
	if err == nil {
		err = a.dev.checkWorks() // the work may have been dropped since the call began
	}
	return float64(ns) / 1e6, err
}

// Time returns when the latest record was done, in nanoseconds of the device's clock.
//
// # Errors: as for Elapsed.
//
// Contract: A7.
func (e *Event) Time(t *Thread) (int64, error) {
	if err := e.checkOpen(t, "timestamp"); err != nil {
		return 0, err
	}
	if !e.recorded() {
		return 0, driver.Errorf(driver.Unrecorded, "timestamp", "event %d was never recorded", e.id)
	}
	if !e.opts.Timing {
		return 0, driver.Errorf(driver.TimingDisabled, "timestamp", "event %d was made without timing", e.id)
	}
	return e.bound.Load().d.Time()
}

// WaitsPending returns how many enqueued waits for e are not done.
//
// # Errors
//   - [ErrNotSupported]: e is a Standard event.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: A5.
func (e *Event) WaitsPending(t *Thread) (int, error) {
	if err := e.checkOpen(t, "query waits"); err != nil {
		return 0, err
	}
	if e.opts.Kind == Standard {
		return 0, driver.Errorf(driver.NotSupported, "query waits",
			"event %d is of a kind whose waits are not counted", e.id)
	}
	if b := e.bound.Load(); b != nil {
		return b.d.WaitsPending(), nil
	}
	return 0, nil
}

// ID returns the event's number in texts, which is not reused.
func (e *Event) ID() uint64 { return e.id }

// Options returns the options the event was made with.
func (e *Event) Options() EventOptions { return e.opts }

// Runtime returns the runtime that the event belongs to.
func (e *Event) Runtime() *Runtime { return e.rt }

// Device returns the event's device, nil before the first record of an event
// made without one.
//
// Contract: E7.
func (e *Event) Device() *Device {
	if b := e.bound.Load(); b != nil {
		return b.dev
	}
	return nil
}

// Version returns how often the event was recorded.
func (e *Event) Version() uint64 { return e.version.Load() }

// Closed reports whether Close was called.
func (e *Event) Closed() bool { return e.closed.Load() }

// Describe returns a text that names the operation of the latest record.
func (e *Event) Describe() string {
	if s := e.inOtherCapture(); s != nil {
		return e.inOtherGraph(s)
	}
	if b := e.bound.Load(); b != nil {
		return b.d.Describe()
	}
	return "an event that was never recorded"
}

// Close ends the use of e. Enqueued waits still wait for the record they are bound
// to. Closing again does nothing.
//
// # Errors: [ErrInHostFunction].
//
// Contract: L1, L2.
func (e *Event) Close(t *Thread) error {
	if err := t.checkCaller("close event"); err != nil {
		return err
	}
	if e.closed.CompareAndSwap(false, true) {
		if b := e.bound.Load(); b != nil {
			b.d.Close()
		}
		if shared := e.shared.Load(); shared != nil {
			shared.close(t)
		}
		e.rt.live.Add(-1)
		if e.rt.listened() {
			e.rt.notifyHost(Operation{Kind: OpCloseEvent, Event: e, Thread: t})
		}
	}
	return nil
}

// elsewhere returns the number of the latest record if another process has made it, 0 if not.
func (e *Event) elsewhere() (uint64, *sharedRecords) {
	shared := e.shared.Load()
	if shared == nil {
		return 0, nil
	}
	return shared.elsewhere(), shared
}

// How an event gets its device: at its creation, or at its first record.

// bind returns the backend's event, made on d if there is none yet.
func (e *Event) bind(d *Device) (driver.Event, error) {
	if e.closed.Load() {
		return nil, closedError("record", "event")
	}
	// Bound to d, it also belongs to d's runtime.
	if b := e.bound.Load(); b != nil && b.dev == d {
		return b.d, nil
	}
	return e.bindSlow(d)
}

// bindSlow is bind for an event that is not bound to d yet.
func (e *Event) bindSlow(d *Device) (driver.Event, error) {
	if e.rt != d.rt {
		return nil, e.otherRuntime("record")
	}
	b := e.bound.Load()
	if b == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if b = e.bound.Load(); b == nil {
			// The lock may be held here: a backend calls its library for an event
			// only at the first record.
			if err := e.make(d); err != nil {
				return nil, err
			}
			b = &e.made
		}
	}
	if b.dev != d {
		return nil, driver.Errorf(driver.WrongDevice, "record",
			"event %d belongs to device %d and the stream to device %d; "+
				"an event is recorded on streams of its own device", e.id, b.dev.ordinal, d.ordinal)
	}
	return b.d, nil
}

// make makes the backend's event on d. No other thread does so meanwhile.
func (e *Event) make(d *Device) error {
	if e.opts.Interprocess && e.opts.Timing {
		return driver.Errorf(driver.InvalidValue, "create event",
			"an event for other processes cannot have timing; make it without one of the two")
	}
	made, err := d.d.NewEvent(driver.EventOptions{
		Timing: e.opts.Timing, BlockingSync: e.opts.BlockingSync,
		Settable: e.opts.Kind == Future, Counted: e.opts.Kind != Standard, ID: e.id,
	})
	if err != nil {
		return err
	}
	e.made = boundEvent{d, made}
	e.bound.Store(&e.made)
	return nil
}

// recorded reports whether the event was recorded, or may have been by another library.
func (e *Event) recorded() bool { return e.version.Load() != 0 || e.handle.Load() != 0 }

// WasRecorded reports whether Record or RecordExternal was called, in a capture or outside of one.
func (e *Event) WasRecorded() bool {
	return e.version.Load() != 0 || e.captured.Load() != nil || e.byGraphs.Load()
}

// InCapture reports whether the latest record is in a capture, so that nothing can be told of its work.
//
// Contract: G4.
func (e *Event) InCapture() bool { return e.captured.Load() != nil }

// Handle returns the number of the event in the vendor's library, by which other libraries query it, wait
// for it and record it; 0 before the event has a device, and on a backend without such a library. It is the
// same whether the latest record is in a capture or not.
//
// # Errors: [ErrClosed], [ErrInHostFunction], [ErrOutOfMemory], [ErrDeviceLost].
//
// Contract: E9, G4.
func (e *Event) Handle(t *Thread) (uint64, error) {
	const op = "handle"
	if err := t.checkCaller(op); err != nil {
		return 0, err
	}
	if e.closed.Load() {
		return 0, closedError(op, "event")
	}
	b := e.bound.Load()
	if b == nil {
		return 0, nil
	}
	vendor, ok := b.d.(driver.VendorEvent)
	if !ok {
		return 0, nil
	}
	number, err := vendor.Handle()
	if err == nil {
		e.handle.Store(number)
	}
	return number, err
}

// GivenHandle returns the number that Handle has returned, 0 before.
func (e *Event) GivenHandle() uint64 { return e.handle.Load() }

// Notify begins a wait for the latest record of e at this call, as [Stream.Notify] does
// for the work of a stream.
//
// # Errors: as for Synchronize; [ErrClosed] for closed Notices.
//
// Contract: Z1, Z2, Z3.
func (e *Event) Notify(t *Thread, n *Notices, number uint64) (pending bool, err error) {
	p, err := e.Point(t)
	if err != nil || p == nil {
		return false, err
	}
	d := e.Device()
	return n.begin(e.rt, p, number, d.Lost, func() bool { return d.loss() == nil })
}
