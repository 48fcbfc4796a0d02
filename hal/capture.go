package hal

import (
	"fmt"

	"halstream/hal/driver"
)

// CaptureMode says which calls that are unsafe during a capture are refused.
type CaptureMode uint8

// The modes, with CUDA's numbers.
const (
	// GlobalMode: unsafe calls of every thread are refused while the capture runs.
	GlobalMode CaptureMode = iota
	// ThreadLocalMode: those of the thread that began it.
	ThreadLocalMode
	// RelaxedMode: none; and any thread may end the capture.
	RelaxedMode
	captureModes
)

// CaptureState says whether a stream takes part in a capture.
type CaptureState uint8

// The states, with CUDA's numbers.
const (
	// NotCapturing: work that is enqueued runs.
	NotCapturing CaptureState = iota
	// Capturing: it becomes nodes of a graph.
	Capturing
	// Invalidated: a call that a capture forbids was made; the capture must be ended.
	Invalidated
)

// CUDA's numbers of the rules of captures.
const (
	codeIllegalState = 401
	codeUnsupported  = 900
	codeInvalidated  = 901
	codeMerge        = 902
	codeUnmatched    = 903
	codeUnjoined     = 904
	codeIsolation    = 905
	codeImplicit     = 906
	codeCaptured     = 907
	codeWrongThread  = 908
	codeUpdate       = 910
)

func captureError(code int, op, format string, args ...any) *Error {
	e := driver.Errorf(driver.Capture, op, format, args...)
	e.Code = code
	return e
}

// Capture turns what is enqueued on its streams into nodes of a graph.
type Capture struct {
	rt     *Runtime
	id     uint64
	mode   CaptureMode
	thread *Thread
	origin *Stream
	site   uint32 // of its begin
	graph  *Graph
	target *Graph // of a stream of Builder: that gets the node of graph; nil for captures
	// legacy is the device for whose legacy default stream this stands: no capture, but
	// the rule that the stream is not used while ordered streams are captured.
	legacy *Device

	// The mutex of graph guards the rest.
	cause     error  // of the invalidation
	causedAt  string // the place in the program, behind " at"
	ended     bool
	anyRecord bool                // an event was recorded, which is no node
	first     branch              // of the origin
	others    map[*Stream]*branch // of the streams that were pulled in, nil while there are none
	calls     calls
}

// branch is the part of a capture that is on one stream.
type branch struct {
	tails []*Node // that the next node comes after; others may have this slice, so its elements never change
	site  uint32  // where the stream was pulled in
}

// branch returns the part of the capture that is on s, nil if there is none. The caller holds the graph's mu.
func (c *Capture) branch(s *Stream) *branch {
	if s == c.origin {
		return &c.first // of most captures there is no other
	}
	return c.others[s]
}

// BeginCapture makes s the origin of a capture: work enqueued on it does not run, but
// becomes nodes of a graph. Streams that wait for an event recorded there take part from
// then on, and have to be joined again.
//
// # Errors
//   - [ErrCapture]: s captures already, also for another library, or is the legacy default stream.
//   - [ErrNotSupported]: the backend has no graphs.
//   - [ErrInvalidValue]: there is no such mode.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: G1, G2. Source: CUDA driver API, cuStreamBeginCapture.
func (s *Stream) BeginCapture(t *Thread, mode CaptureMode) error {
	if s == s.dev.legacy && mode < captureModes {
		return captureError(codeUnsupported, beginCapture,
			"the legacy default stream cannot be captured; make a stream and capture that")
	}
	return s.BeginOwnCapture(t, mode)
}

