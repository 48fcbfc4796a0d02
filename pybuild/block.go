package pybuild

import (
	"halstream/bindings"
	"halstream/bindings/python"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/bestfit"
	"halstream/hal/driver"
)

// BlockNew returns the id of size bytes of new device memory. Before it fails it
// waits for memory that was freed and is still in use.
func BlockNew(ordinal, size int64) (id int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		return idOf(allocated(func(wait waiter) (*hal.Block, error) { return d.AllocWait(caller(), size, wait) }))
	})
}

// BlockNewAsync returns the id of size bytes in the order of a stream. release says what
// its release waits for.
func BlockNewAsync(stream_, size, release int64) (id int64, err error) {
	return onStream(stream_, "allocate in stream order", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		alloc := s.AllocAsyncWait
		if release == bindings.ReleaseReusable {
			alloc = s.AllocReusable
		}
		b, err := allocated(func(wait waiter) (*hal.Block, error) { return alloc(t, size, wait) })
		if b != nil {
			if release == bindings.ReleaseInOrder {
				b.ReleaseInOrder()
			}
		}
		return idOf(b, err)
	})
}

// BlockNewHost returns the id of size bytes of new pinned memory.
func BlockNewHost(size int64) (id int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		return idOf(allocated(func(wait waiter) (*hal.Block, error) { return r.AllocHostWait(caller(), size, wait) }))
	})
}

// roomWait waits for freed memory that pending work still uses.
type roomWait struct{ raised, held bool }

func (w *roomWait) wait(p driver.Point) (done bool) {
	if p.Wait(0) {
		return true
	}
	limit := python.RoomLimit()
	done, w.raised = python.Await(p, limit)
	w.held = !done && limit == waits.HeldLimit
	return done
}

// waiter is what allocations call to wait for memory.
type waiter = func(driver.Point) bool

// allocated returns the block that allocate makes, nil if it fails. There is no
// error either if a handler of a signal raised meanwhile: its exception stands.
func allocated(allocate func(waiter) (*hal.Block, error)) (*hal.Block, error) {
	var w roomWait
	b, err := allocate(w.wait)
	if err == nil {
		return b, nil
	}
	if w.raised {
		return nil, nil
	}
	if e, ok := err.(*hal.Error); ok && w.held {
		told := *e
		told.Text += "; a stream waits for the host (a gate, a value, a record or a report), and " +
			"did not go on within 2 s: let it go on before the allocation, or from another thread"
		err = &told
	}
	return nil, err
}

// idOf gives a new block its id.
func idOf(b *hal.Block, err error) (int64, error) {
	if b == nil {
		return 0, err
	}
	return insert(b), nil
}

// addressOf returns the address of a new block.
func addressOf(b *hal.Block, err error) (uint64, error) {
	if b == nil {
		return 0, err
	}
	return b.Start, nil
}

// blockName is what errors call a block.
const blockName = "block of memory"

// BlockAddress returns the address of a block, of a pool or of its own.
func BlockAddress(id int64) (addr uint64, err error) {
	defer guard(&err)
	if b, ok := find(id).(*bestfit.Block); ok {
		return b.Address(), nil
	}
	b, err := lookup[*hal.Block](id, "address", blockName)
	if err != nil {
		return 0, err
	}
	return b.Start, nil
}

// BlockFree frees a block; pinned memory only if no pending operation works on it.
func BlockFree(id int64) (zero int64, err error) {
	return on(id, "free", blockName, func(b *hal.Block) (zero int64, err error) {
		t := caller()
		err = slow(b.Size, func() error { return b.Free(t) })
		if err == nil {
			remove(id)
		}
		return 0, err
	})
}

