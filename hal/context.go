package hal

import (
	"cmp"
	"slices"
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

var threadIDs atomic.Uint64

// point is Point, and forgets the closed streams whose work is done.
func (c *Context) point() driver.Point {
	var ps driver.Points
	for _, s := range c.streamList() {
		p := s.d.Point()
		if s.closed.Load() && p.Wait(0) {
			c.mu.Lock()
			delete(c.streams, s)
			c.mu.Unlock()
			continue
		}
		ps = append(ps, p)
	}
	return ps
}

// minSweep is the number of streams below which a sweep costs more than it saves.
const minSweep = 16

// sweep forgets the closed streams whose work is done. It runs when the number of
// streams has doubled, which makes its cost per stream constant. The caller holds mu.
func (c *Context) sweep() {
	for s := range c.streams {
		if s.closed.Load() && s.workDone() {
			delete(c.streams, s)
		}
	}
	c.sizeAfterSweep = len(c.streams)
}

// streamList returns the context's streams in the order in which they were made, including those
// that were closed while work was pending. What is done to all of them is then a part of a run that repeats.
func (c *Context) streamList() []*Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*Stream, 0, len(c.streams))
	for s := range c.streams {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Stream) int { return cmp.Compare(a.index, b.index) })
	return list
}
