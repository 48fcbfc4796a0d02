package hal

import (
	"sync/atomic"

	"halstream/hal/driver"
)

// Thread identifies a host thread in calls. It is an explicit token, since
// goroutines have no identity and the system reuses the numbers of threads. A Thread
// is used by one thread at a time. A caller that needs no per-thread state and runs
// no host functions passes nil.
type Thread struct {
	// ID is not reused.
	ID uint64
	// WaitsItself is set if this caller waits for host-blocking streams itself, in a
	// way that signals can interrupt (Stream.BlocksHost).
	WaitsItself bool
	// Bound is set if all calls with this Thread come from one thread of the system,
	// so that it can use the per-thread default stream of a vendor's library.
	Bound bool

	inFunction bool // a host function runs on this thread
	running    readyFunc
	// outerFuncs are functions of report queues that run on t and inside of which t
	// took running; empty for threads that serve a Runtime's own queue.
	outerFuncs []readyFunc
	serves     atomic.Pointer[Queue] // whose functions it takes
	mark       logMark
	ctx        *Context
	streams    map[*Device]*Stream
	current    *Device
	// captureMode says which unsafe calls of this thread captures refuse.
	captureMode CaptureMode
}

// NewThread returns the token of a new host thread.
func NewThread() *Thread { return &Thread{ID: threadIDs.Add(1)} }

// Context returns t's current context.
//
// # Errors
//   - [ErrNoContext]: t has none.
//
// Contract: A1.
func (t *Thread) Context() (*Context, error) {
	if t.ctx == nil || t.ctx.ended.Load() {
		return nil, driver.Errorf(driver.NoContext, "context",
			"this thread has no current context; set a device or a context first")
	}
	return t.ctx, nil
}

// SetContext makes c current on t.
//
// # Errors
//   - [ErrClosed]: c was destroyed.
//   - [ErrInHostFunction].
//
// Contract: A1.
func (t *Thread) SetContext(c *Context) error {
	if err := t.checkCaller("set context"); err != nil {
		return err
	}
	if c.ended.Load() {
		return closedError("set context", "context")
	}
	t.ctx = c
	return nil
}

// Device returns the thread's current device, the first one of rt if SetDevice was
// not called.
//
// Contract: D2.
func (t *Thread) Device(rt *Runtime) *Device {
	if t.current == nil || t.current.rt != rt {
		return rt.devices[0]
	}
	return t.current
}

// Serves reports whether the thread takes functions of a queue.
func (t *Thread) Serves() bool { return t.serves.Load() != nil }

// Queue returns the queue whose functions the thread takes, nil if there is none.
func (t *Thread) Queue() *Queue { return t.serves.Load() }

// SetDevice makes d current on this thread.
//
// Contract: D2.
func (t *Thread) SetDevice(d *Device) { t.current = d }

// Retire ends the use of t when its thread ends: the per-thread default streams are
// closed (their work completes), and t has no current context any more.
//
// Contract: S5.
func (t *Thread) Retire() {
	for _, s := range t.streams {
		s.close()
	}
	t.streams, t.ctx, t.current = nil, nil, nil
}

// Running returns the token of the host function that runs on t, 0 if none does.
func (t *Thread) Running() uint64 {
	if t == nil || !t.inFunction {
		return 0
	}
	return t.running.token
}

// checkCaller rejects calls from inside a function on a stream (H3).
func (t *Thread) checkCaller(op string) error {
	if t != nil && t.inFunction {
		return driver.Errorf(driver.InHostFunction, op,
			"a function that runs on a stream may not call the runtime (the vendors forbid it: "+
				"it would wait for itself); return first, or enqueue the call from the host")
	}
	return nil
}

// ServesOther reports whether t takes functions from another queue than q.
func (t *Thread) ServesOther(q *Queue) bool {
	s := t.serves.Load()
	return s != nil && s != q
}

// leave makes the function that t runs end there; t goes on with the one inside of
// which it took it. The lock of its queue is held.
func (t *Thread) leave() readyFunc {
	k := t.running
	t.running = readyFunc{}
	if n := len(t.outerFuncs); n > 0 {
		t.running, t.outerFuncs[n-1] = t.outerFuncs[n-1], readyFunc{}
		t.outerFuncs = t.outerFuncs[:n-1]
	}
	t.inFunction = false
	return k
}
