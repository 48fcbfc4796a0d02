package hal

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"halstream/hal/driver"
)

// listeners are those who follow the choke point; nil when there are none, so
// that nobody listening costs one atomic load.
type listeners struct {
	notifier notifier
	mu       sync.Mutex
	now      atomic.Pointer[audience]
	ids      atomic.Uint32
	sites    atomic.Pointer[func() uint32]
}

// audience is who listens at one time; it does not change.
type audience struct {
	functions []*func(Operation)
	logs      []*Log
	timed     bool // a log wants times
}

// Operation is what passes the choke point: one call that enqueues work, or one
// of the host that matters for the order of things.
type Operation struct {
	// ID is the number of the operation, never 0 and not used again before it
	// wraps around; the backend tells by it when the operation runs.
	ID uint32
	// Seq is the place of the operation in the order of all: of two on one stream,
	// or of two on one event, the one with the lower number came first. That of a
	// wait of the host is its begin: it covers only operations with lower numbers.
	Seq uint64
	// Kind of what is enqueued: record, wait, wait stream, reset, nop, delay,
	// gate, call, report, copy, fill, native, launch, allocate, free. Kind of what the
	// host does: see Host.
	Kind    string
	Stream  *Stream
	Thread  *Thread
	Event   *Event // record, wait, reset, and what the host does with events
	Version uint64 // of the event: the one made by a record, or bound by a wait
	Other   *Stream
	Token   uint64 // host functions
	Reads   []Range
	Writes  []Range
	// Site is where the program made the call: a number of whoever gave the
	// function of Runtime.SetSites; 0 if nobody did.
	Site uint32
	// Host says that nothing was enqueued: synchronize stream, synchronize
	// event, synchronize device, synchronize memory and wait memory (the host, or
	// a stream, waited for all work on the bytes of Reads), query stream, query
	// event (only those that answered true), host read, host write, new memory, free memory, new
	// stream, new event, close stream, close event, open gate. It is told
	// afterwards. The Stream of what concerns a device is its legacy one.
	Host bool
	// Internal marks what the runtime did of its own accord.
	Internal bool

	when int64  // of the call, while a log wants times
	then func() // called right after the listeners
}

// Range is a range of bytes, Size long.
type Range struct{ Start, Size uint64 }

// Listen calls f for every operation until stop is called: in the order of the
// operations on each stream and on each event, one call at a time, and with no
// lock held. The calling thread is one that is in a call of the runtime, in
// general the one that made the operation; a call whose operations another thread
// is about to deliver does not wait for that.
//
// Contract: O1, O5.
func (rt *Runtime) Listen(f func(Operation)) (stop func()) {
	l := &rt.listeners
	own := &f
	l.deliver()
	l.change(func(a *audience) { a.functions = append(a.functions, own) })
	return func() {
		l.deliver()
		l.change(func(a *audience) {
			a.functions = slices.DeleteFunc(a.functions, func(p *func(Operation)) bool { return p == own })
		})
	}
}

func (l *listeners) change(f func(*audience)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &audience{}
	if p := l.now.Load(); p != nil {
		a.functions, a.logs = slices.Clone(p.functions), slices.Clone(p.logs)
	}
	f(a)
	a.timed = slices.ContainsFunc(a.logs, func(g *Log) bool { return g.clock != nil })
	if len(a.functions) == 0 && len(a.logs) == 0 {
		a = nil
	}
	l.now.Store(a)
}

// SetSites gives the function that is asked, on the caller's thread, where the
// program makes a call; nil for none. It is asked only while somebody listens.
func (rt *Runtime) SetSites(f func() uint32) {
	if f == nil {
		rt.listeners.sites.Store(nil)
	} else {
		rt.listeners.sites.Store(&f)
	}
}

// listened reports whether anybody follows the choke point.
func (rt *Runtime) listened() bool { return rt.listeners.now.Load() != nil }

func (s *Stream) listened() bool { return s.dev.rt.listened() }

// announce prepares the notification of an operation that s is about to give to
// the backend, and returns its number; settle ends it. Its caller has seen that
// there are listeners.
func (s *Stream) announce(o Operation) uint32 {
	o.Stream = s
	rt := s.dev.rt
	rt.complete(&o)
	rt.listeners.notifier.announce(o)
	return o.ID
}

// tell notifies the listeners of an operation on s at once, whatever the backend
// does with it afterwards, and returns its number.
func (s *Stream) tell(o Operation) uint32 {
	o.Stream = s
	return s.dev.rt.tell(o)
}

// enqueued ends what announce began: the backend has answered.
func (l *listeners) enqueued(id uint32, err error) {
	if err != nil {
		l.notifier.drop(id)
	} else {
		l.notifier.sequence(id) // unless the backend did
	}
	l.deliver()
}

func (l *listeners) deliver() { l.notifier.deliver(l.notify) }

