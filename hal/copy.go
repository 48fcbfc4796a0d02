package hal

/*
#include <stdint.h>
#include <stdlib.h>

// Called by the thread that enqueues a copy; ends the process if there is no memory.
static uint64_t hs_stage_alloc(uint64_t size) {
	void *buffer = malloc(size);
	if (buffer == NULL) abort();
	return (uint64_t)(uintptr_t)buffer;
}

// Called by the same thread if the copy was not enqueued after all.
static void hs_stage_free(uint64_t buffer) { free((void *)(uintptr_t)buffer); }
*/
import "C"

import (
	"halstream/hal/driver"
	"halstream/hal/pages"
)

// maxStaged is the size up to which a copy from pageable memory reads the source
// within the call, as the vendors' do; a larger copy returns when it is done.
const maxStaged = 64 << 10

// CopySpec describes a copy of Height rows of Width bytes each, with
// Pitch bytes from the start of one to the next. Height 0 means one row.
type CopySpec struct {
	Dst, Src           uint64
	DstPitch, SrcPitch uint64
	Width, Height      uint64
}

// overlap reports whether source and target, which span from and to bytes, share
// any. The rows of one may lie in the gaps of the other.
func (c CopySpec) overlap(to, from uint64) bool {
	if c.Dst >= c.Src+from || c.Src >= c.Dst+to {
		return false
	}
	if c.Height == 1 || c.DstPitch != c.SrcPitch {
		return true
	}
	distance := max(c.Dst, c.Src) - min(c.Dst, c.Src)
	distance %= c.DstPitch
	return distance < c.Width || c.DstPitch-distance < c.Width
}

// Copy enqueues a copy. Pinned and device sources are read when the stream
// reaches the copy; a pageable source of up to 64 KiB is read within the call.
// The result, if not nil, is the point that the caller must wait for before it
// returns: copies into pageable memory, larger ones from it, and all within host memory
// are not asynchronous. An abort drops these, too, and Failure then reports it.
//
// # Errors
//   - [ErrInvalidValue]: a range leaves its block, is not mapped or was freed,
//     the two overlap, or a pitch is less than the width.
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M3, M4, M5, M9, M11, M13. Source: CUDA driver API, cuMemcpyAsync.
func (s *Stream) Copy(t *Thread, c CopySpec) (driver.Point, error) {
	return s.copy(t, c, EnqueuedCopy)
}

