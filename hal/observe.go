package hal

import (
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/status"
)

// listeners are the functions and logs that are notified of operations. Without
// any, they cost an operation one atomic load.
type listeners struct {
	notifier notifier
	mu       sync.Mutex
	current  atomic.Pointer[listenerSet]
	words    *atomic.Uint32 // the runtime's
	ids      atomic.Uint32
	sites    atomic.Pointer[func() uint32]
}

// listenerSet is an immutable set of listeners; a change replaces the whole set.
type listenerSet struct {
	functions []*func(Operation)
	logs      []*Log
	timed     bool // a log records times
}

// Operation is what listeners are notified of: a call that enqueued work, or an
// action of the host that matters for the order of operations.
type Operation struct {
	// ID is the number of the operation, which also identifies its execution. It is
	// never 0, and is reused only after all 32-bit numbers were.
	ID uint32
	// Seq is the place of the operation in the order of all operations: of two on
	// one stream, or on one event, the one with the lower number came first. A wait
	// of the host has the number of its begin: it waits only for operations with
	// lower numbers.
	Seq uint64
	// Kind is what the operation does; [OpNone] where listeners are not notified.
	Kind OperationKind
	// Name is what the program calls the operation, "" where it has given no name.
	Name    string
	Stream  *Stream
	Thread  *Thread
	Event   *Event // record, wait, reset, and what the host does with events
	Version uint64 // of the event: the one made by a record, or bound by a wait
	Other   *Stream
	Exec    *GraphExec // launch graph
	Graph   *Graph     // end capture, instantiate, update executable: the graph
	// Nodes are those of the graph. A launch graph runs them; NodeID gives their numbers, which follow that
	// of the launch. NodeVersions are those of their events, in the order of the nodes.
	Nodes        *NodeList
	NodeVersions []NodeVersion
	// Launch is set for the nodes of a launch in a log, which come behind it: its ID. Branch
	// is the number of the node's branch, from 0, and Node its index; -1 in a graph inside of
	// the one that is launched.
	Launch uint32
	Branch int
	Node   int
	Token  uint64       // host functions
	Value  *ValueAccess // write value, wait value
	Reads  []Range
	Writes []Range
	// Cached is set for allocate, free and free memory of a block of AllocCached. Its
	// free is no access: only work that touches the memory when it was given out again
	// can conflict with work that was still using it.
	Cached bool
	// InOrder is set for allocate with Cached where work of other streams may use the
	// memory only behind the allocation all the same.
	InOrder bool
	// NoWait is set for free memory by a call that waits for nothing, as its caller knows:
	// work that the host has not waited for may still use the memory.
	NoWait bool
	// Users, for free memory of such a block: the stream that it was allocated on, and
	// those whose work so far it waits for. For synchronize device: the streams that the
	// host waited for, nil for all.
	Users []*Stream
	// Site identifies where the program made the call: what the program has given, or
	// else the result of the function given to Runtime.SetSites, 0 without one.
	Site uint32
	// Host says that nothing was enqueued: the operation is an action of the host, of which
	// listeners are notified afterwards. The Stream of what concerns a device is its legacy one.
	Host bool
	// Internal marks what the runtime did without a call of the program.
	Internal bool

	time        int64  // of the call, while a log records times
	afterNotify func() // called after the listeners, if not nil
}

// Range is a range of bytes, Size long.
type Range struct{ Start, Size uint64 }

// Listen calls f for every operation until stop is called: in the order of the
// operations on each stream and on each event, one call at a time, and with no
// lock held. The calling thread is any thread that is in a call of the runtime,
// usually the one that made the operation. A call does not wait until another
// thread has delivered its operations.
//
// Contract: O1, O5.
func (rt *Runtime) Listen(f func(Operation)) (stop func()) {
	l := &rt.listeners
	own := &f
	l.deliver()
	l.change(func(a *listenerSet) { a.functions = append(a.functions, own) })
	return func() {
		l.deliver()
		l.change(func(a *listenerSet) {
			a.functions = slices.DeleteFunc(a.functions, func(p *func(Operation)) bool { return p == own })
		})
	}
}

// change replaces the listeners by the set that f makes of a copy of them.
func (l *listeners) change(f func(*listenerSet)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &listenerSet{}
	if p := l.current.Load(); p != nil {
		a.functions, a.logs = slices.Clone(p.functions), slices.Clone(p.logs)
	}
	f(a)
	a.timed = slices.ContainsFunc(a.logs, func(g *Log) bool { return g.clock != nil })
	if len(a.functions) == 0 && len(a.logs) == 0 {
		l.current.Store(nil)
		l.notifier.change(a)
		l.words.And(^uint32(status.Listened))
		return
	}
	l.words.Or(status.Listened) // before it is notified, so that no operation is missed
	l.notifier.change(a)
	l.current.Store(a)
}

// SetSites sets the function that returns a number for the place where the program
// makes a call, nil for none. It runs on the caller's thread, and only while there
// are listeners.
func (rt *Runtime) SetSites(f func() uint32) {
	if f == nil {
		rt.listeners.sites.Store(nil)
	} else {
		rt.listeners.sites.Store(&f)
	}
}

// listened reports whether there are listeners.
func (rt *Runtime) listened() bool { return rt.listeners.current.Load() != nil }

