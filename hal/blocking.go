package hal

import "halstream/hal/driver"

// waitRule is what the end of a call that waits says to listeners: what the vendor's call
// guarantees, which may be less than what the backend does.
type waitRule uint8

const (
	// waitsForAll: the work on the stream is done, the operation of the call included.
	waitsForAll waitRule = iota
	// waitsForEarlier: what was enqueued before is done, and the source was read.
	waitsForEarlier
	// waitsForNothing: the call may return at once.
	waitsForNothing
)

// onHost reports whether the block is memory of the host; nil is pageable memory.
func (b *Block) onHost() bool { return b == nil || b.dev == nil }

// blockingRule returns what a copy between blocks guarantees to the host. Calls that are
// not blocking guarantee all wherever they wait.
func blockingRule(blocking bool, src, dst *Block) waitRule {
	switch {
	case !blocking || dst.onHost():
		return waitsForAll
	case src == nil:
		return waitsForEarlier
	case !src.onHost():
		return waitsForNothing
	}
	return waitsForAll
}

// CopyBlocking is Copy as a call that blocks, and the caller waits for the result in any
// case. What listeners learn is what the vendor guarantees:
//
//	from      to        the host comes after
//	host      host      the copy
//	device    host      the copy
//	pinned    device    the copy
//	pageable  device    what was enqueued before it; the source may be changed
//	device    device    nothing
//
// # Errors: as for Copy.
//
// Contract: M6, V8. Source: CUDA driver API, "API synchronization behavior", Memcpy,
// synchronous.
func (s *Stream) CopyBlocking(t *Thread, c CopySpec) (driver.Point, error) { return s.copy(t, c, true) }

// FillBlocking is Fill as a call that blocks where the target is memory of the host, or
// managed. The result, if not nil, is the point that the caller waits for.
//
// # Errors: as for Fill.
//
// Contract: M8, V8. Source: CUDA driver API, "API synchronization behavior", Memset,
// synchronous.
func (s *Stream) FillBlocking(t *Thread, dst uint64, value uint32, size uint8, count uint64) (driver.Point, error) {
	if err := s.Fill(t, dst, value, size, count); err != nil || count == 0 {
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
