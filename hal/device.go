package hal

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// Device is one device of a runtime.
type Device struct {
	rt      *Runtime
	ordinal int
	d       driver.Device
	legacy  *Stream
	// refusing stands for the capture of legacy while ordered streams capture. The mutex of captures guards it.
	refusing *Capture
	indexes  atomic.Uint64
	used     atomic.Bool
	primary  primary
	pool     pool
	levels   int
	// vendor is d if it is the device of a vendor's library, else nil.
	vendor  driver.VendorDevice
	handles handles
	failed  failedStreams
	// losable is d if it can be lost, else nil.
	losable driver.LosableDevice
	// lossReported says that the program knows of the error with which d was lost.
	lossReported atomic.Bool
}

// Runtime returns the runtime that the device belongs to.
func (d *Device) Runtime() *Runtime { return d.rt }

// Ordinal returns the 0-based number of the device.
func (d *Device) Ordinal() int { return d.ordinal }

// Name returns the hardware's name.
func (d *Device) Name() string { return d.d.Name() }

// Used reports whether a stream of the device was created, its default stream was
// returned, or memory was allocated on it.
func (d *Device) Used() bool { return d.used.Load() }

// GreatestPriority is the priority of the most urgent streams, the least number; the
// least urgent streams have 0. A device may have fewer levels: see
// Device.GreatestPriority.
const GreatestPriority = 1 - driver.Levels

// GreatestPriority returns the priority of the device's most urgent streams.
//
// Contract: S7.
func (d *Device) GreatestPriority() int { return 1 - d.levels }

// Legacy returns the legacy default stream. Unlike DefaultStream it does not make
// the device count as used.
func (d *Device) Legacy() *Stream { return d.legacy }

// DefaultStream returns the legacy default stream.
//
// Contract: S5.
func (d *Device) DefaultStream() *Stream {
	d.used.Store(true)
	return d.legacy
}

// PerThreadStream returns the calling thread's default stream of the device,
// which takes part in the legacy order like any ordered stream.
//
// # Errors
//   - [ErrInvalidValue]: t is nil.
//   - [ErrInHostFunction].
//
// Contract: S5.
func (d *Device) PerThreadStream(t *Thread) (*Stream, error) {
	if t == nil {
		return nil, driver.Errorf(driver.InvalidValue, "per-thread default stream", "a Thread is needed")
	}
	if err := t.checkCaller("per-thread default stream"); err != nil {
		return nil, err
	}
	if s := t.streams[d]; s != nil && !s.closed.Load() {
		return s, nil
	}
	s, err := d.newPerThreadStream(t)
	if err != nil {
		return nil, err
	}
	s.isDefault = true
	if t.streams == nil {
		t.streams = map[*Device]*Stream{}
	}
	t.streams[d] = s
	return s, nil
}

