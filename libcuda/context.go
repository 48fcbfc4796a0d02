package libcuda

import (
	"math/bits"
	"sync"

	"halstream/hal"
	"halstream/hal/driver"
)

// context is a context of the program: what a thread has current. Contexts of one device share its default stream.
type context struct {
	dev     *hal.Device
	handle  uintptr
	primary bool
	flags   uint32
	hints   hints // of the legacy default stream
	// threadHints are those of the default streams of threads, by their callers.
	threadHints sync.Map

	mu     sync.Mutex
	uses   int // of a primary context
	ended  bool
	limits map[int]uint64
	peers  map[*hal.Device]bool
	config int32 // cache configuration
}

// primaries are the primary contexts of devices.
var primaries struct {
	sync.Mutex
	of map[*hal.Device]*context
}

func primaryOf(d *hal.Device) *context {
	primaries.Lock()
	defer primaries.Unlock()
	p := primaries.of[d]
	if p == nil {
		if primaries.of == nil {
			primaries.of = map[*hal.Device]*context{}
		}
		p = &context{dev: d, primary: true}
		p.handle = newHandle(p)
		primaries.of[d] = p
	}
	return p
}

func (x *context) active() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.ended && (!x.primary || x.uses > 0)
}

// context returns the current context of the thread, whose device works.
func (c *caller) context() (*context, error) {
	if len(c.stack) == 0 || c.stack[len(c.stack)-1] == nil {
		return nil, refuse(invalidContext, "the thread has no current context; call cuCtxSetCurrent first")
	}
	x := c.stack[len(c.stack)-1]
	if !x.active() {
		return nil, refuse(contextDestroyed, "the current context was destroyed")
	}
	return x, x.dev.Lost()
}

// device returns the device of the current context.
func (c *caller) device() (*hal.Device, error) {
	x, err := c.context()
	if err != nil {
		return nil, err
	}
	return x.dev, nil
}

func contextOf(handle uintptr) (*context, error) {
	return find[*context](handle, invalidContext, "context")
}

// contextOr returns the context of a handle, the current one for NULL.
func (c *caller) contextOr(handle uintptr) (*context, error) {
	if handle == 0 {
		return c.context()
	}
	return contextOf(handle)
}

// owned is an object that ends with its context.
type owned interface {
	owner() *context
	end(c *caller) error
}

// finish waits for the work of a context's device, ends what belongs to the context unless it is in use again, and calls then.
func (x *context) finish(c *caller, unused func() bool, then func()) error {
	var work driver.Point
	if x.dev.Lost() == nil {
		work = x.dev.EnqueuedPoint()
	}
	return c.wait(x.dev.Runtime(), work, func() error {
		if !unused() {
			return nil
		}
		err := x.end(c)
		if err == nil {
			then()
		}
		return err
	})
}

func always() bool { return true }

// end ends what belongs to the context. The error is the first.
func (x *context) end(c *caller) error {
	if _, err := x.dev.Recover(c.t); err != nil {
		return err
	}
	var first error
	for handle, object := range objects.All() {
		if o, ok := object.(owned); ok && o.owner() == x {
			if err := o.end(c); err != nil && first == nil {
				first = err
			}
			objects.Remove(handle)
		}
	}
	if err := freeAll(c, x); first == nil {
		first = err
	}
	return first
}

