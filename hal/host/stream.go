package host

import (
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/status"
)

// opKind is the kind of an operation.
type opKind uint8

const (
	opNop opKind = iota
	opRecord
	opWait    // for a place on another stream's timeline
	opWaitSet // for a settable event
	opReset
	opGate
	opCall   // host function that holds the stream
	opPass   // host function that does not
	opReport // the same two for functions that the program's own threads take
	opReportPass
	opWork // for an engine
	opWriteValue
	opWaitValue
	opLaunch  // a run of a graph, whose nodes are on lanes
	opLaneEnd // behind the nodes of a launch on a lane
	opBody    // the body of a node with a condition
)

// op is an operation on a stream. It is small, since a stream may have a million.
type op struct {
	kind  opKind
	tag   driver.Tag
	arg   uint64  // wait: place; record: own place; call: token
	on    *Stream // wait: whose place; record: own stream; launch: that of the launch before, whose place is arg
	ep    *epoch  // for streams in the legacy order
	ref   any     // *Event, *gate, driver.Sink, work, *valueOp, *launch or *bodyRun
	limit int64   // wait: nanoseconds from when it is the head, or driver.Forever
}

// Stream is the host device's stream: a queue and a timeline that only grows.
type Stream struct {
	eng     *engine
	dev     *Device
	id      uint64
	level   uint8
	ordered bool
	legacy  bool

	state sched.State

	// The n-th operation is done when words.Completed >= n. That and words.Submitted are
	// written under the lock and may be read without it, by C code, too.
	words *status.Stream
	first uint64 // what both were when the stream was made: others have had the words before

	q       fifo
	extras  *extras // nil until the first of its fields is needed
	waiting waiters
	failure atomic.Pointer[driver.Error]
	prev    *Stream // the device's list of streams with work
	next    *Stream
}

// extras is what few streams ever need: a program may have very many streams.
type extras struct {
	skip          int         // operations dropped behind the head, done with it
	droppedEpochs []*epoch    // the epochs of the dropped operations
	began         int64       // when the head operation was started, while that is followed
	timer         sched.Timer // of the head operation, a wait with a limit
	parent        *Stream     // of a lane while a launch runs: the stream of the launch
	awaited       []uint64    // places that threads wait for, also while none of them sleeps
	program       *program    // of a lane: whose nodes it takes, nil for the lanes of bodies
	steps         uint64      // of a lane: how many operations each launch puts on it
}

// extra returns the fields of s that few streams need.
func (s *Stream) extra() *extras {
	if s.extras == nil {
		s.extras = &extras{}
	}
	return s.extras
}

// parent returns the stream of the launch that runs on s, nil if s is no lane or none runs.
func (s *Stream) parent() *Stream {
	if s.extras == nil {
		return nil
	}
	return s.extras.parent
}

// limited reports whether the head operation is a wait whose limit has begun.
func (s *Stream) limited() bool { return s.extras != nil && s.extras.timer != nil }

// Record implements driver.Stream.
func (s *Stream) Record(ev driver.Event, tag driver.Tag) error {
	e := s.eng
	v := ev.(*Event)
	e.Lock()
	if e.closed {
		e.Unlock()
		return errClosed("record")
	}
	seq := s.words.Submitted.Load() + 1
	v.at = place{s, seq}
	v.recorded = true
	e.add(s, &op{kind: opRecord, tag: tag, arg: seq, on: s, ref: v})
	e.sched.Point(sched.Enqueued, s, nil, 0)
	e.Unlock()
	return nil
}

// Wait implements driver.Stream.
func (s *Stream) Wait(ev driver.Event, limit int64, tag driver.Tag) error {
	e := s.eng
	v := ev.(*Event)
	e.Lock()
	defer e.Unlock()
	if e.closed {
		return errClosed("wait event")
	}
	o := op{kind: opWait, tag: tag, arg: v.at.seq, on: v.at.on, ref: v, limit: limit}
	if v.opts.Settable {
		o.kind = opWaitSet
	} else if v.at.on == nil || v.at.on == s || e.completeByDefinition(v.at) {
		// The record is complete, or earlier on the same stream.
		e.addBarrier(s, tag)
		e.point(sched.Enqueued, s, nil, 0)
		return nil
	}
	v.waits++
	e.add(s, &o)
	e.point(sched.Enqueued, s, nil, 0)
	return nil
}

// WaitPlace implements driver.StatusStream.
func (s *Stream) WaitPlace(other driver.Stream, seq uint64) error {
	e := s.eng
	at := place{other.(*Stream), seq}
	e.Lock()
	defer e.Unlock()
	if e.closed {
		return errClosed("wait event")
	}
	if at.on != s && !e.completeByDefinition(at) {
		e.add(s, &op{kind: opWait, arg: seq, on: at.on, ref: recordedPlace{}, limit: driver.Forever})
	}
	e.point(sched.Enqueued, s, nil, 0)
	return nil
}

