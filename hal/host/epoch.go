package host

// An epoch is a sequence of enqueued operations that lie between two barriers of the
// legacy order: either work of the legacy default stream, or work of the streams that
// are ordered with it. The epochs of a device form a list; one opens when all before
// it are done. So the cost of a barrier does not depend on the number of streams.
type epoch struct {
	legacy  bool
	open    bool
	pending int
	parked  []*Stream // streams whose head operation waits for this epoch
	next    *epoch
}

// join returns the epoch that a new operation of s belongs to. A nil result
// means that s takes no part in the legacy order.
func (d *Device) join(s *Stream) *epoch {
	if !s.ordered {
		return nil
	}
	last := d.last
	if last.legacy == s.legacy {
		return last
	}
	if last.pending == 0 && last.open {
		last.legacy = s.legacy // no work to wait for: use the same epoch for the other side
		return last
	}
	last.next = &epoch{legacy: s.legacy}
	d.last = last.next
	return d.last
}

// unorderedWork reports whether ordered streams may have pending work behind the latest
// operation of the legacy default stream. Under a deterministic schedule the answer is
// always true: which operations there are must not depend on the order in which they run.
func (d *Device) unorderedWork() bool {
	last := d.last
	return !d.eng.parallel.Load() || !last.legacy && (last.pending > 0 || !last.open)
}

// left counts n operations of ep as done, and opens the epochs behind it.
func (e *engine) left(d *Device, ep *epoch, n int) {
	ep.pending -= n
	for ep.pending == 0 && ep.open && ep.next != nil {
		ep = ep.next
		ep.open = true
		parked := ep.parked
		ep.parked = nil
		for _, s := range parked {
			e.advance(s)
		}
	}
	d.noteOrder()
}

// noteOrder keeps the word by which C code sees whether the legacy order can hold
// up a new operation of an ordered stream.
func (d *Device) noteOrder() {
	last := d.last
	var held uint32
	if !last.open || last.legacy && last.pending > 0 {
		held = 1
	}
	if d.order.Load() != held {
		d.order.Store(held)
	}
}
