package order

import "halstream/hal"

// HostOrder is what a host thread did with an object that orders host threads, such as
// a lock, a queue or the end of a thread.
type HostOrder uint8

const (
	// Release: what the thread did so far comes before later acquires of the object.
	Release HostOrder = iota
	// Acquire: what the thread does from now on comes after the releases of the object.
	Acquire
	// Begin: the thread begins, behind the releases of the object.
	Begin
	// End: the thread ends.
	End
	// Forget: the object does not exist any more.
	Forget
)

// hostObjects is what orders host threads, apart from calls of the runtime.
type hostObjects struct {
	released map[uint64]*clocks // by the number of the object
	// begun are the clocks of threads that were seen to begin, or to acquire, and that
	// have not called the runtime yet.
	begun map[uint64]*clocks
	// observed says that the beginning of threads is observed: one that was not seen to
	// begin comes after nothing.
	observed bool
}

// maxIdlePieces is how many ranges may be kept for threads that have made no call yet.
const maxIdlePieces = 1 << 16

// ObserveThreads says that the beginning of host threads is observed from now on: one
// whose beginning is not, such as an older one or one of a native library, comes after nothing.
func (c *Checker) ObserveThreads() {
	c.mu.Lock()
	c.host.observed = true
	c.recording.called(toObserveThreads, 0)
	c.mu.Unlock()
}

// Order handles what t did with the object that has a number. Inside a host function,
// whose token is not 0, a release is one by that function.
func (c *Checker) Order(t *hal.Thread, what HostOrder, object, token uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.ordered(t, what, object, token)
	h := &c.host
	if h.released == nil {
		h.released, h.begun = map[uint64]*clocks{}, map[uint64]*clocks{}
	}
	switch what {
	case Forget:
		delete(h.released, object)
	case End:
		delete(h.begun, t.ID)
	case Release:
		if from := c.releasedBy(t, token); from != nil {
			to := h.released[object]
			if to == nil {
				to = &clocks{}
				h.released[object] = to
			}
			g := gather{clocks: to}
			g.addAll(*from)
		}
	case Acquire, Begin:
		if token != 0 {
			return // its accesses are those that were declared when it was enqueued
		}
		c.acquired(t, what, h.released[object])
	}
}

// releasedBy returns what comes before a release by t, or by the function with a token.
func (c *Checker) releasedBy(t *hal.Thread, token uint64) *clocks {
	if token != 0 {
		f := c.late.tokens[token]
		if f == nil {
			return nil
		}
		if !f.ready { // it runs, so what it waited for came
			c.forceInfo(f)
			c.settle()
		}
		all := f.clocks.with(f.stamp)
		return &all
	}
	known := c.threads[t.ID]
	if known == nil {
		return c.host.begun[t.ID]
	}
	c.finishSync(known, ^uint64(0))
	return &known.clocks
}

// acquired makes t come after what was released, nil for nothing.
func (c *Checker) acquired(t *hal.Thread, what HostOrder, from *clocks) {
	known := c.threads[t.ID]
	if known != nil {
		c.finishSync(known, ^uint64(0))
		if from != nil {
			known.clocks[timed] = c.called
			g := gather{clocks: &known.clocks}
			g.addAll(*from)
			c.called = known.clocks[timed]
		}
		return
	}
	clock := c.host.begun[t.ID]
	if clock == nil {
		if what != Begin && !c.host.observed {
			return // nothing says when it began: see Checker.thread
		}
		clock = &clocks{}
		c.host.begun[t.ID] = clock
	}
	if from != nil {
		g := gather{clocks: clock}
		g.addAll(*from)
	}
}

// finishSync makes t come after the work of the blocking stream that its latest call
// waited for.
func (c *Checker) finishSync(t *thread, seq uint64) {
	if s := t.pendingSync; s != nil {
		t.pendingSync = nil
		c.synchronize(t, s, seq, strict)
	}
}

// begunClocks returns the clocks of a thread that calls for the first time, if it is known
// what it comes after.
func (c *Checker) begunClocks(id uint64) (clocks, bool) {
	if clock := c.host.begun[id]; clock != nil {
		delete(c.host.begun, id)
		return *clock, true
	}
	return clocks{}, c.host.observed
}
