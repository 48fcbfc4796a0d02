package main

// #include <stdlib.h>
// #include <string.h>
// #include "acl/acl_rt_types.h"
import "C"

import (
	"errors"
	"unsafe"

	"halstream/bindings/ascendcl"
	"halstream/hal"
	"halstream/hal/driver"
)

// copyOf is what a program asks to copy.
type copyOf struct {
	dst, dstMax, dpitch, src, spitch, width, height C.uint64_t
	kind                                            C.int32_t
}

// check refuses a copy that cannot be one of any memory.
func (k *copyOf) check() error {
	switch {
	case k.dst == 0:
		return missing("the target")
	case k.src == 0:
		return missing("the source")
	case !ascendcl.CopyKindExists(int32(k.kind)):
		return refuse(ascendcl.InvalidParam, "there is no kind of copy %d", k.kind)
	case k.width > k.dstMax:
		return refuse(ascendcl.ParamInvalid, "%d bytes do not fit a target of %d", k.width, k.dstMax)
	case k.height > 0 && max(k.dpitch, k.spitch) >= (1<<63)/k.height:
		// The rows could not be in any memory, and the sizes would not fit 64 bits.
		return refuse(ascendcl.ParamInvalid, "%d rows at this pitch fit no memory", k.height)
	}
	return nil
}

// directed refuses memory that is not what the kind of the copy says, and returns the kind
// of the source's.
func (k *copyOf) directed() (hal.MemoryKind, error) {
	source, err := kindAt(C.uintptr_t(k.src))
	if err != nil {
		return 0, err
	}
	target, err := kindAt(C.uintptr_t(k.dst))
	if err != nil {
		return 0, err
	}
	from, to := source == hal.DeviceMemory, target == hal.DeviceMemory
	if wantFrom, wantTo, any := ascendcl.CopyEnds(int32(k.kind)); !any && (wantFrom != from || wantTo != to) {
		return 0, refuse(ascendcl.ParamInvalid, "kind %d is another direction than from %s to %s memory", k.kind, source, target)
	}
	if !from && !to {
		return 0, refuse(ascendcl.FeatureNotSupported, "a stream does not copy from host to host; use aclrtMemcpy")
	}
	return source, nil
}

func (k *copyOf) spec() hal.CopySpec {
	return hal.CopySpec{Dst: uint64(k.dst), DstPitch: uint64(k.dpitch), Src: uint64(k.src), SrcPitch: uint64(k.spitch),
		Width: uint64(k.width), Height: uint64(k.height)}
}

// copied waits for a copy that is not asynchronous.
func copied(s *hal.Stream, p driver.Point, err error) error {
	if err != nil || p == nil {
		return err
	}
	p.Wait(driver.Forever)
	if err := s.Failure(); err != nil { // an abort may have dropped the copy
		return err
	}
	return s.Device().Lost()
}

// aside runs f on a stream of the current context that has no order with others, and waits for it.
func (c *caller) aside(f func(s *hal.Stream) error) error {
	now, err := c.current()
	if err != nil {
		return err
	}
	if err := now.Device().Runtime().CheckUnsafe(c.t, "wait for a copy"); err != nil {
		return err
	}
	s, err := now.beside(c.t)
	if err != nil {
		return err
	}
	if err := f(s); err != nil {
		return err
	}
	done, err := s.Synchronize(c.t, driver.Forever)
	return waited(done, err, ascendcl.StreamSyncTimeout, s.Device(), -1)
}

// inCapture is the error of an asynchronous copy: in a capture one of pageable memory is refused as what blocks the host is.
func inCapture(err error) error {
	var e *hal.Error
	if errors.As(err, &e) && e.Kind == driver.Capture && e.Code == 900 {
		return refuse(ascendcl.CaptureNotSupported, "%v", err)
	}
	return err
}

// unsafeInCapture is the code of a call that a capture refuses because the host would wait.
var unsafeInCapture = kindCode{driver.Capture, ascendcl.CaptureNotSupported}