func (s *Stream) copy(t *Thread, c CopySpec, call CopyCall) (driver.Point, error) {
	const op = "copy"
	if err := s.checkEnqueue(t, op); err != nil {
		return nil, err
	}
	if c.Height == 0 {
		c.Height, c.DstPitch, c.SrcPitch = 1, c.Width, c.Width
	}
	if c.Width == 0 {
		return nil, nil
	}
	if c.Height > 1 && (c.DstPitch < c.Width || c.SrcPitch < c.Width) {
		return nil, driver.Errorf(driver.InvalidValue, op,
			"rows of %d bytes do not fit pitches of %d and %d", c.Width, c.DstPitch, c.SrcPitch)
	}
	to, fits := span(c.Dst, c.DstPitch, c.Width, c.Height)
	from, fit := span(c.Src, c.SrcPitch, c.Width, c.Height)
	if !fits || !fit {
		return nil, driver.Errorf(driver.InvalidValue, op,
			"%d rows of %d bytes with pitches of %d and %d bytes exceed the address space", c.Height, c.Width, c.DstPitch, c.SrcPitch)
	}
	if c.overlap(to, from) {
		return nil, driver.Errorf(driver.InvalidValue, op,
			"source %#x and target %#x overlap; copy through another block", c.Src, c.Dst)
	}
	rt := s.dev.rt
	var found [maxExtents]*Block
	ranges := [maxExtents]extent{{"source", c.Src, from}, {"target", c.Dst, to}}
	err := s.acquire(op, "a copy", ranges[:], found[:])
	if err != nil {
		return nil, err
	}
	blocks, src, dst := found[:], found[0], found[1]
	spec := driver.Copy{Dst: c.Dst, Src: c.Src, DstPitch: c.DstPitch, SrcPitch: c.SrcPitch,
		Width: c.Width, Height: c.Height}
	spec.To, spec.DstDevice = dst.location()
	spec.From, spec.SrcDevice = src.location()
	if c := s.capture.Load(); c != nil {
		return nil, c.addCopy(s, spec, blocks, call)
	}
	wait := call.waits(src, dst, from)
	if wait {
		err = s.checkCapturedElsewhere(op, "a copy that the host waits for")
	}
	if err == nil && dst == nil {
		err = checkAccess(op, "target", c.Dst, to, true)
	}
	switch {
	case err != nil || src != nil:
	case wait:
		err = checkAccess(op, "source", c.Src, from, false)
	default:
		err = s.stage(&spec, from)
	}
	if err != nil {
		return nil, s.using(blocks, func() error { return err })
	}
	var id uint32
	var order hostOrder
	if s.listened() {
		if wait {
			rt.CompareSources()
		}
		o := Operation{Kind: "copy", Thread: t,
			Reads: rows(c.Src, c.SrcPitch, c.Width, c.Height), Writes: rows(c.Dst, c.DstPitch, c.Width, c.Height)}
		if call == FillingCopy {
			o.Kind, o.Reads = "fill", nil // what the program asked for; it has no source
		}
		order = call.orders(src, dst)
		if order == ordersEarlier {
			rt.notifyHost(Operation{Kind: "synchronize stream", Stream: s, Thread: t})
		}
		// The source is read by the calling thread, or that waits until it was read.
		if spec.Release != 0 || order == ordersEarlier || order == ordersSource {
			rt.notifyHost(Operation{Kind: "host read", Stream: s, Thread: t, Reads: o.Reads})
			o.Reads = nil
		}
		if src != nil && src.Kind == Pinned {
			o.ID = rt.listeners.number()
			spec.Before, o.afterNotify = rt.watchSource(o.ID, c, from, src.ownMemory())
		}
		id = s.announce(&o)
	}
	spec.Waited, spec.Tag = wait, id
	var done driver.Point
	err = s.using(blocks, func() (err error) {
		done, err = s.d.Copy(spec)
		return err
	})
	if err != nil && spec.Release != 0 {
		s.unstage(spec.Release)
	}
	if err != nil || !wait {
		return nil, s.settle(t, id, err)
	}
	if id != 0 {
		rt.listeners.endAnnounce(id, nil)
	}
	if done == nil {
		done = s.d.Point()
	}
	if order != ordersAll {
		return done, nil
	}
	return s.observe(t, done), nil
}

// Fill enqueues count elements of size bytes (1, 2 or 4), each set to value.
//
// # Errors
//   - [ErrInvalidValue]: another size, an address that is not a multiple of it,
//     or a range that is not in one block of device or pinned memory.
//   - [ErrNotSupported], [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M8, M11. Source: CUDA driver API, cuMemsetD8Async, cuMemsetD16Async and
// cuMemsetD32Async.
func (s *Stream) Fill(t *Thread, dst uint64, value uint32, size uint8, count uint64) error {
	const op = "fill"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if size != 1 && size != 2 && size != 4 {
		return driver.Errorf(driver.InvalidValue, op, "elements have 1, 2 or 4 bytes, not %d", size)
	}
	if dst%uint64(size) != 0 {
		return driver.Errorf(driver.InvalidValue, op, "%#x is not a multiple of the elements' %d bytes", dst, size)
	}
	if count == 0 {
		return nil
	}
	if count > 1<<62/uint64(size) {
		return driver.Errorf(driver.InvalidValue, op, "%d elements exceed the address space", count)
	}
	n := count * uint64(size)
	blocks := []*Block{nil}
	if err := s.acquire(op, "a fill", []extent{{"target", dst, n}}, blocks); err != nil {
		return err
	}
	if blocks[0] == nil {
		return driver.Errorf(driver.InvalidValue, op, "%#x is pageable host memory; fill device or pinned memory", dst)
	}
	on, _ := blocks[0].location()
	spec := driver.Fill{Dst: dst, Count: count, Value: value, Size: size, On: on}
	if c := s.capture.Load(); c != nil {
		return c.addFill(s, spec, blocks[0])
	}
	var id uint32
	if s.listened() {
		id = s.announce(&Operation{Kind: "fill", Thread: t, Writes: []Range{{dst, n}}})
	}
	spec.Tag = id
	return s.settle(t, id, s.using(blocks, func() error { return s.d.Fill(spec) }))
}