func (s *Stream) listened() bool { return s.dev.rt.listened() }

// announce prepares the notification of an operation that s is about to give to the
// backend, and returns its ID; settle completes the notification. There are
// listeners: the caller has checked that. It keeps a copy of o.
func (s *Stream) announce(o *Operation) uint32 {
	o.Stream = s
	rt := s.dev.rt
	rt.fillIn(o)
	rt.listeners.notifier.announce(o)
	return o.ID
}

// notify notifies the listeners of an operation on s at once, whether or not the
// backend accepts it afterwards, and returns its ID.
func (s *Stream) notify(o Operation) uint32 {
	o.Stream = s
	return s.dev.rt.notify(o)
}

// endAnnounce delivers an announced operation, or drops it if the backend refused it.
func (l *listeners) endAnnounce(id uint32, err error) { l.notifier.end(id, err != nil, l.notify) }

// deliver notifies the listeners of all operations that have their place in the order.
func (l *listeners) deliver() { l.notifier.deliver(l.notify) }

// notify passes an operation to every function that listens.
func (l *listeners) notify(o *Operation) {
	if a := l.current.Load(); a != nil && o.Kind != OpNone {
		for _, f := range a.functions {
			(*f)(*o)
		}
	}
	if o.afterNotify != nil {
		o.afterNotify()
	}
}

// AfterNotified calls f, soon and on any thread, after the listeners were notified of all
// operations that already have their place in the order.
//
// Contract: V7.
func (rt *Runtime) AfterNotified(f func()) { rt.callInOrder(f) }

// callInOrder calls f after the listeners were notified of all operations that
// already have their place in the order.
func (rt *Runtime) callInOrder(f func()) {
	rt.listeners.notifier.push(&Operation{afterNotify: f}, rt.listeners.notify)
}

// number returns the next ID of an operation.
func (l *listeners) number() uint32 {
	for {
		if id := l.ids.Add(1); id != 0 {
			return id
		}
	}
}

// site returns the number of the place where the program makes the current call.
func (l *listeners) site() uint32 {
	if f := l.sites.Load(); f != nil {
		return (*f)()
	}
	return 0
}

// fillIn adds the ID, the site and the time to an operation, on the thread that makes
// the call.
func (rt *Runtime) fillIn(o *Operation) {
	if o.Seq == 0 && o.Name != seenByPage {
		rt.ReportTouched(o.Thread)
	}
	l := &rt.listeners
	if o.ID == 0 {
		o.ID = l.number()
	}
	if o.Site == 0 {
		o.Site = l.site()
	}
	if a := l.current.Load(); a != nil && a.timed {
		o.time = rt.Now()
	}
}

// notify notifies the listeners of an operation at once, and returns its ID.
func (rt *Runtime) notify(o Operation) uint32 {
	rt.fillIn(&o)
	rt.listeners.notifier.push(&o, rt.listeners.notify)
	return o.ID
}

// notifyHost notifies the listeners of an action of the host.
func (rt *Runtime) notifyHost(o Operation) {
	if rt.listened() {
		o.Host = true
		rt.notify(o)
	}
}

// vainWait notifies the listeners that s was to wait for e, which has no record, unless the
// call failed with err. It returns err.
func (s *Stream) vainWait(t *Thread, e *Event, err error) error {
	if err == nil {
		s.dev.rt.notifyHost(Operation{Kind: OpWaitForNoRecord, Stream: s, Event: e, Thread: t})
	}
	return err
}

// HostAccess notifies the listeners that the calling thread reads or writes memory
// directly.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream; what
//     such a function reads and writes is declared when it is enqueued.
//
// Contract: M14.
func (rt *Runtime) HostAccess(t *Thread, r Range, write bool) error {
	if err := t.checkCaller("host access"); err != nil {
		return err
	}
	o := Operation{Kind: OpHostRead, Thread: t, Reads: []Range{r}}
	if write {
		o = Operation{Kind: OpHostWrite, Thread: t, Writes: []Range{r}}
	}
	rt.notifyHost(o)
	return nil
}

// observedPoint is a point that notifies the listeners once when it is reached.
type observedPoint struct {
	driver.Point
	rt   *Runtime
	o    Operation
	done atomic.Bool
}

// Wait implements driver.Point.
func (p *observedPoint) Wait(limit int64) bool {
	reached := p.Point.Wait(limit)
	if reached && p.done.CompareAndSwap(false, true) {
		p.rt.notifyHost(p.o)
	}
	return reached
}

// observe returns p as a point that notifies the listeners of o when it is reached.
func (rt *Runtime) observe(p driver.Point, o Operation) driver.Point {
	if !rt.listened() {
		return p
	}
	rt.ReportTouched(o.Thread)
	rt.CompareSources()
	o.Site = rt.listeners.site() // now, since the wait may end on another thread
	// Numbered now, since it waits only for what is enqueued already.
	o.ID = rt.listeners.number()
	o.Seq = rt.listeners.notifier.number()
	return &observedPoint{Point: p, rt: rt, o: o}
}

// Announce implements driver.Announced.
func (p *observedPoint) Announce() (end func()) { return driver.Announce(p.Point) }

// Missing implements driver.Placed.
func (p *observedPoint) Missing() []driver.Place { return driver.Missing(p.Point) }