//export hsAclMemcpy
func hsAclMemcpy(me C.uint32_t, dst, dstMax, src, count C.uint64_t, kind C.int32_t) C.int {
	return call(me, func(c *caller) error {
		if count == 0 {
			return nil
		}
		k := copyOf{dst: dst, dstMax: dstMax, src: src, width: count, kind: kind}
		if err := k.check(); err != nil {
			return err
		}
		if dst == src {
			_, err := c.t.Context()
			return err
		}
		return c.aside(func(s *hal.Stream) error {
			p, err := s.Copy(c.t, k.spec())
			return copied(s, p, err)
		})
	}, unsafeInCapture)
}

//export hsAclMemcpyAsync
func hsAclMemcpyAsync(me C.uint32_t, dst, dstMax, src, count C.uint64_t, kind C.int32_t, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		if count == 0 {
			return nil
		}
		k := copyOf{dst: dst, dstMax: dstMax, src: src, width: count, kind: kind}
		if err := k.check(); err != nil {
			return err
		}
		s, err := c.streamOf(handle)
		if err != nil {
			return err
		}
		source, err := k.directed()
		if err != nil {
			return err
		}
		if kind != C.ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE || source != hal.Pinned {
			p, err := s.CopyAs(c.t, k.spec(), hal.StagedCopy)
			return copied(s.Stream, p, inCapture(err))
		}
		// The program may change the source at once: a pageable copy of it is what the stream reads.
		staged := C.malloc(C.size_t(count))
		if staged == nil {
			return driver.Errorf(driver.OutOfMemory, "copy", "there is no memory for a copy of %d bytes", count)
		}
		defer C.free(staged)
		C.memcpy(staged, *(*unsafe.Pointer)(unsafe.Pointer(&src)), C.size_t(count))
		k.src = C.uint64_t(uintptr(staged))
		p, err := s.Copy(c.t, k.spec())
		return copied(s.Stream, p, inCapture(err))
	})
}

//export hsAclMemcpy2d
func hsAclMemcpy2d(me C.uint32_t, dst, dpitch, src, spitch, width, height C.uint64_t, kind C.int32_t) C.int {
	return call(me, func(c *caller) error {
		if width == 0 || height == 0 {
			return nil
		}
		k := copyOf{dst, min(dpitch, spitch), dpitch, src, spitch, width, height, kind}
		if err := k.check(); err != nil {
			return err
		}
		if _, err := k.directed(); err != nil {
			return err
		}
		return c.aside(func(s *hal.Stream) error {
			p, err := s.Copy(c.t, k.spec())
			return copied(s, p, err)
		})
	}, unsafeInCapture)
}

//export hsAclMemcpy2dAsync
func hsAclMemcpy2dAsync(me C.uint32_t, dst, dpitch, src, spitch, width, height C.uint64_t, kind C.int32_t, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		if width == 0 || height == 0 {
			return nil
		}
		s, err := c.streamOf(handle)
		if err != nil {
			return err
		}
		k := copyOf{dst, min(dpitch, spitch), dpitch, src, spitch, width, height, kind}
		if err := k.check(); err != nil {
			return err
		}
		if _, err := k.directed(); err != nil {
			return err
		}
		p, err := s.CopyAs(c.t, k.spec(), hal.StagedCopy)
		return copied(s.Stream, p, inCapture(err))
	})
}

// fits refuses a fill that cannot be one of any memory.
func fits(address C.uintptr_t, room, count C.uint64_t) error {
	switch {
	case address == 0:
		return missing("the pointer")
	case count > room:
		return refuse(ascendcl.ParamInvalid, "%d bytes do not fit memory of %d", count, room)
	}
	return nil
}

//export hsAclMemset
func hsAclMemset(me C.uint32_t, address C.uintptr_t, room C.uint64_t, value C.int32_t, count C.uint64_t) C.int {
	return call(me, func(c *caller) error {
		if err := fits(address, room, count); err != nil {
			return err
		}
		return c.aside(func(s *hal.Stream) error {
			return s.Fill(c.t, uint64(address), uint32(value)&0xff, 1, uint64(count))
		})
	}, unsafeInCapture)
}

//export hsAclMemsetAsync
func hsAclMemsetAsync(me C.uint32_t, address C.uintptr_t, room C.uint64_t, value C.int32_t, count C.uint64_t, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		if err := fits(address, room, count); err != nil {
			return err
		}
		s, err := c.streamOf(handle)
		if err != nil {
			return err
		}
		return s.Fill(c.t, uint64(address), uint32(value)&0xff, 1, uint64(count))
	})
}
