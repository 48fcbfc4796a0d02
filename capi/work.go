package capi

/*
#include "capi.h"
*/
import "C"

import (
	"unsafe"

	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/bestfit"
	"halstream/hal/driver"
)

//export halstreamEnqueue
func halstreamEnqueue(who, id C.int64_t, operation unsafe.Pointer, name *C.char, site, flags C.uint32_t, ranges unsafe.Pointer,
	count C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "enqueue")
	if err != nil {
		return result(err)
	}
	f := hal.NativeFunc{
		Name: C.GoString(name), Site: uint32(site), Accesses: unsafe.Slice((*hal.Access)(ranges), int(count)),
		Function: runOperation, Argument: uint64(uintptr(operation)), Release: releaseOperation,
		LosesDevice: flags&C.HALSTREAM_LOSES_DEVICE != 0,
	}
	return c.enqueued(s, s.NativeFunc(c.t, &f))
}

// The layouts are the same.
var _ [unsafe.Sizeof(hal.Access{})]byte = [C.sizeof_halstream_range]byte{}

var (
	runOperation     = uint64(uintptr(C.halstream_run_operation))
	releaseOperation = uint64(uintptr(C.halstream_release_operation))
)

//export halstreamCopy
func halstreamCopy(who, id C.int64_t, dst, dpitch, src, spitch, width, height C.uint64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "copy")
	if err != nil {
		return result(err)
	}
	p, err := s.Copy(c.t, hal.CopySpec{Dst: uint64(dst), DstPitch: uint64(dpitch), Src: uint64(src),
		SrcPitch: uint64(spitch), Width: uint64(width), Height: uint64(height)})
	if err != nil || p == nil {
		return c.enqueued(s, err)
	}
	if err = c.await(p, driver.Forever); err == nil {
		err = s.Failure() // an abort may have dropped the copy
	}
	if err == nil {
		err = s.Device().Lost()
	}
	return result(err)
}

//export halstreamFill
func halstreamFill(who, id C.int64_t, dst C.uint64_t, value, size C.uint32_t, count C.uint64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "fill")
	if err == nil && size > 8 {
		err = driver.Errorf(driver.InvalidValue, "fill", "a value has at most 4 bytes")
	}
	if err != nil {
		return result(err)
	}
	return c.enqueued(s, s.Fill(c.t, uint64(dst), uint32(value), uint8(size), uint64(count)))
}

//export halstreamNop
func halstreamNop(who, id C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "nop")
	if err != nil {
		return result(err)
	}
	return c.enqueued(s, s.Nop(c.t))
}

//export halstreamDelay
func halstreamDelay(who, id, ns C.int64_t) C.int {
	c := begin(who)
	s, err := c.stream(id, "delay")
	if err != nil {
		return result(err)
	}
	return c.enqueued(s, s.Delay(c.t, int64(ns)))
}

//export halstreamGateNew
func halstreamGateNew(who, id C.int64_t, gate *C.int64_t) (code C.int) {
	defer full(&code)
	c := begin(who)
	s, err := c.stream(id, "gate")
	if err != nil {
		return result(err)
	}
	g, err := s.Gate(c.t)
	if err != nil {
		return result(err)
	}
	python.BlockedAt.GateMade(g)
	*gate = C.int64_t(python.Insert(g))
	return C.HALSTREAM_OK
}

//export halstreamGateOpen
func halstreamGateOpen(_, id C.int64_t) C.int {
	g, ok := python.Find(int64(id)).(driver.Gate)
	if !ok {
		err := python.Unknown(int64(id), "open gate", "gate")
		if err.Kind == driver.Closed {
			return C.HALSTREAM_OK // it was opened, and its number given up
		}
		return result(err)
	}
	g.Open()
	python.BlockedAt.GateOpened(g)
	python.Remove(int64(id))
	return C.HALSTREAM_OK
}

//export halstreamBlockNew
func halstreamBlockNew(who, id C.int64_t, size C.uint64_t, cached C.int, block *C.int64_t,
	address *C.uint64_t) (code C.int) {
	defer full(&code)
	c := begin(who)
	s, err := c.stream(id, "allocate in stream order")
	if err != nil {
		return result(err)
	}
	alloc := s.AllocAsyncWait
	if cached != 0 {
		alloc = s.AllocCached
	}
	b, err := alloc(c.t, int64(min(uint64(size), 1<<62)), c.memoryWait())
	if err != nil {
		return result(err)
	}
	b.ReleaseInOrder()
	if r := s.Device().Runtime(); python.Current().Runtime == r {
		countsOf(r).of[s.Device().Ordinal()].made.Add(1)
	}
	*block, *address = C.int64_t(python.Insert(b)), C.uint64_t(b.Start)
	return C.HALSTREAM_OK
}

//export halstreamBlockNewHost
func halstreamBlockNewHost(who C.int64_t, size C.uint64_t, block *C.int64_t, address *C.uint64_t) (code C.int) {
	defer full(&code)
	c := begin(who)
	r, err := runtimeInUse()
	if err != nil {
		return result(err)
	}
	b, err := r.AllocHostWait(c.t, int64(min(uint64(size), 1<<62)), c.memoryWait())
	if err != nil {
		return result(err)
	}
	*block, *address = C.int64_t(python.Insert(b)), C.uint64_t(b.Start)
	return C.HALSTREAM_OK
}

//export halstreamBlockRecordStream
func halstreamBlockRecordStream(who, id, streamID C.int64_t) C.int {
	c := begin(who)
	b, ok := python.Find(int64(id)).(*hal.Block)
	if !ok {
		return result(python.Unknown(int64(id), "record stream", blockName))
	}
	s, err := c.stream(streamID, "record stream")
	if err == nil {
		b.RecordStream(s)
	}
	return result(err)
}

