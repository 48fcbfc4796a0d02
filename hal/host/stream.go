package host

import (
	"slices"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// Stream is the host device's stream: a queue and a timeline that only grows.
type Stream struct {
	eng     *engine
	dev     *Device
	id      uint64
	level   uint8
	ordered bool
	legacy  bool

	state sched.State

	// The n-th operation is done when completed >= n. Both are written under the lock and may be
	// read without it.
	submitted, completed atomic.Uint64
	// legacySeen is how much the legacy default stream had been given when s was given its latest operation.
	legacySeen uint64

	// forgiven is the number of the last operation whose error does not count: the device was recovered after it.
	forgiven uint64

	q       fifo
	rare    *rareState // nil until the first of its fields is needed
	waiting waiters
	failure atomic.Pointer[driver.Error]
	prev    *Stream // the device's list of streams with work
	next    *Stream
}

// rareState is what few streams ever need: a program may have very many streams.
type rareState struct {
	droppedOps    int         // operations dropped behind the head, done with it
	droppedEpochs []*epoch    // the epochs of the dropped operations
	began         int64       // when the head operation was started, while that is followed
	timer         sched.Timer // of the head operation, a wait with a limit
	parent        *Stream     // of a branch while a launch runs: the stream of the launch
	awaited       []uint64    // sequence numbers that threads wait for, also while none of them sleeps
	program       *program    // of a branch: whose nodes it runs, nil for the branches of bodies
	steps         uint64      // of a branch: how many operations each launch puts on it
}

// rareState returns the fields of s that few streams need.
func (s *Stream) rareState() *rareState {
	if s.rare == nil {
		s.rare = &rareState{}
	}
	return s.rare
}

// parent returns the stream of the launch that runs on s, nil if s is no branch or none runs.
func (s *Stream) parent() *Stream {
	if s.rare == nil {
		return nil
	}
	return s.rare.parent
}

// limited reports whether the head operation is a wait whose limit has begun.
func (s *Stream) limited() bool { return s.rare != nil && s.rare.timer != nil }

// Record implements driver.Stream.
func (s *Stream) Record(ev driver.Event, tag driver.Tag) error {
	e := s.eng
	v := ev.(*Event)
	e.Lock()
	if e.closed {
		e.Unlock()
		return errClosed("record")
	}
	seq := s.submitted.Load() + 1
	v.at = fence{s, seq}
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
		if t.dev.ordersNext(t) {
			e.add(t, &op{kind: opNop}) // the point at which an event would be recorded
		}
		if at := (fence{t, t.submitted.Load()}); !e.completeByDefinition(at) {
			e.add(s, &op{kind: opWait, tag: tag, arg: at.seq, on: at.on, limit: driver.Forever})
		} else {
			e.addBarrier(s, tag)
		}
	}
	e.point(sched.Enqueued, s, nil, 0)
	return nil
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

// Gate implements driver.Stream.
func (s *Stream) Gate(id uint64, tag driver.Tag) (driver.Gate, error) {
	g := &gate{eng: s.eng, id: id}
	if err := s.eng.submit(s, &op{kind: opGate, tag: tag, ref: g}); err != nil {
		return nil, err
	}
	return g, nil
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

// Copy implements driver.Stream.
func (s *Stream) Copy(c driver.Copy) (driver.Point, error) {
	w := copyWork(c)
	return nil, s.eng.submit(s, &op{kind: opWork, tag: c.Tag, ref: &w})
}

// Fill implements driver.Stream.
func (s *Stream) Fill(f driver.Fill) error {
	w := fillWork(f)
	return s.eng.submit(s, &op{kind: opWork, tag: f.Tag, ref: &w})
}

// Native implements driver.Stream.
func (s *Stream) Native(n driver.Native) error {
	return s.eng.submit(s, &op{kind: opWork, tag: n.Tag, ref: &nativeWork{Native: n, stream: s}})
}

// WriteValue implements driver.Stream.
func (s *Stream) WriteValue(v driver.Value) error {
	return s.eng.submit(s, &op{kind: opWriteValue, tag: v.Tag, ref: &valueOp{Value: v}})
}

// WaitValue implements driver.Stream.
func (s *Stream) WaitValue(v driver.Value) error {
	w := &valueOp{Value: v, shared: v.On == driver.Pinned && !s.dev.pinned.owns(v.Addr)}
	return s.eng.submit(s, &op{kind: opWaitValue, tag: v.Tag, ref: w})
}

// Query implements driver.Stream.
func (s *Stream) Query() (bool, error) {
	e := s.eng
	if e.parallel.Load() && !s.legacy {
		return s.completed.Load() == s.submitted.Load(), nil
	}
	e.Lock()
	e.point(sched.Queried, s, nil, 0)
	done := s.completed.Load() == s.submitted.Load()
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
	at := s.lastFence()
	s.eng.Unlock()
	return point{s.eng, at}
}

// lastFence returns the fence that is reached when all work enqueued so far is done. On the
// legacy default stream that includes the work of the streams ordered with it,
// so a marker is enqueued there unless nothing lies between.
func (s *Stream) lastFence() fence {
	if s.legacy && s.dev.unorderedWork() {
		s.eng.add(s, &op{kind: opNop})
	}
	return fence{s, s.submitted.Load()}
}

// Fence implements driver.Stream. Where later work may have to wait for the legacy order,
// an empty operation stands for it.
func (s *Stream) Fence(tag driver.Tag) uint64 {
	e := s.eng
	e.Lock()
	e.reportSequenced(tag)
	if s.ordered {
		if last := s.dev.last; !last.open || (last.legacy != s.legacy && last.pending > 0) {
			e.add(s, &op{kind: opNop})
		}
	}
	seq := s.submitted.Load()
	e.point(sched.Enqueued, s, nil, 0)
	e.Unlock()
	return seq
}

// Last implements driver.Stream.
func (s *Stream) Last() uint64 { return s.submitted.Load() }

// Reached implements driver.Stream.
func (s *Stream) Reached(seq uint64) bool { return s.completed.Load() >= seq }

// At implements driver.Stream.
func (s *Stream) At(seq uint64) driver.Point { return point{s.eng, fence{s, seq}} }

// Failure implements driver.Stream.
func (s *Stream) Failure() *driver.Error {
	if s.failure.Load() == nil {
		return nil
	}
	s.eng.Lock()
	defer s.eng.Unlock()
	return s.failure.Swap(nil)
}

// fail makes err the stream's error unless it has one, and reports whether it did.
// The lock is held.
func (s *Stream) fail(err *driver.Error) bool {
	for p := s.parent(); p != nil; p = s.parent() { // s is a branch, maybe of a body on a branch
		s = p
		if r, ok := s.q.front().ref.(*bodyRun); ok {
			r.stopped = true // what was to end the loop may not have run
		}
	}
	return s.failure.CompareAndSwap(nil, err)
}

// MayHaveFailed implements driver.Stream.
func (s *Stream) MayHaveFailed() bool { return s.failure.Load() != nil }

// Close implements driver.Stream. Pending work still runs; then the collector frees
// the stream.
func (s *Stream) Close() {}

// pending returns how many operations are not done.
func (s *Stream) pending() uint64 { return s.submitted.Load() - s.completed.Load() }

// Level implements sched.Stream.
func (s *Stream) Level() uint8 { return s.level }

// State implements sched.Stream.
func (s *Stream) State() sched.State {
	if s.started() != nil {
		return sched.Stalled // it waits for the branches
	}
	return s.state
}

// Enqueued implements sched.Stream.
func (s *Stream) Enqueued() uint64 { return s.submitted.Load() }

// Completed implements sched.Stream.
func (s *Stream) Completed() uint64 { return s.completed.Load() }

// Head implements sched.Stream.
func (s *Stream) Head() sched.Op {
	o := s.q.front()
	head := sched.Op{Tag: o.tag, Report: o.kind == opReport, Spreads: o.kind == opLaunch || o.kind == opBody, Cost: cost(o)}
	switch o.kind {
	case opCall, opPass:
		head.Token = o.arg
	case opWork:
		_, head.Delay = o.ref.(delayWork)
	}
	return head
}

// HandsOver implements sched.Stream.
func (s *Stream) HandsOver() bool {
	o := s.q.front()
	switch o.kind {
	case opCall:
		return true
	case opWork:
		return !o.ref.(work).short()
	}
	return false
}

// Pending implements sched.Stream.
func (s *Stream) Pending() bool {
	return s.state != sched.Idle || s.legacy && (!s.dev.last.open || s.dev.last.pending > 0)
}

// Holder implements sched.Stream.
func (s *Stream) Holder() sched.Stream {
	if h := s.holder(); h != nil {
		return h
	}
	return nil
}

func (s *Stream) holder() *Stream {
	if s.state == sched.Idle {
		return s.dev.firstOrdered(s)
	}
	o := s.q.front()
	if l := s.started(); l != nil {
		return l.pendingBranch()
	}
	if o.ep == nil || o.ep.open {
		if o.kind == opWait || o.kind == opLaunch {
			return fence{o.on, o.arg}.launched().on
		}
		return nil
	}
	// The legacy order puts the work of the open epoch before it.
	var best *Stream
	for t := s.dev.active; t != nil; t = t.next {
		if t == s {
			continue
		}
		if h := t.q.front(); h.ep == nil || !h.ep.open {
			continue
		}
		if t.state == sched.Ready {
			return t
		}
		if t.state == sched.Stalled && t.q.front().kind == opWait {
			best = t
		}
	}
	return best
}

// startTimer starts the time limit of the wait at the head of a blocked stream. A
// wait further behind has not begun to wait, so it needs no timer yet.
func (s *Stream) startTimer(ns int64) {
	if ns == driver.Forever || s.limited() {
		return
	}
	seq := s.completed.Load() + 1
	e := s.eng
	s.rareState().timer = e.clock.After(ns, func() {
		e.Lock()
		defer e.Unlock()
		s.expire(seq)
	})
}

// stopTimer ends the time limit of the head operation, if it has one.
func (s *Stream) stopTimer() {
	if s.limited() {
		s.rare.timer.Stop()
		s.rare.timer = nil
	}
}

// expire ends the wait with a sequence number with a Timeout error if it still blocks the
// stream: the timer may have fired while something else ended the wait. The lock is held.
func (s *Stream) expire(seq uint64) {
	if !s.limited() || s.state != sched.Stalled || s.completed.Load()+1 != seq {
		return
	}
	s.rare.timer = nil
	v := s.q.front().ref.(*Event)
	text := "wait for event " + name(v.opts.ID) + " passed its limit: " + v.describe(1)
	s.fail(&driver.Error{Kind: driver.Timeout, Op: "wait event", Text: text})
	s.leaveList()
	s.eng.finish(s)
	s.eng.advance(s)
}

// leaveList takes a blocked stream out of the list in which it waits.
func (s *Stream) leaveList() {
	o := s.q.front()
	if o.ep != nil && !o.ep.open {
		o.ep.blocked = without(o.ep.blocked, s)
		return
	}
	switch o.kind {
	case opWait, opLaunch:
		if o.on == nil {
			return
		}
		for i, w := range o.on.waiting {
			if w.stream == s {
				o.on.waiting.remove(i)
				return
			}
		}
	case opWaitSet:
		v := o.ref.(*Event)
		v.blocked = without(v.blocked, s)
	case opGate:
		o.ref.(*gate).blocked = nil
	case opWaitValue:
		s.eng.values.waiting = without(s.eng.values.waiting, s)
	}
}

func without(list []*Stream, s *Stream) []*Stream {
	for i, p := range list {
		if p == s {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// awaited reports whether a thread waits for a fence that s has not reached. The
// lock is held.
func (s *Stream) awaited() bool {
	if slices.ContainsFunc(s.waiting, func(w waiter) bool { return w.stream == nil }) {
		return true
	}
	return s.rare != nil && slices.ContainsFunc(s.rare.awaited, func(seq uint64) bool {
		return !fence{on: s, seq: seq}.reached()
	})
}

// atWork reports whether workers run the head operation of s, or nodes of the graph that it launches.
// The lock is held.
func (s *Stream) atWork() bool {
	if s.state != sched.Running {
		return false
	}
	kind := s.q.front().kind
	return kind == opWork || kind == opLaunch
}

// abort drops the operations that have not begun, and returns how many. The lock is held.
func (s *Stream) abort() int {
	e := s.eng
	if s.state == sched.Idle {
		return 0
	}
	if s.awaited() && s.dev.lost.Load() == nil { // else who waits gets the error of the device
		s.fail(driver.Errorf(driver.Aborted, "synchronize", "the pending work of %s was dropped", s.title()))
	}
	rest := s.q.drop()
	if last := len(rest) - 1; s.parent() != nil && last >= 0 {
		s.q.push(&rest[last]) // the launch goes on when the branch has ended
		rest = rest[:last]
	}
	n := len(rest)
	for i := range rest {
		s.undo(&rest[i])
		if ep := rest[i].ep; ep != nil {
			s.rareState().droppedEpochs = append(s.rareState().droppedEpochs, ep)
		}
	}
	s.rareState().droppedOps += n
	head := s.q.front()
	if l := s.started(); l != nil {
		l.stop()
		if l.body != nil {
			l.body.stopped = true
		}
	}
	if head.kind == opBranchEnd {
		// It can run, and has to: the launch goes on behind it.
	} else if s.state == sched.Stalled || s.state == sched.Ready || s.state == sched.Queued {
		switch s.state {
		case sched.Stalled:
			s.leaveList()
		case sched.Queued:
			s.dev.backlog.Remove(s.level, func(o *Stream) bool { return o == s })
		}
		// As an empty operation it can run whatever the stream waits for.
		s.undo(head)
		head.kind, head.ref, head.on = opNop, nil, nil
		n++
		if s.state != sched.Ready {
			e.advance(s)
		}
	}
	e.point(sched.Ended, s, nil, 0)
	return n
}

// undo reverts what enqueuing an operation that will not run has changed elsewhere.
func (s *Stream) undo(o *op) {
	switch o.kind {
	case opCall, opPass, opReport, opReportPass:
		s.eng.unpark(o.ref.(driver.Sink).Drop(o.arg))
	case opWait, opWaitSet:
		if ev, ok := o.ref.(*Event); ok {
			ev.waits--
		}
	case opLaunch:
		o.ref.(*launch).drop()
	case opWork:
		s.drop(o.ref.(work))
	case opRecord:
		// Streams that wait for the record continue: the work before it was dropped.
		s.eng.stamp(o)
	}
}

// drop frees what a piece of work that will not run has.
func (s *Stream) drop(w work) {
	if n, ok := w.(*nativeWork); ok && n.Call != nil {
		n.Call.Drop()
	}
	c, ok := w.(*copyWork)
	if !ok {
		return
	}
	c.release()
	if c.Waited && s.dev.lost.Load() == nil {
		s.fail(driver.Errorf(driver.Aborted, "copy", "the pending work of %s was dropped", s.title()))
	}
}

// lose makes the device of s useless, and those of the launches that s is a branch of: what
// has not started on them is dropped. The first error stays. The lock is held.
func (s *Stream) lose(err *driver.Error) {
	for p := s; p != nil; p = p.parent() {
		if p.dev.lost.CompareAndSwap(nil, err) {
			p.dev.abort()
		}
	}
}
