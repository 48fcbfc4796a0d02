package order

import (
	"sync"
	"sync/atomic"

	"halstream/hal"
)

// Checker checks the operations of a program. Its methods may be called from any
// thread, hold its lock for a moment only, and call no other code.
type Checker struct {
	mu              sync.Mutex
	devices         map[*hal.Device]*device
	all             []*device // in the order of their first use
	timelines       map[*hal.Stream]*timeline
	events          map[*hal.Event]*event
	values          map[uint64]*valueCell // by address
	launches        map[*hal.GraphExec]launch
	threads         map[uint64]*thread
	ended           *endedThreads
	lastEndedClocks clocks   // of the thread that ended last
	latest          struct { // the ones of the last call, to save a look-up
		stream   *hal.Stream
		timeline *timeline
		id       uint64
		thread   *thread
	}

	slots slots
	// called is the union of the clocks of all host threads at their calls: the
	// real-time order.
	called *vector
	// floor is what the clock of every host thread covers: every later operation comes
	// after it.
	floor *vector
	// staging is what precedes a copy on its stream while the staging read of its source is
	// handled, otherwise empty.
	staging clocks
	held    int         // streams with operations that wait for a later record
	work    []*timeline // such streams that may have become ready

	host hostObjects

	table   table
	late    late
	reports reports

	recording *recording // nil if nothing is recorded
	// comparing: the nodes of one graph, and nothing else.
	comparing bool
	// replaying: what is closed by now was not when the operation was recorded.
	replaying bool

	count   int    // operations
	arrival uint64 // of accesses
	next    int    // the count of operations at which tidy runs next
	kept    struct{ timelines, events, pieces int }
	found   atomic.Uint64
}

// New returns a checker that has seen no operation.
func New() *Checker {
	return &Checker{
		devices:   map[*hal.Device]*device{},
		timelines: map[*hal.Stream]*timeline{},
		events:    map[*hal.Event]*event{},
		values:    map[uint64]*valueCell{},
		launches:  map[*hal.GraphExec]launch{},
		threads:   map[uint64]*thread{},
		ended:     &endedThreads{},
		slots:     slots{next: 1},
		next:      tidyEach,
	}
}

// kind is what an operation does, as far as order and accesses are concerned.
type kind uint8

const (
	other kind = iota // enqueued work that orders only its own stream
	record
	wait
	waitStream
	reset
	function // work that may access more than it declares
	allocate
	free
	writeValue
	waitValue
	launchGraph
	mark     // a place on a stream, only while operations are held
	vainWait // a wait for an event without a record, which is not enqueued
	syncStream
	syncEvent
	syncDevice
	syncMemory
	waitMemory
	queryStream
	queryEvent
	access
	newMemory
	freeMemory
	closeStream
	closeEvent
	endCapture
)

var kinds = map[string]kind{
	"record": record, "wait": wait, "wait stream": waitStream, "reset": reset,
	"call": function, "native": function, "launch": function, "report": function, "allocate": allocate, "free": free,
	"write value": writeValue, "wait value": waitValue, "launch graph": launchGraph,
	"synchronize stream": syncStream, "synchronize event": syncEvent, "synchronize device": syncDevice,
	"synchronize memory": syncMemory, "wait memory": waitMemory,
	"query stream": queryStream, "query event": queryEvent, "host read": access, "host write": access,
	"new memory": newMemory, "free memory": freeMemory,
	"wait for no record": vainWait, "close stream": closeStream, "close event": closeEvent,
	"end capture": endCapture, "instantiate": endCapture, "update executable": endCapture,
}

// kindOf looks a name up; the most frequent ones without the map.
func kindOf(name string) kind {
	switch name {
	case "copy", "fill", "nop":
		return other
	case "record":
		return record
	case "wait":
		return wait
	case "call":
		return function
	}
	return kinds[name]
}

// ofThread reports whether it matters which thread made a call of the host.
// Creating and closing objects carries no order.
func (k kind) ofThread() bool { return k >= syncStream && k <= access }

// Handle takes the next operation. It is meant for hal.Runtime.Listen, which calls
// it in the order of each stream, each event and each thread.
func (c *Checker) Handle(op hal.Operation) {
	k := kindOf(op.Kind)
	c.mu.Lock()
	c.recording.handled(&op)
	c.count++
	if c.count >= c.next {
		c.tidy()
	}
	if op.Host && !k.ofThread() {
		if op.NoWait {
			c.freeNoWait(&op)
		}
		c.handleLifetime(k, &op)
		c.mu.Unlock()
		return
	}
	t := c.thread(op.Thread)
	t.clocks[timed] = c.called
	c.finishSync(t, op.Seq)
	switch {
	case op.Host:
		c.handleHost(k, t, &op)
	case op.Stream != nil:
		s := c.timeline(op.Stream)
		if c.held > 0 || k == wait && c.early(&op) || k == waitValue && len(c.waitOn(s, t, &op).enders()) == 0 {
			c.hold(s, t, k, &op)
		} else {
			c.enqueue(s, t, k, &op)
		}
		if s.blocks {
			t.pendingSync = s // the call returns when its work is done
		}
	}
	c.called = t.clocks[timed]
	if len(c.threads) == 1 && len(c.host.begun) == 0 && c.held == 0 {
		c.floor = t.clocks[strict]
	}
	c.mu.Unlock()
}

// Finish performs the operations that are still held because a record that they
// wait for was never enqueued, as if it had been enqueued last. Call it before the last Take.
func (c *Checker) Finish() {
	c.mu.Lock()
	c.recording.called(toFinish, 0)
	for _, s := range c.heldTimelines() {
		c.force(s, nil)
	}
	c.settle()
	c.mu.Unlock()
}

// Stats counts what a checker has seen and what it keeps.
type Stats struct {
	Operations int // handled
	Streams    int // known and not closed
	Events     int
	Threads    int
	Slots      int // components of the clocks
	Pieces     int // byte ranges with different accesses
	Held       int // streams whose work waits for a record that was not enqueued
	Reports    int // different ones
	Repeats    int // pairs that were reported already
	Dropped    int // reports beyond the limit
	Unknown    int // observed accesses of operations that are not remembered any more
	// Compared is how many functions a session has watched, and Partly for how many of
	// them there was more device memory than is compared.
	Compared, Partly int
	// Paged is how many functions were seen by the pages of memory, Untouched how many
	// of them touched none, and Beside how many ran at the same time as another one.
	Paged, Untouched, Beside int
}

// Stats returns what the checker has seen and what it keeps.
func (c *Checker) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		Operations: c.count, Streams: len(c.timelines), Events: len(c.events), Threads: len(c.threads),
		Slots: int(c.slots.next) - 1, Pieces: c.table.n, Held: c.held,
		Reports: len(c.reports.seen), Repeats: c.reports.repeats, Dropped: c.reports.dropped,
		Unknown: c.late.unknown,
	}
}