func (l *listeners) notify(o *Operation) {
	if a := l.now.Load(); a != nil && o.Kind != "" {
		for _, g := range a.logs {
			g.add(o)
		}
		for _, f := range a.functions {
			(*f)(*o)
		}
	}
	if o.then != nil {
		o.then()
	}
}

// inOrder calls f after the listeners were notified of all operations that have
// their place by now.
func (rt *Runtime) inOrder(f func()) {
	rt.listeners.notifier.push(Operation{then: f})
	rt.listeners.deliver()
}

func (l *listeners) number() uint32 {
	for {
		if id := l.ids.Add(1); id != 0 {
			return id
		}
	}
}

func (l *listeners) site() uint32 {
	if f := l.sites.Load(); f != nil {
		return (*f)()
	}
	return 0
}

// complete adds to an operation what is known of every call, on the thread that
// makes it.
func (rt *Runtime) complete(o *Operation) {
	l := &rt.listeners
	if o.ID == 0 {
		o.ID = l.number()
	}
	if o.Site == 0 {
		o.Site = l.site()
	}
	if a := l.now.Load(); a != nil && a.timed {
		o.when = rt.Now()
	}
}

func (rt *Runtime) tell(o Operation) uint32 {
	rt.complete(&o)
	rt.listeners.notifier.push(o)
	rt.listeners.deliver()
	return o.ID
}

// host informs the listeners of something the host did.
func (rt *Runtime) host(o Operation) {
	if rt.listened() {
		o.Host = true
		rt.tell(o)
	}
}

// HostAccess tells the listeners that the calling thread reads or writes memory
// itself, without a call of the runtime.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream; such a
//     function says what it works on when it is enqueued.
//
// Contract: M14.
func (rt *Runtime) HostAccess(t *Thread, r Range, write bool) error {
	if err := t.enter("host access"); err != nil {
		return err
	}
	o := Operation{Kind: "host read", Thread: t, Reads: []Range{r}}
	if write {
		o = Operation{Kind: "host write", Thread: t, Writes: []Range{r}}
	}
	rt.host(o)
	return nil
}

// told is a point whose end is told to the listeners, once.
type told struct {
	driver.Point
	rt   *Runtime
	o    Operation
	done atomic.Bool
}

// Wait implements driver.Point.
func (p *told) Wait(limit int64) bool {
	reached := p.Point.Wait(limit)
	if reached && p.done.CompareAndSwap(false, true) {
		p.rt.host(p.o)
	}
	return reached
}

// telling returns p as a point that tells o when it was waited for.
func (rt *Runtime) telling(p driver.Point, o Operation) driver.Point {
	if !rt.listened() {
		return p
	}
	o.Site = rt.listeners.site() // the wait ends where the caller cannot be asked
	// Numbered now: it waits for what was enqueued before, not for what comes meanwhile.
	o.ID = rt.listeners.number()
	o.Seq = rt.listeners.notifier.number()
	return &told{Point: p, rt: rt, o: o}
}

// Missing implements driver.Placed.
func (p *told) Missing() []driver.Place { return driver.Missing(p.Point) }

var began = time.Now()

// Now returns nanoseconds of the clock that operations are timed with.
func (rt *Runtime) Now() int64 {
	if rt.sim != nil {
		return rt.sim.Now()
	}
	return int64(time.Since(began))
}

// FollowExecution switches on or off that the backend notes when operations
// run, for those that somebody listens to.
//
// # Errors
//   - [ErrNotSupported]: the backend cannot tell.
//
// Contract: O6.
func (rt *Runtime) FollowExecution(on bool) error {
	if rt.sim == nil {
		return driver.Errorf(driver.NotSupported, "follow execution",
			"the %s backend does not tell when operations run", rt.Name())
	}
	rt.sim.Follow(on)
	return nil
}

// Executions returns when operations ran, since the last call.
//
// Contract: O6.
func (rt *Runtime) Executions() []driver.Execution {
	if rt.sim != nil {
		return rt.sim.Executions()
	}
	return nil
}

// Graphed reports whether the backend can tell what its streams wait for.
func (rt *Runtime) Graphed() bool {
	return rt.sim != nil
}

// Stepped reports whether the devices move only during calls.
func (rt *Runtime) Stepped() bool {
	return rt.deterministic()
}

// Quiet reports whether nothing of the runtime moves by itself: no stream can,
// and no thread is about to take a function. What functions do that run is not
// looked at. Two calls that return the same mark had the same work pending at
// the same places.
//
// Contract: W1, W2.
func (rt *Runtime) Quiet() (quiet bool, mark uint64) {
	if rt.sim == nil {
		return false, 0
	}
	quiet, mark = rt.sim.Quiet()
	return quiet && rt.Funcs.still(), mark
}

// Busy returns all streams with pending work, and what each waits for; none
// where the backend cannot tell.
//
// Contract: W1, W2.
func (rt *Runtime) Busy() []driver.Busy {
	if rt.sim != nil {
		return rt.sim.Busy()
	}
	return nil
}
