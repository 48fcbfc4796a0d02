package hal

import (
	"halstream/hal/driver"
)

// Nop enqueues an operation that does nothing.
func (s *Stream) Nop(t *Thread) error {
	if err := s.admit(t, "nop"); err != nil {
		return err
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "nop", Thread: t})
	}
	return s.settle(t, id, s.d.Nop(id))
}

// Delay enqueues an operation that keeps an engine busy for ns nanoseconds.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
func (s *Stream) Delay(t *Thread, ns int64) error {
	if err := s.admit(t, "delay"); err != nil {
		return err
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "delay", Thread: t})
	}
	return s.settle(t, id, s.d.Delay(ns, id))
}

// Gate enqueues an operation that blocks s until the gate is opened.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//
// Contract: O3.
func (s *Stream) Gate(t *Thread) (driver.Gate, error) {
	if err := s.admit(t, "gate"); err != nil {
		return nil, err
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "gate", Thread: t})
	}
	opened, err := s.d.Gate(s.dev.rt.gateIDs.Add(1), id)
	if id != 0 {
		s.dev.rt.listeners.enqueued(id, err)
	}
	return opened, err
}

// Native enqueues a call of the C function at fn, void f(void *), with arg.
// reads and writes say what it works on.
//
// # Errors
//   - [ErrInvalidValue]: fn is 0.
//   - [ErrNotSupported], [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M11, M12.
func (s *Stream) Native(t *Thread, fn, arg uint64, reads, writes []Range) error {
	const op = "call native"
	if err := s.admit(t, op); err != nil {
		return err
	}
	if fn == 0 {
		return driver.Errorf(driver.InvalidValue, op, "the function's address is 0")
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "native", Thread: t, Reads: reads, Writes: writes})
	}
	spec := driver.Native{Fn: fn, Arg: arg, Tag: id}
	if id != 0 {
		if watch := s.dev.rt.watching(id, reads); watch != nil {
			spec.Before, spec.After = watch.begin, watch.end
		}
	}
	blocks := s.blocks("a native function", reads, writes)
	return s.settle(t, id, s.using(blocks, func() error { return s.d.Native(spec) }))
}

// HostFunc enqueues a function: when s gets there, a thread that serves the
// runtime's queue receives token, and later work waits until it reports the end.
//
// A report queue that s is subscribed to receives reports only, never these.
//
// # Errors
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: H1, H3, A10.
func (s *Stream) HostFunc(t *Thread, token uint64) error { return s.HostFuncOn(t, token, nil, nil) }

// HostFuncOn is HostFunc for a function that says what it reads and writes.
// Blocks it works on are not given back before it has ended.
//
// Contract: H1, H3, M11.
func (s *Stream) HostFuncOn(t *Thread, token uint64, reads, writes []Range) error {
	if err := s.admit(t, "call"); err != nil {
		return err
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "call", Thread: t, Token: token, Reads: reads, Writes: writes})
	}
	f := driver.HostFunc{Token: token, Sink: s, Tag: id}
	if id != 0 {
		if w := s.dev.rt.watching(id, reads); w != nil {
			f.Sink = watchSink{s, w}
		}
	}
	if len(reads)+len(writes) == 0 {
		return s.settle(t, id, s.d.HostFunc(f))
	}
	blocks := s.blocks("a function", reads, writes)
	return s.settle(t, id, s.using(blocks, func() error { return s.d.HostFunc(f) }))
}

// Pass enqueues a function that later work, synchronize included, does not
// wait for: it is handed over when s gets there.
//
// Contract: H3, M12.
func (s *Stream) Pass(t *Thread, token uint64) error {
	if err := s.admit(t, "pass"); err != nil {
		return err
	}
	return s.settle(t, 0, s.d.HostFunc(driver.HostFunc{Token: token, Sink: s, Passing: true}))
}

// Reaches reports whether a range lies in one block that the runtime knows, of the
// stream's device or pinned.
//
// Contract: D4, M11.
func (s *Stream) Reaches(r Range) bool {
	kind, start, size, ordinal := s.dev.rt.Lookup(r.Start)
	before := r.Start - start
	return kind != Pageable && r.Size <= size-before && (ordinal < 0 || ordinal == s.dev.ordinal)
}

// blocks begins the use of every block that holds the start of a range.
func (s *Stream) blocks(what string, lists ...[]Range) []*Block {
	m := &s.dev.rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*Block
	for _, list := range lists {
		for _, r := range list {
			if b := m.space.find(r.Start); b != nil {
				b.begin(s, what)
				found = append(found, b)
			}
		}
	}
	return found
}

// Abort drops the pending work of s but for what already runs, and returns how
// many operations it was. A thread blocked in Synchronize gets [ErrAborted].
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: A8.
func (s *Stream) Abort(t *Thread) (int, error) {
	if err := s.open(t, "abort"); err != nil {
		return 0, err
	}
	sim := s.dev.rt.sim
	if sim == nil {
		return 0, driver.Errorf(driver.NotSupported, "abort", "the %s backend cannot", s.dev.rt.Name())
	}
	return sim.AbortStream(s.d), nil
}
