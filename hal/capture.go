package hal

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/status"
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

// builds reports whether this is no capture but stands for a node that Add makes.
func (c *Capture) builds() bool { return c.legacy == nil && c.id == 0 }

// captureIDs is the number of the latest capture of any runtime.
var captureIDs atomic.Uint64

// captures are the captures of a runtime.
type captures struct {
	count atomic.Int32 // of active
	mu    sync.Mutex
	// active are the streams that capture, with their captures.
	active map[*Stream]*Capture
}

// What can be asked.

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

// Captures reports whether a stream of d takes part in a capture of the runtime, which a wait for all work of d
// would invalidate.
//
// Contract: G4.
func (d *Device) Captures() bool {
	return d.rt.captures.count.Load() != 0 && len(d.rt.captures.on(d, false)) > 0
}

// title names the stream in texts of captures.
func (s *Stream) title() string {
	if c := s.capture.Load(); c != nil && c.builds() && c.origin == s {
		return "the stream that adds a node to a graph"
	}
	return fmt.Sprintf("stream %d of device %d", s.index, s.dev.ordinal)
}

// since returns where a capture began, for texts that have named it; "" if that is unknown.
func (c *Capture) since() string {
	if at := c.rt.at(c.site); at != "" {
		return " (since its begin" + at + ")"
	}
	return ""
}

// The begin of a capture.

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

// join makes s a stream of c, and reports false if it is one of another capture.
func (a *captures) join(s *Stream, c *Capture) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !s.capture.CompareAndSwap(nil, c) {
		return false
	}
	if a.active == nil {
		a.active = map[*Stream]*Capture{}
	}
	a.active[s] = c
	a.count.Add(1)
	c.rt.status.Or(status.Captured)
	if s.Ordered() {
		a.mark(s.dev)
	}
	return true
}

// mark refuses work on the legacy default stream of d while ordered streams capture: it
// would depend on them. While it captures itself, nothing changes. The caller holds mu.
func (a *captures) mark(d *Device) {
	for s := range a.active {
		if s.dev == d && s.Ordered() {
			if d.legacy.capture.Load() == nil {
				if d.refusing == nil {
					d.refusing = &Capture{rt: d.rt, legacy: d}
				}
				d.legacy.capture.Store(d.refusing)
			}
			return
		}
	}
	d.legacy.capture.Store(nil)
}

// on returns the captures that have streams on d, ordered ones only if that is set.
func (a *captures) on(d *Device, ordered bool) (found []*Capture) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s, c := range a.active {
		if s.dev == d && (!ordered || s.Ordered()) && !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	return found
}

// How operations become nodes.

// add adds a copy of n as a node behind what was captured on s.
func (c *Capture) add(s *Stream, n *Node) (*Node, error) {
	if c.legacy != nil {
		return nil, c.usable(s, n.kind.String())
	}
	if n.site == 0 {
		n.site = c.rt.listeners.site()
	}
	n.device, n.level = s.dev.ordinal, s.level
	if c.id != 0 { // not of Builder, whose stream is of one node only
		n.stream = s
	}
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	if err := c.usableLocked(s, n.kind.String()); err != nil {
		return nil, err
	}
	b := c.branch(s)
	n.after = b.tails
	made := c.graph.add(n)
	made.self[0] = made
	b.tails = made.self[:]
	c.graph.keep.keepBlocks(made.blocks)
	return made, nil
}

// addNode is add for callers that need no node.
func (c *Capture) addNode(s *Stream, n *Node) error {
	_, err := c.add(s, n)
	return err
}

// addChild adds a graph as a node.
func (c *Capture) addChild(s *Stream, child *Graph) (*Node, error) {
	if child.rt != c.rt {
		return nil, otherRuntimeError("add node", "a graph")
	}
	own := child.clone()
	n := &Node{kind: driver.ChildNode, child: own}
	for _, m := range own.nodes {
		n.reads, n.writes = append(n.reads, m.reads...), append(n.writes, m.writes...)
	}
	n, err := c.add(s, n)
	if err == nil {
		c.graph.keep.addKeep(own.keep)
	}
	own.keep.release()
	return n, err
}

