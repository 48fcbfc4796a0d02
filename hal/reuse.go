package hal

import "halstream/hal/driver"

// SetStrictReuse sets whether memory of AllocReusable goes back at once, without waiting
// for work of other streams. Under a deterministic schedule it always does.
//
// Contract: M22.
func (rt *Runtime) SetStrictReuse(on bool) { rt.strictReuse.Store(on) }

// StrictReuse reports whether memory of AllocReusable goes back at once.
func (rt *Runtime) StrictReuse() bool { return rt.strictReuse.Load() || rt.Deterministic() }

// AllocCached is AllocAsyncWait with the rules of a caching allocator: Release frees the
// block in the order of its stream, without waiting for uses on other streams, and no
// work has to be ordered before that. What the memory is given out for next must be
// ordered behind the work that still uses it.
//
// # Errors: as for AllocAsync.
//
// Contract: M7, M16, M23, C8. Source: the native allocator of torch.cuda.
func (s *Stream) AllocCached(t *Thread, size int64, wait func(driver.Point) bool) (*Block, error) {
	b, err := s.allocInOrder(t, size, wait, allocation{cached: true, segments: true})
	if err == nil {
		b.ReleaseInOrder()
	}
	return b, err
}

// AllocReusable is AllocAsyncWait where the program is run as it is. Where it is checked,
// under a sanitizer and under a deterministic schedule, Release has the rules of AllocCached:
// it must not hide that work of another stream still uses the memory.
//
// # Errors: as for AllocAsync.
//
// Contract: M7, M22.
func (s *Stream) AllocReusable(t *Thread, size int64, wait func(driver.Point) bool) (*Block, error) {
	if !s.dev.rt.StrictReuse() {
		return s.AllocAsyncWait(t, size, wait)
	}
	b, err := s.allocInOrder(t, size, wait, allocation{cached: true, inOrder: true})
	if err == nil {
		b.ReleaseInOrder()
	}
	return b, err
}

// NoteReuse notifies the listeners that a caching pool of the caller's own has given out a
// range for work of s. Its former user may still work on it, as with AllocCached.
//
// Contract: M22.
func (s *Stream) NoteReuse(t *Thread, r Range) {
	if s.listened() {
		s.notify(Operation{Kind: OpAllocate, Thread: t, Writes: []Range{r}, Cached: true})
	}
}

// allocation is what listeners learn of an allocation, see Operation, and whether its
// memory is taken from the device in segments of fixed sizes.
type allocation struct{ cached, inOrder, segments bool }
