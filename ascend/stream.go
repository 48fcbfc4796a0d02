package ascend

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
	"halstream/hal/vendor"
)

// Stream is a stream of the library.
type Stream struct {
	vendor.Progress
	dev     *Device
	h       C.uintptr_t
	id      uint64
	level   uint8
	legacy  bool // the device's legacy default stream, which is the context's default stream
	ordered bool

	// How far it comes after the legacy default stream, and that one after it: see join.
	joined, legacyJoined counter

	enqueuing   atomic.Int64 // threads that enqueue, and whether the stream was closed: see begin
	subscribing atomic.Bool  // a thread makes line

	mu   sync.Mutex
	line *C.na_line    // for its functions, from the first one on
	tail *vendor.Fence // of a closed stream: behind all of its work
}

// counter is a number that grows.
type counter = atomic.Uint64

// closed is set in a stream's number of users when it was closed.
const closed = 1 << 32

// NewStream implements driver.Device.
func (d *Device) NewStream(o driver.StreamOptions) (driver.Stream, error) {
	const doing = "create stream"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	d.sweep()
	s := d.newStream(&Stream{id: o.ID, level: o.Level, ordered: o.Ordered})
	if made, ok := d.spares.TakeFirst(func(s spare) bool { return s.level == o.Level }); ok {
		s.h, s.line = made.h, made.line
	} else if err := d.check(C.na_stream_new(d.ctx(), C.uint32_t(o.Level), &s.h), doing); err != nil {
		return nil, err
	}
	d.streams.Add(s)
	return s, nil
}

func (d *Device) newStream(s *Stream) *Stream {
	s.dev = d
	s.Init(&d.Device, nil)
	return s
}

// Handle implements driver.VendorStream.
func (s *Stream) Handle() uint64 { return uint64(s.h) }

// Made implements driver.VendorStream.
func (s *Stream) Made() driver.StreamOptions {
	return driver.StreamOptions{Level: s.level, Ordered: s.ordered, ID: s.id}
}

// Launch implements driver.VendorStream.
func (s *Stream) Launch(driver.Launch) error {
	return driver.Errorf(driver.NotSupported, "launch", "programs for NPUs are not supported; use functions of the host")
}