// newPerThreadStream returns the per-thread default stream of the vendor's library,
// which other libraries of the process use as well, or a new stream if there is none.
func (d *Device) newPerThreadStream(t *Thread) (*Stream, error) {
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

// Synchronize blocks until all work enqueued on the device before the call is
// done, for at most limit nanoseconds (driver.Forever has no limit), and
// reports whether it is.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//   - [ErrDeviceLost].
//
// Contract: D5, H3.
func (d *Device) Synchronize(t *Thread, limit int64) (bool, error) {
	p, err := d.Point(t)
	if err != nil {
		return false, err
	}
	return d.waitResult(p.Wait(limit))
}

// Point returns the point at which all work enqueued so far is done.
//
// # Errors: [ErrInHostFunction].
func (d *Device) Point(t *Thread) (driver.Point, error) {
	if err := t.checkCaller("synchronize device"); err != nil {
		return nil, err
	}
	if err := d.checkWorks(); err != nil {
		return nil, err
	}
	if err := d.checkNotCaptured(); err != nil {
		return nil, err
	}
	p := d.d.Point()
	if err := refused(p); err != nil {
		return nil, err
	}
	return d.rt.observe(p, Operation{Kind: OpSynchronizeDevice, Stream: d.legacy, Thread: t}), nil
}

// refused returns why a program cannot wait for a point, nil if it can.
func refused(p driver.Point) error {
	if r, ok := p.(driver.RefusedPoint); ok {
		return r.Refused()
	}
	return nil
}

// EnqueuedPoint is Point for the end of a program, which also waits while streams of d
// capture: what they have captured will not run.
func (d *Device) EnqueuedPoint() driver.Point { return d.d.Point() }

// Describe returns a text that names the pending streams and what they wait for.
func (d *Device) Describe() string { return d.d.Describe() }

// Abort drops the work of all streams that has not started, and returns the number of
// operations dropped.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot.
//   - [ErrInHostFunction].
//
// Contract: A8.
func (d *Device) Abort(t *Thread) (int, error) {
	if err := t.checkCaller("abort device"); err != nil {
		return 0, err
	}
	sim := d.rt.sim
	if sim == nil {
		return 0, driver.Errorf(driver.NotSupported, "abort device", "the %s backend cannot drop enqueued work", d.rt.Name())
	}
	return sim.AbortDevice(d.d), nil
}

// Lost returns the error with which the device was lost, nil while it works. Callers that
// wait for a point check it afterwards: points of a lost device count as reached although
// their work was not done.
//
// Contract: D6, D7.
func (d *Device) Lost() error {
	if err := d.loss(); err != nil {
		return err
	}
	return nil
}

func (d *Device) loss() *driver.Error {
	if d.losable == nil {
		return nil
	}
	return d.losable.Lost()
}

// checkWorks returns the error of a device that a native function has made useless. Of one
// that was lost otherwise its backend returns the error.
func (d *Device) checkWorks() error {
	if !d.rt.lost.Load() {
		return nil
	}
	return d.Lost()
}

// Recover makes a device work again that a native function has made useless, with its
// streams, events and memory. It returns the error if the program does not know of it,
// nil if it does, or the device was not lost.
//
// # Errors
//   - [ErrNotSupported]: the device is one of a vendor's library, and was lost.
//   - [ErrInHostFunction].
//
// Contract: D8.
func (d *Device) Recover(t *Thread) (unreported *Error, err error) {
	const op = "recover device"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	loss := d.loss()
	if loss == nil {
		return nil, nil
	}
	r, ok := d.d.(driver.RecoverableDevice)
	if !ok {
		return nil, driver.Errorf(driver.NotSupported, op, "a device of the %s backend that was lost stays so for the "+
			"rest of the process: %s", d.rt.Name(), loss.Text)
	}
	if d.lossReported.Swap(false) {
		loss = nil
	}
	r.Recover()
	return loss, nil
}

// UnreportedLoss returns the error with which the device was lost if the program was not
// told of it, else nil.
//
// Contract: D7.
func (d *Device) UnreportedLoss() *Error {
	if d.lossReported.Load() {
		return nil
	}
	return d.loss()
}

// waitResult returns reached, or the error of a device that was lost meanwhile.
func (d *Device) waitResult(reached bool) (bool, error) {
	if err := d.Lost(); err != nil {
		return false, err
	}
	return reached, nil
}

// Fact returns a property of the device as text. driver.FactDevice lists the names.
//
// # Errors
//   - [ErrNotSupported]: the backend has no such property.
//   - [ErrInHostFunction].
func (d *Device) Fact(t *Thread, name string) (string, error) {
	const op = "device fact"
	if err := t.checkCaller(op); err != nil {
		return "", err
	}
	if f, ok := d.d.(driver.FactDevice); ok {
		return f.Fact(name)
	}
	return "", driver.Errorf(driver.NotSupported, op, "the %s backend has no property %q of its devices", d.rt.Name(), name)
}

// PrimaryInUse reports whether the primary context of d exists, which its first user makes
// and its last one ends.
//
// Contract: A9.
func (d *Device) PrimaryInUse() bool {
	d.primary.mu.Lock()
	defer d.primary.mu.Unlock()
	return d.primary.ctx != nil
}

// CanAccess reports whether device d can access memory of device o directly. Copies
// between the two work in either case.
//
// # Errors
//   - [ErrWrongDevice]: o belongs to another Runtime.
//   - [ErrInHostFunction].
func (d *Device) CanAccess(t *Thread, o *Device) (bool, error) {
	if err := t.checkCaller("peer access"); err != nil {
		return false, err
	}
	if d.rt != o.rt {
		return false, otherRuntimeError("peer access", fmt.Sprintf("device %d", o.ordinal))
	}
	if p := d.rt.vendor; p != nil && d != o {
		return p.CanAccess(d.ordinal, o.ordinal)
	}
	return d == o, nil
}

// EnableAccess lets device d access memory of device o directly. Calling it again
// does nothing.
//
// # Errors
//   - [ErrNotSupported]: d cannot.
//   - [ErrWrongDevice]: o belongs to another Runtime.
//   - [ErrInHostFunction].
func (d *Device) EnableAccess(t *Thread, o *Device) error {
	const op = "enable peer access"
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if d == o {
		return nil
	}
	if d.rt != o.rt {
		return otherRuntimeError(op, fmt.Sprintf("device %d", o.ordinal))
	}
	if p := d.rt.vendor; p != nil {
		return p.Enable(d.ordinal, o.ordinal)
	}
	return driver.Errorf(driver.NotSupported, op, "devices of the %s backend cannot access each other's memory; copy it",
		d.rt.Name())
}

// handles finds the open streams of a device by their handle of the vendor's library.
// Streams that other libraries created are not in it.
type handles struct {
	mu sync.Mutex
	of map[uint64]*Stream
}

func (h *handles) add(s *Stream) {
	number, ok := s.Handle()
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[uint64]*Stream{}
	}
	h.of[number] = s
}