// BeginOwnCapture is BeginCapture for a framework whose default stream is a stream of its own: s may be
// the legacy default stream, which stands for that one.
//
// # Errors: as for BeginCapture, which the legacy default stream has only while an ordered stream captures.
//
// Contract: G1, G2.
func (s *Stream) BeginOwnCapture(t *Thread, mode CaptureMode) error {
	const op = beginCapture
	if mode >= captureModes {
		return driver.Errorf(driver.InvalidValue, op, "there is no mode %d of captures", mode)
	}
	rt := s.dev.rt
	if s.capture.Load() != nil {
		return s.capturesAlready(op)
	}
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if _, err := rt.graphDriver(op); err != nil {
		return err
	}
	if s.capturedElsewhere() {
		return captureError(codeIllegalState, op, "another library captures %s already; end that capture first", s.title())
	}
	c := &Capture{rt: rt, id: captureIDs.Add(1), mode: mode, thread: t, origin: s, site: rt.listeners.site(),
		graph: rt.newGraph()}
	c.graph.capture = c
	if !rt.captures.join(s, c) {
		return s.capturesAlready(op)
	}
	return nil
}

// beginCapture is the name of the call in errors.
const beginCapture = "begin capture"

func (s *Stream) capturesAlready(op string) error {
	c := s.capture.Load()
	switch {
	case c == nil: // another thread has ended it
		return captureError(codeIllegalState, op, "%s captured until now; begin again", s.title())
	case c.legacy != nil:
		return captureError(codeImplicit, op, "an ordered stream of device %d captures, so its default stream cannot; "+
			"end that capture first", s.dev.ordinal)
	case c.origin == s:
		return captureError(codeIllegalState, op, "%s captures already%s; end that capture first", s.title(), c.since())
	}
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	at := ""
	if b := c.branch(s); b != nil {
		at = c.rt.at(b.site)
	}
	return captureError(codeIllegalState, op, "%s takes part in the capture of %s%s, as it was pulled in%s; "+
		"end that capture first", s.title(), c.origin.title(), c.since(), at)
}

// since returns where a capture began, for texts that have named it; "" if that is unknown.
func (c *Capture) since() string {
	if at := c.rt.at(c.site); at != "" {
		return " (since its begin" + at + ")"
	}
	return ""
}

// title names the stream in texts of captures.
func (s *Stream) title() string {
	if c := s.capture.Load(); c != nil && c.builds() && c.origin == s {
		return "the stream that adds a node to a graph"
	}
	return fmt.Sprintf("stream %d of device %d", s.index, s.dev.ordinal)
}

// fail invalidates the capture with an error and returns that.
func (c *Capture) fail(err *Error) error {
	if c.legacy != nil {
		for _, other := range c.rt.captures.on(c.legacy, true) {
			_ = other.fail(err)
		}
		return err
	}
	at := c.rt.at(c.rt.listeners.site())
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	c.closeCalls()
	if c.cause == nil && !c.ended {
		c.cause, c.causedAt = err, at
	}
	return err
}

// invalidated is the error of a call on a stream of a capture that was invalidated. The caller holds the
// graph's mu.
func (c *Capture) invalidated(op, remedy string) error {
	return captureError(codeInvalidated, op, "the capture of %s was invalidated%s: %v%s", c.origin.title(), c.causedAt, c.cause, remedy)
}

// builds reports whether this is no capture but stands for a node that Add makes.
func (c *Capture) builds() bool { return c.legacy == nil && c.id == 0 }

// refuse invalidates the capture because of a call that cannot be captured.
func (c *Capture) refuse(s *Stream, op, remedy string) error {
	if err := c.usable(s, op); err != nil {
		return err
	}
	return c.fail(captureError(codeUnsupported, op, "%s captures, and %q cannot become a part of a graph; %s",
		s.title(), op, remedy))
}

// usable rejects a capture that was invalidated, and the legacy default stream.
func (c *Capture) usable(s *Stream, op string) error {
	if c.legacy != nil {
		first := "streams that capture"
		if found := c.rt.captures.on(c.legacy, true); len(found) > 0 {
			first = found[0].origin.title() + ", which captures" + found[0].since()
		}
		return c.fail(captureError(codeImplicit, op, "work on the legacy default stream of device %d would depend on %s; "+
			"use another stream, or capture a non-blocking one", c.legacy.ordinal, first))
	}
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	return c.usableLocked(s, op)
}

