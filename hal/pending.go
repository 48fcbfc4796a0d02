package hal

import "halstream/hal/driver"

// pendingUses returns what is pending on the block that holds addr.
func (rt *Runtime) pendingUses(addr uint64) (found []use) {
	rt.refresh()
	for range rt.looks() {
		if found = rt.pendingOnce(addr); len(found) == 0 {
			break
		}
		rt.refresh()
	}
	return found
}

func (rt *Runtime) pendingOnce(addr uint64) []use {
	m := &rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.space.find(addr)
	if b == nil {
		return nil
	}
	var found []use
	for _, u := range b.users {
		if !u.stream.d.Reached(u.place) {
			found = append(found, u)
		}
	}
	return found
}

// MemoryUsers returns the streams with pending operations on the block that
// holds addr; none for memory that the runtime does not know.
func (rt *Runtime) MemoryUsers(addr uint64) []*Stream {
	var streams []*Stream
	for _, u := range rt.pendingUses(addr) {
		streams = append(streams, u.stream)
	}
	return streams
}

// MemoryPoint returns the point at which all operations that are enqueued so
// far on the block that holds addr are done, nil if none is pending.
//
// # Errors
//   - [ErrInHostFunction].
//
// Contract: M2, M11, H3.
func (rt *Runtime) MemoryPoint(t *Thread, addr uint64) (driver.Point, error) {
	if err := t.enter("wait for memory"); err != nil {
		return nil, err
	}
	var ps driver.Points
	for _, u := range rt.pendingUses(addr) {
		ps = append(ps, u.stream.d.At(u.place))
	}
	o := Operation{Kind: "synchronize memory", Thread: t, Reads: rt.wholeBlock(addr)}
	if len(ps) == 0 {
		rt.notifyHost(o)
		return nil, nil
	}
	return rt.observe(ps, o), nil
}

// wholeBlock is the block that holds addr, as listeners see it.
func (rt *Runtime) wholeBlock(addr uint64) []Range {
	if !rt.listened() {
		return nil
	}
	_, start, size, _ := rt.Lookup(addr)
	return []Range{{start, size}}
}

// WaitMemory makes work enqueued on s after this call start only when the
// operations that are pending on the block that holds addr are done. Streams
// that were closed since are waited for, too.
//
// # Errors: as for Wait.
//
// Contract: S6, M11, H3.
func (s *Stream) WaitMemory(t *Thread, addr uint64) error {
	const op = "wait for memory"
	if err := s.admit(t, op); err != nil {
		return err
	}
	for _, o := range s.dev.rt.MemoryUsers(addr) {
		if o == s {
			continue
		}
		var id uint32
		if s.listened() {
			id = s.announce(Operation{Kind: "wait stream", Thread: t, Other: o})
		}
		if err := s.settle(t, id, s.d.WaitStream(o.d, id)); err != nil {
			return err
		}
	}
	// What is done already was not waited for, but is ordered as well.
	s.dev.rt.notifyHost(Operation{Kind: "wait memory", Stream: s, Thread: t, Reads: s.dev.rt.wholeBlock(addr)})
	return nil
}
