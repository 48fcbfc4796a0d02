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
)

// Stream is a stream of the library. It counts the operations that were enqueued, and how many of them are known
// to be done: from queries and waits of the program, and from marks where the state of a single operation is needed.
type Stream struct {
	dev     *Device
	h       C.uintptr_t
	id      uint64
	level   uint8
	legacy  bool // the device's legacy default stream, which is the context's default stream
	ordered bool

	enqueued atomic.Uint64 // operations the library has accepted
	reached  atomic.Uint64 // those known to be done
	wanted   atomic.Uint64 // the latest place for which Reached has answered false
	// How far it comes after the legacy default stream, and that one after it: see join.
	joined, legacyJoined counter
	hostWait             atomic.Uint64 // place of the latest wait for a value or a settable event

	enqueuing   atomic.Int64 // threads that enqueue, and whether the stream was closed: see begin
	subscribing atomic.Bool  // a thread makes line

	mu      sync.Mutex
	line    *C.na_line // for its functions, from the first one on
	failure *driver.Error
	kept    []keptMark
	tail    *point // of a closed stream: behind all of its work
}

// counter is a number that grows.
type counter = atomic.Uint64

// keptMark stands for the operation at a place.
type keptMark struct {
	place uint64
	mark  *mark
}

// closed is set in a stream's number of users when it was closed.
const closed = 1 << 32

// NewStream implements driver.Device.
func (d *Device) NewStream(o driver.StreamOptions) (driver.Stream, error) {
	const doing = "create stream"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	d.sweep()
	s := &Stream{dev: d, id: o.ID, level: o.Level, ordered: o.Ordered}
	if made, ok := d.spares.take(o.Level); ok {
		s.h, s.line = made.h, made.line
	} else if err := d.check(C.na_stream_new(d.ctx(), C.uint32_t(o.Level), &s.h), doing); err != nil {
		return nil, err
	}
	d.streams.add(s)
	return s, nil
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

// finish ends begin. The last thread to leave a closed stream gives its handle up: the mark behind its
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
	held := s.dev.drv.follow(tag)
	defer func() { s.dev.drv.followed(tag, held, err) }()
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
	s.enqueued.Add(1)
	return nil
}

// setReached makes the operations up to a place count as done.
func (s *Stream) setReached(place uint64) {
	for {
		before := s.reached.Load()
		if before >= place || s.reached.CompareAndSwap(before, place) {
			return
		}
	}
}

// Record implements driver.Stream.
func (s *Stream) Record(e driver.Event, tag driver.Tag) error {
	return s.enqueue(tag, "record", func() error { return e.(*Event).record(s) })
}

// Nop implements driver.Stream. The library has no empty operation, so it records an event that is not used otherwise.
func (s *Stream) Nop(tag driver.Tag) error {
	const doing = "nop"
	return s.enqueue(tag, doing, func() error {
		m, err := s.recordMark(false, doing)
		if err == nil {
			m.release()
			s.enqueued.Add(1)
		}
		return err
	})
}

// Query implements driver.Stream.
func (s *Stream) Query() (bool, error) {
	const doing = "query stream"
	d := s.dev
	if d.context.Load() == 0 && d.lost.Load() == nil {
		return true, nil // no work was ever enqueued
	}
	if err := d.usable(doing); err != nil {
		return false, err
	}
	if s.begin(doing) != nil {
		return s.end().Wait(0), nil
	}
	defer s.finish()
	place := s.enqueued.Load()
	done, err := d.answer(C.na_stream_query(d.ctx(), s.h), doing)
	if done {
		s.setReached(place)
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
		if s.dev.lost.Load() != nil {
			return lostPoint{s.dev}
		}
		return s.end()
	}
	defer s.finish()
	var p *point
	var err error
	if s.legacy {
		err = s.join(doing)
	}
	if err == nil {
		p, err = s.point(doing)
	}
	if err != nil {
		s.fail(err.(*driver.Error))
		return &queriedPoint{s, s.enqueued.Load()} // a refused record does not say that the work is done
	}
	return p
}

func (s *Stream) point(doing string) (*point, error) {
	place := s.enqueued.Load()
	m, err := s.recordMark(false, doing)
	if err != nil {
		return nil, err
	}
	return &point{mark: m, stream: s, place: place}, nil
}

// lostPoint is reached once no task of a lost device uses memory of the program.
type lostPoint struct{ dev *Device }

func (p lostPoint) Wait(limit int64) bool { return p.dev.awaitTasks(limit) }

// queriedPoint is the point at which a stream is idle. It needs no event.
type queriedPoint struct {
	stream *Stream
	place  uint64
}

// Wait implements driver.Point.
func (p *queriedPoint) Wait(limit int64) bool {
	for clock := stopwatch(); ; {
		if p.stream.dev.unusable() {
			return p.stream.dev.awaitTasks(limit)
		}
		done, _ := p.stream.Query()
		if done || p.stream.reached.Load() > p.place {
			return true
		}
		if limit >= 0 && clock() >= limit || C.na_pause() != 0 && limit >= 0 {
			return false
		}
	}
}

// fail makes err the stream's error unless it has one, and reports whether it did.
func (s *Stream) fail(err *driver.Error) bool {
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

// Close implements driver.Stream. Pending work still runs. If another thread enqueues at this moment, that
// thread gives the handle up.
func (s *Stream) Close() {
	if !s.legacy && s.enqueuing.Add(closed) == closed {
		s.giveUp()
	}
}

// giveUp records a mark behind pending work, by which its end is seen later. No thread enqueues any more.
// Of an idle stream no mark is recorded: it would count as pending until the device reaches it.
func (s *Stream) giveUp() {
	const doing = "close stream"
	var tail *point
	if s.dev.opened() && !s.seenIdle(doing) {
		var err error
		if tail, err = s.point(doing); err != nil && s.dev.opened() {
			return // without a mark the end of the work is not seen: the handle stays until the context is released
		}
	}
	if tail == nil {
		tail = &point{mark: &mark{dev: s.dev}, stream: s}
		tail.state.Store(reached)
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
		s.setReached(s.enqueued.Load())
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
	for clock := stopwatch(); ; {
		p.stream.mu.Lock()
		tail := p.stream.tail
		p.stream.mu.Unlock()
		if tail != nil {
			return tail.Wait(limit)
		}
		if p.stream.dev.unusable() {
			return true
		}
		if limit >= 0 && clock() >= limit || C.na_pause() != 0 && limit >= 0 {
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
	if cause := s.dev.lost.Load(); cause != nil {
		return name + " is lost with its device: " + cause.Error()
	}
	done, err := s.Query()
	if err != nil {
		return name + " failed: " + err.Error()
	}
	if done {
		return name + " is idle"
	}
	text := fmt.Sprintf("%s has pending work, at most %d operation(s)", name, max(1, s.enqueued.Load()-s.reached.Load()))
	if next := s.dev.drv.arrivals.titles(s, 4); len(next) > 0 {
		text += "; its next operations that need the host are " + strings.Join(next, ", ")
	}
	return text
}

// forget releases the marks that the stream keeps.
func (s *Stream) forget() {
	s.mu.Lock()
	kept, tail := s.kept, s.tail
	s.kept = nil
	s.mu.Unlock()
	for _, k := range kept {
		k.mark.release()
	}
	if tail != nil {
		tail.drop()
	}
}
