package pybuild

/*
#include "caller.h"
*/
import "C"

import (
	"strconv"
	"strings"

	"halstream/bindings"
	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/driver"
)

// StreamNew makes a stream on a device, or with context other than 0 in that
// context, and returns its id.
func StreamNew(ordinal, priority, flags, context int64) (id int64, err error) {
	defer guard(&err)
	t := caller()
	o := hal.StreamOptions{
		Priority:    int(priority),
		NonBlocking: flags&bindings.StreamNonBlocking != 0,
		BlockHost:   flags&bindings.StreamBlockHost != 0,
	}
	var s *hal.Stream
	if context != 0 {
		c, ok := find(context).(*hal.Context)
		if !ok {
			return 0, unknown(context, "create stream", "context")
		}
		s, err = c.NewStream(t, o)
	} else {
		d, e := device(ordinal)
		if e != nil {
			return 0, e
		}
		s, err = d.NewStream(t, o)
	}
	if err != nil {
		return 0, raise(err)
	}
	return insert(s), nil
}

// StreamDefault returns the id of a device's legacy or per-thread default stream.
func StreamDefault(ordinal, ownThread int64) (id int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	d.DefaultStream()
	if ownThread != 0 {
		return python.Current().PerThread[ordinal], nil
	}
	return python.Current().Legacy[ordinal], nil
}

// StreamOwn returns the id of the calling thread's default stream, which stays
// that stream on every thread.
func StreamOwn(ordinal int64) (id int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	s, err := d.PerThreadStream(caller())
	if err != nil {
		return 0, raise(err)
	}
	return python.InsertOwn(s), nil
}

// enqueued ends a call that enqueued work: on a host-blocking stream it waits.
func enqueued(t *hal.Thread, s *hal.Stream, err error) (int64, error) {
	if err != nil {
		return 0, raise(err)
	}
	if s.BlocksHost() {
		p, err := s.Point(t)
		if err != nil {
			return 0, raise(err)
		}
		return lost(s, await(p, driver.Forever))
	}
	return 0, nil
}

// lost tells, after a wait for a stream that reached its point, if the device was
// lost.
func lost(s *hal.Stream, done int64) (zero int64, err error) {
	_, err = outcome(s.Device(), done)
	return 0, err
}

// StreamRecord records an event.
func StreamRecord(id, eventID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "record")
	if err != nil {
		return 0, err
	}
	e, err := event(eventID, "record")
	if err != nil {
		return 0, err
	}
	err = s.Record(t, e)
	return enqueued(t, s, err)
}

// StreamWaitEvent makes later work wait for an event.
func StreamWaitEvent(id, eventID int64) (zero int64, err error) {
	return StreamWaitLimited(id, eventID, driver.Forever)
}

// StreamWaitLimited makes later work wait for an event, at most limit nanoseconds.
func StreamWaitLimited(id, eventID, limit int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "wait event")
	if err != nil {
		return 0, err
	}
	e, err := event(eventID, "wait event")
	if err != nil {
		return 0, err
	}
	python.BlockedAt.WaitMade(s, e)
	return enqueued(t, s, s.WaitLimited(t, e, limit))
}

// StreamWaitStream makes later work wait for another stream's work so far.
func StreamWaitStream(id, other int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "wait stream")
	if err != nil {
		return 0, err
	}
	o, err := stream(t, other, "wait stream")
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.WaitStream(t, o))
}

// StreamNop enqueues an operation that does nothing.
func StreamNop(id int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "nop")
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.Nop(t))
}

// StreamDelay enqueues an operation that takes ns nanoseconds.
func StreamDelay(id, ns int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "delay")
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.Delay(t, ns))
}

// StreamCall enqueues the function that has this token.
func StreamCall(id, token int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "call")
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.HostFunc(t, uint64(token)))
}

// StreamCallMany enqueues functions, whose tokens are separated by spaces, before another thread of Python's can enqueue
// one, and returns how many it enqueued: where these are not all, StreamCall says what is wrong with the next one.
func StreamCallMany(id int64, tokens string) (n int64, err error) {
	return onStream(id, "call", func(t *hal.Thread, s *hal.Stream) (n int64, err error) {
		if s.BlocksHost() {
			return 0, nil // each call returns when the function has run
		}
		for _, text := range strings.Fields(tokens) {
			token, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return n, err
			}
			if s.HostFunc(t, token) != nil {
				break
			}
			n++
		}
		return n, nil
	})
}

// StreamQuery returns 1 if all work is done.
func StreamQuery(id int64) (done int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "query")
	if err != nil {
		return 0, err
	}
	ok, err := s.Query(t)
	return truth(ok), raise(err)
}

