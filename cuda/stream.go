package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// The driver's handles of its predefined streams, and its flag for a new stream.
const (
	legacyHandle      = C.HS_STREAM_LEGACY
	perThreadHandle   = C.HS_STREAM_PER_THREAD
	nonBlockingStream = C.HS_STREAM_NON_BLOCKING
)

// Stream is a stream of the driver. It counts the operations that were enqueued, and
// how many of them are known to be done: from queries and waits of the program, and
// from marks where the state of a single operation is needed.
type Stream struct {
	dev *Device
	h   C.CUstream
	nth uint64 // of the streams that the driver has made for this device, 0 for others
	// failing is the stream whose error an error of this one is, nil for itself: that of the
	// launch in progress, where this is a branch of a graph.
	failing  atomic.Pointer[Stream]
	dealt    uint64 // by which turn the driver has dealt out its hardware queue
	id       uint64
	level    uint8
	external bool
	ordered  bool
	owner    C.uintptr_t // the thread whose default stream this is, 0 for others

	enqueued atomic.Uint64 // operations the driver has accepted
	reached  atomic.Uint64 // those known to be done
	wanted   atomic.Uint64 // the latest place for which Reached has answered false

	enqueuing atomic.Int64 // threads that enqueue, and whether the stream was closed: see beginEnqueue
	users     atomic.Int64 // threads that use the handle, and whether it was closed: see enter

	hostWait atomic.Uint64 // place of the latest wait for a value or a settable event
	function atomic.Uint64 // token of the function that runs and holds the stream, or 0

	turn turn

	mu      sync.Mutex
	failure *driver.Error
	kept    []keptMark
	// recorded is the latest record of an ordered stream: see records.go. records counts them.
	recorded *mark
	records  uint64
	tail     *point // of a closed stream: behind all of its work
	last     *point // of a borrowed stream: behind the runtime's latest work on it

	// Guarded by the poller.
	holds                 []*held
	inFlight, maxInFlight int
}

// keptMark stands for the operation at a place.
type keptMark struct {
	place uint64
	mark  *mark
}

// NewStream implements driver.Device.
func (d *Device) NewStream(o driver.StreamOptions) (driver.Stream, error) {
	const doing = "create stream"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	made, err := d.takeStream(streamKind{o.Ordered, o.Level}, doing)
	if err != nil {
		return nil, err
	}
	s := &Stream{dev: d, h: made.h, nth: made.nth, dealt: made.dealt, id: o.ID, level: o.Level, ordered: o.Ordered}
	d.streams.add(s)
	return s, nil
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

// setReached makes the operations up to a place count as done.
func (s *Stream) setReached(place uint64) {
	for {
		before := s.reached.Load()
		if before >= place {
			return
		}
		if s.reached.CompareAndSwap(before, place) {
			s.dev.endings.collect(s)
			return
		}
	}
}

// Record implements driver.Stream.
func (s *Stream) Record(e driver.Event, tag driver.Tag) (err error) {
	if err := s.beginEnqueue("record"); err != nil {
		return err
	}
	defer s.endEnqueue()
	ev := e.(*Event)
	f := s.follow(tag, &ev.turn)
	defer func() { f.end(s.dev.drv, err) }()
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
	defer func() { f.end(s.dev.drv, err) }()
	m, err := s.dev.newMark(eventDisableTiming, doing)
	if err != nil {
		return err
	}
	defer m.release()
	if err := s.enqueuedOne(C.hs_record(s.dev.ctx(), m.event, s.h), doing); err != nil {
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
	place := s.enqueued.Load()
	done, err := d.answer(C.hs_stream_query(d.ctx(), s.h), doing)
	if done {
		done, err = s.recordReached()
	}
	if done {
		s.setReached(place)
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
	place := s.enqueued.Load()
	var state C.int
	done, err = d.answer(C.hs_stream_look(d.ctx(), s.h, &state), doing)
	if done = done && state == 0; done {
		done, err = s.recordReached()
	}
	if done {
		s.setReached(place)
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
	p, err := s.point(doing)
	if err != nil {
		s.fail(err.(*driver.Error))
		return s.idlePoint() // a refused record does not say that the work is done
	}
	return p
}

func (s *Stream) point(doing string) (*point, error) {
	d := s.dev
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	place := s.enqueued.Load()
	m, err := d.newMark(eventDisableTiming, doing)
	if err != nil {
		return nil, err
	}
	if err := d.check(C.hs_record(d.ctx(), m.event, s.h), doing); err != nil {
		m.release()
		return nil, err
	}
	return newPoint(m, s, place), nil
}

// fail makes err the stream's error unless it has one, and reports whether it did.
func (s *Stream) fail(err *driver.Error) bool {
	if on := s.failing.Load(); on != nil {
		return on.fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return false
	}
	s.failure = err
	return true
}

// Failure implements driver.Stream.
func (s *Stream) Failure() *driver.Error {
	s.mu.Lock()
	err := s.failure
	s.failure = nil
	s.mu.Unlock()
	if s.dev.lost.Load() != nil {
		return s.dev.lostError("synchronize")
	}
	return err
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

// closeHandle records a mark behind pending work, by which its completion is seen later,
// and releases the handle. No thread enqueues any more.
func (s *Stream) closeHandle() {
	tail := s.behind()
	if tail == nil {
		// Of an idle stream no mark is recorded: it would count as pending until the driver reaches it.
		done, captured, err := s.look()
		if captured && err == nil {
			// The capture of another library would take the mark, and only the handle tells when earlier
			// work is done: it stays until the context is released.
			return
		}
		if done && err == nil {
			tail = s.reachedPoint()
		}
	}
	if tail == nil {
		var err error
		if tail, err = s.point("close stream"); err != nil {
			if !s.dev.unusable() {
				// Without a mark only the handle tells when the work is done, so it
				// stays until the context is released.
				return
			}
			tail = s.reachedPoint()
			s.setReached(s.enqueued.Load())
		}
	}
	s.mu.Lock()
	s.tail = tail
	s.mu.Unlock()
	s.dropRecord() // the tail is behind it
	s.shut()
	s.dev.streams.sweep()
}

// Describe implements driver.Stream.
func (s *Stream) Describe() string {
	name := fmt.Sprintf("stream %d of device %d", s.id, s.dev.ordinal)
	if s.h == legacyHandle {
		name = fmt.Sprintf("the legacy default stream of device %d", s.dev.ordinal)
	}
	if cause := s.dev.lost.Load(); cause != nil {
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
	text := fmt.Sprintf("%s has pending work, at most %d operation(s)", name, max(1, s.enqueued.Load()-s.reached.Load()))
	if holds := s.dev.drv.poller.titles(s, 4); len(holds) > 0 {
		text += "; its next operations that need the host are " + strings.Join(holds, ", ")
	} else if n := s.dev.drv.poller.held(s.dev); n > 0 {
		text += fmt.Sprintf("; it may share a hardware queue with one of %d stream(s) that are held: the streams of a priority "+
			"share %s, so hold fewer at once, or set CUDA_DEVICE_MAX_CONNECTIONS before CUDA is used", n, connections())
	}
	return text
}

// forget releases the marks that the stream keeps.
func (s *Stream) forget() {
	s.mu.Lock()
	kept, tail, last := s.kept, s.tail, s.last
	s.kept = nil
	s.mu.Unlock()
	s.dropRecord()
	for _, k := range kept {
		k.mark.release()
	}
	for _, p := range []*point{tail, last} {
		if p != nil {
			p.drop()
		}
	}
}