var contextFunctions = []function{
	{name: "cuDevicePrimaryCtxRetain", version: 7000, call: func(_ *caller, a *args) error {
		d, err := device(a.int(1))
		if err == nil {
			err = a.need(0)
		}
		if err != nil {
			return err
		}
		p := primaryOf(d)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.uses++
		put(a, 0, p.handle)
		return nil
	}},
	{name: "cuDevicePrimaryCtxRelease", version: 7000, call: releasePrimary},
	{name: "cuDevicePrimaryCtxRelease_v2", version: 11000, call: releasePrimary},
	{name: "cuDevicePrimaryCtxReset", version: 7000, call: resetPrimary},
	{name: "cuDevicePrimaryCtxReset_v2", version: 11000, call: resetPrimary},
	{name: "cuDevicePrimaryCtxSetFlags", version: 7000, call: setPrimaryFlags},
	{name: "cuDevicePrimaryCtxSetFlags_v2", version: 11000, call: setPrimaryFlags},
	{name: "cuDevicePrimaryCtxGetState", version: 7000, call: func(_ *caller, a *args) error {
		d, err := device(a.int(0))
		if err == nil {
			err = a.need(1, 2)
		}
		if err != nil {
			return err
		}
		p := primaryOf(d)
		put(a, 1, p.readFlags())
		put(a, 2, boolInt(p.active()))
		return nil
	}},
	{name: "cuCtxCreate_v2", version: 3020, firstVersion: 2000, call: createContext(1, 2, func(*args) error { return nil })},
	{name: "cuCtxCreate_v3", version: 11040, call: createContext(3, 4, func(a *args) error {
		return noAffinity(a.int(2))
	})},
	{name: "cuCtxCreate_v4", version: 12050, call: createContext(2, 3, func(a *args) error {
		p := in[contextParameters](a, 1)
		if p == nil {
			return nil
		}
		if p.graphics != 0 {
			return refuse(notSupported, "%s", noGraphics)
		}
		return noAffinity(int(p.affinityCount))
	})},
	{name: "cuCtxDestroy_v2", version: 4000, firstVersion: 2000, call: func(c *caller, a *args) error {
		x, err := contextOf(a.handle(0))
		if err != nil {
			return err
		}
		if x.primary {
			return refuse(invalidContext, "a primary context is released, and not destroyed")
		}
		return x.finish(c, always, func() {
			x.mu.Lock()
			x.ended = true
			x.mu.Unlock()
			removeHandle(x.handle)
			if n := len(c.stack); n > 0 && c.stack[n-1] == x {
				c.stack = c.stack[:n-1]
			}
		})
	}},
	{name: "cuCtxSetCurrent", version: 4000, call: func(c *caller, a *args) error {
		var x *context
		if a[0] != 0 {
			var err error
			if x, err = contextOf(a.handle(0)); err != nil {
				return err
			}
		}
		if n := len(c.stack); n > 0 {
			c.stack = c.stack[:n-1]
		}
		if x != nil {
			c.stack = append(c.stack, x)
		}
		return nil
	}},
	{name: "cuCtxGetCurrent", version: 4000, call: func(c *caller, a *args) error {
		handle := uintptr(0)
		if n := len(c.stack); n > 0 {
			handle = c.stack[n-1].handle
		}
		put(a, 0, handle)
		return a.need(0)
	}},
	{name: "cuCtxPushCurrent_v2", version: 4000, firstVersion: 2000, call: func(c *caller, a *args) error {
		x, err := contextOf(a.handle(0))
		if err == nil {
			c.stack = append(c.stack, x)
		}
		return err
	}},
	{name: "cuCtxPopCurrent_v2", version: 4000, firstVersion: 2000, call: func(c *caller, a *args) error {
		n := len(c.stack)
		if n == 0 {
			return refuse(invalidContext, "the thread has no current context")
		}
		put(a, 0, c.stack[n-1].handle)
		c.stack = c.stack[:n-1]
		return nil
	}},
	{name: "cuCtxGetDevice", version: 2000, call: func(c *caller, a *args) error {
		d, err := c.device()
		if err == nil {
			put(a, 0, int32(d.Ordinal()))
			err = a.need(0)
		}
		return err
	}},
	{name: "cuCtxGetDevice_v2", version: 13000, wholeName: true, call: func(c *caller, a *args) error {
		x, err := c.contextOr(a.handle(1))
		if err == nil {
			put(a, 0, int32(x.dev.Ordinal()))
			err = a.need(0)
		}
		return err
	}},
	{name: "cuCtxSynchronize", version: 2000, call: func(c *caller, a *args) error { return c.synchronizeContext(0) }},
	{name: "cuCtxSynchronize_v2", version: 13000, wholeName: true, call: func(c *caller, a *args) error {
		return c.synchronizeContext(a.handle(0))
	}},
	{name: "cuCtxGetFlags", version: 7000, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err == nil {
			put(a, 0, x.readFlags())
			err = a.need(0)
		}
		return err
	}},
	{name: "cuCtxSetFlags", version: 12010, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err == nil {
			err = x.setFlags(a.u32(0))
		}
		return err
	}},
	{name: "cuCtxGetId", version: 12000, call: func(c *caller, a *args) error {
		x, err := c.contextOr(a.handle(0))
		if err == nil {
			put(a, 1, uint64(x.handle))
			err = a.need(1)
		}
		return err
	}},
	{name: "cuCtxGetApiVersion", version: 3020, call: func(c *caller, a *args) error {
		_, err := c.contextOr(a.handle(0))
		if err == nil {
			put(a, 1, uint32(driverVersion))
			err = a.need(1)
		}
		return err
	}},
	{name: "cuCtxGetStreamPriorityRange", version: 5050, call: func(c *caller, a *args) error {
		d, err := c.device()
		if err == nil {
			put(a, 0, int32(0))
			put(a, 1, int32(d.GreatestPriority()))
		}
		return err
	}},
	{name: "cuCtxGetLimit", version: 3010, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err == nil {
			err = a.need(0)
		}
		if err != nil {
			return err
		}
		value, known := x.limit(a.int(1))
		if !known {
			return refuse(unsupportedLimit, "there is no limit %d", a.int(1))
		}
		put(a, 0, value)
		return nil
	}},
	{name: "cuCtxSetLimit", version: 3010, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err != nil {
			return err
		}
		if _, known := x.limit(a.int(0)); !known {
			return refuse(unsupportedLimit, "there is no limit %d", a.int(0))
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.limits == nil {
			x.limits = map[int]uint64{}
		}
		x.limits[a.int(0)] = a[1]
		return nil
	}},
	{name: "cuCtxGetCacheConfig", version: 3020, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err == nil {
			put(a, 0, x.config)
			err = a.need(0)
		}
		return err
	}},
	{name: "cuCtxSetCacheConfig", version: 3020, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err == nil {
			x.config = int32(a.int(0))
		}
		return err
	}},
	{name: "cuCtxGetSharedMemConfig", version: 4020, call: func(c *caller, a *args) error {
		_, err := c.context()
		put(a, 0, int32(1)) // banks of 4 bytes
		return err
	}},
	{name: "cuCtxSetSharedMemConfig", version: 4020, call: inContext},
	{name: "cuCtxResetPersistingL2Cache", version: 11000, call: inContext},
	{name: "cuCtxGetExecAffinity", version: 11040, call: unsupported("blocks are not bound to processors")},
	{name: "cuCtxRecordEvent", version: 12050, call: unsupported("record an event on each stream of the context")},
	{name: "cuCtxWaitEvent", version: 12050, call: unsupported("let each stream of the context wait for the event")},
	{name: "cuCtxEnablePeerAccess", version: 4000, call: func(c *caller, a *args) error {
		if a.u32(1) != 0 {
			return refuse(invalidValue, "access to another device has no flags %#x", a.u32(1))
		}
		return c.peer(a.handle(0), true)
	}},
	{name: "cuCtxDisablePeerAccess", version: 4000, call: func(c *caller, a *args) error { return c.peer(a.handle(0), false) }},
}