// StreamDone returns 1 if all work is done, and leaves the stream's first error
// for the next synchronize or query.
func StreamDone(id int64) (done int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "query")
	if err != nil {
		return 0, err
	}
	ok, err := s.Done(t)
	return truth(ok), raise(err)
}

// StreamSync waits for all work enqueued so far, at most limit nanoseconds
// (negative: no limit); 1 if it is done. The stream's first error is raised once.
func StreamSync(id, limit int64) (done int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "synchronize")
	if err != nil {
		return 0, err
	}
	ok := false
	if !deterministic || limit == 0 { // there it would be a call of its own, whose answer the order decides
		if ok, err = s.TryFinish(t); err != nil || !ok && limit == 0 {
			return 0, raise(err)
		}
	}
	if !ok {
		p, err := s.Point(t)
		if err != nil {
			return 0, raise(err)
		}
		if await(p, limit) == 0 {
			return 0, nil
		}
	}
	if err := s.Failure(); err != nil {
		return 1, raise(err)
	}
	return outcome(s.Device(), 1)
}

// StreamAbort drops the work that has not started and returns how much it was.
func StreamAbort(id int64) (n int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "abort")
	if err != nil {
		return 0, err
	}
	dropped, err := s.Abort(t)
	return int64(dropped), raise(err)
}

// StreamHandle returns the raw handle: the vendor's where its library has one,
// else 0 legacy, 2 per-thread, or the id.
func StreamHandle(id int64) (handle int64, err error) {
	defer guard(&err)
	switch o := find(id).(type) {
	case python.PerThread:
		s, err := o.Device.PerThreadStream(caller())
		if err != nil {
			return 0, raise(err)
		}
		if number, ok := s.Handle(); ok {
			return int64(number), nil
		}
		return 2, nil
	case *hal.Stream:
		number, ok := o.Handle()
		switch {
		case ok:
			return int64(number), nil
		case o == o.Device().Legacy():
			return 0, nil
		case o.PerThread():
			return 2, nil
		}
		return id, nil
	}
	return 0, unknown(id, "handle", "stream")
}

// StreamExternal returns the id of the stream with a handle of the vendor's: of an
// open stream of this runtime that has it, or a new one for another library's.
func StreamExternal(ordinal, handle int64) (id int64, err error) {
	if _, isEvent := python.EventOf(uint64(handle)); isEvent { // a driver does not check what a handle is of
		return 0, unknown(handle, "use external stream", "stream")
	}
	return onDevice(ordinal, func(d *hal.Device) (id int64, err error) {
		s, err := d.External(caller(), uint64(handle))
		if err != nil {
			return 0, err
		}
		if s == d.Legacy() {
			return python.Current().Legacy[ordinal], nil
		}
		return python.InsertHandled(s), nil
	})
}

// StreamForeign returns 1 for a stream of StreamExternal that another library
// made: closing it leaves that library's alone.
func StreamForeign(id int64) (foreign int64, err error) {
	return onStream(id, "foreign", func(_ *hal.Thread, s *hal.Stream) (int64, error) {
		return truth(s.External()), nil
	})
}

// StreamDevice returns the ordinal of the stream's device.
func StreamDevice(id int64) (ordinal int64, err error) {
	return onStream(id, "device", func(_ *hal.Thread, s *hal.Stream) (int64, error) {
		return int64(s.Device().Ordinal()), nil
	})
}

// StreamIndex returns the small number of the stream on its device.
func StreamIndex(id int64) (index int64, err error) {
	return onStream(id, "index", func(_ *hal.Thread, s *hal.Stream) (int64, error) { return int64(s.Index()), nil })
}

// StreamPriority returns the clamped priority.
func StreamPriority(id int64) (priority int64, err error) {
	return onStream(id, "priority", func(_ *hal.Thread, s *hal.Stream) (int64, error) {
		return int64(s.Options().Priority), nil
	})
}

// StreamFlags returns the flags the stream was made with.
func StreamFlags(id int64) (flags int64, err error) {
	return onStream(id, "flags", func(_ *hal.Thread, s *hal.Stream) (int64, error) {
		o := s.Options()
		return truth(o.NonBlocking)*bindings.StreamNonBlocking | truth(o.BlockHost)*bindings.StreamBlockHost, nil
	})
}

// StreamFailures returns how many functions on the stream raised.
func StreamFailures(id int64) (n int64, err error) {
	return onStream(id, "failures", func(_ *hal.Thread, s *hal.Stream) (int64, error) {
		return int64(s.Failures()), nil
	})
}
