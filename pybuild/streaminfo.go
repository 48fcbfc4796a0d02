package pybuild

import (
	"halstream/bindings"
	"halstream/hal"
)

// StreamHandle returns the raw handle: the vendor's where its library has one,
// else 0 legacy, 2 per-thread, or the id.
func StreamHandle(id int64) (handle int64, err error) {
	defer guard(&err)
	switch o := find(id).(type) {
	case perThread:
		s, err := o.dev.PerThreadStream(caller())
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
	table.mu.Lock()
	_, isEvent := table.events[uint64(handle)]
	table.mu.Unlock()
	if isEvent { // a driver does not check what a handle is of
		return 0, unknown(handle, "use external stream", "stream")
	}
	return onDevice(ordinal, func(d *hal.Device) (id int64, err error) {
		s, err := d.External(caller(), uint64(handle))
		if err != nil {
			return 0, err
		}
		if s == d.Legacy() {
			return legacyIDs[ordinal], nil
		}
		table.mu.Lock()
		defer table.mu.Unlock()
		if own, ok := table.handled[s]; ok {
			return own, nil
		}
		id = insertLocked(s)
		if s.PerThread() {
			table.own[s] = id
		}
		return id, nil
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
