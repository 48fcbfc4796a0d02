package pybuild

// #include "calls.h"
import "C"

import (
	"halstream/bindings/python"
	"halstream/bindings/records"
	"halstream/hal"
	"halstream/hal/driver"
)

// MemAlloc returns the address of size bytes of device memory.
func MemAlloc(ordinal, size int64) (addr uint64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (uint64, error) {
		return addressOf(allocated(func(wait waiter) (*hal.Block, error) { return d.AllocWait(caller(), size, wait) }))
	})
}

// MemFree gives device memory back.
func MemFree(addr uint64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		t := caller()
		return 0, slow(sizeAt(r, addr), func() error { return r.Free(t, addr) })
	})
}

// MemFreeNoWait is MemFree for a call of which it is documented that it waits for nothing.
func MemFreeNoWait(addr uint64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		t := caller()
		return 0, slow(sizeAt(r, addr), func() error { return r.FreeNoWait(t, addr) })
	})
}

// sizeAt returns the size of the block that holds an address.
func sizeAt(r *hal.Runtime, addr uint64) uint64 {
	_, _, size, _ := r.Lookup(addr)
	return size
}

// slow runs a call that gives size bytes of memory back. Python's lock is released if that
// may take milliseconds, as giving many pages back to the system does.
func slow(size uint64, f func() error) (err error) {
	if size < python.SlowAt {
		return f()
	}
	unlocked(func() { err = f() })
	return err
}

// MemAllocAsync returns the address of size bytes in the order of a stream.
func MemAllocAsync(id, size int64) (addr uint64, err error) {
	return onStream(id, "allocate in stream order", func(t *hal.Thread, s *hal.Stream) (uint64, error) {
		return addressOf(allocated(func(wait waiter) (*hal.Block, error) { return s.AllocAsyncWait(t, size, wait) }))
	})
}

// MemFreeAsync gives memory back in the order of a stream.
func MemFreeAsync(id int64, addr uint64) (zero int64, err error) {
	return onStream(id, "free in stream order", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		return nothing(s.FreeAsync(t, addr))
	})
}

// MemFreeBytes returns how many bytes of the device's memory are free.
func MemFreeBytes(ordinal int64) (n uint64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (n uint64, err error) {
		n, _, err = d.MemoryInfo()
		return n, err
	})
}

// MemTotalBytes returns how many bytes of memory the device has.
func MemTotalBytes(ordinal int64) (n uint64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (n uint64, err error) {
		_, n, err = d.MemoryInfo()
		return n, err
	})
}

// MemLookup returns the block that contains an address: a blockRecord.
func MemLookup(addr uint64) (block string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) {
		kind, start, size, ordinal := r.Lookup(addr)
		return blockRecord{int(kind), start, size, ordinal}.text(), nil
	})
}

// MemFind returns the kind of memory at an address; C code finds the rest of the block
// that contains it in halstream_found.
func MemFind(addr int64) (kind int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		found, start, size, ordinal := r.Lookup(uint64(addr))
		noteBlock(start, size, ordinal)
		return int64(found), nil
	})
}

// MemKind returns the kind of memory at an address, numbered as in blockRecord.
func MemKind(addr uint64) (kind int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		found, _, _, _ := r.Lookup(addr)
		return int64(found), nil
	})
}

// PoolStat returns a figure of the stream-ordered pool, bytes: 0 used, 1
// reserved, 2 highest used, 3 highest reserved, 4 threshold.
func PoolStat(ordinal, which int64) (n uint64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (uint64, error) {
		p := d.PoolStats()
		return figure("pool statistics", which, p.Used, p.Reserved, p.UsedPeak, p.ReservedPeak, p.Threshold)
	})
}

// PoolChunks returns the parts of the segments of the pool, by address: a list of
// chunkRecord.
func PoolChunks(ordinal int64) (chunks string, err error) {
	return onDevice(ordinal, func(d *hal.Device) (string, error) {
		list := []chunkRecord{}
		for _, c := range d.PoolChunks() {
			r := chunkRecord{
				Segment: records.Range{Start: c.Segment.Start, Size: c.Segment.Size},
				Chunk:   records.Range{Start: c.Chunk.Start, Size: c.Chunk.Size},
				Used:    c.Used,
			}
			if c.Block != nil {
				r.Size = c.Block.Size
			}
			if s := c.Stream; s != nil && s != d.Legacy() {
				r.Stream = uint64(python.IDOf(s))
			}
			list = append(list, r)
		}
		return encode(list), nil
	})
}

// PoolTrim gives kept memory back to the device, down to least bytes.
func PoolTrim(ordinal int64, least uint64) (zero int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		d.TrimPool(least)
		return 0, nil
	})
}

// PoolThreshold says how many free bytes the pool keeps.
func PoolThreshold(ordinal int64, bytes uint64) (zero int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		d.SetPoolThreshold(bytes)
		return 0, nil
	})
}

// PoolResetPeaks makes peaks of the pool start anew.
func PoolResetPeaks(ordinal int64, used, reserved bool) (zero int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		d.ResetPoolPeaks(used, reserved)
		return 0, nil
	})
}