// Flags of contexts. Source: CUDA driver API, CUctx_flags.
const (
	contextScheduling = 7    // how a thread of the host waits: one of four ways
	contextSyncMemops = 0x80 // copies and fills that block do so until they have ended
	contextFlags      = 0xff
)

func (x *context) readFlags() uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.flags
}

// setFlags sets what a context can have.
func (x *context) setFlags(flags uint32) error {
	if way := flags & contextScheduling; flags&^contextFlags != 0 || bits.OnesCount32(way) > 1 {
		return refuse(invalidValue, "a context has no flags %#x", flags)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.flags = flags
	return nil
}

// inContext does nothing, but needs a context.
func inContext(c *caller, _ *args) error {
	_, err := c.context()
	return err
}

// limits are the values that limits of a context begin with, by their numbers: the stack of a thread, the room for what
// kernels print, and the heap of kernels. Source: CUDA driver API, CUlimit.
var limits = map[int]uint64{0: 1 << 10, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048, 5: 128, 6: 0}

func (x *context) limit(number int) (uint64, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if value, ok := x.limits[number]; ok {
		return value, true
	}
	value, known := limits[number]
	return value, known
}

// contextParameters is CUctxCreateParams.
type contextParameters struct {
	_             uint64 // the array of them
	affinityCount int32
	graphics      uint64
}

// createContext returns the function that creates a context, with the places of its arguments. check refuses what else there
// is among them.
func createContext(flags, ordinal int, check func(a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		if err := check(a); err != nil {
			return err
		}
		d, err := device(a.int(ordinal))
		if err == nil {
			err = a.need(0)
		}
		if err != nil {
			return err
		}
		x := &context{dev: d}
		if err := x.setFlags(a.u32(flags)); err != nil {
			return err
		}
		x.handle = newHandle(x)
		c.stack = append(c.stack, x)
		put(a, 0, x.handle)
		return nil
	}
}

// noAffinity refuses to bind a context to some of the processors.
func noAffinity(count int) error {
	if count == 0 {
		return nil
	}
	return refuse(unsupportedAffinity, "contexts are not bound to processors")
}

func releasePrimary(c *caller, a *args) error {
	d, err := device(a.int(0))
	if err != nil {
		return err
	}
	p := primaryOf(d)
	p.mu.Lock()
	if p.uses == 0 {
		p.mu.Unlock()
		return refuse(invalidContext, "the primary context of device %d is not retained", a.int(0))
	}
	p.uses--
	last := p.uses == 0
	p.mu.Unlock()
	if last {
		return p.finish(c, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.uses == 0
		}, func() {})
	}
	return nil
}