// begin admits an operation of the calling thread until finish. It refuses work on a stream that was
// closed: the library may have given the handle to a new one.
func (s *Stream) begin(doing string) error {
	if err := s.dev.usable(doing); err != nil {
		return err
	}
	for {
		n := s.enqueuing.Load()
		if n&closed != 0 {
			return driver.Errorf(driver.Closed, doing, "the stream was closed; use another one")
		}
		if s.enqueuing.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// finish ends begin. The last thread to leave a closed stream gives its handle up: the fence event behind its
// work must not be recorded before the work.
func (s *Stream) finish() {
	if s.enqueuing.Add(-1) == closed {
		s.giveUp()
	}
}

// enqueue admits an operation, brings the stream in order with the legacy default stream, and lets f enqueue it.
func (s *Stream) enqueue(tag driver.Tag, doing string, f func() error) (err error) {
	if err := s.begin(doing); err != nil {
		return err
	}
	defer s.finish()
	e := s.dev.drv.follow(tag)
	defer func() { e.End(err) }()
	if err := s.join(doing); err != nil {
		return err
	}
	return f()
}

// took checks the result of a call that enqueues one operation, and counts it.
func (s *Stream) took(status C.na_status, doing string) error {
	if err := s.dev.check(status, doing); err != nil {
		return err
	}
	s.Count()
	return nil
}

// Record implements driver.Stream.
func (s *Stream) Record(e driver.Event, tag driver.Tag) error {
	return s.enqueue(tag, "record", func() error { return e.(*Event).record(s) })
}

// Nop implements driver.Stream. The library has no empty operation, so it records an event that is not used otherwise.
func (s *Stream) Nop(tag driver.Tag) error {
	const doing = "nop"
	return s.enqueue(tag, doing, func() error {
		m, err := s.recordFenceEvent(false, doing)
		if err == nil {
			m.Release()
			s.Count()
		}
		return err
	})
}

// Query implements driver.Stream.
func (s *Stream) Query() (bool, error) {
	const doing = "query stream"
	d := s.dev
	if d.context.Load() == 0 && !d.IsLost() {
		return true, nil // no work was ever enqueued
	}
	if err := d.usable(doing); err != nil {
		return false, err
	}
	if s.begin(doing) != nil {
		return s.end().Wait(0), nil
	}
	defer s.finish()
	seq := s.Last()
	done, err := d.answer(C.na_stream_query(d.ctx(), s.h), doing)
	if done {
		s.SetReached(seq)
	}
	if done && s.legacy {
		return d.orderedDone()
	}
	return done, err
}

// Point implements driver.Stream.
func (s *Stream) Point() driver.Point {
	const doing = "synchronize"
	if s.begin(doing) != nil {
		if s.dev.IsLost() {
			return lostPoint{s.dev}
		}
		return s.end()
	}
	defer s.finish()
	var p *vendor.Fence
	var err error
	if s.legacy {
		err = s.join(doing)
	}
	if err == nil {
		p, err = s.fence(doing)
	}
	if err != nil {
		s.Fail(err.(*driver.Error))
		return &queriedPoint{s, s.Last()} // a refused record does not say that the work is done
	}
	return p
}

func (s *Stream) fence(doing string) (*vendor.Fence, error) {
	seq := s.Last()
	m, err := s.recordFenceEvent(false, doing)
	if err != nil {
		return nil, err
	}
	return vendor.NewFence(m, &s.Progress, seq), nil
}

// lostPoint is reached once no task of a lost device uses memory of the program.
type lostPoint struct{ dev *Device }

func (p lostPoint) Wait(limit int64) bool { return p.dev.AwaitTasks(limit) }

// queriedPoint is the point at which a stream is idle. It needs no event.
type queriedPoint struct {
	stream *Stream
	seq    uint64
}

// Wait implements driver.Point.
func (p *queriedPoint) Wait(limit int64) bool {
	for clock := vendor.Stopwatch(); ; {
		if p.stream.dev.unusable() {
			return p.stream.dev.AwaitTasks(limit)
		}
		done, _ := p.stream.Query()
		if done || p.stream.Done() > p.seq {
			return true
		}
		if limit >= 0 && clock() >= limit || pause() && limit >= 0 {
			return false
		}
	}
}

// Close implements driver.Stream. Pending work still runs. If another thread enqueues at this moment, that
// thread gives the handle up.
func (s *Stream) Close() {
	if !s.legacy && s.enqueuing.Add(closed) == closed {
		s.giveUp()
	}
}

// giveUp records a fence event behind pending work, by which its end is seen later. No thread enqueues any more.
// Of an idle stream no fence event is recorded: it would count as pending until the device reaches it.
func (s *Stream) giveUp() {
	const doing = "close stream"
	var tail *vendor.Fence
	if s.dev.opened() && !s.seenIdle(doing) {
		var err error
		if tail, err = s.fence(doing); err != nil && s.dev.opened() {
			return // without a fence event the end of the work is not seen: the handle stays until the context is released
		}
	}
	if tail == nil {
		tail = vendor.ReachedFence()
	}
	s.mu.Lock()
	s.tail = tail
	s.mu.Unlock()
	s.dev.sweep()
}

// seenIdle reports whether a query finds the stream, to which nothing is enqueued meanwhile, without work.
func (s *Stream) seenIdle(doing string) bool {
	done, err := s.dev.answer(C.na_stream_query(s.dev.ctx(), s.h), doing)
	if done = done && err == nil; done {
		s.SetReached(s.Last())
	}
	return done
}

// end returns the point behind all work of a closed stream.
func (s *Stream) end() driver.Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail == nil {
		return &queriedTail{s}
	}
	return s.tail
}

// queriedTail stands for the tail of a stream that is being closed.
type queriedTail struct{ stream *Stream }

// Wait implements driver.Point.
func (p *queriedTail) Wait(limit int64) bool {
	for clock := vendor.Stopwatch(); ; {
		p.stream.mu.Lock()
		tail := p.stream.tail
		p.stream.mu.Unlock()
		if tail != nil {
			return tail.Wait(limit)
		}
		if p.stream.dev.unusable() {
			return true
		}
		if limit >= 0 && clock() >= limit || pause() && limit >= 0 {
			return false
		}
	}
}

// Describe implements driver.Stream.
func (s *Stream) Describe() string {
	name := fmt.Sprintf("stream %d of device %d", s.id, s.dev.ordinal)
	if s.legacy {
		name = fmt.Sprintf("the legacy default stream of device %d", s.dev.ordinal)
	}
	if cause := s.dev.Cause(); cause != nil {
		return name + " is lost with its device: " + cause.Error()
	}
	done, err := s.Query()
	if err != nil {
		return name + " failed: " + err.Error()
	}
	if done {
		return name + " is idle"
	}
	text := fmt.Sprintf("%s has pending work, at most %d operation(s)", name, s.AtMost())
	if next := s.dev.drv.arrivals.titles(s, 4); len(next) > 0 {
		text += "; its next operations that need the host are " + strings.Join(next, ", ")
	}
	return text
}

// forget releases the fence events that the stream has.
func (s *Stream) forget() {
	s.mu.Lock()
	tail := s.tail
	s.mu.Unlock()
	s.DropCached()
	if tail != nil {
		tail.Drop()
	}
}

// join brings a stream in order with the legacy default stream before its next operation: an ordered stream
// comes after what was enqueued on the legacy one, and that one after what was enqueued on all ordered streams. AscendCL's
// default stream has no such order, so waits are enqueued, for work that was not seen to be done. joined is how far
// an ordered stream, or the legacy one with regard to it, has come.
func (s *Stream) join(doing string) error {
	d := s.dev
	switch {
	case s.legacy:
		for _, o := range d.streams.All() {
			if o.ordered {
				if err := s.comeAfter(o, &o.legacyJoined, doing); err != nil {
					return err
				}
			}
		}
	case s.ordered:
		return s.comeAfter(d.legacy, &s.joined, doing)
	}
	return nil
}

// comeAfter makes later work of s start after all work of o, unless seen says that it does already.
func (s *Stream) comeAfter(o *Stream, seen *counter, doing string) error {
	seq := o.Last()
	if seen.Load() >= seq || o.Done() >= seq {
		return nil
	}
	m, err := o.behind(doing)
	if m == nil || err != nil {
		return err
	}
	defer m.Release()
	if err := s.dev.check(C.na_wait(s.dev.ctx(), s.h, C.uintptr_t(m.Event)), doing); err != nil {
		return err
	}
	for {
		before := seen.Load()
		if before >= seq || seen.CompareAndSwap(before, seq) {
			return nil
		}
	}
}

// behind returns a fence event behind all work of a stream, with a reference for the caller; nil if the work is known
// to be done.
func (s *Stream) behind(doing string) (*vendor.FenceEvent, error) {
	if s.begin(doing) == nil {
		defer s.finish()
		return s.recordFenceEvent(false, doing)
	}
	if err := s.dev.usable(doing); err != nil {
		return nil, err
	}
	s.mu.Lock()
	tail := s.tail
	s.mu.Unlock()
	if tail == nil {
		// Another thread closes it at this moment: then its work and this call overlap as well.
		return nil, driver.Errorf(driver.Closed, doing, "the stream was closed; use another one")
	}
	return tail.Hold(), nil
}

// Fence implements driver.Stream.
func (s *Stream) Fence(tag driver.Tag) uint64 {
	e := s.dev.drv.follow(tag)
	defer e.End(nil)
	if s.begin("fence") == nil {
		_ = s.join("fence") // where it is refused, the next operation tries again
		s.finish()
	}
	seq := s.Count()
	s.Keep()
	return seq
}

// Keep implements driver.VendorStream. If the library refuses the fence event, Reached becomes true later than it could.
func (s *Stream) Keep() {
	const doing = "make a fence"
	if s.begin(doing) != nil {
		return
	}
	defer s.finish()
	seq := s.Last()
	m, err := s.recordFenceEvent(false, doing)
	if err != nil {
		return
	}
	s.Cache(seq, m)
}

// At implements driver.Stream.
func (s *Stream) At(seq uint64) driver.Point {
	if f := s.Cached(seq); f != nil {
		return f
	}
	return s.Point()
}

// refresh queries how far the stream is if Reached has answered false since.
func (s *Stream) refresh() {
	s.Refresh(func() bool {
		seq := s.Last() // before the query: another thread may enqueue behind it
		done, _ := s.Query()
		if done {
			s.SetReached(seq)
		}
		return done
	}, s.Keep)
}

// made takes the stream of the library from a stream that does not use it any more.
func (s *Stream) made() spare {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.line
	s.line = nil
	return spare{s.h, s.level, line}
}

// lineOf returns the thread for a stream's functions.
func (s *Stream) lineOf(doing string) (*C.na_line, error) {
	line := func() *C.na_line {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.line
	}
	if found := line(); found != nil {
		return found, nil
	}
	for !s.subscribing.CompareAndSwap(false, true) {
		pause() // with Python's lock released, which the other thread may need
	}
	defer s.subscribing.Store(false)
	if found := line(); found != nil {
		return found, nil // another thread was faster: a stream has one subscriber
	}
	var made *C.na_line
	if err := s.dev.check(C.na_line_new(s.dev.ctx(), s.h, &made), doing); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.line = made
	s.mu.Unlock()
	return made, nil
}

// recordFenceEvent records a new fence event behind the work of a stream.
func (s *Stream) recordFenceEvent(timed bool, doing string) (*vendor.FenceEvent, error) {
	d := s.dev
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	m, err := d.newFenceEvent(timed, doing)
	if err != nil {
		return nil, err
	}
	if err := d.check(C.na_record(d.ctx(), C.uintptr_t(m.Event), s.h), doing); err != nil {
		m.Release()
		return nil, err
	}
	return m, nil
}

// Reset implements driver.Stream.
func (s *Stream) Reset(e driver.Event, tag driver.Tag) error {
	const doing = "reset event"
	return s.enqueue(tag, doing, func() error {
		old, err := e.(*Event).settable(doing)
		if err != nil {
			return err
		}
		defer old.Release()
		return s.took(C.na_reset_event(s.dev.ctx(), old.event, s.h), doing)
	})
}

// Wait implements driver.Stream.
func (s *Stream) Wait(e driver.Event, limit int64, tag driver.Tag) error {
	const doing = "wait event"
	return s.enqueue(tag, doing, func() error {
		ev := e.(*Event)
		if limit != driver.Forever {
			if err := s.waitWithin(ev, limit, doing); err != nil {
				return err
			}
		} else if waits, err := s.wait(ev, doing); err != nil || !waits {
			return err
		}
		if ev.opts.Counted {
			return s.countWait(ev)
		}
		return nil
	})
}

// wait enqueues a wait without a limit, and reports whether there was something to wait for.
func (s *Stream) wait(e *Event, doing string) (bool, error) {
	if e.opts.Settable {
		old, err := e.settable(doing)
		if err != nil {
			return false, err
		}
		defer old.Release()
		if err := s.took(C.na_wait(s.dev.ctx(), s.h, old.event), doing); err != nil {
			return false, err
		}
		s.AwaitsHostAt(s.Last(), s.Keep)
		return true, nil
	}
	m := e.own.Latest()
	if m == nil {
		return false, nil
	}
	defer m.Release()
	return true, s.took(C.na_wait(s.dev.ctx(), s.h, C.uintptr_t(m.Event)), doing)
}

// waitWithin lets a host thread wait on behalf of the stream, which is held meanwhile.
func (s *Stream) waitWithin(e *Event, limit int64, doing string) error {
	var at driver.Point
	if e.opts.Settable {
		old, err := e.settable(doing)
		if err != nil {
			return err
		}
		at = setPoint{old}
	} else {
		at = e.Point()
	}
	release := func() { // called once: by the wait, or where there is none
		switch p := at.(type) {
		case *vendor.Fence:
			p.Drop()
		case setPoint:
			p.Release()
		}
	}
	h := &blocker{what: C.NA_HOLD}
	h.Blocker = vendor.NewTimedWait(&s.Progress, e.opts.ID, limit, func() bool {
		defer release()
		return at.Wait(limit)
	}, release, h.open)
	err := s.launch(h, doing)
	if err != nil {
		release()
	}
	return err
}

// countWait adds a wait of s for e, which was just enqueued, to the event's count.
func (s *Stream) countWait(e *Event) error {
	p, err := s.fence("wait event")
	if err != nil {
		return err
	}
	e.waits.Add(p)
	return nil
}

// WaitStream implements driver.Stream.
func (s *Stream) WaitStream(o driver.Stream, tag driver.Tag) error {
	const doing = "wait stream"
	other := o.(*Stream)
	if other == s {
		return nil
	}
	return s.enqueue(tag, doing, func() error {
		if other.begin(doing) == nil { // else it is closed, and nothing is enqueued on it any more
			err := other.join(doing)
			other.finish()
			if err != nil {
				return err
			}
		}
		m, err := other.behind(doing)
		if m == nil || err != nil {
			return err
		}
		defer m.Release()
		return s.took(C.na_wait(s.dev.ctx(), s.h, C.uintptr_t(m.Event)), doing)
	})
}