// HostAlloc returns the address of size bytes of pinned memory.
func HostAlloc(size int64) (addr uint64, err error) {
	return onRuntime(func(r *hal.Runtime) (uint64, error) {
		return addressOf(allocated(func(wait waiter) (*hal.Block, error) { return r.AllocHostWait(caller(), size, wait) }))
	})
}

// HostFree gives pinned memory back; no pending operation may work on it.
func HostFree(addr uint64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		t := caller()
		return 0, slow(sizeAt(r, addr), func() error { return r.FreeHost(t, addr, false) })
	})
}

// HostRegister makes memory of the program pinned.
func HostRegister(addr uint64, size int64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return nothing(r.RegisterHost(caller(), addr, size)) })
}

// HostUnregister makes it pageable again.
func HostUnregister(addr uint64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return nothing(r.UnregisterHost(caller(), addr)) })
}

// CheckUnsafe fails where a capture forbids calls such as an allocation, and invalidates the capture. what
// names the call.
func CheckUnsafe(what string) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return nothing(r.CheckUnsafe(caller(), what)) })
}

// HostShare keeps host memory of another library registered until HostUnshare. It
// returns the id of the share, 0 for memory that the runtime allocated.
func HostShare(addr, size uint64) (id int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		s, err := r.ShareHost(caller(), addr, size)
		if s == nil {
			return 0, err
		}
		return insert(s), nil
	})
}

// HostUnshare ends a share. It does nothing for one that has ended.
func HostUnshare(id int64) (zero int64, err error) {
	defer guard(&err)
	if s, ok := find(id).(*hal.Share); ok {
		remove(id)
		s.End(caller())
	}
	return 0, nil
}

// StreamCopy enqueues a copy of n bytes. It waits where the vendors' calls do,
// for copies into pageable memory and larger ones from it.
func StreamCopy(id int64, dst, src, n uint64) (zero int64, err error) {
	return copyRows(id, hal.CopySpec{Dst: dst, Src: src, Width: n})
}

// StreamCopyRows enqueues a copy of height rows of width bytes.
func StreamCopyRows(id int64, dst, dpitch, src, spitch, width, height uint64) (zero int64, err error) {
	if height == 0 {
		return 0, nil
	}
	return copyRows(id, hal.CopySpec{Dst: dst, DstPitch: dpitch, Src: src, SrcPitch: spitch, Width: width, Height: height})
}

// StreamCopyAs copies height rows of width bytes by a kind of call, a [hal.CopyCall], and
// waits where that does.
func StreamCopyAs(id, call int64, dst, dpitch, src, spitch, width, height uint64) (zero int64, err error) {
	if height == 0 {
		return 0, nil
	}
	if call < 0 || call > 255 {
		return 0, driver.Errorf(driver.InvalidValue, "copy", "there is no kind %d of copies", call)
	}
	c := hal.CopySpec{Dst: dst, DstPitch: dpitch, Src: src, SrcPitch: spitch, Width: width, Height: height}
	return copied(id, func(t *hal.Thread, s *hal.Stream) (driver.Point, error) {
		return s.CopyAs(t, c, hal.CopyCall(call))
	})
}

func copyRows(id int64, c hal.CopySpec) (zero int64, err error) {
	return copied(id, func(t *hal.Thread, s *hal.Stream) (driver.Point, error) { return s.Copy(t, c) })
}

// copied waits for what copy returns, if it is not nil.
func copied(id int64, copy func(*hal.Thread, *hal.Stream) (driver.Point, error)) (zero int64, err error) {
	return onStream(id, "copy", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		p, err := copy(t, s)
		if err != nil || p == nil {
			return enqueued(t, s, err)
		}
		if await(p, driver.Forever) == 0 {
			return 0, nil // a handler of a signal raised
		}
		if err := s.Failure(); err != nil { // an abort may have dropped the copy
			return 0, err
		}
		return lost(s, 1)
	})
}

// StreamFill enqueues count elements of size bytes, each set to value.
func StreamFill(id int64, dst, value uint64, size int64, count uint64) (zero int64, err error) {
	return onStream(id, "fill", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		if size < 0 || size > 8 || value > 1<<32-1 {
			return 0, driver.Errorf(driver.InvalidValue, "fill", "a value has at most 4 bytes")
		}
		return enqueued(t, s, s.Fill(t, dst, uint32(value), uint8(size), count))
	})
}

// StreamFillBlocking is StreamFill that waits where the target is memory of the host, or
// managed.
func StreamFillBlocking(id int64, dst, value uint64, size int64, count uint64) (zero int64, err error) {
	return copied(id, func(t *hal.Thread, s *hal.Stream) (driver.Point, error) {
		return s.FillBlocking(t, dst, uint32(value), uint8(size), count)
	})
}

// MemMarkManaged says that the host may work as well on the block at an address.
func MemMarkManaged(addr uint64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		r.MarkManaged(addr)
		return 0, nil
	})
}

// MemCheck fails if the process has no readable memory in a range of addresses.
func MemCheck(addr, size int64) (zero int64, err error) {
	defer guard(&err)
	return 0, raise(hal.CheckMemory("check memory", uint64(addr), uint64(size)))
}

// noteBlock tells C code which block was found, or made.
func noteBlock(start, size uint64, ordinal int) {
	C.halstream_found = C.halstream_block{C.uint64_t(start), C.uint64_t(size), C.int64_t(ordinal)}
}
