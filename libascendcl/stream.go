package main

// #include "acl/acl_rt_types.h"
import "C"

import (
	"errors"
	"sync"
	"sync/atomic"

	"halstream/bindings/ascendcl"
	"halstream/hal"
	"halstream/hal/driver"
)

// stream is a stream of the program, with what its creator said and the attributes set on it.
type stream struct {
	*hal.Stream
	standing bool // the default stream of a context
	flags    uint32
	asked    uint32      // the priority that the program gave
	byDevice atomic.Bool // the latest abort was one of the device

	mu         sync.Mutex
	attributes map[C.int32_t]uint64
}

// streamOf returns the stream of a handle; 0 is the current context's default stream.
func (c *caller) streamOf(handle C.uintptr_t) (*stream, error) {
	if handle == 0 {
		now, err := c.current()
		if err != nil {
			return nil, err
		}
		handle = C.uintptr_t(now.stream)
	}
	if s, ok := find(uintptr(handle)).(*stream); ok {
		return s, nil
	}
	return nil, refuse(ascendcl.InvalidHandle, "no stream has the handle %#x; it was destroyed, or is no stream", handle)
}

// on calls f with the stream of a handle.
func on(me C.uint32_t, handle C.uintptr_t, f func(c *caller, s *stream) error, own ...kindCode) C.int {
	return call(me, func(c *caller) error {
		s, err := c.streamOf(handle)
		if err != nil {
			return err
		}
		c.asked = s
		return f(c, s)
	}, own...)
}

// left returns how many streams can still be made on a device.
func left(d *hal.Device) int {
	n := ascendcl.MostStreams
	each(func(_ uintptr, is any) {
		if s, ok := is.(*stream); ok && !s.standing && s.Device() == d {
			n--
		}
	})
	return max(0, n)
}

//export hsAclCreateStream
func hsAclCreateStream(me C.uint32_t, handle *C.uintptr_t, priority, flags C.uint32_t) C.int {
	return call(me, func(c *caller) error {
		if handle == nil {
			return missing("the stream")
		}
		if flags&ascendcl.HardwareStreamFlags != 0 {
			return refuse(ascendcl.FeatureNotSupported, "streams with flag %#x belong to a model or a chip", flags)
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		if left(now.Device()) == 0 {
			return refuse(ascendcl.NoStreamResource, "all %d streams of device %d are in use; destroy some",
				ascendcl.MostStreams, now.Device().Ordinal())
		}
		asked := min(uint32(priority), ascendcl.LeastPriority)
		s, err := now.NewStream(c.t, hal.StreamOptions{Priority: int(asked) - ascendcl.LeastPriority})
		if err == nil {
			*handle = C.uintptr_t(add(&stream{Stream: s, flags: uint32(flags) & ascendcl.KeptStreamFlags, asked: asked}))
		}
		return err
	})
}

//export hsAclDestroyStream
func hsAclDestroyStream(me C.uint32_t, handle C.uintptr_t, drop C.int) C.int {
	return call(me, func(c *caller) error {
		if handle == 0 {
			return missing("the stream")
		}
		s, err := c.streamOf(handle)
		if err != nil {
			return err
		}
		if s.standing {
			return s.Close(c.t) // which refuses it
		}
		if state, err := s.IsCapturing(c.t); err != nil || state != hal.NotCapturing {
			if err == nil {
				err = refuse(ascendcl.Captured, "the stream captures; end the capture first")
			}
			return err
		}
		if err := s.Nop(c.t); err != nil { // an enqueue is what checks the context
			return err
		}
		end := func(bool) error {
			_ = s.Failure() // the stream ends here, and its error with it
			err := s.Close(c.t)
			if err == nil {
				remove(uintptr(handle))
				forgetUnusedQueues()
			}
			return err
		}
		if drop != 0 {
			if _, err := s.Abort(c.t); err != nil {
				return err
			}
			return end(true)
		}
		p, err := s.Point(c.t)
		if err != nil {
			return err
		}
		return c.wait(s.Device().Runtime(), p, driver.Forever, ascendcl.StreamSyncTimeout, end)
	})
}

//export hsAclSynchronizeStream
func hsAclSynchronizeStream(me C.uint32_t, handle C.uintptr_t, ms C.int32_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		limit, err := limitOf(ms)
		if err != nil {
			return err
		}
		return c.synchronize(s.Stream, limit, ms, func(failed error) error {
			if errors.Is(failed, hal.ErrAborted) && s.byDevice.Load() {
				return abortedError(s.Device())
			}
			return failed
		})
	})
}

// synchronize waits for what was enqueued on s, with a limit in nanoseconds that the program gave as ms. The error is what
// explain makes of the stream's failure, nil where it has none.
func (c *caller) synchronize(s *hal.Stream, limit int64, ms C.int32_t, explain func(failed error) error, own ...kindCode) error {
	p, err := s.Point(c.t)
	if err != nil {
		return err
	}
	return c.wait(s.Device().Runtime(), p, limit, ascendcl.StreamSyncTimeout, func(done bool) error {
		var failed error
		if done {
			failed = explain(s.Failure())
		}
		return waited(done, failed, ascendcl.StreamSyncTimeout, s.Device(), ms)
	}, own...)
}

