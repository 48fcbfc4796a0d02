package hal

import "halstream/hal/driver"

// CopyCall is the kind of call that a copy is made by. It decides when the call returns,
// and what it orders for the host.
type CopyCall uint8

const (
	// EnqueuedCopy is [Stream.Copy]: where it waits, the host comes after the copy.
	EnqueuedCopy CopyCall = iota
	// BlockingCopy is CUDA's copy without the suffix Async. It always waits.
	BlockingCopy
	// AsyncCopy is CUDA's copy with that suffix. It waits as [Stream.Copy] does.
	AsyncCopy
	// StagedCopy is a copy of CANN's. It waits for every copy from or to pageable memory.
	StagedCopy
	// FillingCopy is a copy by which the runtime fills memory with elements of more than 4 bytes: to listeners it is
	// a fill. It waits as [Stream.Copy] does, but not for copies between pinned blocks.
	FillingCopy
	copyCalls
)

// hostOrder is what a copy orders for the host, as listeners are notified of it: what the
// vendor's call guarantees, which may be less than what the backend does.
type hostOrder uint8

const (
	// ordersAll: where the call waits, the host comes after the work on the stream, the
	// copy included.
	ordersAll hostOrder = iota
	// ordersEarlier: the host comes after what was enqueued before the copy, and may change the source.
	ordersEarlier
	// ordersSource: the host may change the source.
	ordersSource
	// ordersNothing: the call may return at once.
	ordersNothing
)

// onHost reports whether the block is memory of the host; nil is pageable memory.
func (b *Block) onHost() bool { return b == nil || b.dev == nil }

// waits reports whether a copy of a size between blocks returns only when it is done.
func (c CopyCall) waits(src, dst *Block, size uint64) bool {
	if c == BlockingCopy || dst == nil || c != FillingCopy && src.onHost() && dst.onHost() {
		return true
	}
	return src == nil && (c == StagedCopy || size > maxStaged)
}

// orders returns what a copy between blocks orders for the host.
func (c CopyCall) orders(src, dst *Block) hostOrder {
	switch {
	case c == EnqueuedCopy, c == StagedCopy, c == FillingCopy, src.onHost() && dst.onHost():
		return ordersAll
	case c == BlockingCopy && src == nil:
		return ordersEarlier
	case src == nil:
		return ordersSource
	case c == BlockingCopy && !src.onHost() && !dst.onHost(), c == AsyncCopy && dst == nil:
		return ordersNothing
	}
	return ordersAll
}

// CopyAs is Copy by another kind of call. What the host comes after is what the vendor
// documents, which listeners are notified of, whatever the backend does; "nothing" includes
// calls that wait here:
//
//	from      to        BlockingCopy                  AsyncCopy          StagedCopy
//	host      host      the copy                      the copy           the copy
//	device    pinned    the copy                      nothing            nothing
//	device    pageable  the copy                      nothing            the copy
//	pinned    device    the copy                      nothing            nothing
//	pageable  device    what was enqueued before it,  that the source    the copy
//	                    and that the source was read  was read
//	device    device    nothing                       nothing            nothing
//
// Managed memory counts as that of a device.
//
// # Errors: as for Copy, and [ErrInvalidValue] for a kind that does not exist.
//
// Contract: M5, M6, V8, V9. Source: CUDA driver API, "API synchronization behavior",
// Memcpy; CANN, aclrtMemcpyAsync.
func (s *Stream) CopyAs(t *Thread, c CopySpec, call CopyCall) (driver.Point, error) {
	if call >= copyCalls {
		return nil, driver.Errorf(driver.InvalidValue, "copy", "there is no kind %d of copies", call)
	}
	if call == BlockingCopy && s.capture.Load() == nil {
		if err := s.dev.rt.CheckUnsafe(t, "copy"); err != nil {
			return nil, err
		}
	}
	return s.copy(t, c, call)
}

// FillBlocking is Fill as a call that blocks where the target is memory of the host, or
// managed. The result, if not nil, is the point that the caller waits for.
//
// # Errors: as for Fill.
//
// Contract: M8, V8. Source: CUDA driver API, "API synchronization behavior", Memset,
// synchronous.
func (s *Stream) FillBlocking(t *Thread, dst uint64, value uint32, size uint8, count uint64) (driver.Point, error) {
	captured := s.capture.Load() != nil
	if !captured {
		if err := s.dev.rt.CheckUnsafe(t, "fill"); err != nil {
			return nil, err
		}
	}
	if err := s.Fill(t, dst, value, size, count); err != nil || count == 0 || captured {
		return nil, err
	}
	m := &s.dev.rt.memory
	m.mu.Lock()
	b := m.blocks.Find(dst)
	seen := b != nil && (b.onHost() || b.managed)
	m.mu.Unlock()
	if !seen {
		return nil, nil
	}
	return s.observe(t, s.d.Point()), nil
}

// MarkManaged says that the host may work as well on the block which contains an address.
//
// Contract: V8. Source: CUDA driver API, cuMemAllocManaged.
func (rt *Runtime) MarkManaged(addr uint64) {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	if b := rt.memory.blocks.Find(addr); b != nil {
		b.managed = true
	}
}

// DrainPoint returns the point at which all work enqueued on s so far is done, for a call
// that documents no wait: listeners are not notified when it is reached, so that nothing
// counts as ordered by it.
//
// # Errors: as for Point.
//
// Contract: V9, F6.
func (s *Stream) DrainPoint(t *Thread) (driver.Point, error) {
	if err := s.checkNotCaptured(t, "synchronize"); err != nil {
		return nil, err
	}
	return s.d.Point(), nil
}