// completeByDefinition reports whether a wait for a place enqueues nothing, because the
// place is reached. Under a deterministic schedule every wait is enqueued: which
// operations there are, and so their numbers, must not depend on the order in which
// they run.
func (e *engine) completeByDefinition(at place) bool { return e.parallel.Load() && at.reached() }

// WaitStream implements driver.Stream.
func (s *Stream) WaitStream(other driver.Stream, tag driver.Tag) error {
	t := other.(*Stream)
	e := s.eng
	e.Lock()
	defer e.Unlock()
	if e.closed {
		return errClosed("wait stream")
	}
	if s != t {
		if at := t.mark(); !e.completeByDefinition(at) {
			e.add(s, &op{kind: opWait, tag: tag, arg: at.seq, on: at.on, limit: driver.Forever})
		} else {
			e.addBarrier(s, tag)
		}
	}
	e.point(sched.Enqueued, s, nil, 0)
	return nil
}

// addBarrier ends a wait for something that is complete. On the legacy default stream it
// still is a place in the legacy order: what the ordered streams have enqueued comes before
// it, and what they enqueue later comes after it. On other streams nothing is enqueued.
func (e *engine) addBarrier(s *Stream, tag driver.Tag) {
	if s.legacy && s.dev.unorderedWork() {
		e.add(s, &op{kind: opNop, tag: tag})
		return
	}
	e.sequenced(tag)
	e.completedAtEnqueue(tag)
}

// mark returns the place at which all work enqueued so far is done. On the
// legacy default stream that includes the work of the streams ordered with it,
// so a marker is enqueued there unless nothing lies between.
func (s *Stream) mark() place {
	if s.legacy && s.dev.unorderedWork() {
		s.eng.add(s, &op{kind: opNop})
	}
	return place{s, s.words.Submitted.Load()}
}

// Reset implements driver.Stream.
func (s *Stream) Reset(ev driver.Event, tag driver.Tag) error {
	return s.eng.submit(s, &op{kind: opReset, tag: tag, ref: ev.(*Event)})
}

// Nop implements driver.Stream.
func (s *Stream) Nop(tag driver.Tag) error {
	return s.eng.submit(s, &op{kind: opNop, tag: tag})
}

// Delay implements driver.Stream.
func (s *Stream) Delay(ns int64, tag driver.Tag) error {
	return s.eng.submit(s, &op{kind: opWork, tag: tag, ref: delayWork{ns}})
}

// HostFunc implements driver.Stream.
func (s *Stream) HostFunc(f driver.HostFunc) error {
	kind := opCall
	switch {
	case f.Report && f.Passing:
		kind = opReportPass
	case f.Report:
		kind = opReport
	case f.Passing:
		kind = opPass
	}
	return s.eng.submit(s, &op{kind: kind, tag: f.Tag, arg: f.Token, ref: f.Sink})
}

// Complete implements driver.Completer: the host function at the head ended.
func (s *Stream) Complete(err *driver.Error) (kept bool) {
	e := s.eng
	e.Lock()
	if err != nil {
		kept = s.fail(err)
	}
	e.finish(s)
	e.advance(s)
	e.point(sched.Ended, s, nil, 0)
	e.Unlock()
	return kept
}

// fail makes err the stream's error unless it has one, and reports whether it did.
// The lock is held.
func (s *Stream) fail(err *driver.Error) bool {
	for p := s.parent(); p != nil; p = s.parent() { // s is a lane, maybe of a body on a lane
		s = p
		if r, ok := s.q.front().ref.(*bodyRun); ok {
			r.stopped = true // what was to end the loop may not have run
		}
	}
	kept := s.failure.CompareAndSwap(nil, err)
	s.words.Special.Or(status.Failed)
	return kept
}

// Failure implements driver.Stream.
func (s *Stream) Failure() *driver.Error {
	if s.failure.Load() == nil {
		return nil
	}
	s.eng.Lock()
	defer s.eng.Unlock()
	s.words.Special.And(^uint32(status.Failed))
	return s.failure.Swap(nil)
}

// Query implements driver.Stream.
func (s *Stream) Query() (bool, error) {
	e := s.eng
	if e.parallel.Load() && !s.legacy {
		return s.words.Completed.Load() == s.words.Submitted.Load(), nil
	}
	e.Lock()
	e.point(sched.Queried, s, nil, 0)
	done := s.words.Completed.Load() == s.words.Submitted.Load()
	if done && s.legacy {
		// Its work includes that of the streams ordered with it.
		done = s.dev.last.open && s.dev.last.pending == 0
	}
	e.Unlock()
	return done, nil
}

// Point implements driver.Stream.
func (s *Stream) Point() driver.Point {
	s.eng.Lock()
	at := s.mark()
	s.eng.Unlock()
	return point{s.eng, at}
}

// Status implements driver.StatusStream.
func (s *Stream) Status() *status.Stream { return s.words }

// Close implements driver.Stream. Pending work still runs; then the collector frees
// the stream.
func (s *Stream) Close() {}

// pending returns how many operations are not done.
func (s *Stream) pending() uint64 { return s.words.Submitted.Load() - s.words.Completed.Load() }
