package hal

import "halstream/hal/driver"

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
	d, ok := s.d.(driver.Delayer)
	if !ok {
		return driver.Errorf(driver.NotSupported, "delay", "the %s backend cannot", s.dev.rt.Name())
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "delay", Thread: t})
	}
	return s.settle(t, id, d.Delay(ns, id))
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
	g, ok := s.d.(driver.Gater)
	if !ok {
		return nil, driver.Errorf(driver.NotSupported, "gate", "the %s backend cannot", s.dev.rt.Name())
	}
	var id uint32
	if s.listened() {
		id = s.announce(Operation{Kind: "gate", Thread: t})
	}
	opened, err := g.Gate(s.dev.rt.gateIDs.Add(1), id)
	if id != 0 {
		s.dev.rt.listeners.enqueued(id, err)
	}
	return opened, err
}
