package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"time"

	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// Copy implements driver.Stream. Pageable memory goes through pinned memory of this package: the library would
// block the caller until the stream is done, and no limit and no signal ends that wait.
func (s *Stream) Copy(c driver.Copy) (driver.Point, error) {
	const doing = "copy"
	return nil, s.enqueue(c.Tag, doing, func() error {
		switch {
		case c.To != driver.OnDevice && c.From != driver.OnDevice:
			return s.hostCopy(c, doing)
		case c.Release != 0:
			return s.copyFromStage(c, doing)
		case c.From == driver.Pageable:
			addr, err := s.dev.Stage(c.Width * c.Height)
			if err != nil {
				return err
			}
			hostCopy(addr, c.Src, c.Width, c.SrcPitch, c.Width, c.Height)
			c.Src, c.SrcPitch, c.Release = addr, c.Width, addr
			if err := s.copyFromStage(c, doing); err != nil {
				s.dev.Unstage(addr)
				return err
			}
			return nil
		case c.To == driver.Pageable:
			return s.copyToStage(c, doing)
		}
		if c.Before != nil {
			if err := s.launch(s.working("a look at the source of a copy", c.Before, func() {}), doing); err != nil {
				return err
			}
		}
		return s.copy(c, doing)
	})
}

// copy enqueues a copy that the library can do. Planes within devices are copied row by row: only few chips can
// do it at once.
func (s *Stream) copy(c driver.Copy, doing string) error {
	rows := C.na_rows{
		dst: C.uint64_t(c.Dst), src: C.uint64_t(c.Src), dpitch: C.uint64_t(c.DstPitch), spitch: C.uint64_t(c.SrcPitch),
		width: C.uint64_t(c.Width), height: C.uint64_t(c.Height), kind: C.ACL_MEMCPY_DEVICE_TO_DEVICE,
	}
	switch {
	case c.From != driver.OnDevice:
		rows.kind = C.ACL_MEMCPY_HOST_TO_DEVICE
	case c.To != driver.OnDevice:
		rows.kind = C.ACL_MEMCPY_DEVICE_TO_HOST
	default:
		for _, other := range []int{c.SrcDevice, c.DstDevice} {
			if err := s.dev.reach(other); err != nil {
				return err
			}
		}
		if c.Height > 1 {
			rows.height = 1
			return s.copyRows(rows, c.Height, doing)
		}
	}
	return s.took(C.na_copy(s.dev.ctx(), s.h, &rows), doing)
}

// copyRows enqueues a copy row by row. Where the library refuses a row behind others, the copy counts as enqueued, and the
// error is the stream's: rows that are pending use the memory.
func (s *Stream) copyRows(row C.na_rows, height uint64, doing string) error {
	for i := range height {
		if err := s.dev.check(C.na_copy(s.dev.ctx(), s.h, &row), doing); err != nil {
			if i == 0 {
				return err
			}
			s.Fail(err.(*driver.Error))
			break
		}
		row.dst += row.dpitch
		row.src += row.spitch
	}
	s.Count()
	return nil
}

// copyFromStage copies from memory of Stage, which is released when the copy is done. On an error the caller still owns it.
func (s *Stream) copyFromStage(c driver.Copy, doing string) error {
	if err := s.copy(c, doing); err != nil {
		return err
	}
	if p, err := s.fence(doing); err == nil {
		s.dev.staged.Add(p, c.Release)
	} // without a fence event the end of the copy is not seen: the stage is not freed
	return nil
}

// copyToStage copies to pinned memory, and from there on a host thread in stream order, so that the copy completes whether or
// not a thread waits for it.
func (s *Stream) copyToStage(c driver.Copy, doing string) error {
	d := s.dev
	addr, err := d.Stage(c.Width * c.Height)
	if err != nil {
		return err
	}
	target, pitch := c.Dst, c.DstPitch
	c.Dst, c.DstPitch = addr, c.Width
	if err := s.copy(c, doing); err != nil {
		d.Unstage(addr)
		return err
	}
	take := func() {
		hostCopy(target, addr, pitch, c.Width, c.Width, c.Height)
		d.Unstage(addr)
	}
	err = s.launch(s.working("the end of a copy to pageable memory", take, func() { d.Unstage(addr) }), doing)
	if err != nil {
		if p, refused := s.fence(doing); refused == nil { // the copy to the stage is pending
			d.staged.Add(p, addr)
		}
	}
	return err
}

// hostCopy copies between two ranges of host memory in stream order, on a host thread: AscendCL refuses such copies.
func (s *Stream) hostCopy(c driver.Copy, doing string) error {
	release := func() {
		if c.Release != 0 {
			s.dev.Unstage(c.Release)
		}
	}
	work := func() {
		if c.Before != nil {
			c.Before()
		}
		hostCopy(c.Dst, c.Src, c.DstPitch, c.SrcPitch, c.Width, c.Height)
		release()
	}
	return s.launch(s.working("a copy between two places of the host", work, release), doing)
}

func hostCopy(dst, src, dpitch, spitch, width, height uint64) {
	C.na_host_copy(&C.na_rows{dst: C.uint64_t(dst), src: C.uint64_t(src), dpitch: C.uint64_t(dpitch),
		spitch: C.uint64_t(spitch), width: C.uint64_t(width), height: C.uint64_t(height)})
}

