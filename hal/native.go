package hal

import "halstream/hal/driver"

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
	w, err := s.worker(op)
	if err != nil {
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
	return s.settle(t, id, s.using(w, blocks, func() error { return w.Native(spec) }))
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

func (s *Stream) worker(op string) (driver.Worker, error) {
	if w, ok := s.d.(driver.Worker); ok {
		return w, nil
	}
	return nil, driver.Errorf(driver.NotSupported, op, "the %s backend cannot copy yet", s.dev.rt.Name())
}
