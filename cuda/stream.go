package cuda

/*
#include "calls.h"
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// The driver's handles of its predefined streams, and its flag for a new stream.
const (
	legacyHandle      = C.HS_STREAM_LEGACY
	perThreadHandle   = C.HS_STREAM_PER_THREAD
	nonBlockingStream = C.HS_STREAM_NON_BLOCKING
)

// Stream is a stream of the driver.
type Stream struct {
	vendor.Progress
	dev      *Device
	h        C.CUstream
	nth      uint64 // of the streams that the driver has made for this device, 0 for others
	dealt    uint64 // by which turn the driver has dealt out its hardware queue
	id       uint64
	level    uint8
	external bool
	ordered  bool
	owner    C.uintptr_t // the thread whose default stream this is, 0 for others

	enqueuing atomic.Int64 // threads that enqueue, and whether the stream was closed: see beginEnqueue
	users     atomic.Int64 // threads that use the handle, and whether it was closed: see enter

	function atomic.Uint64 // token of the function that runs and holds the stream, or 0

	enqueueLock vendor.EnqueueLock

	mu sync.Mutex
	// recorded is the latest record of an ordered stream: see noteRecord. records counts them.
	recorded *vendor.FenceEvent
	records  uint64
	tail     *vendor.Fence // of a closed stream: behind all of its work
	last     *vendor.Fence // of a borrowed stream: behind the runtime's latest work on it

	// Guarded by the poller.
	blockers              []*blocker
	inFlight, maxInFlight int
}

// Handle implements driver.VendorStream.
func (s *Stream) Handle() uint64 { return uint64(s.h) }

// Made implements driver.VendorStream.
func (s *Stream) Made() driver.StreamOptions {
	return driver.StreamOptions{Level: s.level, Ordered: s.ordered}
}

// enqueuedOne checks the result of a call of the driver that enqueues one operation,
// and counts it.
func (s *Stream) enqueuedOne(status C.hs_status, doing string) error {
	if err := s.dev.check(status, doing); err != nil {
		return err
	}
	s.countOne()
	return nil
}

// Record implements driver.Stream.
func (s *Stream) Record(e driver.Event, tag driver.Tag) (err error) {
	if err := s.beginEnqueue("record"); err != nil {
		return err
	}
	defer s.endEnqueue()
	ev := e.(*Event)
	f := s.follow(tag, &ev.enqueueLock)
	defer func() { f.End(err) }()
	if err := ev.record(s); err != nil {
		return err
	}
	s.countOne()
	if ev.opts.Settable {
		return s.setWord(ev, 1, "record")
	}
	return nil
}

// Nop implements driver.Stream. The driver has no empty operation, so it records an
// event that is not used otherwise.
func (s *Stream) Nop(tag driver.Tag) (err error) {
	const doing = "nop"
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	f := s.follow(tag, nil)
	defer func() { f.End(err) }()
	m, err := s.dev.newFenceEvent(eventDisableTiming, doing)
	if err != nil {
		return err
	}
	defer m.Release()
	if err := s.enqueuedOne(C.hs_record(s.dev.ctx(), C.CUevent(m.Event), s.h), doing); err != nil {
		return err
	}
	s.noteRecord(m)
	return nil
}

// Query implements driver.Stream.
func (s *Stream) Query() (bool, error) {
	const doing = "query stream"
	d := s.dev
	if err := d.usable(doing); err != nil {
		return false, err
	}
	if tail := s.endWithoutHandle(); tail != nil {
		return tail.Wait(0), nil
	}
	if !s.enter() {
		return s.end().Wait(0), nil // closed meanwhile
	}
	defer s.leave()
	seq := s.Last()
	done, err := d.answer(C.hs_stream_query(d.ctx(), s.h), doing)
	if done {
		done, err = s.recordReached()
	}
	if done {
		s.SetReached(seq)
	}
	return done, err
}

// look is Query for the runtime's own questions: it does not break the capture of a stream by another
// library, and says that there is one.
func (s *Stream) look() (done, captured bool, err error) {
	const doing = "query stream"
	d := s.dev
	if err := d.usable(doing); err != nil {
		return false, false, err
	}
	if tail := s.endWithoutHandle(); tail != nil {
		return tail.Wait(0), false, nil
	}
	if !s.enter() {
		return s.end().Wait(0), false, nil // closed meanwhile
	}
	defer s.leave()
	seq := s.Last()
	var state C.int
	done, err = d.answer(C.hs_stream_look(d.ctx(), s.h, &state), doing)
	if done = done && state == 0; done {
		done, err = s.recordReached()
	}
	if done {
		s.SetReached(seq)
	}
	return done, state != 0, err
}

// Captured implements driver.CapturedStream.
func (s *Stream) Captured() bool {
	if s.dev.usable("query capture") != nil || s.endWithoutHandle() != nil || !s.enter() {
		return false
	}
	defer s.leave()
	var state C.int
	status := C.hs_stream_captured(s.dev.ctx(), s.h, &state)
	return status == 0 && state != 0 || C.hs_code(status) == C.HS_CAPTURE_IMPLICIT
}

// Point implements driver.Stream.
func (s *Stream) Point() driver.Point {
	const doing = "synchronize"
	if tail := s.endWithoutHandle(); tail != nil {
		return tail
	}
	if s.ordered && s.dev.opened() {
		// A record on an ordered stream would wait for the work that was enqueued on
		// the legacy default stream since: the host must not wait for that.
		if done, err := s.dev.answer(C.hs_stream_query(s.dev.ctx(), legacyHandle), doing); !done && err == nil {
			return s.idlePoint()
		}
	}
	if !s.enter() {
		return s.end() // closed meanwhile
	}
	defer s.leave()
	p, err := s.fence(doing)
	if err != nil {
		s.Fail(err.(*driver.Error))
		return s.idlePoint() // a refused record does not say that the work is done
	}
	return p
}

func (s *Stream) fence(doing string) (*vendor.Fence, error) {
	d := s.dev
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	seq := s.Last()
	m, err := d.newFenceEvent(eventDisableTiming, doing)
	if err != nil {
		return nil, err
	}
	if err := d.check(C.hs_record(d.ctx(), C.CUevent(m.Event), s.h), doing); err != nil {
		m.Release()
		return nil, err
	}
	return vendor.NewFence(m, &s.Progress, seq), nil
}

// Close implements driver.Stream. Pending work still runs. If another thread
// enqueues at this moment, that thread closes the handle.
func (s *Stream) Close() {
	if s.h == legacyHandle {
		return
	}
	for {
		n := s.enqueuing.Load()
		closed := n + handleClosed
		if n >= oneLaunch {
			closed = n | closeWanted // the last launch in progress closes it
		}
		if s.enqueuing.CompareAndSwap(n, closed) {
			if closed == handleClosed {
				s.closeHandle()
			}
			return
		}
	}
}

// closeHandle records a fence event behind pending work, by which its completion is seen later,
// and releases the handle. No thread enqueues any more.
func (s *Stream) closeHandle() {
	tail := s.behind()
	if tail == nil {
		// Of an idle stream no fence event is recorded: it would count as pending until the driver reaches it.
		done, captured, err := s.look()
		if captured && err == nil {
			// The capture of another library would take the fence event, and only the handle tells when earlier
			// work is done: it stays until the context is released.
			return
		}
		if done && err == nil {
			tail = vendor.ReachedFence()
		}
	}
	if tail == nil {
		var err error
		if tail, err = s.fence("close stream"); err != nil {
			if !s.dev.Unusable() {
				// Without a fence event only the handle tells when the work is done, so it
				// stays until the context is released.
				return
			}
			tail = vendor.ReachedFence()
			s.SetReached(s.Last())
		}
	}
	s.mu.Lock()
	s.tail = tail
	s.mu.Unlock()
	s.dropRecord() // the tail is behind it
	s.shut()
	s.dev.sweep()
}

// Describe implements driver.Stream.
func (s *Stream) Describe() string {
	name := fmt.Sprintf("stream %d of device %d", s.id, s.dev.ordinal)
	if s.h == legacyHandle {
		name = fmt.Sprintf("the legacy default stream of device %d", s.dev.ordinal)
	}
	if cause := s.dev.Cause(); cause != nil {
		return name + " is lost with its device: " + cause.Error()
	}
	done, captured, err := false, false, error(nil)
	if p := s.behind(); p != nil {
		done = p.Wait(0)
	} else {
		done, captured, err = s.look()
	}
	if captured {
		return name + " is captured by another library"
	}
	if err != nil {
		return name + " failed: " + err.Error()
	}
	if done {
		return name + " is idle"
	}
	text := fmt.Sprintf("%s has pending work, at most %d operation(s)", name, s.AtMost())
	if titles := s.dev.drv.poller.titles(s, 4); len(titles) > 0 {
		text += "; its next operations that need the host are " + strings.Join(titles, ", ")
	} else if n := s.dev.drv.poller.blocked(s.dev); n > 0 {
		text += fmt.Sprintf("; it may share a hardware queue with one of %d stream(s) that are held: the streams of a priority "+
			"share %s, so hold fewer at once, or set CUDA_DEVICE_MAX_CONNECTIONS before CUDA is used", n, connections())
	}
	return text
}

// forget releases the fence events that the stream has.
func (s *Stream) forget() {
	s.mu.Lock()
	tail, last := s.tail, s.last
	s.mu.Unlock()
	s.dropRecord()
	s.DropCached()
	for _, p := range []*vendor.Fence{tail, last} {
		if p != nil {
			p.Drop()
		}
	}
}

// usable refuses work on a lost device, and on another thread's default stream.
func (s *Stream) usable(doing string) error {
	if err := s.dev.usable(doing); err != nil {
		return err
	}
	if s.owner != 0 && s.owner != C.hs_self() {
		return driver.Errorf(driver.InvalidHandle, doing,
			"this is the per-thread default stream of another thread; give it work on that thread, or use a stream of your own")
	}
	return nil
}

// borrowed reports whether the stream belongs to another library, which may destroy it at any
// moment, or to another thread. A driver that is given the handle of a destroyed stream may
// crash, so only a call of the program for this very stream may pass it.
func (s *Stream) borrowed() bool { return s.external && s.h != legacyHandle }

// countOne counts an operation that the driver has accepted. On a borrowed stream it
// records a fence event behind it.
func (s *Stream) countOne() {
	s.Count()
	if !s.borrowed() {
		return
	}
	if p := s.pointOfBorrowed(); p != nil {
		s.mu.Lock()
		old := s.last
		s.last = p
		s.mu.Unlock()
		if old != nil {
			old.Drop()
		}
	}
}

// pointOfBorrowed returns a point behind all work of the stream, nil if the driver refuses it. A
// capture has no work that could be pending: it makes no fence event.
func (s *Stream) pointOfBorrowed() *vendor.Fence {
	const doing = "make a fence"
	d := s.dev
	seq := s.Last()
	m, err := d.newFenceEvent(eventDisableTiming, doing)
	if err != nil {
		return nil
	}
	var captured C.int
	if d.check(C.hs_record_behind(d.ctx(), C.CUevent(m.Event), s.h, &captured), doing) != nil {
		m.Release()
		return nil
	}
	if captured != 0 {
		m.Release()
		return vendor.ReachedFence()
	}
	return vendor.NewFence(m, &s.Progress, seq)
}

// behind returns a point behind all work on the stream that this runtime knows of, for calls
// that the program does not make for this stream; nil if these may pass the handle, too.
func (s *Stream) behind() *vendor.Fence {
	if p := s.endWithoutHandle(); p != nil || !s.borrowed() {
		return p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return vendor.ReachedFence()
	}
	return s.last.Share()
}

// pending reports whether the stream has work that is not done, as far as this runtime knows.
func (s *Stream) pending() bool {
	if p := s.behind(); p != nil {
		return !p.Wait(0)
	}
	done, _, err := s.look()
	return !done && err == nil
}

// endWithoutHandle returns a point behind all work of a stream whose handle the
// calling thread cannot use, because the stream is closed or is another thread's
// default stream; nil if the handle can be used.
func (s *Stream) endWithoutHandle() *vendor.Fence {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail != nil || s.owner == 0 || s.owner == C.hs_self() {
		return s.tail
	}
	if s.last == nil {
		return vendor.ReachedFence()
	}
	return s.last.Share()
}

// end returns the point behind all work of a closed stream, nil of an open one.
func (s *Stream) end() *vendor.Fence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tail
}

// handleClosed is set in a stream's number of users when it was closed.
const handleClosed = 1 << 32

// A launch of a graph consists of many operations of which all are enqueued or none: a close
// meanwhile sets closeWanted in a stream's number of threads that enqueue, and the end of the
// last launch, each of which adds oneLaunch, closes the stream.
const (
	closeWanted = 1 << 33
	oneLaunch   = 1 << 34
)

// beginLaunch admits all operations of a launch until endLaunch, however the stream is closed meanwhile.
func (s *Stream) beginLaunch(doing string) error {
	if err := s.usable(doing); err != nil {
		return err
	}
	for {
		n := s.enqueuing.Load()
		if n&(handleClosed|closeWanted) != 0 {
			return closedError(doing)
		}
		if s.enqueuing.CompareAndSwap(n, n+oneLaunch) {
			return nil
		}
	}
}

// endLaunch ends beginLaunch.
func (s *Stream) endLaunch() {
	for {
		n := s.enqueuing.Load()
		left := n - oneLaunch
		if left < oneLaunch && left&closeWanted != 0 {
			left += handleClosed - closeWanted
		}
		if s.enqueuing.CompareAndSwap(n, left) {
			if left == handleClosed {
				s.closeHandle()
			}
			return
		}
	}
}

func closedError(doing string) error {
	return driver.Errorf(driver.Closed, doing, "the stream was closed; use another one")
}

// beginEnqueue admits an operation of the calling thread until endEnqueue. It
// refuses work on a lost device, on another thread's own stream, and on a stream
// that was closed: the driver may have given the handle to a new one. One operation
// may be enqueued as part of another.
func (s *Stream) beginEnqueue(doing string) error {
	if err := s.usable(doing); err != nil {
		return err
	}
	for {
		n := s.enqueuing.Load()
		if n&handleClosed != 0 {
			return closedError(doing)
		}
		if s.enqueuing.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// endEnqueue ends beginEnqueue. The last thread to leave a closed stream closes
// it: the fence event behind its work must not be recorded before the work.
func (s *Stream) endEnqueue() {
	if s.enqueuing.Add(-1) == handleClosed {
		s.closeHandle()
	}
}

// enter keeps the handle alive until leave, and reports false if the stream was
// closed: then its tail is set. Any thread may query a stream while another closes
// it, and the driver may give the same handle to a new stream at once, whose answers
// would be taken for this one's.
func (s *Stream) enter() bool {
	for {
		n := s.users.Load()
		if n&handleClosed != 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *Stream) leave() {
	if s.users.Add(-1) == handleClosed {
		s.destroy()
	}
}

// shut refuses later calls of enter. The last thread that leaves destroys the stream.
func (s *Stream) shut() {
	if s.users.Add(handleClosed) == handleClosed {
		s.destroy()
	}
}

func (s *Stream) destroy() {
	if !s.external {
		s.dev.giveStream(spareStream{s.h, s.nth, s.dealt, streamKind{s.ordered, s.level}, s.end()})
	}
}

// follow begins the enqueue of an operation on s. also is the enqueue lock of the event or the other stream that it
// concerns, nil without one.
func (s *Stream) follow(tag driver.Tag, also *vendor.EnqueueLock) vendor.Enqueuing {
	return s.dev.drv.Enqueue(tag, &s.enqueueLock, also)
}

// Fence implements driver.Stream.
func (s *Stream) Fence(tag driver.Tag) uint64 {
	f := s.follow(tag, nil)
	defer f.End(nil)
	s.countOne()
	seq := s.Last()
	s.Keep()
	return seq
}

// Keep implements driver.VendorStream. If the driver refuses the fence event, Reached becomes
// true later than it could. No fence event is recorded on the legacy default stream, where it
// would make all ordered streams wait for each other, nor on a stream that another library
// captures: a query of the fence event would break that capture.
func (s *Stream) Keep() {
	d := s.dev
	if s.h == legacyHandle || d.usable("make a fence") != nil || s.endWithoutHandle() != nil {
		return
	}
	if !s.enter() {
		return
	}
	defer s.leave()
	seq := s.Last()
	if !s.mayKeep() {
		return
	}
	m, err := d.newFenceEvent(eventDisableTiming, "make a fence")
	if err != nil {
		return
	}
	var captured C.int
	if d.check(C.hs_record_behind(d.ctx(), C.CUevent(m.Event), s.h, &captured), "make a fence") != nil || captured != 0 {
		m.Release()
		return
	}
	s.noteRecord(m)
	s.Cache(seq, m)
}

// spareForOthers is how many unused fence events a stream that caches many leaves for other calls.
const spareForOthers = 64

// mayKeep reports whether there are fence events enough, or few are cached: the driver may wait for the
// device to make one, and the work behind the cached ones may wait for what the caller enqueues next.
func (s *Stream) mayKeep() bool {
	return !s.CachesMany() || s.dev.fenceEvents[eventDisableTiming].Unused() >= spareForOthers
}

// At implements driver.Stream.
func (s *Stream) At(seq uint64) driver.Point {
	if tail := s.endWithoutHandle(); tail != nil {
		return tail
	}
	if f := s.Cached(seq); f != nil {
		return f
	}
	return s.Point()
}

// refresh queries how far the stream is if Reached has answered false since.
func (s *Stream) refresh() {
	s.Refresh(func() bool {
		if tail := s.behind(); tail != nil {
			tail.Wait(0)
			return true
		}
		done, captured, _ := s.look()
		return done || captured // another library's capture would take a fence event, and break when that is queried
	}, s.Keep)
}

// countWait adds a wait of s for e, which was just enqueued, to the event's count.
func (s *Stream) countWait(e *Event) error {
	if s.Captured() {
		return nil // it is a node of another library's graph, and pending in no launch that this runtime knows of
	}
	p, err := s.fence("wait event")
	if err != nil {
		return err
	}
	e.waits.Add(p)
	return nil
}

// Records on ordered streams. Where such a stream has no other work, a record waits only for the legacy default
// stream, and the driver counts the stream as idle although the record is pending: cuStreamQuery answers success,
// and cuStreamSynchronize returns. So the latest record is looked at, too.

// noteRecord makes m, which was recorded just now, the latest record.
func (s *Stream) noteRecord(m *vendor.FenceEvent) {
	if !s.ordered {
		return
	}
	var before *vendor.FenceEvent
	s.mu.Lock()
	s.records++
	if s.recorded != m && m.Hold() {
		before, s.recorded = s.recorded, m
	}
	s.mu.Unlock()
	if before != nil {
		before.Release()
	}
}

// isLatest reports whether m is the latest record, to which the stream has a reference then.
func (s *Stream) isLatest(m *vendor.FenceEvent) bool {
	if !s.ordered {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorded == m
}

// recordReached reports whether the latest record is reached. It is forgotten then.
func (s *Stream) recordReached() (bool, error) {
	if !s.ordered {
		return true, nil
	}
	s.mu.Lock()
	m, records := s.recorded, s.records
	if m == nil || !m.Hold() {
		s.mu.Unlock()
		return true, nil
	}
	s.mu.Unlock()
	defer m.Release()
	status := C.hs_event_query(s.dev.ctx(), C.CUevent(m.Event))
	switch code := int(C.hs_code(status)); {
	case code == C.HS_INVALID_VALUE || code == C.HS_CAPTURED_EVENT || code == C.HS_CAPTURE_INVALIDATED:
		// It has become a node of another library's graph, and stands for no work of the stream.
	case code != 0:
		_, err := s.dev.answer(status, "query stream")
		return false, err
	}
	s.mu.Lock()
	latest := s.recorded == m && s.records == records
	if latest {
		s.recorded = nil
	}
	s.mu.Unlock()
	if latest {
		m.Release()
	}
	return true, nil
}

// dropRecord forgets the latest record.
func (s *Stream) dropRecord() {
	s.mu.Lock()
	m := s.recorded
	s.recorded = nil
	s.mu.Unlock()
	if m != nil {
		m.Release()
	}
}

// idlePoint is the point at which a stream is idle, and its latest record is reached.
type idlePoint struct {
	stream *Stream
	seq    uint64
	record *vendor.Fence // nil if there is none
}

// idlePoint returns the point at which all that is enqueued now is done.
func (s *Stream) idlePoint() *idlePoint {
	r := &idlePoint{stream: s, seq: s.Last()}
	if done, _ := s.recordReached(); done {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.recorded; m != nil && m.Hold() {
		r.record = vendor.NewFence(m, nil, 0)
		r.record.Watch()
	}
	return r
}

// Wait implements driver.Point.
func (r *idlePoint) Wait(limit int64) bool {
	clock := vendor.Stopwatch()
	if !r.awaitStream(limit) {
		return false
	}
	if r.record != nil {
		left := limit
		if limit > 0 {
			left = max(0, limit-clock())
		}
		if !r.record.Wait(left) {
			return false
		}
	}
	r.stream.SetReached(r.seq)
	return true
}

// awaitStream waits until the driver counts the stream as idle.
func (r *idlePoint) awaitStream(limit int64) bool {
	s := r.stream
	d := s.dev
	var refused vendor.Refusals
	for {
		l := d.state()
		if l == nil || d.Unusable() {
			return d.AwaitTasks(limit)
		}
		if s.Done() > r.seq {
			return true
		}
		if tail := s.endWithoutHandle(); tail != nil {
			return tail.Wait(limit)
		}
		if !s.enter() {
			continue // closed meanwhile: endWithoutHandle has its point now
		}
		if !l.refs.Hold() {
			s.leave()
			return d.AwaitTasks(limit)
		}
		status := C.hs_await_stream(l.ctx, s.h, C.int64_t(limit), C.int64_t(spin(0)))
		s.leave()
		done, err := l.waited(status, "synchronize")
		l.Leave()
		if done {
			return true
		}
		if err == nil && limit >= 0 || err != nil && !refused.Again(&d.Device, &s.Progress, err, &limit) {
			return false
		}
	}
}

// Reset implements driver.Stream.
func (s *Stream) Reset(e driver.Event, tag driver.Tag) (err error) {
	if err := s.beginEnqueue("reset event"); err != nil {
		return err
	}
	defer s.endEnqueue()
	ev := e.(*Event)
	f := s.follow(tag, &ev.enqueueLock)
	defer func() { f.End(err) }()
	return s.setWord(ev, 0, "reset event")
}

func (s *Stream) setWord(e *Event, value uint32, doing string) error {
	w, err := e.word(doing)
	if err != nil {
		return err
	}
	return s.enqueuedOne(C.hs_word_write(s.dev.ctx(), s.h, w.slot.dev, C.uint32_t(value)), doing)
}

// Wait implements driver.Stream.
func (s *Stream) Wait(e driver.Event, limit int64, tag driver.Tag) (err error) {
	const doing = "wait event"
	d := s.dev
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	ev := e.(*Event)
	f := s.follow(tag, &ev.enqueueLock)
	defer func() { f.End(err) }()
	if ev.opts.Settable || limit != driver.Forever {
		if err := s.waitSlow(ev, limit, doing); err != nil {
			return err
		}
	} else {
		m := ev.stands()
		if m == nil {
			return nil // never recorded: nothing to wait for
		}
		err := s.enqueuedOne(C.hs_wait(d.ctx(), s.h, C.CUevent(m.Event)), doing)
		m.Release()
		if err != nil {
			return err
		}
	}
	if ev.opts.Counted {
		return s.countWait(ev)
	}
	return nil
}

// waitSlow waits for a settable event, or with a limit: then a host thread waits on
// behalf of the stream, which is held meanwhile.
func (s *Stream) waitSlow(e *Event, limit int64, doing string) error {
	var w *word
	if e.opts.Settable {
		var err error
		if w, err = e.word(doing); err != nil {
			return err
		}
		if limit == driver.Forever {
			if err := s.enqueuedOne(C.hs_word_wait(s.dev.ctx(), s.h, w.slot.dev, 1), doing); err != nil {
				return err
			}
			s.AwaitsHostAt(s.Last(), s.Keep)
			return nil
		}
	}
	var at driver.Point = &wordPoint{w}
	if w == nil {
		at = e.Point()
		if r, ok := at.(driver.RefusedPoint); ok {
			return r.Refused()
		}
	}
	release := func() {
		if p, ok := at.(interface{ Drop() bool }); ok {
			p.Drop()
		}
	}
	h := &blocker{what: C.HS_HOLD}
	h.Blocker = vendor.NewTimedWait(&s.Progress, e.opts.ID, limit,
		func() bool { return s.dev.waitWithin(at, limit, release) }, release, h.end)
	err := s.block(h, doing)
	if err != nil {
		release()
	}
	return err
}

// graceNS is how much longer than its limit a wait may take to answer.
const graceNS = 10_000_000

// WaitStream implements driver.Stream.
func (s *Stream) WaitStream(o driver.Stream, tag driver.Tag) (err error) {
	const doing = "wait stream"
	other := o.(*Stream)
	if other == s {
		return nil
	}
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	if err := other.dev.usable(doing); err != nil {
		return err
	}
	f := s.follow(tag, &other.enqueueLock)
	defer func() { f.End(err) }()
	tail := other.endWithoutHandle()
	if tail == nil && !other.enter() {
		tail = other.end() // closed meanwhile
	}
	if tail != nil {
		m := tail.Hold()
		if m == nil {
			return nil
		}
		defer m.Release()
		return s.enqueuedOne(C.hs_wait(s.dev.ctx(), s.h, C.CUevent(m.Event)), doing)
	}
	defer other.leave()
	m, err := other.dev.newFenceEvent(eventDisableTiming, doing)
	if err != nil {
		return err
	}
	defer m.Release()
	if err := s.enqueuedOne(C.hs_wait_stream(s.dev.ctx(), s.h, other.dev.ctx(), other.h, C.CUevent(m.Event)), doing); err != nil {
		return err
	}
	other.noteRecord(m)
	return nil
}

// Launch implements driver.VendorStream.
func (s *Stream) Launch(l driver.Launch) (err error) {
	const doing = "launch"
	d := s.dev
	if l.Cluster[0] != 0 && d.attribute(attributeClusters) == 0 {
		return driver.Errorf(driver.NotSupported, doing,
			"clusters of blocks need a device of compute capability 9.0 and a driver of CUDA 11.8, which %s is not", d.title())
	}
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	f := s.follow(l.Tag, nil)
	defer func() { f.End(err) }()
	spec := launchOf(&l)
	args := unsafe.Pointer(unsafe.SliceData(l.Args))
	return s.enqueuedOne(C.hs_launch_kernel(d.ctx(), s.h, &spec, args, driver.Cell), doing)
}

// Delay implements driver.Stream.
func (s *Stream) Delay(ns int64, tag driver.Tag) error {
	f, err := s.dev.delayFunction()
	if err != nil {
		return err
	}
	l := delayOf(f, ns)
	l.Tag = tag
	return s.Launch(l)
}

// capturedWait is the error of a wait for work that another library's capture has taken.
func (s *Stream) capturedWait(doing string) *driver.Error {
	e := driver.Errorf(driver.Capture, doing, "another library captures stream %d of device %d, and nothing that is captured "+
		"runs before that ends; end that capture first", s.id, s.dev.ordinal)
	e.Code = C.HS_CAPTURE_UNSUPPORTED
	return e
}

// refusedPoint is a point beside a capture of another library. Its wait leaves out what that has taken.
type refusedPoint struct {
	driver.Points
	cause *driver.Error
}

// heldFor names the operation for which the stream waits for the host, "" if there is none.
func (s *Stream) heldFor() string {
	if token := s.function.Load(); token != 0 {
		return fmt.Sprintf("function %d, which runs", token)
	}
	if titles := s.dev.drv.poller.titles(s, 1); len(titles) > 0 {
		return titles[0]
	}
	return ""
}

// run enqueues what a node of a graph does; before, if not nil, looks at the source of a copy first.
func (s *Stream) run(n *driver.GraphNode, before func(), l driver.GraphLaunch) error {
	switch n.Kind {
	case driver.CallNode:
		return s.HostFunc(driver.HostFunc{Token: n.Token, Sink: l})
	case driver.NativeNode:
		native := *n.Native
		before := native.Before
		native.Before = func() {
			l.Begin()
			if before != nil {
				before()
			}
		}
		return s.Native(native)
	case driver.CopyNode:
		c := *n.Copy
		c.Before = before
		_, err := s.Copy(c)
		return err
	case driver.FillNode:
		return s.Fill(n.Fill)
	case driver.KernelNode:
		return s.Launch(*n.Launch)
	case driver.DelayNode:
		return s.Delay(n.Delay, 0)
	case driver.RecordNode:
		return s.Record(n.Event, 0)
	case driver.WaitNode:
		return s.Wait(n.Event, driver.Forever, 0)
	}
	return nil
}
