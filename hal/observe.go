package hal

import (
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// listeners are the functions and logs that are notified of operations. Without
// any, an operation costs one atomic load.
type listeners struct {
	notifier notifier
	mu       sync.Mutex
	current  atomic.Pointer[listenerSet]
	ids      atomic.Uint32
	sites    atomic.Pointer[func() uint32]
}

// listenerSet is the set of listeners at one time; it is replaced, never changed.
type listenerSet struct {
	functions []*func(Operation)
	logs      []*Log
	timed     bool // a log wants times
}

// Operation is what listeners are notified of: a call that enqueued work, or one
// of the host that matters for the order of operations.
type Operation struct {
	// ID is the number of the operation, never 0 and not used again before it
	// wraps around; executions are reported by it.
	ID uint32
	// Seq is the place of the operation in the order of all: of two on one stream,
	// or of two on one event, the one with the lower number came first. That of a
	// wait of the host is its begin: it covers only operations with lower numbers.
	Seq uint64
	// Kind of what is enqueued: record, wait, wait stream, reset, nop, delay,
	// gate, call, report, copy, fill, native, launch, allocate, free, write value, wait value. Kind of what the
	// host does: see Host.
	Kind    string
	Stream  *Stream
	Thread  *Thread
	Event   *Event // record, wait, reset, and what the host does with events
	Version uint64 // of the event: the one made by a record, or bound by a wait
	Other   *Stream
	Token   uint64       // host functions
	Value   *ValueAccess // write value, wait value
	Reads   []Range
	Writes  []Range
	// Site is where the program made the call, as the function given to
	// Runtime.SetSites returned it; 0 without one.
	Site uint32
	// Host says that nothing was enqueued: synchronize stream, synchronize
	// event, synchronize device, synchronize memory and wait memory (the host, or
	// a stream, waited for all work on the bytes of Reads), query stream, query
	// event (only those that answered true), host read, host write, new memory, free memory, new
	// stream, new event, close stream, close event, open gate. Listeners are
	// notified afterwards. The Stream of what concerns a device is its legacy one.
	Host bool
	// Internal marks what the runtime did of its own accord.
	Internal bool

	time        int64  // of the call, while a log wants times
	afterNotify func() // called right after the listeners
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
	l.change(func(a *listenerSet) { a.functions = append(a.functions, own) })
	return func() {
		l.deliver()
		l.change(func(a *listenerSet) {
			a.functions = slices.DeleteFunc(a.functions, func(p *func(Operation)) bool { return p == own })
		})
	}
}

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
		a = nil
	}
	l.current.Store(a)
}

// SetSites sets the function that returns where the program makes a call; nil for
// none. It is called on the caller's thread, and only while there are listeners.
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

// announce prepares the notification of an operation that s is about to give to
// the backend, and returns its number; settle ends it. Its caller has seen that
// there are listeners.
func (s *Stream) announce(o Operation) uint32 {
	o.Stream = s
	rt := s.dev.rt
	rt.fillIn(&o)
	rt.listeners.notifier.announce(o)
	return o.ID
}

// notify notifies the listeners of an operation on s at once, whatever the backend
// does with it afterwards, and returns its number.
func (s *Stream) notify(o Operation) uint32 {
	o.Stream = s
	return s.dev.rt.notify(o)
}

// endAnnounce ends what announce began: the backend has answered.
func (l *listeners) endAnnounce(id uint32, err error) {
	if err != nil {
		l.notifier.drop(id)
	} else {
		l.notifier.sequence(id) // unless the backend did
	}
	l.deliver()
}

func (l *listeners) deliver() { l.notifier.deliver(l.notify) }

func (l *listeners) notify(o *Operation) {
	if a := l.current.Load(); a != nil && o.Kind != "" {
		for _, g := range a.logs {
			g.add(o)
		}
		for _, f := range a.functions {
			(*f)(*o)
		}
	}
	if o.afterNotify != nil {
		o.afterNotify()
	}
}