//export hsAclStreamQuery
func hsAclStreamQuery(me C.uint32_t, handle C.uintptr_t, status *C.int32_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		if status == nil {
			return missing("the status")
		}
		done, err := s.Query(c.t)
		if err == nil {
			*status = C.ACL_STREAM_STATUS_NOT_READY
			if done {
				*status = C.ACL_STREAM_STATUS_COMPLETE
			}
		}
		return err
	})
}

//export hsAclStreamAbort
func hsAclStreamAbort(me C.uint32_t, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		s.byDevice.Store(false)
		_, err := s.Abort(c.t)
		return err
	})
}

//export hsAclStreamWaitEvent
func hsAclStreamWaitEvent(me C.uint32_t, handle, marker C.uintptr_t, seconds C.int32_t, standing C.int) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		e, err := eventOf(marker)
		if err == nil {
			err = e.capturable(s)
		}
		if err != nil {
			return err
		}
		if seconds < 0 {
			return refuse(ascendcl.ParamInvalid, "the limit is 0 or more seconds, not %d", seconds)
		}
		limit := int64(seconds)
		if standing != 0 {
			session.mu.Lock()
			limit = int64(session.limit)
			session.mu.Unlock()
		}
		if limit == 0 {
			return s.Wait(c.t, e.Event)
		}
		return s.WaitLimited(c.t, e.Event, limit*1e9)
	}, kindCode{driver.Unrecorded, ascendcl.ParamInvalid})
}

//export hsAclSetOpWaitTimeout
func hsAclSetOpWaitTimeout(_, seconds C.uint32_t) C.int {
	session.mu.Lock()
	defer session.mu.Unlock()
	session.limit = uint32(seconds)
	return ascendcl.Success
}

// What hsAclStreamFigure returns.
const (
	streamID = iota
	streamPriority
	streamFlags
)

//export hsAclStreamFigure
func hsAclStreamFigure(me C.uint32_t, handle C.uintptr_t, which C.int, figure *C.uint32_t) C.int {
	return on(me, handle, func(_ *caller, s *stream) error {
		if figure == nil {
			return missing("the number")
		}
		switch which {
		case streamID:
			*figure = C.uint32_t(s.Index())
		case streamPriority:
			*figure = C.uint32_t(s.priority())
		case streamFlags:
			*figure = C.uint32_t(s.flags)
		}
		return nil
	})
}

// priority returns the priority that the program gave, also if the device has fewer levels.
func (s *stream) priority() uint32 {
	if s.standing {
		return uint32(ascendcl.LeastPriority + s.Options().Priority)
	}
	return s.asked
}

//export hsAclGetStreamAvailableNum
func hsAclGetStreamAvailableNum(me C.uint32_t, count *C.uint32_t) C.int {
	return call(me, func(c *caller) error {
		if count == nil {
			return missing("the count")
		}
		now, err := c.t.Context()
		if err == nil {
			*count = C.uint32_t(left(now.Device()))
		}
		return err
	})
}

//export hsAclSetStreamAttribute
func hsAclSetStreamAttribute(me C.uint32_t, handle C.uintptr_t, attribute C.int32_t, value C.uint64_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		switch attribute {
		case C.ACL_STREAM_ATTR_FAILURE_MODE, C.ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, C.ACL_STREAM_ATTR_USER_CUSTOM_TAG,
			C.ACL_STREAM_ATTR_CACHE_OP_INFO:
		default:
			return refuse(ascendcl.ParamInvalid, "the attribute %d cannot be set", attribute)
		}
		if err := s.Nop(c.t); err != nil { // an enqueue is what checks the context
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if attribute == C.ACL_STREAM_ATTR_FAILURE_MODE {
			if value > C.ACL_STOP_ON_FAILURE {
				return refuse(ascendcl.ParamInvalid, "the failure mode is 0 or 1, not %d", value)
			}
			if s.attributes[attribute] > uint64(value) {
				return refuse(ascendcl.FeatureNotSupported, "the failure mode 1 cannot be undone")
			}
		}
		if s.attributes == nil {
			s.attributes = map[C.int32_t]uint64{}
		}
		s.attributes[attribute] = uint64(value)
		return nil
	})
}

//export hsAclGetStreamAttribute
func hsAclGetStreamAttribute(me C.uint32_t, handle C.uintptr_t, attribute C.int32_t, value *C.uint64_t) C.int {
	return on(me, handle, func(_ *caller, s *stream) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch attribute {
		case C.ACL_STREAM_ATTR_FAILURE_MODE, C.ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, C.ACL_STREAM_ATTR_USER_CUSTOM_TAG,
			C.ACL_STREAM_ATTR_CACHE_OP_INFO:
			*value = C.uint64_t(s.attributes[attribute])
		case C.ACL_STREAM_ATTR_PRIORITY:
			*value = C.uint64_t(s.priority())
		default:
			return refuse(ascendcl.ParamInvalid, "there is no attribute %d", attribute)
		}
		return nil
	})
}