// addFunc adds a function of the program, which the graph keeps.
func (c *Capture) addFunc(s *Stream, token uint64, a Accesses, site uint32) error {
	n := Node{kind: driver.CallNode, token: token, reads: a.Reads, writes: a.Writes, complete: a.Complete, site: site}
	if len(a.Reads)+len(a.Writes) > 0 {
		n.blocks = s.dev.rt.blocksOf(a.Reads, a.Writes)
	}
	return c.addToken(s, &n, token)
}

// addToken adds a node of a function, if n is not nil, and keeps what the token stands for.
func (c *Capture) addToken(s *Stream, n *Node, token uint64) error {
	if n != nil {
		if err := c.addNode(s, n); err != nil {
			return err
		}
	} else if err := c.usable(s, "keep objects"); err != nil {
		return err
	}
	c.graph.keep.addToken(token)
	return nil
}

// addNativeFunc adds a native function that can fail, and keeps its argument.
func (c *Capture) addNativeFunc(s *Stream, f *NativeFunc, call *nativeCall) error {
	reads, writes := rangesOf(f.Accesses)
	n := &Node{kind: driver.NativeNode, spec: &driver.GraphWork{Native: &driver.Native{Call: &graphCall{nativeCall: *call}}},
		name: f.Name, site: f.Site, reads: reads, writes: writes, handsIn: f.HandsIn,
		blocks: s.dev.rt.blocksOf(reads, writes)}
	if err := c.addNode(s, n); err != nil {
		return err
	}
	if call.release != 0 {
		c.graph.keep.add(call.free)
	}
	return nil
}

// addSimulated adds a launch on a simulated device, which gets the lists, and keeps it and its module.
func (c *Capture) addSimulated(s *Stream, f *Function, call *nativeCall, reads, writes []Range) error {
	return c.addWithModule(f.module, func() error {
		n := &Node{kind: driver.KernelNode, name: f.name, reads: reads, writes: writes, handsIn: true,
			spec:   &driver.GraphWork{Native: &driver.Native{Call: &graphCall{nativeCall: *call}}},
			blocks: append(s.dev.rt.blocksOf(reads, writes), f.module.code)}
		return c.addNode(s, n)
	})
}

// addWithModule adds a node by a function, and keeps a module until the last graph with the node has ended.
func (c *Capture) addWithModule(m *Module, add func() error) error {
	keeps := c.legacy == nil && c.graph.keep.hasModule(m)
	if keeps && m.closed.Load() || !keeps && !m.beginKeep() {
		return closedError("launch", "module")
	}
	err := add()
	switch {
	case err != nil && !keeps:
		m.letGo(1)
	case err == nil && !keeps:
		c.graph.keep.addModule(m)
	}
	return err
}

// launchNode is what a node with a launch needs, in one piece; the arguments, which C code gets, are another one, as
// cgo allows no pointers of Go's beside them.
type launchNode struct {
	work   driver.GraphWork
	launch driver.Launch
}

// addLaunch adds a launch of a function, which gets the lists. It keeps the arguments, and the module until the last
// launch.
func (c *Capture) addLaunch(s *Stream, f *Function, spec *LaunchSpec, reads, writes []Range, blocks []*Block) error {
	made := &launchNode{launch: spec.of(f)}
	made.launch.Args = slices.Clone(spec.Args)
	made.work.Launch = &made.launch
	return c.addWithModule(f.module, func() error {
		return c.addNode(s, &Node{kind: driver.KernelNode, spec: &made.work, name: f.name,
			reads: reads, writes: writes, blocks: append(blocks, f.module.code)})
	})
}

