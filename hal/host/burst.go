package host

import "halstream/hal/driver"

// HostFuncs implements driver.Bursts.
func (s *Stream) HostFuncs(token uint64, b driver.Burst, report bool) error {
	e := s.eng
	e.Lock()
	defer e.Unlock()
	if e.closed {
		return errClosed("call")
	}
	o := op{kind: opCall, arg: token, ref: b}
	if report {
		o.kind = opReport
	}
	s.seal()
	s.counters.Growing.Store(1) // before the operation counts: C code must not take its place for a final one
	e.add(s, &o)
	s.growing = b
	if o.ep != nil {
		s.growingAt = int32(len(s.dev.growing))
		s.dev.growing = append(s.dev.growing, s)
	}
	if !e.parallel.Load() {
		s.seal()
	}
	e.submitted(s)
	return nil
}

// seal ends the growth of the burst at the end of the stream, if there is one, and
// counts its functions. The lock is held.
func (s *Stream) seal() {
	b := s.growing
	if b == nil {
		return
	}
	s.growing = nil
	s.counters.Submitted.Add(b.Seal() - 1)
	s.counters.Growing.Store(0)
	if list, i := s.dev.growing, int(s.growingAt); i < len(list) && list[i] == s {
		last := len(list) - 1
		list[i], list[last].growingAt = list[last], int32(i)
		list[last] = nil
		s.dev.growing = list[:last]
	}
}

// SealBurst implements driver.Bursts.
func (s *Stream) SealBurst() {
	if s.counters.Growing.Load() != 0 {
		s.eng.Lock()
		s.seal()
		s.eng.Unlock()
	}
}

// sealOrdered seals the bursts of the streams in the legacy order: what is added to
// one would have to wait for the epoch that begins now. The lock is held.
func (d *Device) sealOrdered() {
	ordered := d.growing
	d.growing = nil
	for _, s := range ordered {
		s.seal()
	}
}

// SealBursts implements driver.Simulator.
func (d *Driver) SealBursts() {
	d.eng.Lock()
	defer d.eng.Unlock()
	for _, dev := range d.devices {
		for s := dev.active; s != nil; s = s.next {
			s.seal()
		}
	}
}

// burst returns the burst that an operation is, nil for every other one.
func (o *op) burst() driver.Burst {
	if o.kind != opCall && o.kind != opReport {
		return nil
	}
	b, _ := o.ref.(driver.Burst)
	return b
}

// size returns for how many operations of the program one stands. A burst is sealed.
func (o *op) size() int {
	if b := o.burst(); b != nil {
		return int(b.Seal())
	}
	return 1
}

// pending returns how many operations are not done. The lock is held.
func (s *Stream) pending() uint64 {
	n := s.counters.Submitted.Load() - s.counters.Completed.Load()
	if s.growing != nil {
		added, _ := s.growing.Counts()
		n += added - 1
	}
	if s.q.n > 0 {
		if b := s.q.front().burst(); b != nil {
			if _, begun := b.Counts(); begun > 1 {
				n -= begun - 1
			}
		}
	}
	return n
}

// Fail implements driver.BurstCompleter.
func (s *Stream) Fail(err *driver.Error) (kept bool) {
	s.eng.Lock()
	defer s.eng.Unlock()
	return s.fail(err)
}

// CutRest implements driver.BurstCompleter.
func (s *Stream) CutRest() {
	e := s.eng
	e.Lock()
	defer e.Unlock()
	if s.q.n == 0 {
		return
	}
	head := s.q.front()
	if b := head.burst(); b != nil && b.Cut() > 0 {
		e.unpark(b.Drop(head.arg))
	}
}
