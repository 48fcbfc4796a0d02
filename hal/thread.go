package hal

import (
	"sync/atomic"

	"halstream/hal/driver"
)

// Thread is a host thread as the runtime knows it: an explicit token, since
// goroutines have no identity and the system's thread numbers are used again.
// A Thread is used by one thread at a time. Calls take nil for a caller that
// has no per-thread state and runs no host functions.
type Thread struct {
	// ID is never used again.
	ID uint64
	// WaitsOutside says that this caller waits for host-blocking streams
	// itself, because only it knows how to be interrupted (Stream.BlocksHost).
	WaitsOutside bool
	// Bound says that all calls of this Thread come from one of the system's
	// threads, whose default stream a vendor's library may know.
	Bound bool

	inside  bool // a host function runs on this thread
	running ticket
	// outer are functions of report queues inside which t took running; empty
	// for the threads that serve a Runtime's own queue.
	outer   []ticket
	serves  atomic.Pointer[Queue] // whose functions it takes
	ctx     *Context
	streams map[*Device]*Stream
	current *Device
}

var threadIDs atomic.Uint64

// NewThread returns the token of a new host thread.
func NewThread() *Thread { return &Thread{ID: threadIDs.Add(1)} }

// Device returns the thread's current device, rt's first one at the beginning.
//
// Contract: D2.
func (t *Thread) Device(rt *Runtime) *Device {
	if t.current == nil || t.current.rt != rt {
		return rt.devices[0]
	}
	return t.current
}

// Serves reports whether the thread takes functions of streams.
func (t *Thread) Serves() bool { return t.serves.Load() != nil }

// SetDevice makes d current on this thread.
//
// Contract: D2.
func (t *Thread) SetDevice(d *Device) { t.current = d }

// Retire ends the thread: its per-thread default streams are closed (their
// work completes) and it is no longer the user of a context.
//
// Contract: S5.
func (t *Thread) Retire() {
	for _, s := range t.streams {
		s.end()
	}
	t.streams, t.ctx, t.current = nil, nil, nil
}

// enter rejects calls from inside a function on a stream (H3).
func (t *Thread) enter(op string) error {
	if t != nil && t.inside {
		return driver.Errorf(driver.InHostFunction, op,
			"a function that runs on a stream may not call the runtime (the vendors forbid it: "+
				"it would wait for itself); return first, or enqueue the call from the host")
	}
	return nil
}

// PerThreadStream returns the calling thread's default stream of the device,
// which takes part in the legacy order like any ordered stream.
//
// Contract: S5.
func (d *Device) PerThreadStream(t *Thread) (*Stream, error) {
	if t == nil {
		return nil, driver.Errorf(driver.InvalidValue, "per-thread default stream", "a Thread is needed")
	}
	if err := t.enter("per-thread default stream"); err != nil {
		return nil, err
	}
	if s := t.streams[d]; s != nil && !s.closed.Load() {
		return s, nil
	}
	s, err := d.ownStream(t)
	if err != nil {
		return nil, err
	}
	s.special = true
	if t.streams == nil {
		t.streams = map[*Device]*Stream{}
	}
	t.streams[d] = s
	return s, nil
}

// ownStream returns the vendor's per-thread default stream where there is one, which
// other libraries of the process use, too; else a new stream.
func (d *Device) ownStream(t *Thread) (*Stream, error) {
	if d.vendor == nil || !t.Bound {
		return d.newStream(StreamOptions{}, nil)
	}
	d.used.Store(true)
	s := &Stream{dev: d, index: d.indexes.Add(1), level: uint8(d.levels - 1)}
	var err error
	s.d, err = d.vendor.PerThread(driver.StreamOptions{Level: s.level, Ordered: true, ID: s.index})
	if err != nil {
		return nil, err
	}
	return s, nil
}