// addCopy adds a copy between the blocks of source and target.
func (c *Capture) addCopy(s *Stream, copied driver.Copy, blocks []*Block, call CopyCall) error {
	if call == BlockingCopy {
		return c.refuse(s, "copy", "a copy that the host waits for cannot: enqueue it, and synchronize after the launch")
	}
	if blocks[0] == nil || blocks[1] == nil {
		return c.refuse(s, "copy", "a copy from or to pageable host memory needs the host: use pinned memory")
	}
	reads := rows(copied.Src, copied.SrcPitch, copied.Width, copied.Height)
	writes := rows(copied.Dst, copied.DstPitch, copied.Width, copied.Height)
	return c.addNode(s, &Node{kind: driver.CopyNode, spec: &driver.GraphWork{Copy: &copied},
		reads: reads, writes: writes, blocks: blocks})
}

// fillNode is what a node with a fill needs, in one piece.
type fillNode struct {
	work   driver.GraphWork
	writes [1]Range
	blocks [1]*Block
}

// addFill adds a fill of a block.
func (c *Capture) addFill(s *Stream, fill driver.Fill, b *Block) error {
	made := &fillNode{work: driver.GraphWork{Fill: fill}, blocks: [1]*Block{b},
		writes: [1]Range{{fill.Dst, fill.Count * uint64(fill.Size)}}}
	return c.addNode(s, &Node{kind: driver.FillNode, spec: &made.work, writes: made.writes[:], blocks: made.blocks[:]})
}

// Records and waits: how streams take part in a capture, and how their nodes are ordered.

// capturedRecord is what an event stands for that was recorded on a capturing stream: the nodes that come before.
type capturedRecord struct {
	capture *Capture
	tails   []*Node
}

// record makes e stand for what was captured on s so far.
func (c *Capture) record(s *Stream, e *Event) error {
	if err := c.usable(s, "record"); err != nil {
		return err
	}
	if _, err := e.bind(s.dev); err != nil {
		return err
	}
	c.graph.mu.Lock()
	c.anyRecord = true
	e.captured.Store(&capturedRecord{capture: c, tails: c.branch(s).tails})
	c.graph.mu.Unlock()
	return nil
}

// refuse rejects a call on an event that stands for a part of a capture, which is
// invalidated by it.
func (r *capturedRecord) refuse(e *Event, op string) error {
	return r.capture.fail(captureError(codeCaptured, op, "event %d was last recorded in a capture of %s, where nothing runs; "+
		"record it outside of one", e.id, r.capture.origin.title()))
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
		return s.waitNodes(op, func() string { return fmt.Sprintf("event %d", e.id) }, r.capture, r.tails)
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

// join makes the next node come after others, too.
func (b *branch) join(tails []*Node) {
	joined := b.tails
	for _, n := range tails {
		if !slices.Contains(joined, n) {
			joined = append(slices.Clip(joined), n)
		}
	}
	b.tails = joined
}

// Events that work outside of the graph records or waits for.

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

// The end of a capture.

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
		return nil, err
	}
	if s.listened() {
		s.dev.rt.notifyHost(Operation{Kind: OpEndCapture, Stream: s, Thread: t, Graph: g, Nodes: g.NodeList()})
	}
	return g, nil
}