func (c *Capture) usableLocked(s *Stream, op string) error {
	if c.cause != nil {
		return c.invalidated(op, "; end it")
	}
	if c.ended || c.branch(s) == nil {
		return captureError(codeUnmatched, op, "%s does not capture any more", s.title())
	}
	return nil
}

// checkNotCaptured is checkOpen for calls that look at the work of s, which a capture forbids.
func (s *Stream) checkNotCaptured(t *Thread, op string) error {
	if err := s.checkOpen(t, op); err != nil {
		return err
	}
	switch c := s.capture.Load(); {
	case c == nil:
		return nil
	case c.builds():
		return c.refuse(s, op, "enqueue one operation, which is to be the node")
	default:
		return c.refuse(s, op, "end the capture and launch its graph first, as nothing that is captured runs before that")
	}
}

// Captures reports whether a stream of d takes part in a capture of the runtime, which a wait for all work of d
// would invalidate.
//
// Contract: G4.
func (d *Device) Captures() bool {
	return d.rt.captures.count.Load() != 0 && len(d.rt.captures.on(d, false)) > 0
}

// checkNotCaptured rejects a wait for all work of d while streams of d capture.
func (d *Device) checkNotCaptured() error {
	if d.rt.captures.count.Load() == 0 {
		return nil
	}
	found := d.rt.captures.on(d, false)
	if len(found) == 0 {
		return nil
	}
	err := captureError(codeUnsupported, "synchronize device", "%s captures%s; end the capture first",
		found[0].origin.title(), found[0].since())
	for _, c := range found {
		_ = c.fail(err)
	}
	return err
}

// capturedElsewhere reports whether another library captures s.
func (s *Stream) capturedElsewhere() bool {
	k, ok := s.d.(driver.CapturedStream)
	return ok && k.Captured()
}

// inOtherCapture returns the stream of the latest record if another library captures that stream.
func (e *Event) inOtherCapture() *Stream {
	if s := e.recordedOn.Load(); s != nil && s.capturedElsewhere() {
		return s
	}
	return nil
}

func (e *Event) inOtherGraph(s *Stream) string {
	return "the latest record of the event is on " + s.title() + ", which another library captures"
}

// checkCapturedElsewhere rejects what cannot become a node of another library's graph.
func (s *Stream) checkCapturedElsewhere(op, what string) error {
	if s == s.dev.legacy || !s.capturedElsewhere() {
		return nil // the driver refuses work on the legacy default stream beside a capture
	}
	return captureError(codeUnsupported, op, "another library captures %s, and its graph cannot have %s; "+
		"end that capture first", s.title(), what)
}

// IsCapturing returns whether s takes part in a capture, also in one of another library.
//
// # Errors
//   - [ErrCapture]: s is the legacy default stream, and an ordered stream captures.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: G1. Source: CUDA driver API, cuStreamIsCapturing.
func (s *Stream) IsCapturing(t *Thread) (CaptureState, error) {
	const op = "query capture"
	if err := s.checkOpen(t, op); err != nil {
		return NotCapturing, err
	}
	c := s.capture.Load()
	if c == nil {
		switch elsewhere := s.capturedElsewhere(); {
		case elsewhere && s == s.dev.legacy:
			return NotCapturing, captureError(codeImplicit, op, "another library captures an ordered stream of device %d, "+
				"so the legacy default stream cannot be queried", s.dev.ordinal)
		case elsewhere:
			return Capturing, nil
		}
		return NotCapturing, nil
	}
	if c.legacy != nil {
		return NotCapturing, captureError(codeImplicit, op,
			"an ordered stream of device %d captures, so the legacy default stream cannot be queried", s.dev.ordinal)
	}
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	if c.cause != nil {
		return Invalidated, nil
	}
	return Capturing, nil
}

// Captures reports whether s takes part in a capture of the runtime, or stands for a node that is added to a graph.
func (s *Stream) Captures() bool { return s.capture.Load() != nil }

// CaptureID returns the number of the capture that s takes part in, 0 if it does not;
// the process does not use a number again.
func (s *Stream) CaptureID() uint64 {
	if c := s.capture.Load(); c != nil {
		return c.id
	}
	return 0
}
