package order

import (
	"sync"

	"halstream/hal"
)

// timeline is the state of a stream. Its stamp is that of the latest operation, whose
// clock covers clocks and its own stamp.
type timeline struct {
	stamp
	clocks  clocks
	seen    clocks // of the thread that enqueued last
	stream  *hal.Stream
	dev     *device
	ordered bool // takes part in the legacy order
	legacy  bool // is the legacy default stream
	blocks  bool // calls that enqueue wait until the work is done

	dirty      bool   // has operations that are not ordered before the legacy default stream's next
	legacySeen uint32 // up to which operation of the legacy default stream it comes after
	lastSeq    uint64 // of the latest operation
	recent     [4]state
	states     int

	queue   []*heldOp // held operations
	forcing bool
	closed  bool // to be forgotten once the queue is empty

	waits   [8]waitNote // the latest ones, for explanations
	nwaits  uint
	records [8]recordNote
	nrecord uint

	undeclared  [8]*info // the latest functions that declare no writes
	nundeclared uint
}

// state is the state of a timeline after an operation. It is kept while there are
// several host threads, since one may wait while another enqueues.
type state struct {
	order uint64 // hal.Operation.Seq
	stamp
	clocks clocks
}

// noteUndeclared remembers a function that declares no writes.
func (l *timeline) noteUndeclared(f *info) {
	l.undeclared[l.nundeclared%uint(len(l.undeclared))] = f
	l.nundeclared++
}

// device is the streams of a device.
type device struct {
	ordinal   int
	legacy    *timeline
	timelines []*timeline
	dirty     []*timeline // ordered ones with work that the legacy default stream is not ordered after
	// The clocks of closed streams, and of those that were ordered.
	past, pastOrdered clocks
}

// thread is a host thread. Its slot is allocated at its first access to memory; its
// clocks cover its own stamp.
type thread struct {
	stamp
	id          uint64
	clocks      clocks
	pendingSync *timeline // the blocking stream whose work its latest call waited for
}

// endedThreads lists the host threads whose tokens the collector has freed.
type endedThreads struct {
	mu  sync.Mutex
	ids []uint64
}

func (g *endedThreads) take() []uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids := g.ids
	g.ids = nil
	return ids
}

// asOf returns the state of l before the operation with number seq: the checker may
// see the end of a wait after later operations.
func (l *timeline) asOf(seq uint64) (stamp, clocks) {
	if l.lastSeq < seq || l.states == 0 {
		return l.stamp, l.clocks
	}
	at := l.recent[(l.states-1)%len(l.recent)]
	for i := 2; i <= min(l.states, len(l.recent)) && at.order >= seq; i++ {
		at = l.recent[(l.states-i)%len(l.recent)]
	}
	return at.stamp, at.clocks
}

// legacyBefore returns the legacy default stream if the next operation of l waits for its work (S5), else nil. A wait for l
// is for the point of such an operation (S6).
func (l *timeline) legacyBefore() *timeline {
	if !l.ordered || l.legacy {
		return nil
	}
	return l.dev.legacy
}

// event is the state of an event.
type event struct {
	future bool
	latest [3]*point // the newest record first; older ones may be synchronized with
	// Future events only: the first record since the reset, nil if there was none;
	// known says that set is valid, which it is not while the checker has seen neither
	// a record nor a reset of the event.
	set     *point
	known   bool
	ever    clocks // the union of the clocks of all records
	waiting []*timeline
}

// at returns the record that made a version, nil if the checker has not seen it.
func (e *event) at(version uint64) *point {
	var best *point
	for _, p := range e.latest {
		if p != nil && p.version >= version {
			best = p
		}
	}
	return best
}

func (e *event) push(p *point) {
	e.latest[2], e.latest[1], e.latest[0] = e.latest[1], e.latest[0], p
}

// point is a fence on a stream with its clocks: that of a record, or behind the work
// enqueued so far. While operations are held its clocks may not be computed yet.
type point struct {
	stamp
	clocks   clocks
	version  uint64 // of the event, for records
	timeline *timeline
	done     bool
	waiting  []*timeline // streams whose first held operation waits for it
}

// all returns the clocks at p, with p itself.
func (p *point) all() clocks {
	if p.slot == 0 {
		return p.clocks
	}
	return p.clocks.with(p.stamp)
}
