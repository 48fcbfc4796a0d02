package hal

import "halstream/hal/driver"

// RegisterHost makes memory of the program pinned until UnregisterHost. Memory that is
// registered only because it is shared (see ShareHost) can be registered as the same
// range.
//
// # Errors
//   - [ErrInvalidValue]: the range is empty, not mapped, or shares bytes with
//     memory of the runtime or registered memory.
//   - [ErrInHostFunction].
//
// Contract: M10, M21.
func (rt *Runtime) RegisterHost(t *Thread, addr uint64, size int64) error {
	const op = "register memory"
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if err := checkSize(op, size); err != nil {
		return err
	}
	_, err := rt.register(t, op, addr, uint64(size), func(b *Block) error {
		if b.byProgram || !b.registered || b.Start != addr || b.Size != uint64(size) {
			return driver.Errorf(driver.InvalidValue, op, "the range shares bytes with %s, %d bytes at %#x",
				b.describe(), b.Size, b.Start)
		}
		b.byProgram = true
		return nil
	})
	return err
}

// register returns the block that shares bytes with the range, after accept has
// agreed to it, or else a new registered block. The new block is given to accept as
// well. accept is called with the memory's lock held.
func (rt *Runtime) register(t *Thread, op string, addr, size uint64, accept func(*Block) error) (*Block, error) {
	if b, err := rt.acceptOverlapping(addr, size, nil, accept); b != nil || err != nil {
		return b, err
	}
	if rt.ownsAddress(addr) || rt.ownsAddress(addr+size-1) {
		return nil, driver.Errorf(driver.InvalidValue, op, "%d bytes at %#x are memory of this runtime", size, addr)
	}
	if err := rt.drv.Register(addr, size); err != nil {
		return nil, err
	}
	created := &Block{Start: addr, Size: size, Kind: Pinned, registered: true, rt: rt}
	// Another thread may have registered the same bytes meanwhile.
	b, err := rt.acceptOverlapping(addr, size, created, accept)
	if b != created {
		_ = rt.drv.Unregister(addr)
		return b, err
	}
	rt.notifyHost(Operation{Kind: OpNewMemory, Thread: t, Writes: []Range{{addr, size}}})
	return b, nil
}

// acceptOverlapping calls accept with the block that shares bytes with the range. If
// there is none it adds created, if that is not nil, and calls accept with it.
func (rt *Runtime) acceptOverlapping(addr, size uint64, created *Block, accept func(*Block) error) (*Block, error) {
	m := &rt.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.blocks.Overlapping(addr, size)
	if b == nil {
		if created == nil {
			return nil, nil
		}
		b = created
		m.blocks.Insert(addr, size, b)
	}
	return b, accept(b)
}

// UnregisterHost ends the registration of RegisterHost: the memory becomes pageable
// again, at once or, if it is shared, when the last share ends.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of memory that the program registered.
//     The text says so if the memory is registered only because it is shared.
//   - [ErrNotReady]: a pending operation uses it; the text names the operation.
//   - [ErrInHostFunction].
//
// Contract: M10, M21.
func (rt *Runtime) UnregisterHost(t *Thread, addr uint64) error {
	return rt.unpin(t, "unregister memory", addr, func(b *Block) bool { return b.byProgram },
		"memory that the program registered", false)
}

// Share keeps host memory of another library registered until it ends.
type Share struct {
	rt    *Runtime
	block *Block // nil once the share has ended; the memory's lock guards it
}

// ShareHost registers host memory that another library lends, unless the range lies
// in registered memory, and keeps it registered until the share ends. It returns nil
// for memory that the runtime allocated, which needs no registration.
//
// # Errors
//   - [ErrInvalidValue]: the range is empty or not mapped, or shares bytes with a
//     block without lying in it as a whole.
//   - [ErrInHostFunction].
//
// Contract: M21.
func (rt *Runtime) ShareHost(t *Thread, addr, size uint64) (*Share, error) {
	const op = "share memory"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	if size == 0 || size > -addr {
		return nil, driver.Errorf(driver.InvalidValue, op, "%d bytes at %#x are no range of memory", size, addr)
	}
	b, err := rt.register(t, op, addr, size, func(b *Block) error {
		if addr < b.Start || addr-b.Start+size > b.Size {
			return driver.Errorf(driver.InvalidValue, op,
				"%d bytes at %#x overlap %s, %d bytes at %#x, without lying in it; copy them",
				size, addr, b.describe(), b.Size, b.Start)
		}
		if b.registered {
			b.shares++
		}
		return nil
	})
	if err != nil || !b.registered {
		return nil, err
	}
	return &Share{rt, b}, nil
}

// End ends the share. With the last share of memory that the program did not register
// itself, or has unregistered since, the memory becomes pageable again, as soon as no
// pending operation uses it. End may be called again, and does nothing then; it may be
// called anywhere, since finalizers do.
//
// Contract: M21.
func (s *Share) End(t *Thread) {
	rt := s.rt
	m := &rt.memory
	m.mu.Lock()
	b := s.block
	if b == nil || rt.ended.Load() {
		m.mu.Unlock()
		return
	}
	s.block = nil
	b.shares--
	last := b.shares == 0 && !b.byProgram
	if last {
		rt.deferFree(b)
	}
	m.mu.Unlock()
	if last {
		rt.noteFreed(t, b, false, nil)
		rt.reap(maxReap)
	}
}
