package order

import (
	"maps"
	"runtime"
	"slices"
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

	table table
	// queued are what waits for an operation that has yet to hand in what it accesses, the first one, in
	// the order of the calls; frees are those of memory among them, by address.
	queued []*queuedAccess
	// unwritten is changed in the order of queued.
	unwritten unwritten
	awaited   map[uint32]*queuedAccess // by the number of the operation
	frees     table
	late      late
	reports   reports

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
	fenced   // a fence on a stream, only while operations are held
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

// kinds gives each kind of operations what it does here. Those that are missing are [other].
var kinds = [256]kind{
	hal.OpRecord: record, hal.OpWait: wait, hal.OpWaitStream: waitStream, hal.OpReset: reset,
	hal.OpCall: function, hal.OpNative: function, hal.OpLaunch: function, hal.OpReport: function,
	hal.OpAllocate: allocate, hal.OpFree: free, hal.OpWriteValue: writeValue, hal.OpWaitValue: waitValue,
	hal.OpLaunchGraph: launchGraph, hal.OpSynchronizeStream: syncStream, hal.OpSynchronizeEvent: syncEvent,
	hal.OpSynchronizeDevice: syncDevice, hal.OpSynchronizeMemory: syncMemory, hal.OpWaitMemory: waitMemory,
	hal.OpQueryStream: queryStream, hal.OpQueryEvent: queryEvent, hal.OpHostRead: access, hal.OpHostWrite: access,
	hal.OpNewMemory: newMemory, hal.OpFreeMemory: freeMemory, hal.OpWaitForNoRecord: vainWait,
	hal.OpCloseStream: closeStream, hal.OpCloseEvent: closeEvent, hal.OpEndCapture: endCapture,
	hal.OpInstantiate: endCapture, hal.OpUpdateExecutable: endCapture,
}

// ofThread reports whether it matters which thread made a call of the host.
// Creating and closing objects carries no order.
func (k kind) ofThread() bool { return k >= syncStream && k <= access }

// Handle takes the next operation. It is meant for hal.Runtime.Listen, which calls
// it in the order of each stream, each event and each thread.
func (c *Checker) Handle(op hal.Operation) {
	k := kinds[op.Kind]
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
	if len(c.threads) == 1 && len(c.host.begun) == 0 && c.held == 0 && len(c.queued) == 0 {
		c.floor = t.clocks[strict]
	}
	c.mu.Unlock()
}

// Finish performs the operations that are still held because a record that they
// wait for was never enqueued, as if it had been enqueued last. Those that have yet to hand in what
// they access count as accessing all that they declared. Call it before the last Take.
func (c *Checker) Finish() {
	c.mu.Lock()
	c.recording.called(toFinish, 0)
	for _, s := range c.heldTimelines() {
		c.force(s, nil)
	}
	c.settle()
	c.applyDeclared()
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

func (c *Checker) timeline(s *hal.Stream) *timeline {
	if c.latest.stream == s {
		return c.latest.timeline
	}
	l := c.timelines[s]
	if l == nil {
		d := c.device(s.Device())
		l = &timeline{stream: s, dev: d, ordered: s.Ordered(), blocks: s.BlocksHost(), legacy: s == s.Device().Legacy()}
		if l.legacy {
			d.legacy = l
		}
		d.timelines = append(d.timelines, l)
		c.timelines[s] = l
	}
	c.latest.stream, c.latest.timeline = s, l
	return l
}

func (c *Checker) device(d *hal.Device) *device {
	found := c.devices[d]
	if found == nil {
		found = &device{ordinal: d.Ordinal()}
		c.devices[d] = found
		c.all = append(c.all, found)
	}
	return found
}

func (c *Checker) thread(t *hal.Thread) *thread {
	var id uint64 // callers without a thread are one thread
	if t != nil {
		id = t.ID
	}
	if h := c.latest.thread; h != nil && c.latest.id == id {
		return h
	}
	h := c.threads[id]
	if h == nil {
		h = &thread{id: id, clocks: c.firstClocks(id)}
		h.clocks[queried] = h.clocks[strict]
		c.threads[id] = h
		if t != nil {
			ended := c.ended
			runtime.AddCleanup(t, func(id uint64) {
				ended.mu.Lock()
				ended.ids = append(ended.ids, id)
				ended.mu.Unlock()
			}, id)
		}
	}
	c.latest.id, c.latest.thread = id, h
	return h
}

// firstClocks returns what a thread that calls for the first time comes after: what is
// known of its beginning, or else, where the beginning of threads is not observed, what all
// other threads come after, since one of them started it.
func (c *Checker) firstClocks(id uint64) clocks {
	if known, ok := c.begunClocks(id); ok {
		return known
	}
	k, first := c.lastEndedClocks, true
	for _, o := range c.threads {
		if first {
			k, first = o.clocks, false
		} else {
			k = k.common(o.clocks)
		}
	}
	return k
}

// tick gives l the stamp of its next operation, which t enqueues.
func (c *Checker) tick(l *timeline, t clocks) {
	if l.slot == 0 {
		l.stamp = c.slots.take(t[strict], &l.clocks)
	}
	l.seq++
}

// forget removes a closed stream: its slot is used again, and its device keeps its
// clocks.
func (c *Checker) forget(l *timeline) {
	delete(c.timelines, l.stream)
	c.latest.stream, c.latest.timeline = nil, nil
	d := l.dev
	for i, o := range d.timelines {
		if o == l {
			d.timelines[i] = d.timelines[len(d.timelines)-1]
			d.timelines[len(d.timelines)-1] = nil
			d.timelines = d.timelines[:len(d.timelines)-1]
			break
		}
	}
	if l.slot == 0 {
		return
	}
	if !c.floor.covers(l.stamp) {
		g := gather{clocks: &d.past}
		g.add(l.stamp, l.clocks)
		if l.dirty {
			g := gather{clocks: &d.pastOrdered}
			g.add(l.stamp, l.clocks)
		}
	}
	if l.dirty {
		for i, o := range d.dirty {
			if o == l {
				d.dirty = append(d.dirty[:i], d.dirty[i+1:]...)
				break
			}
		}
	}
	c.slots.give(l.stamp, l.clocks)
}

func (c *Checker) event(e *hal.Event) *event {
	found := c.events[e]
	if found == nil {
		found = &event{future: e.Options().Kind == hal.Future}
		c.events[e] = found
	}
	return found
}

// early reports whether a wait comes before the record that it waits for.
func (c *Checker) early(op *hal.Operation) bool {
	if op.Event == nil {
		return false
	}
	e := c.event(op.Event)
	return e.future && e.set == nil && (e.known || op.Version == 0)
}

// enqueue handles an operation whose predecessors were all performed.
func (c *Checker) enqueue(s *timeline, t *thread, k kind, op *hal.Operation) {
	g := gather{clocks: &s.clocks}
	if s.seen != t.clocks {
		g.addAll(t.clocks)
		s.seen = t.clocks
	}
	var p *point
	switch k {
	case wait:
		if s.legacy {
			c.legacyOrder(&g, s)
		}
		if op.Event == nil {
			break
		}
		e := c.event(op.Event)
		p := e.set
		if !e.future {
			p = e.at(op.Version)
		}
		switch {
		case p != nil && p.timeline != s:
			g.add(p.stamp, p.clocks)
			s.noteWait(op, p.timeline, p.seq)
		case p != nil:
			s.noteVainWait(op, OwnRecord)
		}
	case waitStream:
		if o := op.Other; o != nil && o != op.Stream {
			if s.legacy {
				c.legacyOrder(&g, s)
			}
			from := c.timeline(o)
			c.addTimeline(&g, from, op.Seq)
			if l := from.legacyBefore(); l != nil {
				g.add(l.asOf(op.Seq))
			}
			s.noteWait(op, from, from.seq)
		}
	default:
		if s.ordered {
			c.legacyOrder(&g, s)
		}
		switch k {
		case record:
			p = &point{version: op.Version, timeline: s}
			c.event(op.Event).push(p)
		case allocate:
			c.addFrees(&g, s, op.Writes)
		case writeValue:
			p = &point{timeline: s}
			c.writeOn(op.Value, p)
		case waitValue:
			c.passed(&g, c.waitOn(s, t, op), op)
		case launchGraph:
			p = c.launched(&g, s, op)
		}
	}
	var in *info
	if k.accesses(op) {
		in = c.newInfo(k, t, s, op)
	}
	c.perform(s, t.clocks, k, op, p, in)
}

// legacyOrder makes s come after what the rule of the legacy default stream
// says (S5).
func (c *Checker) legacyOrder(g *gather, s *timeline) {
	d := s.dev
	if s.legacy {
		for i, o := range d.dirty {
			g.add(o.stamp, o.clocks)
			o.dirty = false
			d.dirty[i] = nil
		}
		d.dirty = d.dirty[:0]
		g.addAll(d.pastOrdered)
		d.pastOrdered = clocks{}
		return
	}
	if l := d.legacy; l != nil && l.seq != s.legacySeen {
		g.add(l.stamp, l.clocks)
		s.legacySeen = l.seq
	}
}

// addTimeline adds the work that was enqueued on s before the operation with number
// seq; of the legacy default stream that includes the streams ordered with it.
func (c *Checker) addTimeline(g *gather, s *timeline, seq uint64) {
	g.add(s.asOf(seq))
	if s.legacy {
		for _, o := range s.dev.dirty {
			g.add(o.asOf(seq))
		}
		g.addAll(s.dev.pastOrdered)
	}
}

// launched adds the launch of the same executable before this one, which has to end
// first, and returns the point of this one.
func (c *Checker) launched(g *gather, s *timeline, op *hal.Operation) *point {
	p := &point{timeline: s}
	last := c.launches[op.Exec]
	if op.Nodes != nil && last.compared != op.Nodes { // instantiated before the check began
		c.compare(op)
		last.compared = op.Nodes
	}
	if last.at != nil && last.seq < op.Seq {
		g.add(last.at.stamp, last.at.clocks)
	}
	if last.at == nil || last.seq < op.Seq {
		last.seq, last.at = op.Seq, p
	}
	c.launches[op.Exec] = last
	return p
}

// addFrees adds the points where memory that is given out again on s was freed. Where it stayed with s, what the free
// waited for orders only this memory: whether it was given out so soon that it orders more depends on the moment.
func (c *Checker) addFrees(g *gather, s *timeline, blocks []hal.Range) {
	for _, r := range blocks {
		for _, of := range []*table{&c.table, &c.frees} {
			of.over(pieceOf(r), func(cl *cell, _ piece) {
				for i := range cl.writes {
					o := cl.writes[i].info
					if o.kind != free || o.silent && o.timeline == s {
						continue
					}
					g.add(o.stamp, o.clocks)
					if o.waited != nil { // it has the stamp of what came before on its stream, which may be covered
						g.addAll(*o.waited)
					}
				}
			})
		}
	}
}

// perform performs an operation: the clocks of s cover all that comes before it.
func (c *Checker) perform(s *timeline, t clocks, k kind, op *hal.Operation, p *point, in *info) {
	c.tick(s, t)
	if s.ordered && !s.legacy && !s.dirty {
		s.dirty = true
		s.dev.dirty = append(s.dev.dirty, s)
	}
	s.lastSeq = op.Seq
	if len(c.threads) == 1 {
		s.states = 0
	} else {
		s.recent[s.states%len(s.recent)] = state{op.Seq, s.stamp, s.clocks}
		s.states++
	}
	switch k {
	case record:
		c.reach(p, s)
		s.noteRecord(op)
		c.signal(c.event(op.Event), p)
	case reset:
		e := c.event(op.Event)
		e.set, e.known = nil, true
	case writeValue:
		c.reach(p, s)
		c.written(op.Value)
	case launchGraph:
		if op.Nodes != nil {
			in.ready = true
			c.runNodes(s, t, op, in)
			in = nil // its nodes are what accesses memory
		}
		c.reach(p, s)
	case allocate:
		c.forgetValues(op.Writes)
	}
	if in == nil {
		return
	}
	in.stamp, in.clocks, in.ready = s.stamp, s.clocks, true
	if k == function {
		c.late.remember(in)
		if len(op.Writes) == 0 && op.Name == "" && !op.Complete { // an operator with a name declares all of its accesses
			s.noteUndeclared(in)
		}
	}
	if k == function && op.Name == "" && !op.Complete {
		c.queue(queuedAccess{other: c.unwritten.clear}) // it may write more than it declares
	}
	in.handsIn, in.audible = op.HandsIn, op.InOrder
	c.queue(queuedAccess{in: in, reads: op.Reads, writes: op.Writes, awaited: op.HandsIn})
}

// reach makes p stand for what s has done so far.
func (c *Checker) reach(p *point, s *timeline) {
	p.stamp, p.clocks, p.timeline, p.done = s.stamp, s.clocks, s, true
	c.work = append(c.work, p.waiting...)
	p.waiting = nil
}

// signal makes a record set its event. A wait ends with the first record since the
// reset; if several are unordered, only what the clocks of all cover is certain.
func (c *Checker) signal(e *event, p *point) {
	if !e.future {
		return
	}
	e.known = true
	g := gather{clocks: &e.ever}
	g.add(p.stamp, p.clocks)
	switch was := e.set; {
	case was == nil:
		e.set = p
	case was.slot == p.slot && was.slot != 0, was.slot != 0 && p.clocks[strict].covers(was.stamp):
		// The first one comes first.
	default:
		e.set = &point{clocks: was.all().common(p.all()), timeline: p.timeline, done: true}
	}
	c.work = append(c.work, e.waiting...)
	e.waiting = nil
}

// touch compares an access to a range with the earlier ones.
func (c *Checker) touch(o *info, p piece, write, seen bool) {
	if p.start >= p.end {
		return
	}
	if o.kind == allocate && !o.silent {
		// What came before is ordered before the free, or reported with it.
		c.table.clear(p)
	}
	if cl := c.table.exact(p); cl != nil {
		c.visit(cl, o, write, seen, p)
		return
	}
	c.table.each(p, func(cl *cell, part piece) { c.visit(cl, o, write, seen, part) })
}

// launch is the latest launch of an executable graph.
type launch struct {
	seq      uint64 // of the operation
	at       *point
	compared *hal.NodeList // the nodes that were compared with each other last
}

// accesses reports whether an operation works on memory. A wait for a value only
// looks at bytes that others are to change meanwhile.
func (k kind) accesses(op *hal.Operation) bool {
	return k == function || op.Nodes != nil || k != waitValue && len(op.Reads)+len(op.Writes) > 0
}

func pieceOf(r hal.Range) piece {
	return piece{r.Start, max(r.Start, r.Start+r.Size)} // a range past the end is none
}

// runNodes handles the nodes of a launch, the operation op of s; base is the launch.
func (c *Checker) runNodes(s *timeline, t clocks, op *hal.Operation, base *info) {
	r := newRun(op.Nodes)
	versions := map[int]uint64{}
	for _, v := range op.NodeVersions {
		versions[v.Node] = v.Version
	}
	node := func(i int) {
		n := op.Nodes.Node(i)
		if n.Event() != nil {
			c.runEventNode(s, t, r.operation(op, i, versions[i]))
			return
		}
		in := *base
		in.id, in.token, in.run, in.node = op.NodeID(i), n.Token(), r, i
		in.stamp, in.clocks, in.ready = s.stamp, s.clocks, true
		switch n.Kind() {
		case hal.OpCall, hal.OpNative, hal.OpKernel, hal.OpIf, hal.OpWhile, hal.OpSwitch:
			if i < op.Nodes.Len() {
				c.late.remember(&in)
			}
			if n.Kind() != hal.OpKernel && !n.Complete() {
				c.queue(queuedAccess{other: c.unwritten.clear})
			}
			if _, writes := n.Accesses(); len(writes) == 0 && !n.Complete() {
				s.noteUndeclared(&in)
			}
		}
		in.handsIn = n.HandsIn() && i < op.Nodes.Len()
		c.touchNode(&in, n, in.handsIn && op.HandsIn)
	}
	if len(versions) == 0 {
		r.each(node)
		return
	}
	for _, i := range r.sequence() {
		r.visit(i, node)
	}
}

// runEventNode handles a node op of a launch on s that records or waits for an event from outside
// of its graph. It has a number of its own on s, and what follows another one.
func (c *Checker) runEventNode(s *timeline, t clocks, op *hal.Operation) {
	e := c.event(op.Event)
	if op.Kind == hal.OpRecord {
		c.tick(s, t)
		p := &point{version: op.Version, timeline: s}
		e.push(p)
		c.reach(p, s)
		s.noteRecord(op)
		c.tick(s, t) // what follows does not come before what waits for the event
		return
	}
	switch p := e.at(op.Version); {
	case op.Version == 0:
		s.noteVainWait(op, NoRecord)
	case p == nil:
	case p.timeline == s:
		s.noteVainWait(op, OwnRecord)
	default:
		s.noteWait(op, p.timeline, p.seq)
		g := gather{clocks: &s.clocks}
		g.add(p.stamp, p.clocks)
	}
	c.tick(s, t)
	c.tick(s, t)
}

// maxSignals bounds how many writes of one value are remembered. A wait that an
// older one could have ended counts as ended by a later one.
const maxSignals = 64

// valueCell is what streams have written to a value in memory.
type valueCell struct {
	writes  []valueWrite // in the order of the calls
	waiting []*timeline  // streams whose first held operation waits for a write here
}

type valueWrite struct {
	value uint64
	point *point
}

// valueWait is a wait of a stream for a value.
type valueWait struct {
	hal.ValueAccess
	cell     *valueCell
	timeline *timeline
	host     clocks // of the calling thread
}

func (c *Checker) valueCell(addr uint64) *valueCell {
	cl := c.values[addr]
	if cl == nil {
		cl = &valueCell{}
		c.values[addr] = cl
	}
	return cl
}

// waitOn returns what a wait of s for a value waits for.
func (c *Checker) waitOn(s *timeline, t *thread, op *hal.Operation) *valueWait {
	return &valueWait{*op.Value, c.valueCell(op.Value.Addr), s, t.clocks}
}

// writeOn adds a write that p stands for.
func (c *Checker) writeOn(v *hal.ValueAccess, p *point) {
	cl := c.valueCell(v.Addr)
	if len(cl.writes) == maxSignals {
		cl.writes = append(cl.writes[:0], cl.writes[1:]...)
	}
	cl.writes = append(cl.writes, valueWrite{v.Value, p})
}

// written lets the streams that wait for a value be checked again.
func (c *Checker) written(v *hal.ValueAccess) {
	cl := c.valueCell(v.Addr)
	c.work = append(c.work, cl.waiting...)
	cl.waiting = nil
}

// enders returns the writes that can have ended the wait: those which meet its
// condition and were not overwritten, as far as the clock of the stream covers, by one that does
// not.
func (w *valueWait) enders() (found []*point) {
	for i, one := range w.cell.writes {
		if one.point.done && w.Condition.Met(one.value, w.Value) && !w.overwritten(i) {
			found = append(found, one.point)
		}
	}
	return found
}

func (w *valueWait) overwritten(i int) bool {
	first := w.cell.writes[i].point
	for _, later := range w.cell.writes[i+1:] {
		p := later.point
		if p.done && !w.Condition.Met(later.value, w.Value) &&
			(p.slot == first.slot || p.clocks[strict].covers(first.stamp)) && w.covers(p.stamp) {
			return true
		}
	}
	return false
}

func (w *valueWait) covers(at stamp) bool {
	return at.slot == w.timeline.slot || w.timeline.clocks[strict].covers(at) || w.host[strict].covers(at)
}

// passed makes the stream of a wait, to whose clocks g adds, come after the writes that can
// have ended it: after what all of them know, since any may have been the one.
func (c *Checker) passed(g *gather, w *valueWait, op *hal.Operation) {
	enders := w.enders()
	switch len(enders) {
	case 0:
		// Forced: the value came some other way. Rather an order too many than a
		// false report.
		c.over(pieceOf(hal.Range{Start: w.Addr, Size: 8}), func(e *entry, write bool) {
			if write {
				g.add(e.stamp, e.info.clocks)
			}
		})
	case 1:
		if p := enders[0]; p.timeline != w.timeline {
			g.add(p.stamp, p.clocks)
			w.timeline.noteWait(op, p.timeline, p.seq)
		}
	default:
		common := enders[0].all()
		for _, p := range enders[1:] {
			common = common.common(p.all())
		}
		g.addAll(common)
	}
}

// forgetValues drops what was written to memory that is given out or freed.
func (c *Checker) forgetValues(ranges []hal.Range) {
	if len(c.values) == 0 {
		return
	}
	for addr, cl := range c.values {
		for _, r := range ranges {
			if addr-r.Start < r.Size {
				if cl.writes = nil; len(cl.waiting) == 0 {
					delete(c.values, addr)
				}
				break
			}
		}
	}
}

// heldOp is an operation that is held: the clocks of something that it comes after are
// not computed yet, because a wait for a Future event came before the record (A2).
type heldOp struct {
	op        hal.Operation
	kind      kind
	host      clocks   // of the calling thread
	needs     []*point // points that it comes after
	satisfied int      // how many of them are done
	from      *point   // the one of them that a wait names
	event     *event   // Future event that it waits for
	value     *valueWait
	point     *point // the point that it makes, for a record, a fence or a write of a value
	info      *info
}

// hold handles an operation while others are held. The points that it comes after are
// determined now; it is performed when they are done.
func (c *Checker) hold(s *timeline, t *thread, k kind, op *hal.Operation) {
	it := &heldOp{op: *op, kind: k, host: t.clocks}
	switch k {
	case wait:
		if op.Event == nil {
			break
		}
		if e := c.event(op.Event); !e.future {
			if p := e.at(op.Version); p != nil && p.timeline != s {
				it.needs = append(it.needs, p)
				it.from = p
			}
		} else if e.known || op.Version == 0 {
			it.event = e
		}
		if s.legacy {
			it.needs = c.ordered(it.needs, s.dev, s)
		}
	case waitStream:
		if op.Other != nil && op.Other != op.Stream {
			from := c.timeline(op.Other)
			it.needs = append(it.needs, c.fenceOn(from))
			it.from = it.needs[0]
			if from.legacy {
				it.needs = c.ordered(it.needs, from.dev, s)
			} else if l := from.legacyBefore(); l != nil {
				it.needs = append(it.needs, c.fenceOn(l))
			}
			if s.legacy {
				it.needs = c.ordered(it.needs, s.dev, s)
			}
		}
	default:
		if s.legacy {
			it.needs = c.ordered(it.needs, s.dev, s)
		} else if l := s.legacyBefore(); l != nil {
			it.needs = append(it.needs, c.fenceOn(l))
		}
		switch k {
		case record:
			it.point = &point{version: op.Version, timeline: s}
			c.event(op.Event).push(it.point)
		case writeValue:
			it.point = &point{timeline: s}
			c.writeOn(op.Value, it.point)
		case waitValue:
			it.value = c.waitOn(s, t, op)
		case allocate:
			for _, r := range op.Writes {
				c.forceOver(s, pieceOf(r))
			}
		}
	}
	if k.accesses(op) {
		it.info = c.newInfo(k, t, s, op)
	}
	c.put(s, it)
	c.settle()
}

// put adds an operation to its stream, and performs it if nothing holds it.
func (c *Checker) put(s *timeline, it *heldOp) {
	if len(s.queue) == 0 && it.ready() {
		c.release(s, it)
		return
	}
	s.queue = append(s.queue, it)
	if len(s.queue) == 1 {
		c.held++
		s.await(it)
	}
}

// fenceOn returns the fence on a stream at which its work so far is done.
func (c *Checker) fenceOn(s *timeline) *point {
	if len(s.queue) == 0 {
		return &point{stamp: s.stamp, clocks: s.clocks, timeline: s, done: true}
	}
	if last := s.queue[len(s.queue)-1]; last.point != nil {
		return last.point
	}
	p := &point{timeline: s}
	s.queue = append(s.queue, &heldOp{kind: fenced, point: p})
	return p
}

// ordered adds the fences on the streams that are ordered with the legacy default
// stream and have work that it is not ordered after yet, except on one stream.
func (c *Checker) ordered(list []*point, d *device, but *timeline) []*point {
	for _, o := range d.timelines {
		if o.ordered && !o.legacy && o != but && (o.dirty || len(o.queue) > 0) {
			list = append(list, c.fenceOn(o))
		}
	}
	return append(list, &point{clocks: d.pastOrdered, done: true})
}

// missing returns the first point that is not done yet, nil if there is none.
func (it *heldOp) missing() *point {
	for it.satisfied < len(it.needs) && it.needs[it.satisfied].done {
		it.satisfied++
	}
	if it.satisfied < len(it.needs) {
		return it.needs[it.satisfied]
	}
	return nil
}

func (it *heldOp) ready() bool {
	return it.missing() == nil && (it.event == nil || it.event.set != nil) &&
		(it.value == nil || len(it.value.enders()) > 0)
}

// await makes the first missing point of s's first held operation look at s again.
func (s *timeline) await(it *heldOp) {
	if p := it.missing(); p != nil {
		p.waiting = append(p.waiting, s)
	} else if it.value != nil {
		it.value.cell.waiting = append(it.value.cell.waiting, s)
	} else {
		it.event.waiting = append(it.event.waiting, s)
	}
}

// release performs an operation whose points are done, or that is forced.
func (c *Checker) release(s *timeline, it *heldOp) {
	if it.kind == fenced {
		c.reach(it.point, s)
		return
	}
	g := gather{clocks: &s.clocks}
	g.addAll(it.host)
	for _, p := range it.needs {
		if p.done {
			g.add(p.stamp, p.clocks)
		} else {
			g.add(p.timeline.stamp, p.timeline.clocks) // forced: assuming an order that does not exist avoids a false report
		}
	}
	switch op := &it.op; it.kind {
	case wait:
		if e := it.event; e != nil {
			if p := e.set; p != nil {
				g.add(p.stamp, p.clocks)
				s.noteWait(op, p.timeline, p.seq)
			} else {
				g.addAll(e.ever) // forced: some record was enqueued
			}
		} else if it.from != nil {
			s.noteWait(op, it.from.timeline, it.from.seq)
		}
	case waitStream:
		if it.from != nil {
			s.noteWait(op, it.from.timeline, it.from.seq)
		}
	case allocate:
		c.addFrees(&g, s, op.Writes)
	case waitValue:
		c.passed(&g, it.value, op)
	}
	c.perform(s, it.host, it.kind, &it.op, it.point, it.info)
}

// settle performs what is held and has become ready.
func (c *Checker) settle() {
	for len(c.work) > 0 {
		s := c.work[len(c.work)-1]
		c.work = c.work[:len(c.work)-1]
		for len(s.queue) > 0 && s.queue[0].ready() {
			c.pop(s)
		}
		if len(s.queue) > 0 {
			s.await(s.queue[0])
		}
	}
}

// pop performs the first held operation of s, ready or forced.
func (c *Checker) pop(s *timeline) {
	it := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	c.release(s, it)
	if len(s.queue) == 0 {
		s.queue = nil
		c.held--
		if s.closed {
			c.forget(s)
		}
	}
}

// force performs held operations of s, all or while more reports true: the program has
// seen that they are done, so the records that they waited for were enqueued. The
// operations of other streams that they come after are performed first.
func (c *Checker) force(s *timeline, more func(*heldOp) bool) {
	if s.forcing {
		return
	}
	s.forcing = true
	for len(s.queue) > 0 && (more == nil || more(s.queue[0])) {
		for _, p := range s.queue[0].needs {
			if !p.done {
				c.forcePoint(p)
			}
		}
		c.pop(s)
	}
	s.forcing = false
	if len(s.queue) > 0 {
		c.work = append(c.work, s)
	}
}

func (c *Checker) forcePoint(p *point) { c.force(p.timeline, func(*heldOp) bool { return !p.done }) }

func (c *Checker) forceInfo(o *info) { c.force(o.timeline, func(*heldOp) bool { return !o.ready }) }

// forceBefore forces what was enqueued on s before the operation with number seq.
func (c *Checker) forceBefore(s *timeline, seq uint64) {
	c.force(s, func(it *heldOp) bool { return it.kind == fenced || it.op.Seq < seq })
}

// forceOver forces the streams, but for one, that hold an access to a range: the
// memory is given out again, so they are done.
func (c *Checker) forceOver(but *timeline, p piece) {
	for _, s := range c.heldTimelines() {
		if s == but {
			continue
		}
		last := (*heldOp)(nil)
		for _, it := range s.queue {
			for _, list := range [][]hal.Range{it.op.Reads, it.op.Writes} {
				for _, r := range list {
					if q := pieceOf(r); q.start < p.end && p.start < q.end {
						last = it
					}
				}
			}
		}
		if last != nil {
			c.force(s, func(*heldOp) bool { return !last.info.ready })
		}
	}
}

// heldTimelines returns the streams with held operations, in the order of the
// devices' streams.
func (c *Checker) heldTimelines() []*timeline {
	var found []*timeline
	for _, d := range c.all {
		for _, s := range d.timelines {
			if len(s.queue) > 0 {
				found = append(found, s)
			}
		}
	}
	return found
}

// heldInfo returns a held operation with accesses by its number, or by that of a node of it.
func (c *Checker) heldInfo(id uint32) *info {
	for _, s := range c.heldTimelines() {
		for _, it := range s.queue {
			if it.info != nil && (it.info.id == id || it.op.Nodes != nil && id-it.op.ID <= uint32(it.op.Nodes.All())) {
				return it.info
			}
		}
	}
	return nil
}

// handleHost handles an operation by which a host thread enqueued nothing.
func (c *Checker) handleHost(k kind, t *thread, op *hal.Operation) {
	from := strict
	if k == queryStream || k == queryEvent {
		if !op.Internal {
			from = queried
		}
	}
	switch k {
	case syncStream, queryStream:
		if op.Stream != nil {
			c.synchronize(t, c.timeline(op.Stream), op.Seq, from)
		}
	case syncEvent, queryEvent:
		if op.Event != nil {
			c.synchronizeEvent(t, c.event(op.Event), op.Version, from)
		}
	case syncDevice:
		if op.Stream != nil {
			c.synchronizeDevice(t, c.device(op.Stream.Device()), op.Users, op.Seq)
		}
	case syncMemory:
		for _, r := range op.Reads {
			if c.held > 0 {
				c.forceOver(nil, pieceOf(r))
				c.settle()
			}
		}
		c.addMemory(&t.clocks, op.Reads)
	case waitMemory:
		if op.Stream != nil {
			c.addMemory(&c.timeline(op.Stream).clocks, op.Reads)
		}
	case access:
		c.accessed(access, t, op)
	}
	if k != access {
		c.dropWaited()
	}
}

// addMemory adds all operations on some bytes: they were waited for, or found done.
func (c *Checker) addMemory(k *clocks, blocks []hal.Range) {
	g := gather{clocks: k}
	for _, r := range blocks {
		c.over(pieceOf(r), func(e *entry, _ bool) { g.add(e.stamp, e.info.clocks) })
	}
}

// handleLifetime handles the creation and release of memory, streams and events.
func (c *Checker) handleLifetime(k kind, op *hal.Operation) {
	switch k {
	case newMemory, freeMemory:
		c.late.dropUnwaited(func(s *source) bool {
			return slices.ContainsFunc(op.Writes, func(r hal.Range) bool { return pieceOf(r).meets(s.piece) })
		})
		if op.Cached {
			c.freeCached(op)
			break
		}
		// No operation uses a block before it is allocated, or after it was freed (M2).
		ofDevice := k == newMemory && op.Stream != nil // pinned memory belongs to the host, which writes there unseen
		for _, r := range op.Writes {
			if c.held > 0 && k == newMemory {
				c.forceOver(nil, pieceOf(r))
				c.settle()
			}
			c.queue(queuedAccess{other: func() {
				c.table.clear(pieceOf(r))
				if ofDevice {
					c.unwritten.allocate(pieceOf(r))
				} else {
					c.unwritten.write(pieceOf(r))
				}
			}})
		}
		c.forgetValues(op.Writes)
	case vainWait:
		c.timeline(op.Stream).noteVainWait(op, NoRecord)
	case closeStream:
		if s := c.timelines[op.Stream]; s != nil {
			c.closeTimeline(s)
		}
	case closeEvent:
		delete(c.events, op.Event)
	case endCapture:
		if op.Nodes != nil {
			c.compare(op)
		}
		if op.Exec != nil {
			c.compared(op)
		}
	}
}

// freeCached handles the free of a cached block that waits for the work of other
// streams: who gets its memory comes after all of that.
func (c *Checker) freeCached(op *hal.Operation) {
	own := c.timeline(op.Users[0])
	if own.slot == 0 {
		c.tick(own, clocks{})
	}
	in := &info{stamp: own.stamp, timeline: own, id: op.ID, kind: free, ready: true, silent: true, waited: &clocks{}}
	g := gather{clocks: in.waited}
	for _, user := range op.Users[1:] {
		s := c.timeline(user)
		if c.held > 0 {
			c.forceBefore(s, op.Seq)
			c.settle()
		}
		g.add(s.asOf(op.Seq))
	}
	g.addAll(own.dev.past) // of users that were closed
	in.clocks = own.clocks
	before := gather{clocks: &in.clocks}
	before.addAll(*in.waited)
	c.queue(queuedAccess{in: in, writes: op.Writes})
}

// freeNoWait handles a free that waits for nothing: an access by the host.
func (c *Checker) freeNoWait(op *hal.Operation) {
	t := c.thread(op.Thread)
	t.clocks[timed] = c.called
	c.finishSync(t, op.Seq)
	for _, r := range op.Writes {
		if c.held > 0 {
			c.forceOver(nil, pieceOf(r))
			c.settle()
		}
	}
	c.accessed(free, t, op)
}

// synchronize makes t come after the work that was enqueued on s before the
// operation with number seq.
func (c *Checker) synchronize(t *thread, s *timeline, seq uint64, from int) {
	if c.held > 0 {
		c.forceBefore(s, seq)
		if s.legacy {
			for _, o := range s.dev.timelines {
				if o.ordered {
					c.forceBefore(o, seq)
				}
			}
		}
		c.settle()
	}
	g := gather{clocks: &t.clocks, from: from}
	c.addTimeline(&g, s, seq)
}

func (c *Checker) synchronizeEvent(t *thread, e *event, version uint64, from int) {
	p := e.at(version)
	if p == nil {
		return
	}
	if !p.done {
		c.forcePoint(p)
		c.settle()
	}
	g := gather{clocks: &t.clocks, from: from}
	g.add(p.stamp, p.clocks)
}

// synchronizeDevice makes t come after the work on some streams of a device, nil for all,
// and on those that were closed.
func (c *Checker) synchronizeDevice(t *thread, d *device, only []*hal.Stream, seq uint64) {
	waitedFor := func(s *timeline) bool { return only == nil || slices.Contains(only, s.stream) }
	if c.held > 0 {
		for _, s := range d.timelines {
			if waitedFor(s) {
				c.forceBefore(s, seq)
			}
		}
		c.settle()
	}
	g := gather{clocks: &t.clocks}
	for _, s := range d.timelines {
		if s.slot != 0 && waitedFor(s) {
			g.add(s.asOf(seq))
		}
	}
	g.addAll(d.past)
}

// accessed handles accesses by the host, in the order of its thread.
func (c *Checker) accessed(k kind, t *thread, op *hal.Operation) {
	if t.slot == 0 {
		t.stamp = c.slots.take(t.clocks[strict], &t.clocks)
	}
	t.seq++
	t.clocks = t.clocks.with(t.stamp)
	in := c.newInfo(k, t, nil, op)
	in.stamp, in.clocks, in.ready = t.stamp, t.clocks, true
	var staging clocks
	if op.Stream != nil {
		// The call that stages a source is an operation of the stream: it comes after the stream's earlier
		// copies to that memory. The thread itself comes after none of them.
		g := gather{clocks: &staging}
		c.addTimeline(&g, c.timeline(op.Stream), op.Seq)
	}
	c.queue(queuedAccess{in: in, reads: op.Reads, writes: op.Writes, staging: staging})
}

// closeTimeline removes a stream once none of its operations is held.
func (c *Checker) closeTimeline(s *timeline) {
	s.closed = true
	if len(s.queue) == 0 {
		c.forget(s)
	}
}

// tidyEach is the greatest number of operations between two runs of tidy.
const tidyEach = 4096

// tidy removes ended threads, closed streams and events, and accesses that the clocks
// of all threads cover. A table is scanned only when its size has doubled, so that the
// cost of each operation is constant on average.
func (c *Checker) tidy() {
	c.next = c.count + tidyEach
	for _, id := range c.ended.take() {
		if h := c.threads[id]; h != nil {
			delete(c.threads, id)
			c.lastEndedClocks = h.clocks
			delete(c.host.begun, id)
			if h.slot != 0 {
				c.slots.give(h.stamp, h.clocks)
			}
		}
	}
	c.latest.thread = nil
	if len(c.timelines) > 2*c.kept.timelines+64 && !c.replaying {
		for stream, s := range c.timelines {
			if stream.Closed() && !s.closed {
				c.closeTimeline(s)
			}
		}
		c.kept.timelines = len(c.timelines)
	}
	if len(c.events) > 2*c.kept.events+256 && !c.replaying {
		for e := range c.events {
			if e.Closed() {
				delete(c.events, e)
			}
		}
		c.kept.events = len(c.events)
	}
	if !c.replaying {
		maps.DeleteFunc(c.launches, func(x *hal.GraphExec, _ launch) bool { return x.Closed() })
	}
	if c.held == 0 && len(c.queued) == 0 {
		var floor *vector
		first := true
		for _, h := range c.threads {
			if first {
				floor, first = h.clocks[strict], false
			} else {
				floor = common(floor, h.clocks[strict])
			}
		}
		if c.table.n < maxIdlePieces {
			for _, clock := range c.host.begun {
				floor = common(floor, clock[strict])
			}
		}
		c.floor = floor
	}
	if c.table.n > 2*c.kept.pieces+1024 {
		c.kept.pieces = c.table.sweep(c.floor)
	}
}

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

// calls returns what was recorded so far, which is put together here: only a run with
// findings needs it.
func (c *Checker) calls() []*recordedCall {
	c.mu.Lock()
	if c.recording == nil {
		c.mu.Unlock()
		return nil
	}
	r := recording{
		n: c.recording.n, chunks: slices.Clone(c.recording.chunks), ranges: slices.Clone(c.recording.ranges),
		whole: c.recording.whole,
	}
	r.threads.list, r.streams.list = c.recording.threads.list, c.recording.streams.list
	r.events.list, r.names.list = c.recording.events.list, c.recording.names.list
	c.mu.Unlock()
	all := make([]recordedCall, r.n)
	places := make([]*recordedCall, r.n)
	for i := range all {
		r.get(&r.chunks[i/callsChunk][i%callsChunk], &all[i])
		places[i] = &all[i]
	}
	return places
}

// replay calls another checker's method.
func (c *Checker) replay(call *recordedCall, threads replayThreads) {
	t := threads.get(call.thread)
	switch call.what {
	case toHandle:
		op := call.op
		op.Thread = t
		op.Seq *= 2 // leaves room for one between each two
		c.Handle(op)
	case toObserved:
		c.Observed(call.op.ID, call.op.Reads)
	case toObservedReads:
		c.ObservedReads(call.op.ID, call.op.Reads)
	case toHandedIn:
		c.HandedIn(call.op.ID, call.op.Reads, call.op.Writes)
	case toSource:
		c.Source(call.op.ID, call.op.Reads[0])
	case toRefilled:
		c.Refilled(call.op.ID, call.op.Reads[0])
	case toOverwritten:
		c.Overwritten(call.op.ID, call.op.Reads[0])
	case toOrder:
		c.Order(t, call.order, call.object, call.op.Token)
	case toObserveThreads:
		c.ObserveThreads()
	case toFinish:
		c.Finish()
	}
}

// Record makes c keep what it is called with from now on, for [Session.Prove].
func (c *Checker) Record() {
	c.mu.Lock()
	c.recording = &recording{}
	c.mu.Unlock()
}