func (h *handles) remove(s *Stream) {
	number, ok := s.Handle()
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[number] == s {
		delete(h.of, number)
	}
}

func (h *handles) find(number uint64) *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[number]
}

// The largest handle that means the legacy default stream, and the handle of the
// caller's per-thread default stream.
const (
	maxLegacyHandle = 1
	perThreadHandle = 2
)

// External returns the stream with a handle of the vendor's library: the open stream
// of this runtime that has it, or a new Stream for the stream of another library,
// which must stay open for as long as the new one is used.
//
// # Errors
//   - [ErrNotSupported]: the backend's streams have no handles.
//   - [ErrInvalidHandle]: the vendor's library has no such stream.
//   - [ErrWrongDevice]: it belongs to another device.
//   - [ErrInHostFunction].
//
// Contract: S1, D4, H3.
func (d *Device) External(t *Thread, handle uint64) (*Stream, error) {
	const op = "use external stream"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	if handle <= maxLegacyHandle {
		return d.DefaultStream(), nil
	}
	if handle == perThreadHandle && t != nil {
		return d.PerThreadStream(t)
	}
	for _, o := range d.rt.devices {
		s := o.handles.find(handle)
		switch {
		case s != nil && o != d:
			return nil, driver.Errorf(driver.WrongDevice, op, "%#x is a stream of device %d, not %d",
				handle, o.ordinal, d.ordinal)
		case s != nil:
			return s, nil
		}
	}
	if d.vendor == nil {
		return nil, driver.Errorf(driver.NotSupported, op, "streams of the %s backend have no handles", d.rt.Name())
	}
	made, err := d.vendor.External(handle)
	if err != nil {
		return nil, err
	}
	d.used.Store(true)
	s := &Stream{dev: d, d: made, index: d.indexes.Add(1), external: true, level: uint8(d.levels - 1)}
	if m, ok := made.(driver.VendorStream); ok {
		o := m.Made()
		s.level = min(o.Level, s.level)
		s.opts = StreamOptions{Priority: int(s.level) + d.GreatestPriority(), NonBlocking: !o.Ordered}
	}
	d.rt.live.Add(1)
	d.rt.notifyHost(Operation{Kind: OpNewStream, Stream: s, Thread: t})
	return s, nil
}