// TakeLost returns the error of a capture that began on s and ended as s was closed, which EndCapture then
// reports no more; nil if there is none.
func (s *Stream) TakeLost() error {
	if err := s.deferred.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// end ends the capture and returns its graph, which the error makes useless.
func (c *Capture) end(op string) (*Graph, error) {
	c.graph.mu.Lock()
	if c.ended {
		c.graph.mu.Unlock()
		return c.graph, captureError(codeIllegalState, op, "another thread has ended the capture")
	}
	c.ended = true
	var err error
	if c.cause != nil {
		err = c.invalidated(op, "")
	}
	lost := c.unjoined()
	c.graph.mu.Unlock()
	c.rt.captures.leave(c.origin, c.others) // nothing is added to these any more
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
	joined := c.graph.upTo(c.first.tails)
	var worst *Stream
	for s, b := range c.others {
		if slices.ContainsFunc(b.tails, func(n *Node) bool { return !joined[n.index] }) && (worst == nil || s.index < worst.index) {
			worst = s
		}
	}
	return worst
}

// leave ends the part of a stream, and of others, in their capture.
func (a *captures) leave(s *Stream, others map[*Stream]*branch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var few [4]*Device
	left := a.leaveOne(s, few[:0])
	for s := range others {
		left = a.leaveOne(s, left)
	}
	for _, d := range left {
		a.mark(d)
	}
}

// leaveOne ends the part of a stream, and adds its device to left if mark has to look at it. The caller holds mu.
func (a *captures) leaveOne(s *Stream, left []*Device) []*Device {
	if _, ok := a.active[s]; !ok {
		return left
	}
	delete(a.active, s)
	s.capture.Store(nil)
	if a.count.Add(-1) == 0 {
		s.dev.rt.status.And(^uint32(status.Captured))
	}
	if s.Ordered() && !slices.Contains(left, s.dev) {
		left = append(left, s.dev)
	}
	return left
}

// abandon ends the capture of a stream that is closed, without a graph.
func (c *Capture) abandon(s *Stream) {
	_ = c.fail(captureError(codeInvalidated, "close stream", "%s was closed; close it after the end of the capture", s.title()))
	if err := c.leave(s); err != nil {
		s.deferred.Store(&err)
	}
}

// leave ends the part of a stream in the capture, and the capture with that of its origin, of which it
// returns the error.
func (c *Capture) leave(s *Stream) error {
	if c.origin == s {
		g, err := c.end("end capture")
		g.keep.release()
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

// What a capture forbids.

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
		return s.dev.checkWorks()
	case c.builds():
		return c.refuse(s, op, "enqueue one operation, which is to be the node")
	default:
		return c.refuse(s, op, "end the capture and launch its graph first, as nothing that is captured runs before that")
	}
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

// checkCapturedElsewhere rejects what cannot become a node of another library's graph.
func (s *Stream) checkCapturedElsewhere(op, what string) error {
	if s == s.dev.legacy || !s.capturedElsewhere() {
		return nil // the driver refuses work on the legacy default stream beside a capture
	}
	return captureError(codeUnsupported, op, "another library captures %s, and its graph cannot have %s; "+
		"end that capture first", s.title(), what)
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

// Built ends the use of a stream of Builder and returns the node that was made. After an error
// the graph is as it was.
//
// # Errors
//   - [ErrInvalidValue]: not exactly one was made.
//   - [ErrCapture]: a call was made that cannot become a node.
//   - [ErrClosed].
//
// Contract: G5.
func (s *Stream) Built() (*Node, error) {
	const op = "add node"
	c := s.endBuilding()
	if c == nil {
		return nil, driver.Errorf(driver.InvalidValue, op, "this is no stream that builds a graph")
	}
	n, err := c.onlyNode(op)
	if err == nil && !c.target.keep.tryUse() {
		err = closedError(op, "graph")
	}
	if err != nil {
		c.dropNodes()
		return nil, err
	}
	defer c.target.keep.release()
	c.target.keep.take(c.graph.keep)
	c.target.adopt(n)
	return n, nil
}

// Unbuilt ends the use of a stream of Builder without a node: the graph is as it was. It does
// nothing for other streams.
//
// Contract: G5.
func (s *Stream) Unbuilt() {
	if c := s.endBuilding(); c != nil {
		c.dropNodes()
	}
}

// endBuilding ends the use of a stream of Builder. It returns nil for others and after the first call.
func (s *Stream) endBuilding() *Capture {
	c := s.capture.Load()
	if c == nil || c.origin != s || !c.builds() || !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	c.ended = true
	return c
}