// patternBytes is how much of a pattern is written by the host; the rest of a fill is copied within the device.
const patternBytes = 64 << 10

// Fill implements driver.Stream.
func (s *Stream) Fill(f driver.Fill) error {
	const doing = "fill"
	return s.enqueue(f.Tag, doing, func() error {
		if f.On != driver.OnDevice {
			fill := func() { hostFill(f.Dst, f) }
			return s.launch(s.working("a fill of pinned memory", fill, func() {}), doing)
		}
		first := byte(f.Value)
		same := f.Size == 1 || f.Size == 2 && uint16(f.Value) == uint16(first)*0x101 ||
			f.Size == 4 && f.Value == uint32(first)*0x1010101
		bytes := f.Count * uint64(f.Size)
		if same {
			return s.took(C.na_memset(s.dev.ctx(), s.h, C.uint64_t(f.Dst), C.int32_t(first), C.uint64_t(bytes)), doing)
		}
		return s.pattern(f, bytes, doing)
	})
}

// pattern fills with a value of several bytes: the first part is copied from the host, and what is filled so far then
// doubles.
func (s *Stream) pattern(f driver.Fill, bytes uint64, doing string) error {
	filled := min(bytes, patternBytes)
	addr, err := s.dev.Stage(filled)
	if err != nil {
		return err
	}
	hostFill(addr, driver.Fill{Count: filled / uint64(f.Size), Value: f.Value, Size: f.Size})
	on := s.dev.ordinal
	c := driver.Copy{Dst: f.Dst, Src: addr, Width: filled, Height: 1, To: driver.OnDevice, From: driver.Pinned,
		DstDevice: on, SrcDevice: -1, Release: addr}
	if err := s.copyFromStage(c, doing); err != nil {
		s.dev.Unstage(addr)
		return err
	}
	for filled < bytes {
		more := min(filled, bytes-filled)
		c = driver.Copy{Dst: f.Dst + filled, Src: f.Dst, Width: more, Height: 1, To: driver.OnDevice, From: driver.OnDevice,
			DstDevice: on, SrcDevice: on}
		if err := s.copy(c, doing); err != nil {
			return err
		}
		filled += more
	}
	return nil
}

func hostFill(dst uint64, f driver.Fill) {
	C.na_host_fill(C.uint64_t(dst), C.uint64_t(f.Count), C.uint32_t(f.Value), C.int(f.Size))
}

// The library's numbers of the conditions are those of hal; else this does not compile.
var (
	_ = [1]int{}[driver.AtLeast-C.ACL_STREAM_WAIT_VALUE_GEQ]
	_ = [1]int{}[driver.Equal-C.ACL_STREAM_WAIT_VALUE_EQ]
	_ = [1]int{}[driver.AnyBit-C.ACL_STREAM_WAIT_VALUE_AND]
	_ = [1]int{}[driver.MissingBit-C.ACL_STREAM_WAIT_VALUE_NOR]
)

// canValues refuses values where the library is too old for them.
func canValues(doing string) error {
	if C.na_has(C.NA_aclrtValueWait) == 0 || C.na_has(C.NA_aclrtValueWrite) == 0 {
		return driver.Errorf(driver.NotSupported, doing, "the library has no function aclrtValueWait; CANN 8.5 has it")
	}
	return nil
}

// WriteValue implements driver.Stream. The library writes to memory of devices; values in pinned memory are the
// host's to write and look at.
func (s *Stream) WriteValue(v driver.Value) error {
	const doing = "write value"
	return s.enqueue(v.Tag, doing, func() error {
		if err := canValues(doing); err != nil {
			return err
		}
		if v.On == driver.Pinned {
			write := func() { C.na_host_store(C.uint64_t(v.Addr), C.uint64_t(v.Value)) }
			return s.launch(s.working("a write of a value", write, func() {}), doing)
		}
		return s.took(C.na_value_write(s.dev.ctx(), s.h, C.uint64_t(v.Addr), C.uint64_t(v.Value)), doing)
	})
}

// WaitValue implements driver.Stream.
func (s *Stream) WaitValue(v driver.Value) error {
	const doing = "wait value"
	return s.enqueue(v.Tag, doing, func() error {
		err := canValues(doing)
		switch {
		case err != nil:
		case v.On == driver.Pinned:
			err = s.waitPinned(v, doing)
		default:
			err = s.took(C.na_value_wait(s.dev.ctx(), s.h, C.uint64_t(v.Addr), C.uint64_t(v.Value), C.uint32_t(v.Condition)), doing)
		}
		if err == nil {
			s.AwaitsHostAt(s.Last(), s.Keep)
		}
		return err
	})
}

// waitPinned lets a host thread look at the value on behalf of the stream, less and less often.
func (s *Stream) waitPinned(v driver.Value, doing string) error {
	const longest = time.Millisecond
	h := &blocker{what: C.NA_HOLD, Blocker: vendor.Blocker{Title: "a wait for a value", Drop: func() {}}}
	h.Run = func() {
		go func() {
			for pause := 5 * time.Microsecond; !v.Condition.Met(uint64(C.na_host_load(C.uint64_t(v.Addr))), v.Value) && !s.dev.unusable(); {
				time.Sleep(pause)
				pause = min(longest, pause+pause/16+1)
			}
			h.open()
		}()
	}
	return s.launch(h, doing)
}