// blockName is what errors call a block.
const blockName = "block of memory"

// What halstreamClose closes.
const (
	closesStream = iota
	closesEvent
	closesBlock
)

//export halstreamClose
func halstreamClose(who, id C.int64_t, kind C.int) C.int {
	c := begin(who)
	object := python.Find(int64(id))
	what, op := [...]string{"stream", "event", blockName}[kind], [...]string{"close stream", "close event", "free"}[kind]
	var fits bool
	switch object.(type) {
	case *hal.Stream, python.PerThread:
		fits = kind == closesStream
	case *hal.Event:
		fits = kind == closesEvent
	case *hal.Block, *bestfit.Block:
		fits = kind == closesBlock
	}
	if !fits {
		err := python.Unknown(int64(id), op, what)
		if object == nil && err.Kind == driver.Closed && kind != closesBlock {
			return C.HALSTREAM_OK // it was closed already
		}
		return result(err)
	}
	return result(c.close(int64(id)))
}

// close closes a stream, an event or a block of memory.
func (c call) close(id int64) (err error) {
	switch o := python.Find(id).(type) {
	case *hal.Stream:
		err = o.Close(c.t)
	case python.PerThread:
		err = driver.Errorf(driver.InvalidValue, "close stream", "a default stream cannot be closed")
	case *hal.Event:
		if err = o.Close(c.t); err == nil {
			python.BlockedAt.EventClosed(o)
		}
	case *bestfit.Block:
		o.Free()
	case *hal.Block:
		free := func() error { return o.Release(c.t) }
		if o.Size >= python.SlowAt {
			err = c.outsideLock(free)
		} else {
			err = free()
		}
		if d := o.Device(); err == nil && d != nil {
			if r := d.Runtime(); python.Current().Runtime == r {
				countsOf(r).of[d.Ordinal()].freed.Add(1)
			}
		}
	default:
		return nil
	}
	if err == nil {
		python.Remove(id)
	}
	return err
}

func gauge(g hal.Gauge) C.halstream_gauge {
	return C.halstream_gauge{current: C.uint64_t(g.Current), peak: C.uint64_t(g.Peak), added: C.uint64_t(g.Added)}
}

//export halstreamMemoryStats
func halstreamMemoryStats(who C.int64_t, ordinal C.int32_t, stats *C.halstream_memory) C.int {
	begin(who)
	d, err := deviceOf(ordinal)
	if err != nil {
		return result(err)
	}
	m := d.MemoryStats()
	stats.allocated, stats.allocated_peak = C.uint64_t(m.Allocated), C.uint64_t(m.AllocatedPeak)
	stats.reserved, stats.reserved_peak = C.uint64_t(m.Reserved), C.uint64_t(m.ReservedPeak)
	stats.active, stats.active_peak = C.uint64_t(m.Active), C.uint64_t(m.ActivePeak)
	for i, p := range m.Pools {
		stats.pools[i] = C.halstream_segments{segments: gauge(p.Segments), bytes: gauge(p.Bytes),
			split: gauge(p.Split), split_bytes: gauge(p.SplitBytes)}
	}
	stats.out_of_memory, stats.retries = C.uint64_t(m.OutOfMemory), C.uint64_t(m.Retries)
	counts := &countsOf(d.Runtime()).of[ordinal]
	stats.allocations, stats.frees = C.uint64_t(counts.made.Load()), C.uint64_t(counts.freed.Load())
	return C.HALSTREAM_OK
}

//export halstreamMemoryResetPeaks
func halstreamMemoryResetPeaks(who C.int64_t, ordinal C.int32_t) C.int {
	begin(who)
	d, err := deviceOf(ordinal)
	if err == nil {
		d.ResetMemoryPeaks(true, true)
	}
	return result(err)
}

//export halstreamMemoryEmptyCache
func halstreamMemoryEmptyCache(who C.int64_t, ordinal C.int32_t) C.int {
	c := begin(who)
	d, err := deviceOf(ordinal)
	if err != nil {
		return result(err)
	}
	if p := d.DeferredPoint(); p != nil {
		c.memoryWait()(p)
	}
	return result(c.outsideLock(func() error {
		d.Reclaim()
		d.TrimPool(0)
		return nil
	}))
}

//export halstreamDeviceMemory
func halstreamDeviceMemory(who C.int64_t, ordinal C.int32_t, free, total *C.uint64_t) C.int {
	begin(who)
	d, err := deviceOf(ordinal)
	if err != nil {
		return result(err)
	}
	f, all, err := d.MemoryInfo()
	if err == nil {
		*free, *total = C.uint64_t(f), C.uint64_t(all)
	}
	return result(err)
}

//export halstreamMemoryKind
func halstreamMemoryKind(who C.int64_t, address C.uint64_t, kind *C.int, ordinal *C.int32_t) C.int {
	begin(who)
	r, err := runtimeInUse()
	if err == nil {
		found, _, _, device := r.Lookup(uint64(address))
		*kind, *ordinal = C.int(found), C.int32_t(device)
	}
	return result(err)
}

//export halstreamHostAccess
func halstreamHostAccess(who C.int64_t, address, size C.uint64_t, access C.uint32_t) C.int {
	c := begin(who)
	r, err := runtimeInUse()
	if err != nil {
		return result(err)
	}
	for _, mode := range []C.uint32_t{C.HALSTREAM_READ, C.HALSTREAM_WRITE} {
		if access&mode != 0 && err == nil {
			err = r.HostAccess(c.t, hal.Range{Start: uint64(address), Size: uint64(size)}, mode == C.HALSTREAM_WRITE)
		}
	}
	return result(err)
}
