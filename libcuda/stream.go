package libcuda

import "halstream/hal"

// The handles of default streams.
const (
	legacyStream    = 1
	perThreadStream = 2
)

const nonBlocking = 1

// stream is a stream of the program, or a default stream for one call.
type stream struct {
	*hal.Stream
	x        *context
	handle   uintptr
	flags    uint32
	priority int
	hints    hints // of one that is no default stream
}

// Core returns the stream itself, for bindings that are given its handle.
func (s *stream) Core() *hal.Stream { return s.Stream }

func (s *stream) owner() *context     { return s.x }
func (s *stream) end(c *caller) error { return s.Close(c.t) }

// stream returns the stream of a handle.
func (c *caller) stream(handle uintptr) (*stream, error) {
	if handle == 0 {
		handle = legacyStream
		if c.perThread {
			handle = perThreadStream
		}
	}
	if handle > perThreadStream {
		s, err := ownOrOther(handle)
		if err != nil {
			return nil, err
		}
		return s, s.Device().Lost()
	}
	x, err := c.context()
	if err != nil {
		return nil, err
	}
	if handle == legacyStream {
		return &stream{Stream: x.dev.DefaultStream(), x: x, handle: handle}, nil
	}
	own, err := x.dev.PerThreadStream(c.t)
	return &stream{Stream: own, x: x, handle: handle}, err
}

// hintsOf returns the hints of a stream. Those of default streams are the context's, as a stream here is for one call then.
func (c *caller) hintsOf(s *stream) *hints {
	switch s.handle {
	case legacyStream:
		return &s.x.hints
	case perThreadStream:
		own, _ := s.x.threadHints.LoadOrStore(c, &hints{})
		return own.(*hints)
	}
	return &s.hints
}

// ownOrOther returns the stream of a handle: one that the driver has made, or one of another binding of the process, which
// stands in the primary context of its device.
func ownOrOther(handle uintptr) (*stream, error) {
	other, ok := objects.Find(int64(handle)).(*hal.Stream)
	if !ok {
		return find[*stream](handle, invalidHandle, "stream")
	}
	s := &stream{Stream: other, x: primaryOf(other.Device()), handle: handle, priority: other.Options().Priority}
	if other.Options().NonBlocking {
		s.flags = nonBlocking
	}
	return s, nil
}

// onStream returns a function for a stream that is its argument i.
func onStream(i int, f func(c *caller, s *stream, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		s, err := c.stream(a.handle(i))
		if err != nil {
			return err
		}
		return f(c, s, a)
	}
}