func resetPrimary(c *caller, a *args) error {
	d, err := device(a.int(0))
	if err != nil {
		return err
	}
	return primaryOf(d).finish(c, always, func() {})
}

func setPrimaryFlags(_ *caller, a *args) error {
	d, err := device(a.int(0))
	if err == nil {
		err = primaryOf(d).setFlags(a.u32(1))
	}
	return err
}

func (c *caller) synchronizeContext(handle uintptr) error {
	x, err := c.contextOr(handle)
	if err != nil {
		return err
	}
	p, err := x.dev.Point(c.t)
	if err != nil {
		return err
	}
	return c.wait(x.dev.Runtime(), p, func() error { return failureOf(x.dev, nil) })
}

// failureOf returns the error of a device that was lost, or of a stream that has one.
func failureOf(d *hal.Device, s *hal.Stream) error {
	if err := d.Lost(); err != nil || s == nil {
		return err
	}
	return s.Failure()
}

func (c *caller) peer(handle uintptr, enable bool) error {
	x, err := c.context()
	if err != nil {
		return err
	}
	other, err := contextOf(handle)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case other.dev == x.dev:
		return refuse(invalidDevice, "a device is no peer of itself")
	case enable && x.peers[other.dev]:
		return refuse(peerEnabled, "access to device %d is enabled already", other.dev.Ordinal())
	case !enable && !x.peers[other.dev]:
		return refuse(peerNotEnabled, "access to device %d is not enabled", other.dev.Ordinal())
	}
	if x.peers == nil {
		x.peers = map[*hal.Device]bool{}
	}
	x.peers[other.dev] = enable // the memory of all devices is the host's
	return nil
}
