package hal

import (
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// Context is a set of streams of a device with its own default stream (AscendCL).
// Each host thread has a current context. Streams of a context accept work only from
// threads on which it is current, and have no implicit order with other streams.
type Context struct {
	dev            *Device
	primary        bool
	def            *Stream
	ended          atomic.Bool
	mu             sync.Mutex
	streams        map[*Stream]struct{}
	sizeAfterSweep int // number of streams that the latest sweep kept
}

// primary is the one context of a device that is shared by counting its users.
type primary struct {
	mu   sync.Mutex
	ctx  *Context
	uses int
}

// newContext makes a context with its default stream.
func (d *Device) newContext(isPrimary bool) (*Context, error) {
	c := &Context{dev: d, primary: isPrimary, streams: map[*Stream]struct{}{}}
	def, err := d.newStream(StreamOptions{}, c)
	if err != nil {
		return nil, err
	}
	def.isDefault = true
	c.def = def
	c.streams[def] = struct{}{}
	return c, nil
}

// NewContext makes a context of d and makes it current on t.
//
// # Errors: [ErrInHostFunction].
//
// Contract: A1.
func (d *Device) NewContext(t *Thread) (*Context, error) {
	if err := t.checkCaller("create context"); err != nil {
		return nil, err
	}
	c, err := d.newContext(false)
	if err == nil {
		t.ctx = c
	}
	return c, err
}

// UsePrimary makes the primary context of d current on t and counts one more
// user of it.
//
// # Errors: [ErrInHostFunction].
//
// Contract: A9.
func (d *Device) UsePrimary(t *Thread) (*Context, error) {
	if err := t.checkCaller("use primary context"); err != nil {
		return nil, err
	}
	p := &d.primary
	if c := p.use(nil); c != nil {
		t.ctx = c
		return c, nil
	}
	made, err := d.newContext(true)
	if err != nil {
		return nil, err
	}
	t.ctx = p.use(made)
	if t.ctx != made {
		made.End() // another thread was first
	}
	return t.ctx, nil
}

// use counts one more user of the primary context and returns it. If there is none
// yet, made becomes the primary context; if made is nil, too, use returns nil.
func (p *primary) use(made *Context) *Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		p.ctx = made
	}
	if p.ctx != nil {
		p.uses++
	}
	return p.ctx
}

// ReleasePrimary counts one user of the primary context less, with force all of
// them. After the last release it returns the context: the caller waits for its
// Point and then calls End.
//
// # Errors
//   - [ErrInvalidValue]: it has no users.
//   - [ErrInHostFunction].
//
// Contract: A9.
func (d *Device) ReleasePrimary(t *Thread, force bool) (*Context, error) {
	if err := t.checkCaller("release primary context"); err != nil {
		return nil, err
	}
	p := &d.primary
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.uses == 0 {
		return nil, driver.Errorf(driver.InvalidValue, "release primary context",
			"device %d is not in use", d.ordinal)
	}
	p.uses--
	if p.uses > 0 && !force {
		return nil, nil
	}
	c := p.ctx
	p.ctx, p.uses = nil, 0
	return c, nil
}

// UndoRelease undoes the release of the last user, for a caller whose wait for the
// context was interrupted.
func (c *Context) UndoRelease() {
	p := &c.dev.primary
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.primary && p.ctx == nil {
		p.ctx, p.uses = c, 1
	}
}

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

// check rejects work from a thread on which c is not current.
func (c *Context) check(t *Thread, op string) error {
	if t == nil || t.ctx == nil || t.ctx.ended.Load() {
		return driver.Errorf(driver.NoContext, op, "this thread has no current context; set a device or a context first")
	}
	if t.ctx != c {
		return driver.Errorf(driver.WrongContext, op,
			"the stream belongs to another context than the one current on this thread; make its context current first")
	}
	return nil
}

// Device returns the context's device.
func (c *Context) Device() *Device { return c.dev }

// DefaultStream returns the context's default stream.
//
// Contract: A1.
func (c *Context) DefaultStream() *Stream { return c.def }

// NewStream makes a stream of the context.
//
// # Errors: [ErrClosed], [ErrInHostFunction].
//
// Contract: A1.
func (c *Context) NewStream(t *Thread, o StreamOptions) (*Stream, error) {
	if err := t.checkCaller("create stream"); err != nil {
		return nil, err
	}
	if c.ended.Load() {
		return nil, closedError("create stream", "context")
	}
	s, err := c.dev.newStream(o, c)
	if err != nil {
		return nil, err
	}
	c.dev.rt.live.Add(1)
	c.mu.Lock()
	c.streams[s] = struct{}{}
	if len(c.streams) > 2*c.sizeAfterSweep+minSweep {
		c.sweep()
	}
	c.mu.Unlock()
	c.dev.rt.notifyHost(Operation{Kind: OpNewStream, Stream: s, Thread: t})
	return s, nil
}

// Point returns the point at which all work enqueued on the context's streams
// so far is done.
//
// # Errors: [ErrClosed], [ErrInHostFunction].
//
// Contract: A1.
func (c *Context) Point(t *Thread) (driver.Point, error) {
	if err := t.checkCaller("synchronize context"); err != nil {
		return nil, err
	}
	if c.ended.Load() {
		return nil, closedError("synchronize context", "context")
	}
	streams := c.streamList()
	if c.dev.rt.captures.count.Load() != 0 {
		for _, s := range streams {
			if err := s.checkNotCaptured(t, "synchronize context"); err != nil && s.capture.Load() != nil {
				return nil, err
			}
		}
	}
	o := Operation{Kind: OpSynchronizeDevice, Stream: c.dev.legacy, Thread: t, Users: streams}
	return c.dev.rt.observe(c.point(), o), nil
}

// CheckDestroy reports why c cannot be destroyed, nil if it can.
//
// # Errors
//   - [ErrInvalidValue]: c is a primary context.
//   - [ErrClosed]: c was destroyed.
//   - [ErrInHostFunction].
//
// Contract: A1.
func (c *Context) CheckDestroy(t *Thread) error {
	if err := t.checkCaller("destroy context"); err != nil {
		return err
	}
	if c.primary {
		return driver.Errorf(driver.InvalidValue, "destroy context",
			"a primary context is not destroyed; reset its device instead")
	}
	if c.ended.Load() {
		return closedError("destroy context", "context")
	}
	return nil
}

// End closes the context and its streams. Threads on which it is current have no
// context afterwards.
func (c *Context) End() {
	if !c.ended.CompareAndSwap(false, true) {
		return
	}
	for _, s := range c.streamList() {
		if s.closed.Load() {
			continue
		}
		if !s.isDefault {
			c.dev.rt.notifyHost(Operation{Kind: OpCloseStream, Stream: s})
		}
		s.close()
	}
}

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

var threadIDs atomic.Uint64

// NewThread returns the token of a new host thread.
func NewThread() *Thread { return &Thread{ID: threadIDs.Add(1)} }

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