// callInOrder calls f after the listeners were notified of all operations that have
// their place by now.
func (rt *Runtime) callInOrder(f func()) {
	rt.listeners.notifier.push(Operation{afterNotify: f})
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

// fillIn adds to an operation what is known of every call, on the thread that
// makes it.
func (rt *Runtime) fillIn(o *Operation) {
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

func (rt *Runtime) notify(o Operation) uint32 {
	rt.fillIn(&o)
	rt.listeners.notifier.push(o)
	rt.listeners.deliver()
	return o.ID
}

// notifyHost notifies the listeners of something the host did.
func (rt *Runtime) notifyHost(o Operation) {
	if rt.listened() {
		o.Host = true
		rt.notify(o)
	}
}

// HostAccess notifies the listeners that the calling thread reads or writes memory
// itself, without a call of the runtime.
//
// # Errors
//   - [ErrInHostFunction]: called by a function that runs on a stream; such a
//     function says what it works on when it is enqueued.
//
// Contract: M14.
func (rt *Runtime) HostAccess(t *Thread, r Range, write bool) error {
	if err := t.checkCaller("host access"); err != nil {
		return err
	}
	o := Operation{Kind: "host read", Thread: t, Reads: []Range{r}}
	if write {
		o = Operation{Kind: "host write", Thread: t, Writes: []Range{r}}
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
	o.Site = rt.listeners.site() // the wait ends on a thread that does not know the caller
	// Numbered now: it waits for what was enqueued before, not for what follows.
	o.ID = rt.listeners.number()
	o.Seq = rt.listeners.notifier.number()
	return &observedPoint{Point: p, rt: rt, o: o}
}

// Missing implements driver.Placed.
func (p *observedPoint) Missing() []driver.Place { return driver.Missing(p.Point) }

// Log collects operations. It costs less than a listener that keeps them: it
// stores few fields of each, in pieces that are never copied.
type Log struct {
	mu   sync.Mutex
	full [][]Logged
	last []Logged
	stop func()
	// clock is nil unless times are wanted: looking at it costs as much as the rest.
	clock func() int64
}

// Logged is an operation and, in a log with times, when it was called. It is kept
// small, since there may be many.
type Logged struct {
	kind     string
	stream   *Stream
	thread   *Thread
	event    *Event
	other    *Stream
	accesses *[2][]Range
	version  uint64
	token    uint64
	when     int64
	id, site uint32
	host     bool
	internal bool
}

// When returns the time of the call, nanoseconds of Runtime.Now; 0 in a log without
// times.
func (e *Logged) When() int64 { return e.when }

// Operation returns the operation as listeners see it.
func (e *Logged) Operation() Operation {
	o := Operation{ID: e.id, Kind: e.kind, Stream: e.stream, Thread: e.thread, Event: e.event, Version: e.version,
		Other: e.other, Token: e.token, Site: e.site, Host: e.host, Internal: e.internal}
	if e.accesses != nil {
		o.Reads, o.Writes = e.accesses[0], e.accesses[1]
	}
	return o
}

// logPieceSize is how many operations are kept in one piece.
const logPieceSize = 512

// Log begins to collect operations, with times if wanted.
//
// Contract: O1, O5.
func (rt *Runtime) Log(times bool) *Log {
	g := &Log{}
	if times {
		g.clock = rt.Now
	}
	rt.listeners.deliver()
	rt.listeners.change(func(a *listenerSet) { a.logs = append(a.logs, g) })
	g.stop = func() {
		rt.listeners.deliver()
		rt.listeners.change(func(a *listenerSet) {
			for i, other := range a.logs {
				if other == g {
					a.logs = append(a.logs[:i], a.logs[i+1:]...)
					return
				}
			}
		})
	}
	return g
}

func (g *Log) add(o *Operation) {
	var when int64
	if g.clock != nil {
		when = o.time
	}
	g.mu.Lock()
	if len(g.last) == cap(g.last) {
		if len(g.last) > 0 {
			g.full = append(g.full, g.last)
		}
		g.last = make([]Logged, 0, logPieceSize)
	}
	g.last = append(g.last, Logged{kind: o.Kind, stream: o.Stream, thread: o.Thread, event: o.Event, other: o.Other,
		version: o.Version, token: o.Token, when: when, id: o.ID, site: o.Site, host: o.Host, internal: o.Internal})
	if len(o.Reads)+len(o.Writes) > 0 {
		g.last[len(g.last)-1].accesses = &[2][]Range{o.Reads, o.Writes}
	}
	g.mu.Unlock()
}

// Take returns, in pieces, what was collected since the last call.
func (g *Log) Take() [][]Logged {
	g.mu.Lock()
	defer g.mu.Unlock()
	pieces := g.full
	if len(g.last) > 0 {
		pieces = append(pieces, g.last)
	}
	g.full, g.last = nil, nil
	return pieces
}

// Stop ends the log.
func (g *Log) Stop() { g.stop() }
