package hal

import (
	"halstream/hal/driver"
)

// Nop enqueues an operation that does nothing.
//
// # Errors: [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
func (s *Stream) Nop(t *Thread) error { return s.NopAt(t, 0) }

// NopAt is Nop for a caller that knows where the program makes the call: on a capturing
// stream that is the site of the node. 0 is an unknown place.
//
// # Errors: as for Nop.
func (s *Stream) NopAt(t *Thread, site uint32) error {
	if err := s.checkEnqueue(t, "nop"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addNode(s, &Node{kind: driver.EmptyNode, site: site})
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpNop, Thread: t})
	}
	return s.settle(t, id, s.d.Nop(id))
}

// Delay enqueues an operation that keeps an engine busy for ns nanoseconds.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
func (s *Stream) Delay(t *Thread, ns int64) error {
	if err := s.checkEnqueue(t, "delay"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addNode(s, &Node{kind: driver.DelayNode, spec: &driver.GraphWork{Delay: ns}})
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpDelay, Thread: t})
	}
	return s.settle(t, id, s.d.Delay(ns, id))
}

// Gate enqueues an operation that blocks s until the gate is opened.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: O3.
func (s *Stream) Gate(t *Thread) (driver.Gate, error) {
	if err := s.checkEnqueue(t, "gate"); err != nil {
		return nil, err
	}
	if c := s.capture.Load(); c != nil {
		return nil, c.refuse(s, "gate", "wait for an external event instead")
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpGate, Thread: t})
	}
	opened, err := s.d.Gate(s.dev.rt.gateIDs.Add(1), id)
	if id != 0 {
		s.dev.rt.listeners.endAnnounce(id, err)
	}
	return opened, err
}

// Accesses is what a function works on.
type Accesses struct {
	Reads, Writes []Range
	// Reached is memory that the function can reach without declaring it: where
	// functions can be watched, what it changes there counts as written.
	Reached []Range
}

// Native enqueues a call of the C function at fn, void f(void *), with arg.
//
// # Errors
//   - [ErrInvalidValue]: fn is 0.
//   - [ErrNotSupported], [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M11, M12.
func (s *Stream) Native(t *Thread, fn, arg uint64, a Accesses) error {
	const op = "call native"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if fn == 0 {
		return driver.Errorf(driver.InvalidValue, op, "the function's address is 0")
	}
	if c := s.capture.Load(); c != nil {
		return c.addNode(s, &Node{kind: driver.NativeNode, spec: &driver.GraphWork{Native: &driver.Native{Fn: fn, Arg: arg}},
			reads: a.Reads, writes: a.Writes, blocks: s.dev.rt.blocksOf(a.Reads, a.Writes)})
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpNative, Thread: t, Reads: a.Reads, Writes: a.Writes})
	}
	spec := driver.Native{Fn: fn, Arg: arg, Tag: id}
	if id != 0 {
		if watch := s.dev.rt.newWideWatch(id, a); watch != nil {
			spec.Before, spec.After = watch.onThread()
		}
	}
	blocks := s.beginUses("a native function", a.Reads, a.Writes)
	return s.settle(t, id, s.using(blocks, func() error { return s.d.Native(spec) }))
}

// HostFunc enqueues a function: when s reaches it, a thread that serves the runtime's
// queue receives token, and later work waits until that thread reports the end. A
// report queue that s is subscribed to does not receive it: it receives reports only.
//
// # Errors
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: H1, H3, A10.
func (s *Stream) HostFunc(t *Thread, token uint64) error { return s.HostFuncOn(t, token, Accesses{}) }

// HostFuncOn is HostFunc for a function with declared accesses. The memory of blocks
// it accesses is not reused before it has ended.
//
// # Errors: as for HostFunc.
//
// Contract: H1, H3, M11.
func (s *Stream) HostFuncOn(t *Thread, token uint64, a Accesses) error {
	if err := s.checkEnqueue(t, "call"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addFunc(s, token, a, 0)
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: OpCall, Thread: t, Token: token, Reads: a.Reads, Writes: a.Writes})
	}
	f := driver.HostFunc{Token: token, Sink: s, Tag: id}
	if id != 0 {
		if w := s.dev.rt.newWideWatch(id, a); w != nil {
			f.Sink = watchSink{s, w}
		}
	}
	if len(a.Reads)+len(a.Writes) == 0 {
		return s.settle(t, id, s.d.HostFunc(f))
	}
	blocks := s.beginUses("a function", a.Reads, a.Writes)
	return s.settle(t, id, s.using(blocks, func() error { return s.d.HostFunc(f) }))
}

// HostFuncNoWait enqueues a function whose end neither later work nor a synchronize
// waits for: a thread receives token when s reaches it.
//
// # Errors: as for HostFunc.
//
// Contract: H3, M12.
func (s *Stream) HostFuncNoWait(t *Thread, token uint64) error {
	if err := s.checkEnqueue(t, "pass"); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.addToken(s, nil, token)
	}
	return s.settle(t, 0, s.d.HostFunc(driver.HostFunc{Token: token, Sink: s, Passing: true}))
}

// beginUses marks every block that contains the start of a range as used on s by the
// operation that what names, and returns those blocks.
func (s *Stream) beginUses(what string, lists ...[]Range) []*Block {
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*Block
	for _, list := range lists {
		for _, r := range list {
			if b := m.blocks.Find(r.Start); b != nil {
				b.beginUse(s, what)
				found = append(found, b)
			}
		}
	}
	return found
}

// Abort drops the pending work of s except what already runs, and returns the number
// of operations dropped. A thread blocked in Synchronize gets [ErrAborted].
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: A8.
func (s *Stream) Abort(t *Thread) (int, error) {
	if err := s.checkNotCaptured(t, "abort"); err != nil {
		return 0, err
	}
	sim := s.dev.rt.sim
	if sim == nil {
		return 0, driver.Errorf(driver.NotSupported, "abort", "the %s backend cannot drop enqueued work", s.dev.rt.Name())
	}
	return sim.AbortStream(s.d), nil
}
