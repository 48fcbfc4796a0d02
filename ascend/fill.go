package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"time"

	"halstream/hal/driver"
)

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
			s.awaitsHostAt(s.enqueued.Load())
		}
		return err
	})
}

// waitPinned lets a host thread look at the value on behalf of the stream, less and less often.
func (s *Stream) waitPinned(v driver.Value, doing string) error {
	const longest = time.Millisecond
	h := &held{what: C.NA_HOLD, title: "a wait for a value", drop: func() {}}
	h.run = func() {
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