// stage copies the pageable source of a copy, size bytes, into a buffer that the
// backend frees when the copy is done.
func (s *Stream) stage(c *driver.Copy, size uint64) error {
	var buffer uint64
	if vendor := s.dev.vendor; vendor != nil {
		var err error
		if buffer, err = vendor.Stage(size); err != nil {
			return err
		}
		c.From = driver.Pinned
	} else {
		buffer = uint64(C.hs_stage_alloc(C.uint64_t(size)))
	}
	if !pages.Read(buffer, c.Src, size) {
		s.unstage(buffer)
		return accessError("copy", "source", c.Src, size, false)
	}
	c.Src, c.Release = buffer, buffer
	return nil
}

// unstage frees a buffer of stage if the copy was not enqueued.
func (s *Stream) unstage(buffer uint64) {
	if vendor := s.dev.vendor; vendor != nil {
		vendor.Unstage(buffer)
	} else {
		C.hs_stage_free(C.uint64_t(buffer))
	}
}

// valueSize is the size and the alignment of values that streams write and wait for.
const valueSize = 8

// ValueAccess is what an operation writes to a value in memory, or waits for.
type ValueAccess struct {
	Addr, Value uint64
	// Condition is the comparison of the value in memory with Value that a wait
	// needs; unused by a write.
	Condition driver.Condition
}

// WriteValue enqueues a write of 64 bits at an address that is a multiple of 8, in
// pinned memory or memory of the stream's device.
//
// # Errors
//   - [ErrInvalidValue]: the address is not such a one, or the backend cannot have
//     values there.
//   - [ErrWrongDevice]: the address is in memory of another device.
//   - [ErrNotSupported]: the device cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M11, M19, V5. Source: CUDA driver API, cuStreamWriteValue64.
func (s *Stream) WriteValue(t *Thread, addr, value uint64) error {
	return s.value(t, "write value", ValueAccess{Addr: addr, Value: value}, s.d.WriteValue)
}

// WaitValue makes work enqueued on s after this call start only when the 64 bits at
// addr have met the condition. The condition is checked when s reaches the wait, and
// then after every change of the bits, by devices and by the host. The host does not
// block.
//
// # Errors: as for WriteValue, and [ErrInvalidValue] for a condition that does not exist.
//
// Contract: M11, M19, V5. Source: CUDA driver API, cuStreamWaitValue64.
func (s *Stream) WaitValue(t *Thread, addr, value uint64, c driver.Condition) error {
	return s.value(t, "wait value", ValueAccess{addr, value, c}, s.d.WaitValue)
}

// value enqueues a write of a value or a wait for it.
func (s *Stream) value(t *Thread, op string, v ValueAccess, enqueue func(driver.Value) error) error {
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, op, "values in memory are not built yet for graphs; use events")
	}
	if v.Condition >= driver.Conditions {
		return driver.Errorf(driver.InvalidValue, op, "there is no condition %d", v.Condition)
	}
	if v.Addr%valueSize != 0 {
		return driver.Errorf(driver.InvalidValue, op, "%#x is not a multiple of the value's %d bytes", v.Addr, valueSize)
	}
	blocks := []*Block{nil}
	if err := s.acquire(op, "an operation on a value", []extent{{"value", v.Addr, valueSize}}, blocks); err != nil {
		return err
	}
	b := blocks[0]
	var err error
	switch {
	case b == nil:
		err = driver.Errorf(driver.InvalidValue, op, "%#x is pageable host memory; use device or pinned memory", v.Addr)
	case b.dev != nil && b.dev != s.dev:
		err = driver.Errorf(driver.WrongDevice, op, "%#x is memory of device %d, and the stream is on device %d",
			v.Addr, b.dev.ordinal, s.dev.ordinal)
	}
	if err != nil {
		return s.using(blocks, func() error { return err })
	}
	on, _ := b.location()
	var id uint32
	if s.listened() {
		o := Operation{Kind: op, Thread: t, Value: &v}
		if access := []Range{{v.Addr, valueSize}}; op == "write value" {
			o.Writes = access
		} else {
			o.Reads = access
		}
		id = s.announce(&o)
	}
	return s.settle(t, id, s.using(blocks, func() error {
		return enqueue(driver.Value{Addr: v.Addr, Value: v.Value, Condition: v.Condition, On: on, Tag: id})
	}))
}
