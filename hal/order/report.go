package order

import (
	"fmt"
	"sync/atomic"

	"halstream/hal"
)

// Category is what is wrong with a pair.
type Category string

const (
	// Race: nothing orders the two.
	Race Category = "race"
	// ByQuery: they are ordered only because a query happened to return true.
	ByQuery Category = "by query only"
	// ByTiming: they are ordered only by the time at which different host threads
	// made their calls; the runtime did not see what ordered the threads, if anything.
	ByTiming Category = "by host timing only"
	// Refill: the source of a copy changed between the call and the copy, and
	// nothing that is ordered before the copy did it.
	Refill Category = "refill"
	// Undeclared: the source of a copy changed between the call and the copy, and a
	// function that is ordered before the copy, and does not say what it writes, may have
	// done it.
	Undeclared Category = "undeclared writes"
	// Kernel: a kernel made a mistake of its own, see Report.Kernel; the other operation is unknown.
	Kernel Category = "kernel"
)

// Categories are all categories of reports.
var Categories = []Category{Race, ByQuery, ByTiming, Refill, Undeclared, Kernel}

// String returns the category as reports give it.
func (c Category) String() string { return string(c) }

// Why says why a pair has no order.
type Why string

const (
	// NeverWaited: the second stream has no recent wait.
	NeverWaited Why = "never waited"
	// OtherStream: it waited, but not for the first one's stream; Reason.Wait
	// is the latest such wait.
	OtherStream Why = "waited for another stream"
	// OwnRecord: it waited for a record of its own, Reason.Wait, and for no other stream.
	OwnRecord Why = "waited for its own record"
	// NoRecord: it waited for an event that was not recorded by then, Reason.Wait, which
	// orders nothing, and for no other stream.
	NoRecord Why = "waited for an event without a record"
	// OlderRecord: it waited for a record on the first one's stream, Reason.Wait,
	// that was made before the first access.
	OlderRecord Why = "waited for an older record"
	// EarlierWork: it waited for the first one's stream, Reason.Wait, before the
	// first access was enqueued.
	EarlierWork Why = "waited before it was enqueued"
	// NonBlocking: one of the two is on the legacy default stream and the other
	// on a stream without order with it.
	NonBlocking Why = "stream without order with the default stream"
	// NotSynchronized: the host never waited for the first one's stream.
	NotSynchronized Why = "host did not synchronize"
	// SynchronizedEarlier: it did, but before the first access was enqueued.
	SynchronizedEarlier Why = "host synchronized before it was enqueued"
	// NoPath: they are nodes of a graph, and no path of edges leads from one to the other.
	NoPath Why = "no path in the graph"
	// HostThreads: the first one is an access of another host thread.
	HostThreads Why = "host threads without order"
	// SourceChanged: see Refill.
	SourceChanged Why = "source changed before the copy"
	// UndeclaredWrite: see Undeclared.
	UndeclaredWrite Why = "function before the copy declares no writes"
)

// Whys are all reasons why a pair may have no order.
var Whys = []Why{
	NeverWaited, OtherStream, OwnRecord, NoRecord, OlderRecord, EarlierWork, NonBlocking, NotSynchronized,
	SynchronizedEarlier, NoPath, HostThreads, SourceChanged, UndeclaredWrite,
}

// String returns the reason as reports give it.
func (w Why) String() string { return string(w) }

// Memory says that a pair is about the life of the memory.
type Memory string

const (
	// Freed: the second one frees, in the order of its stream, what the first
	// one may still use.
	Freed Memory = "freed while in use"
	// Reused: the first one frees what the second one uses.
	Reused Memory = "used after it was freed"
	// GivenOut: the block that the first one uses was freed, and its memory given out
	// again to the second one.
	GivenOut Memory = "given out again while in use"
	// Unallocated: the first one allocates, in the order of its stream, what the
	// second one may use before.
	Unallocated Memory = "used before it is allocated"
)

// Memories are all that a pair may say about the life of memory.
var Memories = []Memory{Freed, Reused, GivenOut, Unallocated}

// String returns it as reports give it.
func (m Memory) String() string { return string(m) }