// NewStream makes a stream.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream.
//
// Contract: S1, S7, H3.
func (d *Device) NewStream(t *Thread, o StreamOptions) (*Stream, error) {
	if err := t.checkCaller("create stream"); err != nil {
		return nil, err
	}
	s, err := d.newStream(o, nil)
	if err != nil {
		return nil, err
	}
	d.rt.live.Add(1)
	d.rt.notifyHost(Operation{Kind: OpNewStream, Stream: s, Thread: t})
	return s, nil
}

// newStream makes a stream of d, or of a context of d if ctx is not nil.
func (d *Device) newStream(o StreamOptions, ctx *Context) (*Stream, error) {
	d.used.Store(true)
	o.Priority = min(0, max(d.GreatestPriority(), o.Priority))
	if err := d.checkWorks(); err != nil {
		return nil, err
	}
	s := &Stream{dev: d, index: d.indexes.Add(1), opts: o, ctx: ctx}
	s.level = uint8(o.Priority - d.GreatestPriority())
	var err error
	s.d, err = d.d.NewStream(driver.StreamOptions{
		Level:   s.level,
		Ordered: !o.NonBlocking && ctx == nil,
		ID:      s.index,
	})
	if err != nil {
		return nil, err
	}
	d.handles.add(s)
	return s, nil
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

// LoadModule loads a program: assembler text or a binary, in a format of the vendor's
// library. Text ends with NUL.
//
// # Errors
//   - [ErrNotSupported]: the backend runs no programs.
//   - [ErrInvalidValue]: the program has mistakes; the text contains the compiler's
//     messages.
//   - [ErrInHostFunction].
//
// Contract: K2, H3. Source: CUDA driver API, cuModuleLoadDataEx.
func (d *Device) LoadModule(t *Thread, image []byte) (*Module, error) {
	const op = "load module"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	kernels, ok := d.d.(driver.KernelDevice)
	if !ok {
		return nil, driver.Errorf(driver.NotSupported, op, "the %s backend runs no kernels of a module; "+
			"enqueue a native function, or use a backend that has kernels", d.rt.Name())
	}
	if len(image) == 0 {
		return nil, driver.Errorf(driver.InvalidValue, op, "the program is empty")
	}
	made, err := kernels.Load(image)
	if err != nil {
		return nil, err
	}
	d.used.Store(true)
	m := &Module{dev: d, d: made}
	m.code = &Block{Kind: DeviceMemory, dev: d, owner: moduleCode{made}}
	return m, nil
}

// failedStreams are the streams of a device on which native functions have failed
// since Device.Failure has looked at them last.
type failedStreams struct {
	mu      sync.Mutex
	streams []*Stream
}

// noteFailed adds a stream to those that Failure looks at.
func (d *Device) noteFailed(s *Stream) {
	d.failed.mu.Lock()
	defer d.failed.mu.Unlock()
	if !slices.Contains(d.failed.streams, s) {
		d.failed.streams = append(d.failed.streams, s)
	}
}

// Failure returns the first error of a native function on a stream of the device that
// no call has returned yet, and clears it; nil if there is none.
//
// Contract: C2.
func (d *Device) Failure() error {
	if err := d.checkWorks(); err != nil {
		return err
	}
	for {
		d.failed.mu.Lock()
		if len(d.failed.streams) == 0 {
			d.failed.mu.Unlock()
			return nil
		}
		s := d.failed.streams[0]
		d.failed.streams = d.failed.streams[1:]
		d.failed.mu.Unlock()
		if err := s.Failure(); err != nil {
			return err
		}
	}
}
