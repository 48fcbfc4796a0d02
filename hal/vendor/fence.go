package vendor

import (
	"runtime"
	"sync/atomic"

	"halstream/hal/driver"
)

// FenceEvent is an event of the library with a reference count: several fences and streams refer to its latest record.
// When the count is 0 it can be recorded again, even while waits for it are pending: a library binds a wait of a stream to
// the record that was the latest at the call.
type FenceEvent struct {
	References
	Event uintptr // as the library knows it
	of    *FenceEvents
	// exported events are known to other libraries, so they are not used again.
	exported atomic.Bool
}

// Kind is that of the event: see FenceEvents.Init.
func (e *FenceEvent) Kind() uint8 { return e.of.kind }

// Export makes the event one that other libraries know.
func (e *FenceEvent) Export() { e.exported.Store(true) }

// Release gives a reference up.
func (e *FenceEvent) Release() {
	switch {
	case !e.References.Release():
	case e.exported.Load():
		e.of.exported.Put(e)
	default:
		e.of.unused.Put(e)
	}
}

// FenceEvents are the unused events of one device and one kind. To make one takes a lock of the library's for which all
// threads compete, or one of few that the library has.
type FenceEvents struct {
	dev              *Device
	kind             uint8
	unused, exported Cache[*FenceEvent]
}

// MaxFenceEvents is how many unused events of each kind a device keeps.
const MaxFenceEvents = 4096

// Init is called once. kind is the backend's number for the flags that the events are made with.
func (c *FenceEvents) Init(d *Device, kind uint8) { c.dev, c.kind = d, kind }

// New returns an event with one reference; create makes one in the library where none is unused.
func (c *FenceEvents) New(create func() (uintptr, error)) (*FenceEvent, error) {
	e, ok := c.unused.Take()
	if !ok {
		made, err := create()
		if err != nil {
			return nil, err
		}
		e = &FenceEvent{Event: made, of: c}
	}
	e.Set(1)
	return e, nil
}

// Unused returns how many events are unused.
func (c *FenceEvents) Unused() int { return c.unused.Len() }

// Surplus removes and returns the unused events beyond most, and those that other libraries knew. They are to be destroyed.
func (c *FenceEvents) Surplus(most int) []*FenceEvent {
	return append(c.exported.All(), c.unused.Surplus(most)...)
}

// Fence is what host threads wait for: that the work is done behind which an event was recorded. Once it is reached, so is
// a sequence number of its stream.
type Fence struct {
	event   *FenceEvent
	stream  *Progress // nil where it is known of no stream
	seq     uint64
	covered []Sequence
	state   atomic.Uint32
}

// Sequence is an operation of a stream.
type Sequence struct {
	Stream *Progress
	Number uint64
}

// States of a fence.
const (
	waiting uint32 = iota
	watched        // a finalizer releases the event if no wait is ever successful
	reached
)

// NewFence returns a fence, which takes over a reference to its event. The event was recorded on a stream behind the
// operation with a sequence number; s is nil for the record of an event of the program, of which the stream is not known.
func NewFence(e *FenceEvent, s *Progress, seq uint64) *Fence {
	return &Fence{event: e, stream: s, seq: seq}
}

// NewDeviceFence returns a fence of a whole device, which takes over a reference to its event. covered are operations that
// are done when it is reached.
func NewDeviceFence(e *FenceEvent, covered []Sequence) *Fence {
	return &Fence{event: e, covered: covered}
}

// ReachedFence returns a fence that is reached.
func ReachedFence() *Fence {
	f := &Fence{}
	f.state.Store(reached)
	return f
}

// Wait implements driver.Point. Every fence of a lost device is reached: Lost reports that the work was not done.
func (f *Fence) Wait(limit int64) bool {
	const doing = "synchronize"
	e := f.Hold()
	if e == nil {
		return true // another thread found it reached
	}
	d := e.of.dev
	var refused Refusals
	for left := limit; ; {
		c := d.enter()
		if c == nil {
			e.Release()
			return d.AwaitTasks(left) && f.finish()
		}
		done, err := c.Await(e, left, doing)
		if done {
			e.Release()
			f.finish() // the last one to need the library's event may be here, if the device is being closed
			c.Leave()
			return true
		}
		c.Leave()
		switch {
		case err != nil && refused.Again(d, f.stream, err, &left):
		case limit >= 0:
			e.Release()
			f.Watch()
			return false
		}
	}
}

// Hold returns the event of the fence with a reference for the caller, nil if the fence is reached.
func (f *Fence) Hold() *FenceEvent {
	if f.state.Load() == reached || !f.event.Hold() {
		return nil
	}
	if f.state.Load() == reached { // the event may have another user by now
		f.event.Release()
		return nil
	}
	return f.event
}

// Share returns a fence like f with a reference of its own: it remains valid when f is dropped because the stream has
// later work.
func (f *Fence) Share() *Fence {
	e := f.Hold()
	if e == nil {
		return f
	}
	shared := NewFence(e, f.stream, f.seq)
	shared.Watch()
	return shared
}

// Watch makes the collector release the event of a fence that nobody refers to any more.
func (f *Fence) Watch() {
	if f.state.CompareAndSwap(waiting, watched) {
		runtime.SetFinalizer(f, func(f *Fence) { f.Drop() })
	}
}

// finish makes the fence reached, and the operations that it stands for. It returns true.
func (f *Fence) finish() bool {
	if !f.Drop() {
		return true
	}
	if f.stream != nil {
		f.stream.SetReached(f.seq)
	}
	for _, c := range f.covered {
		c.Stream.SetReached(c.Number)
	}
	return true
}

// Drop releases the event, once, and reports whether this call did.
func (f *Fence) Drop() bool {
	for {
		before := f.state.Load()
		if before == reached {
			return false
		}
		if f.state.CompareAndSwap(before, reached) {
			f.event.Release()
			return true
		}
	}
}

// Refusals are the queries of one wait that failed. A query that fails does not say that the work is done: memory that the
// work uses must not be reused.
type Refusals struct {
	clock func() int64 // since the first
}

// refusedMost is for how many nanoseconds every query of a wait may fail. A device whose work cannot be seen to end counts
// as lost then.
const refusedMost = 2_000_000_000

// Again decides after a query that failed whether the wait, with *left nanoseconds left, queries once more. The error
// becomes the stream's.
func (r *Refusals) Again(d *Device, on *Progress, err *driver.Error, left *int64) bool {
	if d.IsLost() {
		return true // the wait ends for that reason
	}
	if on != nil {
		on.Fail(err)
	}
	if *left == 0 {
		return false
	}
	if r.clock == nil {
		r.clock = Stopwatch()
	}
	before := r.clock()
	if before >= refusedMost {
		_ = d.Lose(err)
		return true
	}
	if d.calls.Pause() && *left > 0 {
		*left = 0
		return false
	}
	if *left > 0 {
		*left = max(0, *left-max(1, r.clock()-before))
	}
	return true
}
