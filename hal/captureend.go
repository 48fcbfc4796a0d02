package hal

import (
	"fmt"
	"slices"

	"halstream/hal/driver"
)

// TakeLost returns the error of a capture that began on s and ended as s was closed, which EndCapture then
// reports no more; nil if there is none.
func (s *Stream) TakeLost() error {
	if err := s.lost.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// EndCapture ends the capture that began on s, and returns its graph. The streams of the
// capture are usable afterwards, also where it fails with Invalidated or Unjoined.
//
// # Errors: [ErrCapture]
//   - s does not capture, or is not the stream on which the capture began.
//   - The capture is not relaxed and was begun by another thread.
//   - A stream that was pulled in was not joined, or a forbidden call was made.
//
// And [ErrInHostFunction].
//
// Contract: G1, G3, G4. Source: CUDA driver API, cuStreamEndCapture.
func (s *Stream) EndCapture(t *Thread) (*Graph, error) {
	const op = "end capture"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	c := s.capture.Load()
	if c == nil {
		if lost := s.TakeLost(); lost != nil {
			return nil, lost
		}
	}
	switch {
	case c == nil || c.legacy != nil:
		return nil, captureError(codeIllegalState, op, "%s does not capture; begin a capture first", s.title())
	case c.origin != s:
		return nil, c.fail(captureError(codeUnmatched, op, "the capture began on %s and ends there, not on %s",
			c.origin.title(), s.title()))
	case c.mode != RelaxedMode && c.thread != t:
		return nil, captureError(codeWrongThread, op, "another thread began this capture of %s%s; end it there, "+
			"or begin it in relaxed mode", s.title(), c.since())
	}
	g, err := c.end(op)
	if err != nil {
		g.keep.release()
		g.forgetCalls()
		return nil, err
	}
	if s.listened() {
		s.dev.rt.notifyHost(Operation{Kind: OpEndCapture, Stream: s, Thread: t, Graph: g, Nodes: g.NodeList()})
	}
	return g, nil
}

// end ends the capture and returns its graph, which the error makes useless.
func (c *Capture) end(op string) (*Graph, error) {
	c.graph.mu.Lock()
	if c.ended {
		c.graph.mu.Unlock()
		return c.graph, captureError(codeIllegalState, op, "another thread has ended the capture")
	}
	lent := c.calls.lanes != nil // a list, whose caller may have events of this capture
	c.endCalls()
	var err error
	if c.cause != nil {
		err = c.invalidated(op, "")
	}
	lost := c.unjoined()
	taken := c.calls.list == nil
	c.graph.mu.Unlock()
	c.rt.captures.leave(c.origin, c.others) // nothing is added to these any more
	if lent {
		if taken {
			c.rt.captures.takeBack(c)
		}
		c.rt.captures.past.add(c)
	}
	if err == nil && lost != nil {
		err = captureError(codeUnjoined, op, "%s was pulled in%s and never rejoined: record an event on it and let %s "+
			"wait for it before the capture ends", lost.title(), c.rt.at(c.others[lost].site), c.origin.title())
	}
	return c.graph, err
}

// unjoined returns a stream with nodes that the origin does not come after, nil if there
// is none. The caller holds the graph's mu.
func (c *Capture) unjoined() *Stream {
	if len(c.others) == 0 {
		return nil
	}
	c.makeNodes()
	joined := c.graph.upTo(c.first.tails)
	var worst *Stream
	for s, b := range c.others {
		if slices.ContainsFunc(b.tails, func(n *Node) bool { return !joined[n.index] }) && (worst == nil || s.index < worst.index) {
			worst = s
		}
	}
	return worst
}

// abandon ends the capture of a stream that is closed, without a graph.
func (c *Capture) abandon(s *Stream) {
	_ = c.fail(captureError(codeInvalidated, "close stream", "%s was closed; close it after the end of the capture", s.title()))
	if err := c.leave(s); err != nil {
		s.lost.Store(&err)
	}
}

// leave ends the part of a stream in the capture, and the capture with that of its origin, of which it
// returns the error.
func (c *Capture) leave(s *Stream) error {
	if c.origin == s {
		g, err := c.end("end capture")
		g.keep.release()
		g.forgetCalls()
		return err
	}
	c.rt.captures.leave(s, nil)
	return nil
}

// LeaveCapture ends the part in a capture of a stream that nobody refers to any more, before it is
// closed. A capture that began on s ends without a graph, and its other streams are usable. A capture
// of another stream goes on: s has to be joined as the others have to.
//
// Contract: G4.
func (s *Stream) LeaveCapture() {
	if c := s.capture.Load(); c != nil && c.legacy == nil && !c.builds() {
		_ = c.leave(s)
	}
}

// waitCaptured is Wait for an event where s captures or the event was recorded in a
// capture.
func (s *Stream) waitCaptured(t *Thread, e *Event) error {
	const op = "wait event"
	if e.closed.Load() {
		return closedError(op, "event")
	}
	if e.rt != s.dev.rt {
		return e.otherRuntime(op)
	}
	c, r := s.capture.Load(), e.captured.Load()
	if r != nil {
		return s.waitRecord(op, func() string { return fmt.Sprintf("event %d", e.id) }, r)
	}
	if c == nil { // another thread has ended the capture
		return s.Wait(t, e)
	}
	if err := c.usable(s, op); err != nil {
		return err
	}
	if !e.WasRecorded() && e.opts.Kind == Standard {
		return nil // complete (E1)
	}
	return c.fail(captureError(codeIsolation, op, "event %d was recorded outside of the capture of %s, "+
		"so that the graph would depend on work that it does not contain; wait for it before the capture begins, "+
		"or as an external event", e.id, c.origin.title()))
}

// waitStreamCaptured is WaitStream where one of the two streams captures.
func (s *Stream) waitStreamCaptured(o *Stream) error {
	const op = "wait stream"
	if o.dev.rt != s.dev.rt {
		return otherRuntimeError(op, fmt.Sprintf("stream %d", o.index))
	}
	if other := o.capture.Load(); other != nil {
		if err := other.usable(o, op); err != nil {
			return err
		}
		other.graph.mu.Lock()
		other.makeNodes()
		tails := other.branch(o).tails
		other.graph.mu.Unlock()
		return s.waitNodes(op, o.title, other, tails)
	}
	c := s.capture.Load()
	if err := c.usable(s, op); err != nil {
		return err
	}
	return c.fail(captureError(codeIsolation, op, "%s does not take part in the capture of %s: "+
		"wait for it before the capture begins, or let it wait for a stream of the capture first", o.title(), c.origin.title()))
}

// waitNodes makes later work of s come after nodes of capture r, in which s takes part
// from then on. what names in errors what is waited for.
func (s *Stream) waitNodes(op string, what func() string, r *Capture, tails []*Node) error {
	c := s.capture.Load()
	if c != nil && c.legacy != nil {
		return c.usable(s, op)
	}
	if c != nil && c != r {
		r.graph.mu.Lock()
		ended := r.ended
		r.graph.mu.Unlock()
		err := captureError(codeMerge, op, "%s belongs to another capture than %s; two captures cannot be merged: "+
			"end one of them first", what(), s.title())
		if ended {
			err = captureError(codeIsolation, op, "%s belongs to a capture that has ended; record it again", what())
		} else {
			_ = r.fail(err)
		}
		return c.fail(err)
	}
	if c == nil && (r.builds() || s == s.dev.legacy) {
		if err := r.takesPart(op, what); err != nil {
			return err
		}
		if r.builds() {
			return r.fail(captureError(codeUnsupported, op, "%s makes one node, so that %s cannot take part; capture the two "+
				"streams, or let a node come after the other one", r.origin.title(), s.title()))
		}
		return r.fail(captureError(codeImplicit, op, "the legacy default stream cannot take part in the capture of %s; "+
			"use another stream", r.origin.title()))
	}
	var site uint32
	if c == nil {
		site = r.rt.listeners.site()
	}
	r.graph.mu.Lock()
	defer r.graph.mu.Unlock()
	if err := r.takesPartLocked(op, what); err != nil {
		return err
	}
	if c == nil {
		if !r.rt.captures.join(s, r) {
			return captureError(codeMerge, op, "%s has just begun another capture", s.title())
		}
		if r.others == nil {
			r.others = map[*Stream]*branch{}
		}
		r.others[s] = &branch{tails: tails, site: site}
		return nil
	}
	r.makeNodes()
	r.branch(s).join(tails)
	return nil
}

// takesPart rejects a wait for a part of a capture that has ended or was invalidated.
func (c *Capture) takesPart(op string, what func() string) error {
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	return c.takesPartLocked(op, what)
}

func (c *Capture) takesPartLocked(op string, what func() string) error {
	if c.ended {
		return captureError(codeIsolation, op,
			"%s stands for a part of a capture that has ended; record it again", what())
	}
	if c.cause != nil {
		return c.invalidated(op, "; end it")
	}
	return nil
}

// RecordExternal is Record for an event that work outside of the graph waits for: on a
// capturing stream it adds a node which records the event each time the graph runs.
//
// # Errors: as for Record.
//
// Contract: G7. Source: CUDA driver API, cuEventRecordWithFlags.
func (s *Stream) RecordExternal(t *Thread, e *Event) error {
	if s.capture.Load() == nil {
		return s.Record(t, e)
	}
	return s.captureExternal(t, "record", driver.RecordNode, e)
}

// WaitExternal is Wait for an event that work outside of the graph records: on a
// capturing stream it adds a node that waits for the record which is the latest when the
// graph begins to run.
//
// # Errors: as for Wait.
//
// Contract: G7. Source: CUDA driver API, cuStreamWaitEvent.
func (s *Stream) WaitExternal(t *Thread, e *Event) error {
	if s.capture.Load() == nil {
		return s.Wait(t, e)
	}
	return s.captureExternal(t, "wait event", driver.WaitNode, e)
}

func (s *Stream) captureExternal(t *Thread, op string, kind driver.GraphNodeKind, e *Event) error {
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if e.opts.Kind != Standard {
		return driver.Errorf(driver.NotSupported, op, "event %d is of a kind that graphs cannot record or wait for", e.id)
	}
	d, err := e.bind(s.dev)
	if err != nil {
		return err
	}
	if kind == driver.RecordNode {
		e.byGraphs.Store(true)
	}
	err = s.capture.Load().addNode(s, &Node{kind: kind, spec: &driver.GraphWork{Event: d}, event: e})
	if err == nil && kind == driver.RecordNode {
		e.captured.Store(nil) // its latest record is that of the node
	}
	return err
}

// CheckNotCaptured rejects a call that cannot be captured, which op names, where s captures, and invalidates the
// capture. remedy says what to do instead.
//
// # Errors
//   - [ErrCapture]: s captures.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: G4.
func (s *Stream) CheckNotCaptured(t *Thread, op, remedy string) error {
	if err := s.checkOpen(t, op); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, op, remedy)
	}
	return nil
}