// Access is one side of a pair.
type Access struct {
	ID      uint32
	Kind    hal.OperationKind
	Name    string // that the program has given it, "" without one
	Device  int    // ordinal; -1 for the host
	Stream  uint64 // its index on the device, 0 is the legacy default stream
	Thread  uint64 // the host thread that called
	Site    uint32
	Token   uint64
	Write   bool
	Seen    bool      // observed, not declared
	Host    bool      // an access by the host
	Unknown bool      // the other side of a Refill, which is not known, or of a Kernel, where there is none
	Node    *NodeNote // nil if it is no node of a graph, or one that its stream stands for
}

// Note is a wait or a record of a stream.
type Note struct {
	ID      uint32
	Site    uint32
	Event   uint64 // 0 if it was a wait for a stream
	Version uint64
	Device  int // that it was recorded on
	Stream  uint64
}

// Reason says why a pair has no order, and what would give it one.
type Reason struct {
	Why    Why
	Memory Memory // empty if it is not about that
	// Devices: the two are on different ones, where no rule orders them.
	Devices bool
	Wait    *Note // the wait that was not enough
	// Record is the first record on the first one's stream behind the access, nil
	// if there is none yet: a wait for it before the second one's call orders
	// them. Without one, waiting for the stream does.
	Record *Note
}

// Report is a pair of accesses to the same bytes without an order.
type Report struct {
	Category Category
	// First is the one that was called first. The missing wait belongs before
	// the call of Second, at Second.Site.
	First, Second Access
	Range         hal.Range // of the first pair of its kind
	Reason        Reason
	// Kernel is the mistake of First, nil in other categories than that.
	Kernel *hal.KernelFinding
	// Count is how many pairs of operations there are so far; it grows when the report
	// was taken, too. Nil for refills, which are each one's own.
	Count *atomic.Int64
}

// side and pair identify reports about the same operations.
type side struct {
	site   uint32
	kind   hal.OperationKind
	label  string // the operation's name
	device int
	stream uint64
	node   nodeSide
}

// nodeSide is the node of a side; its site is 0 for none without a line.
type nodeSide struct {
	site  uint32
	index int // plus one
}

type pair struct {
	category Category
	a, b     side
	place    string // of a mistake in a kernel
}

// calls is the pair without its streams.
func (p pair) calls() pair {
	return pair{category: p.category, a: side{site: p.a.site, kind: p.a.kind}, b: side{site: p.b.site, kind: p.b.kind}}
}

func (a *side) before(b *side) bool {
	if a.site != b.site {
		return a.site < b.site
	}
	if a.kind != b.kind {
		return a.kind < b.kind
	}
	if a.device != b.device {
		return a.device < b.device
	}
	if a.stream != b.stream {
		return a.stream < b.stream
	}
	return a.node.index < b.node.index
}

const (
	// maxReports is how many different reports are kept.
	maxReports = 10_000
	// maxAlike is how many of them may be about the same two calls of the program,
	// made on other streams, so that these leave room for others.
	maxAlike = 64
)

// reports collects what was found.
type reports struct {
	seen    map[pair]*Report
	alike   map[pair]int
	fresh   []*Report // since the last Take
	repeats int
	dropped int
}

// Take returns the reports found since the last call. Each pair of sites, kinds and
// streams is reported once.
func (c *Checker) Take() []Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takeRefills()
	out := make([]Report, len(c.reports.fresh))
	for i, r := range c.reports.fresh {
		out[i] = *r
	}
	c.reports.fresh = nil
	return out
}

// Found returns how many different reports there were so far. It costs one atomic load.
func (c *Checker) Found() uint64 { return c.found.Load() }

// known reports whether a report was made before, or is beyond the limit, and counts
// it then.
func (c *Checker) known(key *pair, first, second uint32, p piece) bool {
	if key.b.before(&key.a) {
		key.a, key.b = key.b, key.a
	}
	all := &c.reports
	old := all.seen[*key]
	switch {
	case old == nil && (len(all.seen) >= maxReports || all.alike[key.calls()] >= maxAlike):
		all.dropped++
	case old == nil:
		return false
	case old.First.ID != first || old.Second.ID != second:
		old.Count.Add(1)
		all.repeats++
	case old.Range.Start+old.Range.Size == p.start:
		// The same two, with more bytes.
		old.Range.Size += p.end - p.start
	}
	return true
}

