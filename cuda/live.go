package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"sync/atomic"

	"halstream/hal/driver"
)

// live is what a device has from its first use on.
type live struct {
	ctx      C.CUcontext
	greatest int         // priority of the most urgent streams
	memops   atomic.Bool // whether streams write and wait for words, as far as is known
	guard    *C.hs_guard // of functions on the driver's thread
	pool     C.CUmemoryPool
	internal C.CUstream  // on which memory is allocated and freed
	dealt    uint64      // by which turn the driver has dealt out its hardware queue, of the greatest priority
	blocked  atomic.Bool // whether it did not go on when it was last waited for
	stalled  atomic.Bool // whether it did not when a call had no other memory, and work waited for the host
	drains   atomic.Bool // whether the driver did not return from a call for memory, while work waited for the host
	base     *mark       // the zero of the events' times
	delay    atomic.Pointer[driver.Function]
	// condition is the kernel that tells the driver a condition.
	condition atomic.Pointer[driver.Function]
	// refs are the device's own reference and one of each call that may still be in the driver when the
	// device is closed. Who gives up the last one releases the context.
	refs atomic.Int64
	left atomic.Bool // it stays, with what is in it, until the process ends
}

// hold keeps the context until release, and reports false if it was released.
func (l *live) hold() bool { return holdCount(&l.refs) }

func (l *live) release(d *Device) {
	if l.refs.Add(-1) > 0 {
		return
	}
	if !l.left.Load() {
		d.trimMarks(l, 0) // those that were in use when the device was closed
		_ = d.undoStart(l, nil)
	}
	open.Add(-1)
}

// holdCount adds a reference, and reports false if there was none.
func holdCount(refs *atomic.Int64) bool {
	for {
		n := refs.Load()
		if n == 0 {
			return false
		}
		if refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// start retains the primary context and what the backend needs in it. Threads
// that call at the same time each do it, and all but the first undo theirs: none
// may wait for another here, since it may hold Python's lock.
func (d *Device) start(doing string) error {
	if d.ended.Load() {
		return driver.Errorf(driver.Closed, doing, "the backend was closed; use the one that replaced it")
	}
	l := &live{guard: C.hs_guard_new()}
	if err := check(C.hs_retain(d.dev, &l.ctx), doing); err != nil {
		return d.undoStart(l, err)
	}
	var least, greatest C.int
	if err := check(C.hs_priorities(l.ctx, &least, &greatest), doing); err != nil {
		return d.undoStart(l, err)
	}
	l.greatest = int(greatest)
	if err := check(C.hs_stream_new(l.ctx, nonBlockingStream, greatest, &l.internal), doing); err != nil {
		return d.undoStart(l, err)
	}
	internal := spareStream{}
	d.spares.number(&internal, uint8(d.Priorities()-1))
	l.dealt = internal.dealt
	l.base = &mark{dev: d}
	l.base.refs.Store(1)
	if err := check(C.hs_event_new(l.ctx, 0, &l.base.event), doing); err != nil {
		return d.undoStart(l, err)
	}
	if err := check(C.hs_record(l.ctx, l.base.event, l.internal), doing); err != nil {
		return d.undoStart(l, err)
	}
	// Older drivers and some devices have no pools; memory comes from cuMemAlloc then.
	if d.attribute(attributePools) != 0 && hasPools() {
		if s := C.hs_pool_new(d.dev, l.ctx, &l.pool); s != 0 {
			l.pool = 0
			if err := check(s, doing); lasting(err.Code) {
				return d.undoStart(l, err)
			}
		}
	}
	l.memops.Store(C.hs_has(C.HS_cuStreamBatchMemOp_v2) != 0)
	l.refs.Store(1)
	open.Add(1)
	if !d.live.CompareAndSwap(nil, l) {
		_ = d.undoStart(l, nil) // the spare marks are those of the thread that was faster
		open.Add(-1)
		return nil
	}
	d.prepare(doing)
	return nil
}

// hasPools reports whether the driver has all that memory from a pool needs.
func hasPools() bool {
	return C.hs_has(C.HS_cuMemPoolCreate) != 0 && C.hs_has(C.HS_cuMemPoolDestroy) != 0 &&
		C.hs_has(C.HS_cuMemAllocFromPoolAsync) != 0 && C.hs_has(C.HS_cuMemFreeAsync) != 0
}

// undoStart releases what a start has acquired so far.
func (d *Device) undoStart(l *live, cause *driver.Error) error {
	// A call that failed for a passing reason succeeds the second time.
	if l.pool != 0 && C.hs_pool_destroy(l.ctx, l.pool) != 0 {
		C.hs_pool_destroy(l.ctx, l.pool)
	}
	if l.base != nil && l.base.event != 0 {
		C.hs_event_destroy(l.ctx, l.base.event)
	}
	if l.internal != 0 {
		C.hs_stream_destroy(l.ctx, l.internal)
	}
	if l.ctx != 0 && C.hs_release(d.dev) != 0 {
		C.hs_release(d.dev)
	}
	if cause == nil {
		return nil
	}
	if lasting(cause.Code) {
		return d.lose(cause)
	}
	return cause
}

// releaseContext releases the context, unless a call in the driver still needs it: then that call does.
func (d *Device) releaseContext() {
	d.ended.Store(true)
	if l := d.live.Swap(nil); l != nil {
		l.release(d)
	}
}