// CheckUnsafe rejects a call that is unsafe while streams capture, such as an
// allocation, as the modes of the captures and of the calling thread demand. Captures
// that forbid it are invalidated.
//
// # Errors: [ErrCapture], [ErrInHostFunction].
//
// Contract: G2. Source: CUDA driver API, cuThreadExchangeStreamCaptureMode.
func (rt *Runtime) CheckUnsafe(t *Thread, op string) error {
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if rt.captures.count.Load() == 0 || t == nil || t.captureMode == RelaxedMode {
		return nil
	}
	a := &rt.captures
	a.mu.Lock()
	var found []*Capture
	for _, c := range a.active {
		forbids := c.thread == t && c.mode != RelaxedMode ||
			t.captureMode == GlobalMode && c.thread != t && c.mode == GlobalMode
		if forbids && !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	a.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	err := captureError(codeUnsupported, op, "this call is unsafe while %s captures: make it before the capture, "+
		"or capture in thread-local or relaxed mode", found[0].origin.title())
	for _, c := range found {
		_ = c.fail(err)
	}
	return err
}

// ExchangeCaptureMode sets which unsafe calls of this thread are refused, and returns
// what was set before.
//
// # Errors: [ErrInvalidValue].
//
// Contract: G2. Source: CUDA driver API, cuThreadExchangeStreamCaptureMode.
func (t *Thread) ExchangeCaptureMode(mode CaptureMode) (CaptureMode, error) {
	if mode >= captureModes {
		return 0, driver.Errorf(driver.InvalidValue, "exchange capture mode", "there is no mode %d of captures", mode)
	}
	before := t.captureMode
	t.captureMode = mode
	return before, nil
}