// add keeps a new report.
func (c *Checker) add(key pair, r Report, p piece) {
	all := &c.reports
	if all.seen == nil {
		all.seen, all.alike = map[pair]*Report{}, map[pair]int{}
	}
	if r.First.Site != 0 && r.Second.Site != 0 {
		all.alike[key.calls()]++
	}
	r.Count = new(atomic.Int64)
	r.Count.Store(1)
	r.Range = hal.Range{Start: p.start, Size: p.end - p.start}
	all.seen[key] = &r
	all.fresh = append(all.fresh, &r)
	c.found.Add(1)
}

// conflict reports two accesses of which that of e does not happen before that of o
// by what the runtime guarantees.
func (c *Checker) conflict(e *entry, o *info, earlierWrites, write, seen bool, p piece) {
	if e.info.silent || o.silent || o.run != nil && e.info.run == o.run &&
		!(e.seen || seen || e.info.handsIn || o.handsIn || c.comparing) {
		return // what two nodes of a launch declare was compared when it was instantiated
	}
	category := Race
	switch {
	case o.clocks[queried].covers(e.stamp):
		category = ByQuery
	case o.clocks[timed].covers(e.stamp):
		category = ByTiming
	}
	c.pair(category, participant{e.info, earlierWrites, e.seen, e.reused}, participant{o, write, seen, false}, p)
}

// participant is one access of a pair.
type participant struct {
	*info
	write, seen bool
	reused      bool // of the earlier one: the memory is another block's by now
}

// pair reports two accesses in the order of their calls.
func (c *Checker) pair(category Category, a, o participant, p piece) {
	a.raced, o.raced = true, true
	if o.arrival < a.arrival || a.run != nil && a.run == o.run && a.run.listedLater(a.node, o.node) {
		a, o = o, a // what is observed late may be of the first of two nodes of a launch
	}
	key := pair{category: category, a: a.side(), b: o.side()}
	if !c.known(&key, a.id, o.id, p) {
		c.add(key, Report{
			Category: category, First: a.access(a.write, a.seen), Second: o.access(o.write, o.seen),
			Reason: reason(a.info, o.info, a.reused),
		}, p)
	}
}

// KernelRan reports the mistakes that kernel id made and that did not end it. It is called before HandedIn for that kernel.
//
// Contract: K5.
func (c *Checker) KernelRan(id uint32, r hal.KernelReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.awaited[id]
	if t == nil {
		c.observed(id) // if it was held: it ran, so what it waited for came
		if t = c.awaited[id]; t == nil {
			return
		}
	}
	for _, f := range r.Findings {
		c.mistake(t.in, f, piece{})
	}
	t.inputs = r.Inputs
}

// mistake reports what a kernel did by itself, to the memory p if that is known.
func (c *Checker) mistake(o *info, found hal.KernelFinding, p piece) {
	none := Access{Device: -1, Host: true, Unknown: true}
	key := pair{category: Kernel, a: o.side(), b: side{device: -1}, place: found.Place}
	if !c.known(&key, o.id, 0, p) {
		c.add(key, Report{Category: Kernel, First: o.access(false, false), Second: none, Kernel: &found}, p)
	}
}

func (o *info) side() side {
	s := side{site: o.site, kind: o.op, label: o.label, device: -1}
	if o.timeline != nil {
		s.device = o.timeline.dev.ordinal
		if o.timeline.stream != nil {
			s.stream = o.timeline.stream.Index()
		}
	}
	s.node = o.note().side()
	return s
}

func (o *info) access(write, seen bool) Access {
	s := o.side()
	return Access{
		ID: o.id, Kind: o.op, Name: o.label, Device: s.device, Stream: s.stream, Thread: o.thread, Site: o.site,
		Token: o.token, Write: write, Seen: seen, Host: o.timeline == nil, Node: o.note(),
	}
}

// waitNote is a wait of a stream for another one, up to an operation there.
type waitNote struct {
	own      uint32 // the operation that it was
	timeline *timeline
	upTo     uint32
	note     Note
	vain     Why // why the wait orders nothing; "" for one that does
}

// recordNote is a record on a stream.
type recordNote struct {
	own  uint32
	note Note
}

func (l *timeline) note(op *hal.Operation) Note {
	n := Note{ID: op.ID, Site: op.Site, Device: l.dev.ordinal, Stream: l.stream.Index()}
	if op.Event != nil {
		n.Event, n.Version = op.Event.ID(), op.Version
	}
	return n
}