// BlockFreeAsync frees stream-ordered memory at this point of a stream. It returns 1 if the id stays, as the
// memory is that of a graph: a later launch allocates it again.
func BlockFreeAsync(id, stream_ int64) (stays int64, err error) {
	return onStream(stream_, "free in stream order", func(t *hal.Thread, s *hal.Stream) (stays int64, err error) {
		b, err := lookup[*hal.Block](id, "free", blockName)
		if err != nil {
			return 0, err
		}
		if b.OfGraph() {
			return 1, s.FreeBlockAsync(t, b)
		}
		if b.Recorded() {
			err = s.ReleaseOn(t, b)
		} else {
			err = s.FreeBlockAsync(t, b)
		}
		if err == nil {
			remove(id)
		}
		return 0, err
	})
}

// BlockRecord keeps a block from being reused before the work enqueued on a stream is done.
func BlockRecord(id, stream_ int64) (zero int64, err error) {
	return onStream(stream_, "record stream", func(_ *hal.Thread, s *hal.Stream) (int64, error) {
		b, err := lookup[*hal.Block](id, "record stream", blockName)
		if err != nil {
			return 0, err
		}
		b.RecordStream(s)
		return 0, nil
	})
}

// BlockBorrow returns the id of a block that stands for another library's memory.
// Once it was released and no pending work uses the memory, DlpackReturned returns token.
func BlockBorrow(addr, size uint64, token int64) (id int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		return insert(r.Borrow(addr, size, func() { giveBack(token) })), nil
	})
}

// MemReclaim gives some freed memory that no pending work uses any more back to its pool.
func MemReclaim() (zero int64, err error) {
	defer guard(&err)
	if rt != nil {
		rt.ReclaimSome()
	}
	return 0, nil
}

// MemFreeHome frees stream-ordered memory at the point of the stream it was taken on.
func MemFreeHome(addr uint64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return nothing(r.FreeOnAllocStream(caller(), addr)) })
}

// MemAwaitCalls waits for the work that is enqueued on a device, whose functions
// may hold memory; 1 if it is done. While a gate is closed the wait has a limit.
func MemAwaitCalls(ordinal int64) (done int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		p, err := d.Point(caller())
		if err != nil {
			return 0, err
		}
		var w roomWait
		return truth(w.wait(p)), nil
	})
}

// MemStat returns a figure of a device's memory: 0 allocated, 1 its peak, 2 active,
// 3 its peak, 4 reserved, 5 its peak, all in bytes; 6 how often memory ran out, 7
// how often an allocation waited for memory.
func MemStat(ordinal, which int64) (n uint64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (uint64, error) {
		m := d.MemoryStats()
		return figure("memory statistics", which, m.Allocated, m.AllocatedPeak, m.Active, m.ActivePeak, m.Reserved,
			m.ReservedPeak, m.OutOfMemory, m.Retries)
	})
}

func figure(op string, which int64, figures ...uint64) (uint64, error) {
	if which < 0 || int(which) >= len(figures) {
		return 0, raise(driver.Errorf(driver.InvalidValue, op, "no figure has number %d", which))
	}
	return figures[which], nil
}

// MemResetPeaks makes peaks of a device's figures start anew.
func MemResetPeaks(ordinal int64, allocated, reserved bool) (zero int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		d.ResetMemoryPeaks(allocated, reserved)
		return 0, nil
	})
}

// MemCountFailure counts an allocation that a dialect refused.
func MemCountFailure(ordinal int64) (zero int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		d.CountOutOfMemory()
		return 0, nil
	})
}

// MemSettle waits until what was freed of a device can be given back, for at most
// limit nanoseconds; 1 if all of it can.
func MemSettle(ordinal, limit int64) (done int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (done int64, err error) {
		if p := d.DeferredPoint(); p != nil {
			done = await(p, limit)
		}
		d.Reclaim()
		return done, nil
	})
}

// MemEmpty waits for freed memory that pending work still uses, and gives all free
// memory of a device back to it; 1 if the wait came to its end.
func MemEmpty(ordinal int64) (done int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (done int64, err error) {
		done = 1
		var w roomWait
		if p := d.DeferredPoint(); p != nil {
			done = truth(w.wait(p))
		}
		if !w.raised {
			d.Reclaim()
			d.TrimPool(0)
		}
		return done, nil
	})
}
