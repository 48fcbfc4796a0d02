package capi

/*
#include "capi.h"
*/
import "C"

import (
	"sync/atomic"

	"halstream/bindings/python"
	"halstream/hal"
)

// The functions of halstream.h on memory.

// counts are how many blocks of each device of a runtime were made and freed.
type counts struct {
	rt *hal.Runtime
	of []struct{ made, freed atomic.Uint64 }
}

var counted atomic.Pointer[counts]

// countsOf returns the counts of the runtime in use; they begin with 0 when that changes.
func countsOf(rt *hal.Runtime) *counts {
	before := counted.Load()
	if before != nil && before.rt == rt {
		return before
	}
	fresh := &counts{rt, make([]struct{ made, freed atomic.Uint64 }, rt.Devices())}
	if counted.CompareAndSwap(before, fresh) {
		return fresh
	}
	return countsOf(rt)
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