// noteWait remembers the wait op; it is called before l's stamp is advanced for it.
func (l *timeline) noteWait(op *hal.Operation, from *timeline, upTo uint32) {
	l.waits[l.nwaits%uint(len(l.waits))] = waitNote{own: l.seq + 1, timeline: from, upTo: upTo, note: from.note(op)}
	l.nwaits++
}

// noteVainWait remembers the wait op, which orders nothing. One without a record is not
// enqueued.
func (l *timeline) noteVainWait(op *hal.Operation, why Why) {
	own := l.seq
	if why == OwnRecord {
		own++
	}
	l.waits[l.nwaits%uint(len(l.waits))] = waitNote{own: own, timeline: l, note: l.note(op), vain: why}
	l.nwaits++
}

func (l *timeline) noteRecord(op *hal.Operation) {
	l.records[l.nrecord%uint(len(l.records))] = recordNote{l.seq, l.note(op)}
	l.nrecord++
}

// lastWait returns the latest wait of o's stream before o for the stream of a,
// or else for any other, or else one that orders nothing.
func lastWait(a, o *info) (found *waitNote, same bool) {
	l := o.timeline
	for i := range min(l.nwaits, uint(len(l.waits))) {
		w := &l.waits[(l.nwaits-1-i)%uint(len(l.waits))]
		if w.own >= o.seq {
			continue
		}
		if w.timeline == a.timeline && w.vain == "" {
			return w, true
		}
		if found == nil || found.vain != "" && w.vain == "" {
			found = w
		}
	}
	return found, false
}

// firstRecord returns the first record behind a on its stream that is still
// remembered, and was called before o, if that is not nil.
func firstRecord(a, o *info) *Note {
	l := a.timeline
	for i := min(l.nrecord, uint(len(l.records))); i > 0; i-- {
		r := &l.records[(l.nrecord-i)%uint(len(l.records))]
		if r.own > a.seq && (o == nil || int32(r.note.ID-o.id) < 0) {
			note := r.note
			return &note
		}
	}
	return nil
}

// reason explains why o, which was called later, does not come after a. reused says that
// the memory is another block's since a.
func reason(a, o *info, reused bool) Reason {
	var r Reason
	switch {
	case reused:
		r.Memory = GivenOut
	case o.kind == free:
		r.Memory = Freed
	case a.kind == free:
		r.Memory = Reused
	case a.kind == allocate:
		r.Memory = Unallocated
	}
	if a.run != nil && a.run == o.run {
		r.Why = NoPath
		r.Devices = a.run.list.Node(a.node).Device() != o.run.list.Node(o.node).Device()
		return r
	}
	if a.timeline == nil {
		r.Why = HostThreads
		return r
	}
	r.Record = firstRecord(a, o)
	if o.timeline == nil {
		r.Why = NotSynchronized
		if o.clocks[strict].upTo(a.slot) > 0 {
			r.Why = SynchronizedEarlier
		}
		return r
	}
	r.Devices = a.timeline.dev != o.timeline.dev
	w, same := lastWait(a, o)
	switch {
	case same && w.note.Event != 0:
		r.Why = OlderRecord
	case same:
		r.Why = EarlierWork
	case !r.Devices && (a.timeline.legacy && !o.timeline.ordered || o.timeline.legacy && !a.timeline.ordered):
		r.Why = NonBlocking
	case w != nil && w.vain != "":
		r.Why = w.vain
	case w != nil:
		r.Why = OtherStream
	default:
		r.Why = NeverWaited
	}
	if w != nil {
		note := w.note
		r.Wait = &note
	}
	return r
}

// checkInputs reports memory that nobody wrote among what a kernel has read before it wrote there itself.
func (c *Checker) checkInputs(o *info, inputs []hal.Range) {
	var first piece
	for _, r := range inputs {
		p := pieceOf(r)
		part, found := c.unwritten.within(p)
		if found && first == (piece{}) {
			first = part
		}
		c.unwritten.write(p) // reported once
	}
	if first == (piece{}) {
		return
	}
	c.mistake(o, hal.KernelFinding{Check: "initcheck", Place: "global", Text: fmt.Sprintf(
		"Uninitialized __global__ memory read of size %d bytes at address %#x at kernel %s",
		first.end-first.start, first.start, o.label)}, first)
}