var streamFunctions = []function{
	{name: "cuStreamCreate", version: 2000, call: func(c *caller, a *args) error { return c.createStream(a, a.u32(1), 0) }},
	{name: "cuStreamCreateWithPriority", version: 5050, call: func(c *caller, a *args) error {
		return c.createStream(a, a.u32(1), a.int(2))
	}},
	{name: "cuStreamDestroy_v2", version: 4000, firstVersion: 2000, call: func(c *caller, a *args) error {
		if a[0] <= perThreadStream {
			return refuse(invalidHandle, "a default stream is not destroyed")
		}
		s, err := find[*stream](a.handle(0), invalidHandle, "stream")
		if err != nil {
			return err
		}
		s.LeaveCapture()
		removeHandle(s.handle)
		return s.Close(c.t)
	}},
	{name: "cuStreamQuery", version: 2000, twin: ptsz, call: onStream(0, func(c *caller, s *stream, _ *args) error {
		done, err := s.Query(c.t)
		if err == nil && !done {
			err = refuse(notReady, "work is pending")
		}
		return err
	})},
	{name: "cuStreamSynchronize", version: 2000, twin: ptsz, call: onStream(0, func(c *caller, s *stream, _ *args) error {
		p, err := s.Point(c.t)
		if err != nil {
			return err
		}
		return c.wait(s.Device().Runtime(), p, func() error { return failureOf(s.Device(), s.Stream) })
	})},
	{name: "cuStreamWaitEvent", version: 3020, twin: ptsz, call: onStream(0, func(c *caller, s *stream, a *args) error {
		e, err := eventOf(a.handle(1))
		if err != nil {
			return err
		}
		if a.u32(2)&^external != 0 {
			return refuse(invalidValue, "a wait for an event has no flags %#x", a.u32(2))
		}
		if a.u32(2)&external != 0 {
			return s.WaitExternal(c.t, e.Event)
		}
		return s.Wait(c.t, e.Event)
	})},
	{name: "cuStreamGetPriority", version: 5050, twin: ptsz, call: streamValueCall(func(s *stream) int32 { return int32(s.priority) })},
	{name: "cuStreamGetFlags", version: 5050, twin: ptsz, call: streamValueCall(func(s *stream) uint32 { return s.flags })},
	{name: "cuStreamGetId", version: 12000, twin: ptsz, call: streamValueCall(func(s *stream) uint64 {
		return uint64(s.Device().Ordinal())<<48 | s.Index() + 1
	})},
	{name: "cuStreamGetCtx", version: 9020, twin: ptsz, call: streamValueCall(func(s *stream) uintptr { return s.x.handle })},
	{name: "cuStreamGetCtx_v2", version: 12050, twin: ptsz, call: onStream(0, func(_ *caller, s *stream, a *args) error {
		put(a, 1, s.x.handle)
		put(a, 2, uintptr(0))
		return a.need(1)
	})},
	{name: "cuStreamGetDevice", version: 12080, twin: ptsz, call: streamValueCall(func(s *stream) int32 {
		return int32(s.Device().Ordinal())
	})},
	{name: "cuStreamAttachMemAsync", version: 6000, twin: ptsz, call: unsupported("managed memory belongs to all streams here; leave it out")},
	{name: "cuStreamCopyAttributes", version: 11000, twin: ptsz, call: func(c *caller, a *args) error {
		to, err := c.stream(a.handle(0))
		if err != nil {
			return err
		}
		from, err := c.stream(a.handle(1))
		if err != nil {
			return err
		}
		c.hintsOf(to).copyFrom(c.hintsOf(from)) // the priority is that with which a stream was created
		return nil
	}},
	{name: "cuStreamGetAttribute", version: 11000, twin: ptsz, call: onStream(0, func(c *caller, s *stream, a *args) error {
		if err := a.need(2); err != nil {
			return err
		}
		switch number := a.int(1); {
		case streamHints[number]:
			put(a, 2, c.hintsOf(s).get(number))
		case number == attributePriority:
			put(a, 2, hint{})
			put(a, 2, int32(s.priority))
		default:
			return noStreamAttribute(number)
		}
		return nil
	})},
	{name: "cuStreamSetAttribute", version: 11000, twin: ptsz, call: onStream(0, func(c *caller, s *stream, a *args) error {
		if err := a.need(2); err != nil {
			return err
		}
		switch number := a.int(1); {
		case streamHints[number]:
			c.hintsOf(s).set(number, *in[hint](a, 2))
		case number == attributePriority:
			if wanted := *in[int32](a, 2); int(wanted) != s.priority {
				return refuse(notSupported, "a stream keeps its priority %d; create one with priority %d", s.priority, wanted)
			}
		default:
			return noStreamAttribute(number)
		}
		return nil
	})},
}

func noStreamAttribute(number int) error {
	return refuse(invalidValue, "there is no attribute %d of a stream", number)
}

// streamValueCall returns a function that stores a number of a stream.
func streamValueCall[T any](of func(s *stream) T) func(c *caller, a *args) error {
	return onStream(0, func(_ *caller, s *stream, a *args) error {
		put(a, 1, of(s))
		return a.need(1)
	})
}

func (c *caller) createStream(a *args, flags uint32, priority int) error {
	x, err := c.context()
	if err == nil {
		err = a.need(0)
	}
	if err != nil {
		return err
	}
	if flags&^nonBlocking != 0 {
		return refuse(invalidValue, "a stream has no flags %#x", flags)
	}
	priority = max(x.dev.GreatestPriority(), min(0, priority))
	made, err := x.dev.NewStream(c.t, hal.StreamOptions{Priority: priority, NonBlocking: flags&nonBlocking != 0})
	if err != nil {
		return err
	}
	s := &stream{Stream: made, x: x, flags: flags, priority: priority}
	s.handle = newHandle(s)
	put(a, 0, s.handle)
	return nil
}
