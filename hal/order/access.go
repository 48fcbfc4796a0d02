package order

import (
	"slices"

	"halstream/hal"
)

// info is an operation that accesses memory.
type info struct {
	stamp
	clocks   clocks    // but for its own stamp
	timeline *timeline // nil for accesses by the host

	id, site uint32
	token    uint64
	thread   uint64
	arrival  uint64 // in the order of the calls
	op       hal.OperationKind
	label    string // that the program has given the operation
	kind     kind
	ready    bool      // stamp and clocks are set
	raced    bool      // is in a report
	silent   bool      // the life of a cached block: in no report
	audible  bool      // silent only towards what comes before it
	waited   *clocks   // of the end of a cached block: work of other streams that the host waits for
	handsIn  bool      // what it accesses comes when it has run
	weight   int       // words of its clock that late counts for it
	run      *graphRun // of the launch that it is a node of, nil for others
	node     int
}

func (c *Checker) newInfo(k kind, t *thread, l *timeline, op *hal.Operation) *info {
	c.arrival++
	return &info{
		timeline: l, id: op.ID, site: op.Site, token: op.Token, thread: t.id,
		arrival: c.arrival, op: op.Kind, label: op.Name, kind: k, silent: op.Cached,
	}
}

// after reports whether o comes after the operation of e, which was handled earlier.
func (o *info) after(e *entry) bool {
	if o.run != nil && e.info.run == o.run {
		return o.run.comesAfter(e.info.node, o.node)
	}
	return e.slot == o.slot || o.clocks[strict].covers(e.stamp)
}

// apart reports whether o and the operation of e, which has no order with it, cannot run at the same
// time all the same: they are in two bodies of one node, which runs one of them.
func (o *info) apart(e *entry) bool {
	return o.run != nil && e.info.run == o.run && o.run.apart(e.info.node, o.node)
}

// entry is an access in a cell.
type entry struct {
	stamp
	info   *info
	seen   bool // observed, not declared
	reused bool // the memory was freed and given out again since
}

// cell is the accesses of a range that later ones are compared with.
type cell struct {
	writes, reads []entry
	w             [1]entry
	r             [2]entry
	// With many reads: where the one of each slot is, plus one, and the
	// number at which those that are covered by others are taken out.
	index []int32
	prune int
}

const (
	maxWrites       = 32 // all but the first are in reports
	maxScannedReads = 16 // up to so many reads are compared one by one
)

func newCell() *cell {
	c := &cell{}
	c.writes, c.reads = c.w[:0], c.r[:0]
	return c
}

func (c *cell) clone() *cell {
	n := newCell()
	n.writes = append(n.writes, c.writes...)
	n.reads = append(n.reads, c.reads...)
	n.reindex()
	return n
}

func (c *cell) empty() bool { return len(c.writes)+len(c.reads) == 0 }

// equal reports whether two cells hold the same accesses.
func (c *cell) equal(o *cell) bool {
	return equalEntries(c.writes, o.writes) && equalEntries(c.reads, o.reads)
}

func equalEntries(a, b []entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].info != b[i].info || a[i].reused != b[i].reused {
			return false
		}
	}
	return true
}

// freedBefore reports whether the program freed the memory itself before o allocates it.
func (c *cell) freedBefore(o *info) bool {
	for i := range c.writes {
		if e := &c.writes[i]; e.info.kind == free && !e.info.silent && o.after(e) {
			return true
		}
	}
	return false
}

// doneBefore returns what will have been done when a cached block that o frees is given out again, or has been
// done when o allocates one: the work of streams that were recorded for it, and what another stream has freed.
func (c *cell) doneBefore(o *info) (done []clocks) {
	if o.waited != nil {
		done = append(done, *o.waited)
	}
	for i := range c.writes {
		if f := c.writes[i].info; o.kind == allocate && f.kind == free && f.timeline != o.timeline {
			done = append(done, f.clocks.with(f.stamp))
		}
	}
	return done
}

// isOver reports whether e is of the life of a block that is over, or is among what was done then.
func (e *entry) isOver(done []clocks) bool {
	return e.info.silent || slices.ContainsFunc(done, func(k clocks) bool { return k[strict].covers(e.stamp) })
}

// visit compares an access with those of a cell, reports the unordered pairs, and
// replaces the accesses that it supersedes.
func (c *Checker) visit(cl *cell, o *info, write, seen bool, r piece) {
	if o.silent && o.kind == allocate && cl.freedBefore(o) {
		// What came before is ordered before that free, or reported with it.
		clear(cl.writes)
		clear(cl.reads)
		cl.writes, cl.reads = cl.w[:0], cl.r[:0]
		cl.reindex()
	}
	// The begin and the end of a cached block order nothing: who uses the memory next has to come after
	// its former user, not after these.
	life := o.silent && !o.audible
	var done []clocks
	if life {
		done = cl.doneBefore(o)
	}
	n := 0
	for i := range cl.writes {
		e := &cl.writes[i]
		if o.after(e) {
			if c.floor.covers(e.stamp) || write && !life || life && e.isOver(done) {
				continue
			}
			e.reused = e.reused || life && o.kind == allocate
		} else if !o.apart(e) && (e.info.op != hal.OpCopy || !c.staging[strict].covers(e.stamp)) {
			c.conflict(e, o, true, write, seen, r)
			e.reused = e.reused || o.silent && o.kind == allocate
		}
		if n != i {
			cl.writes[n] = *e
		}
		n++
	}
	if n < len(cl.writes) {
		clear(cl.writes[n:])
		cl.writes = cl.writes[:n]
	}
	if !write {
		c.read(cl, entry{stamp: o.stamp, info: o, seen: seen})
		return
	}
	n = 0
	for i := range cl.reads {
		e := &cl.reads[i]
		if o.after(e) {
			if !life || c.floor.covers(e.stamp) || e.isOver(done) {
				continue
			}
			e.reused = e.reused || o.kind == allocate
		} else if !o.apart(e) {
			c.conflict(e, o, false, true, seen, r)
			e.reused = e.reused || o.silent && o.kind == allocate
		}
		if n != i {
			cl.reads[n] = *e
		}
		n++
	}
	if n < len(cl.reads) {
		clear(cl.reads[n:])
		cl.reads = cl.reads[:n]
		cl.reindex()
	}
	if len(cl.writes) >= maxWrites {
		cl.writes = append(cl.writes[:0], cl.writes[1:]...)
	}
	cl.writes = append(cl.writes, entry{stamp: o.stamp, info: o, seen: seen})
}

// read adds a read and removes those that come before it: a later operation that comes
// after it comes after them.
func (c *Checker) read(cl *cell, e entry) {
	if n := len(cl.reads); n > 0 && cl.reads[n-1].slot == e.slot && e.info.after(&cl.reads[n-1]) {
		cl.reads[n-1] = e
		return
	}
	if len(cl.reads) < maxScannedReads || len(cl.reads) >= cl.prune {
		n := 0
		for i := range cl.reads {
			if f := &cl.reads[i]; !e.info.after(f) && !c.floor.covers(f.stamp) {
				if n != i {
					cl.reads[n] = *f
				}
				n++
			}
		}
		clear(cl.reads[n:])
		cl.reads = append(cl.reads[:n], e)
		cl.reindex()
		return
	}
	if int(e.slot) < len(cl.index) && cl.index[e.slot] > 0 {
		if last := &cl.reads[cl.index[e.slot]-1]; e.info.after(last) {
			*last = e
			return
		}
	}
	cl.reads = append(cl.reads, e)
	cl.place(len(cl.reads) - 1)
}

// reindex rebuilds the index of the reads, if there are many.
func (c *cell) reindex() {
	if len(c.reads) < maxScannedReads {
		c.index, c.prune = nil, 0
		return
	}
	c.prune = 2 * len(c.reads)
	clear(c.index)
	for i := range c.reads {
		c.place(i)
	}
}

func (c *cell) place(i int) {
	slot := int(c.reads[i].slot)
	if slot >= len(c.index) {
		grown := make([]int32, slot+slot/2+1)
		copy(grown, c.index)
		c.index = grown
	}
	c.index[slot] = int32(i + 1)
}

// drop removes accesses that no later operation can be unordered with.
func (c *cell) drop(floor *vector) {
	n := len(c.reads)
	for _, list := range []*[]entry{&c.writes, &c.reads} {
		kept := (*list)[:0]
		for _, e := range *list {
			if !floor.covers(e.stamp) {
				kept = append(kept, e)
			}
		}
		clear((*list)[len(kept):])
		*list = kept
	}
	if len(c.reads) < n {
		c.reindex()
	}
}

// compare compares the nodes of a graph with each other: when its capture ends, and when an
// executable is made of it. Those without a path between them run at the same time in every
// launch.
//
// The graph is checked as a program of its own, by a checker of its own, for its nodes
// have no order with work outside of it.
func (c *Checker) compare(op *hal.Operation) {
	one := New()
	one.comparing = true
	caller := &thread{}
	if op.Thread != nil {
		caller.id = op.Thread.ID
	}
	all := newRun(op.Nodes)
	all.each(func(i int) {
		n := op.Nodes.Node(i)
		on := &timeline{dev: &device{ordinal: n.Device()}} // of a node that no stream has made
		if n.Stream() != nil {
			on = one.timeline(n.Stream())
		}
		node := hal.Operation{ID: op.ID, Kind: n.Kind(), Name: n.Name(), Site: n.Site(), Token: n.Token()}
		in := one.newInfo(other, caller, on, &node)
		in.stamp, in.run, in.node, in.ready = stamp{slot: 1, seq: 1}, all, i, true
		if n.HandsIn() && i < op.Nodes.Len() {
			return // it is compared in each launch
		}
		one.touchNode(in, n, false)
	})
	for _, r := range one.reports.fresh {
		r.Reason = Reason{Why: NoPath, Devices: r.Reason.Devices}
		key := keyOf(r)
		captured := key // as it was reported at the end of the capture of a graph that is a node now
		captured.a.node, captured.b.node = nodeSide{}, nodeSide{}
		if c.reports.seen[key] == nil && c.reports.seen[captured] == nil { // else it was compared before
			if p := pieceOf(r.Range); !c.known(&key, r.First.ID, r.Second.ID, p) {
				c.add(key, *r, p)
			}
		}
	}
}

// compared notes that the nodes of an executable were compared.
func (c *Checker) compared(op *hal.Operation) {
	l := c.launches[op.Exec]
	l.compared = op.Nodes
	c.launches[op.Exec] = l
}

// touchNode handles what a node accesses. One that is a graph, or has a condition, is listed with
// the nodes of its graphs. awaited: what the node accesses comes when it has run.
func (c *Checker) touchNode(in *info, n *hal.Node, awaited bool) {
	reads, writes := n.Accesses()
	switch word := n.Condition(); {
	case n.Kind() == hal.OpGraph:
		return
	case word.Size > 0:
		reads, writes = []hal.Range{word}, nil
	}
	c.queue(queuedAccess{in: in, reads: reads, writes: writes, awaited: awaited})
}

// maxLate is how many operations back an observed access is accepted; a power of two.
const maxLate = 1 << 17

// maxLateWords bounds the words of their clocks.
const maxLateWords = 1 << 24

// late remembers operations whose accesses may be observed when they run.
type late struct {
	ops     []*info          // by the low bits of their numbers
	tokens  map[uint64]*info // those of them that are functions of the program
	first   uint32           // no number before it is remembered
	words   int
	last    *vector // the clock that was counted last
	sources map[uint32]*source
	queue   []uint32 // of their numbers
	refills []refill
	// unwaited are the numbers of those that no host thread comes after.
	unwaited    []uint32
	latest      uint32 // the highest number of a copy so far
	overwritten []refill
	unknown     int
}

// source is a copy whose source may change before it runs.
type source struct {
	info     *info
	host     *vector // the clock of the calling thread
	expected bool    // an operation ordered before the copy may have been about to write there
	// unknown is a function that comes before the copy, may have been pending at its
	// call, and does not say what it writes; nil if there is none.
	unknown *info
	piece   piece
}

type refill struct {
	source *source
	piece
}

// remember keeps o, which may write more than it declares.
func (l *late) remember(o *info) {
	if l.ops == nil {
		l.ops = make([]*info, maxLate)
		l.tokens = map[uint64]*info{}
		l.first = o.id
	}
	for l.words > maxLateWords || o.id-l.first >= maxLate {
		if o.id-l.first >= 1<<31 {
			return // its number is older than all that are remembered
		}
		if p := &l.ops[l.first%maxLate]; *p != nil {
			l.words -= (*p).weight
			if l.tokens[(*p).token] == *p {
				delete(l.tokens, (*p).token)
			}
			*p = nil
		}
		l.first++
	}
	if v := o.clocks[strict]; v != l.last {
		l.last = v
		o.weight = len(v.span())
		l.words += o.weight
	}
	l.ops[o.id%maxLate] = o
	if o.token != 0 {
		l.tokens[o.token] = o
	}
}

func (l *late) find(id uint32) *info {
	if l.ops != nil {
		if o := l.ops[id%maxLate]; o != nil && o.id == id {
			return o
		}
	}
	return nil
}

// Observed declares that the operation id, a function, also wrote these bytes, as a
// comparison of their contents has shown. It may be called from any thread, at any
// time after Handle.
func (c *Checker) Observed(id uint32, writes []hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toObserved, id, writes...)
	if o := c.observed(id); o != nil {
		c.observe(o, nil, writes)
	}
}

// observe compares accesses of o that come after later ones were handled.
func (c *Checker) observe(o *info, reads, writes []hal.Range) {
	c.queue(queuedAccess{other: func() {
		for _, r := range reads {
			if p := pieceOf(r); p.start < p.end {
				c.table.each(p, func(cl *cell, part piece) { c.visitLateRead(cl, o, part) })
			}
		}
		for _, r := range writes {
			if p := pieceOf(r); p.start < p.end {
				c.table.each(p, func(cl *cell, part piece) { c.visitLate(cl, o, part) })
				c.unwritten.write(p)
			}
		}
	}})
}

// observed returns a function that has run, nil if it is not remembered any more.
func (c *Checker) observed(id uint32) *info {
	o := c.late.find(id)
	if o == nil {
		if o = c.heldInfo(id); o == nil {
			c.late.unknown++
			return nil
		}
		// It ran, so what it waited for came.
		c.forceInfo(o)
		c.settle()
		if o.id != id { // a node of a launch
			return c.late.find(id)
		}
	}
	return o
}

// ObservedReads is Observed for bytes that the operation also read.
func (c *Checker) ObservedReads(id uint32, reads []hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toObservedReads, id, reads...)
	if o := c.observed(id); o != nil {
		c.observe(o, reads, nil)
	}
}

// visitLateRead is visit for a read that is observed after later accesses were handled.
func (c *Checker) visitLateRead(cl *cell, o *info, p piece) {
	covered := false
	for i := range cl.writes {
		switch e := &cl.writes[i]; {
		case e.info == o || o.before(e):
			covered = true
		case !o.after(e):
			c.conflictLate(e, o, true, false, p)
		}
	}
	for i := range cl.reads {
		covered = covered || cl.reads[i].info == o || o.before(&cl.reads[i])
	}
	if !covered {
		cl.reads = append(cl.reads, entry{stamp: o.stamp, info: o, seen: true})
		cl.reindex()
	}
}

// visitLate is visit for a write that is observed after later accesses were handled.
func (c *Checker) visitLate(cl *cell, o *info, p piece) {
	covered := false
	n := 0
	for _, e := range cl.writes {
		switch {
		case e.info == o || o.before(&e):
			covered = true
		case o.after(&e):
			continue
		default:
			c.conflictLate(&e, o, true, true, p)
		}
		cl.writes[n] = e
		n++
	}
	clear(cl.writes[n:])
	cl.writes = cl.writes[:n]
	covered = covered || n >= maxWrites // it is in a report then
	n = 0
	for _, e := range cl.reads {
		switch {
		case e.info == o || o.before(&e):
		case o.after(&e):
			continue
		default:
			c.conflictLate(&e, o, false, true, p)
		}
		cl.reads[n] = e
		n++
	}
	clear(cl.reads[n:])
	cl.reads = cl.reads[:n]
	cl.reindex()
	if !covered {
		cl.writes = append(cl.writes, entry{stamp: o.stamp, info: o, seen: true})
	}
}

// before reports whether o comes before the operation of e.
func (o *info) before(e *entry) bool {
	if o.run != nil && e.info.run == o.run {
		return o.run.path(o.node, e.info.node)
	}
	if e.slot == o.slot {
		return e.seq > o.seq
	}
	return e.info.clocks[strict].covers(o.stamp)
}

// conflictLate reports an access of o that is observed late with an entry that is unordered.
func (c *Checker) conflictLate(e *entry, o *info, eWrites, oWrites bool, p piece) {
	if e.info.silent {
		return
	}
	category := Race
	for _, w := range []struct {
		notion   int
		category Category
	}{{timed, ByTiming}, {queried, ByQuery}} {
		if o.clocks[w.notion].covers(e.stamp) || e.info.clocks[w.notion].covers(o.stamp) {
			category = w.category
		}
	}
	c.pair(category, participant{e.info, eWrites, e.seen, e.reused}, participant{o, oWrites, true, false}, p)
}

// Source declares, right after Handle of a copy, that the copy's source r will be
// compared with its contents at the call; see Refilled.
func (c *Checker) Source(id uint32, r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toSource, id, r)
	c.late.latest = max(c.late.latest, id)
	p := pieceOf(r)
	s := &source{expected: c.held > 0}
	c.over(p, func(e *entry, write bool) {
		if !write && e.info.id == id {
			s.info = e.info
		}
	})
	if s.info == nil && !s.expected {
		return
	}
	if s.info != nil {
		if h := c.threads[s.info.thread]; h != nil {
			s.host = h.clocks[strict]
		}
		s.expected = s.expected || c.explained(s, p)
		s.unknown = c.undeclaredBefore(s)
	}
	l := &c.late
	if l.sources == nil {
		l.sources = map[uint32]*source{}
	}
	l.sources[id] = s
	l.noteUnwaited(id, s, p)
	if l.queue = append(l.queue, id); len(l.queue) > 1<<16 {
		delete(l.sources, l.queue[0])
		l.queue = l.queue[1:]
	}
}

// sourcesRead declares that the copies which t has waited for read their sources as they were at the call: the wait was
// added to a recorded run, right behind their calls.
func (c *Checker) sourcesRead(t *hal.Thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.threads[t.ID]
	if h == nil {
		return
	}
	for _, s := range c.late.sources {
		if s.info != nil && s.coveredBy(h) {
			s.expected = true
		}
	}
}

// explained reports whether a write that comes before a copy, and may have been pending
// at its call, may have changed the source.
func (c *Checker) explained(s *source, p piece) bool {
	found := false
	c.over(p, func(e *entry, write bool) {
		if write && s.info.after(e) && !s.info.before(e) && !s.host.covers(e.stamp) {
			found = true
		}
	})
	return found
}

// undeclaredBefore returns the latest function before a copy that may have been pending at
// its call and that declares no writes, nil if there is none.
func (c *Checker) undeclaredBefore(s *source) *info {
	var latest *info
	for _, d := range c.all {
		for _, l := range d.timelines {
			for _, f := range l.undeclared {
				if f != nil && s.info.after(&entry{stamp: f.stamp, info: f}) && !s.host.covers(f.stamp) &&
					(latest == nil || f.arrival > latest.arrival) {
					latest = f
				}
			}
		}
	}
	return latest
}

// Refilled declares that the source of the copy id had other contents when the copy ran
// than at the call. That is reported with the next Take, unless an operation that is
// ordered before the copy wrote there meanwhile, or the copy is in a report already. If
// a function that is ordered before the copy may have written there without declaring
// it, the report is of that function, in a category of its own.
func (c *Checker) Refilled(id uint32, r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toRefilled, id, r)
	s := c.late.sources[id]
	if s == nil {
		c.late.unknown++
		return
	}
	delete(c.late.sources, id)
	if p := pieceOf(r); !s.expected && !c.explained(s, p) {
		c.late.refills = append(c.late.refills, refill{s, p})
	}
}

func (c *Checker) takeRefills() {
	for _, f := range c.late.refills {
		if o := f.source.info; !o.raced && !c.explained(f.source, f.piece) {
			if u := f.source.unknown; u != nil {
				c.undeclaredRefill(u, o, f.piece)
				continue
			}
			c.addRefill(o, f.piece)
		}
	}
	for _, f := range c.late.overwritten {
		if !f.source.info.raced {
			c.addRefill(f.source.info, f.piece)
		}
	}
	c.late.refills, c.late.overwritten = nil, nil
}

// addRefill reports that the source of the copy o was changed by an unknown access.
func (c *Checker) addRefill(o *info, p piece) {
	key := pair{category: Refill, a: o.side(), b: side{device: -1}}
	if c.known(&key, o.id, 0, p) {
		return
	}
	c.add(key, Report{
		Category: Refill, First: o.access(false, false),
		Second: Access{Device: -1, Write: true, Seen: true, Host: true, Unknown: true},
		Reason: Reason{Why: SourceChanged, Record: firstRecord(o, nil)},
	}, p)
}

// undeclaredRefill reports that u may have changed the source of the copy o.
func (c *Checker) undeclaredRefill(u, o *info, p piece) {
	key := pair{category: Undeclared, a: u.side(), b: o.side()}
	if c.known(&key, u.id, o.id, p) {
		return
	}
	c.add(key, Report{
		Category: Undeclared, First: u.access(true, false), Second: o.access(false, false),
		Reason: Reason{Why: UndeclaredWrite},
	}, p)
}

// maxUnwaited is how many copies from pinned memory are remembered that no host thread
// is ordered behind.
const maxUnwaited = 256

// noteUnwaited remembers the copy of a source that may be overwritten too early.
func (l *late) noteUnwaited(id uint32, s *source, p piece) {
	if s.info == nil {
		return
	}
	s.piece = p
	if l.unwaited = append(l.unwaited, id); len(l.unwaited) > maxUnwaited {
		l.unwaited = slices.Delete(l.unwaited, 0, 1)
	}
}

// dropUnwaited forgets the copies for which done holds.
func (l *late) dropUnwaited(done func(*source) bool) {
	if len(l.unwaited) == 0 {
		return
	}
	l.unwaited = slices.DeleteFunc(l.unwaited, func(id uint32) bool {
		s := l.sources[id]
		return s == nil || done(s)
	})
}

// coveredBy reports whether the host thread t comes after the copy, by whatever it knows.
func (s *source) coveredBy(t *thread) bool {
	for _, k := range t.clocks {
		if k.covers(s.info.stamp) {
			return true
		}
	}
	return t.pendingSync != nil // its last call has waited for a stream
}

// SourceInUse reports whether no host thread comes after the copy id, as far as operations
// were handled; the copy itself may come later.
func (c *Checker) SourceInUse(id uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropWaited()
	return id > c.late.latest || slices.Contains(c.late.unwaited, id)
}

// dropWaited forgets the copies that a host thread comes after. A thread that ends
// afterwards need not be known any more.
func (c *Checker) dropWaited() {
	c.late.dropUnwaited(func(s *source) bool {
		for _, t := range c.threads {
			if s.coveredBy(t) {
				return true
			}
		}
		return false
	})
}

// Overwritten declares that the source of the copy id had the contents of the call when
// the copy ran, and has others now, at the begin of a wait of the host. That is reported
// with the next Take, unless a host thread comes after the copy, or an operation or the
// host may have changed it that declares to write there, or that does not say what it
// writes: such accesses are reported by themselves.
func (c *Checker) Overwritten(id uint32, r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.called(toOverwritten, id, r)
	c.dropWaited()
	s := c.late.sources[id]
	if c.held > 0 || !slices.Contains(c.late.unwaited, id) || c.writtenSince(s, pieceOf(r)) {
		return
	}
	delete(c.late.sources, id)
	c.late.overwritten = append(c.late.overwritten, refill{s, pieceOf(r)})
}

// behind reports whether the copy comes after the operation of e.
func (s *source) behind(e *entry) bool { return s.info.after(e) && !s.info.before(e) }

// writtenSince reports whether an operation that is not ordered before the copy may have
// written to its source.
func (c *Checker) writtenSince(s *source, p piece) bool {
	found := false
	c.over(p, func(e *entry, write bool) { found = found || write && !s.behind(e) })
	for _, d := range c.all {
		for _, l := range d.timelines {
			for _, f := range l.undeclared {
				found = found || f != nil && !s.behind(&entry{stamp: f.stamp, info: f})
			}
		}
	}
	return found
}

// Unwaited reports whether there is memory that operations have accessed for which t has
// not waited: an access that t, or work enqueued by it, makes next may be unordered with them.
func (c *Checker) Unwaited(t *hal.Thread) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.thread(t)
	for _, segs := range c.table.chunks {
		for _, s := range segs {
			if h.isBehind(s.cell.writes) || h.isBehind(s.cell.reads) {
				return true
			}
		}
	}
	return slices.ContainsFunc(c.queued, func(t *queuedAccess) bool {
		return t.in != nil && h.isBehind([]entry{{stamp: t.in.stamp, info: t.in}})
	})
}

// isBehind reports whether one of the accesses, but for the ends of blocks, is not ordered before h.
func (h *thread) isBehind(accesses []entry) bool {
	for _, e := range accesses {
		if e.info.kind != free && e.info.kind != allocate && e.slot != h.slot && !h.clocks[strict].covers(e.stamp) {
			return true
		}
	}
	return false
}

// queuedAccess is what the table of accesses has to see in the order of the calls: accesses, or
// something else.
type queuedAccess struct {
	in            *info // whose accesses it is, nil for something else
	reads, writes []hal.Range
	inputs        []hal.Range // of a kernel that has run: what it has read before it wrote there itself
	awaited       bool        // the operation has yet to hand in its accesses: these are an upper bound
	staging       clocks      // see Checker.staging
	other         func()
}

// maxQueued is how many accesses wait for an operation that has not handed in its own.
const maxQueued = 1 << 16

// queue applies t at once, or behind an operation that has yet to hand in what it accesses. So the
// reports are the same whenever operations run.
func (c *Checker) queue(t queuedAccess) {
	if len(c.queued) == 0 && !t.awaited {
		c.apply(&t)
		return
	}
	kept := t
	c.queued = append(c.queued, &kept)
	switch {
	case t.in == nil:
	case t.awaited:
		if c.awaited == nil {
			c.awaited = map[uint32]*queuedAccess{}
		}
		c.awaited[t.in.id] = &kept
	case t.in.kind == free:
		for _, r := range t.writes {
			if p := pieceOf(r); p.start < p.end {
				c.frees.each(p, func(cl *cell, _ piece) {
					cl.writes = append(cl.writes[:0], entry{stamp: t.in.stamp, info: t.in})
				})
			}
		}
	}
	if len(c.queued) > maxQueued {
		// What it hands in counts as observed late then.
		first := c.queued[0]
		c.unwritten.clear()
		delete(c.awaited, first.in.id)
		first.reads, first.writes, first.awaited = nil, nil, false
		c.applyQueued()
	}
}

// apply lets the table see an access, or does what else has waited.
func (c *Checker) apply(t *queuedAccess) {
	if t.in == nil {
		t.other()
		return
	}
	c.staging = t.staging
	if t.in.run == nil { // nodes of a graph may be listed in another order than that in which they run
		c.checkInputs(t.in, t.inputs)
	}
	for _, r := range t.reads {
		c.touch(t.in, pieceOf(r), false, false)
	}
	for _, r := range t.writes {
		c.touch(t.in, pieceOf(r), true, false)
		if t.in.kind == allocate && t.in.run == nil {
			c.unwritten.allocate(pieceOf(r))
		} else {
			c.unwritten.write(pieceOf(r))
		}
	}
	c.staging = clocks{}
	if t.in.audible {
		t.in.silent = false
	}
}

// applyQueued applies what no operation that has yet to hand in its accesses comes before.
func (c *Checker) applyQueued() {
	for len(c.queued) > 0 && !c.queued[0].awaited {
		t := c.queued[0]
		c.queued[0] = nil
		c.queued = c.queued[1:]
		c.apply(t)
	}
	if len(c.queued) == 0 {
		c.queued, c.frees = nil, table{}
	}
}

// applyDeclared lets operations that have not handed in anything access all that they declared.
func (c *Checker) applyDeclared() {
	for _, t := range c.awaited {
		t.awaited = false
	}
	clear(c.awaited)
	c.applyQueued()
}

// HandedIn declares what operation id, which was announced with HandsIn, has accessed. It may be
// called from any thread, at any time after Handle.
//
// Contract: V45.
func (c *Checker) HandedIn(id uint32, reads, writes []hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recording.handedIn(id, reads, writes)
	t := c.awaited[id]
	if t == nil {
		o := c.observed(id) // if it was held: it ran, so what it waited for came
		if t = c.awaited[id]; t == nil {
			if o != nil {
				c.observe(o, reads, writes)
			}
			return
		}
	}
	delete(c.awaited, id)
	t.reads, t.writes, t.awaited = reads, writes, false
	c.applyQueued()
}

// Awaited returns the streams of operations that have yet to hand in what they access.
func (c *Checker) Awaited() []*hal.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[*hal.Stream]bool{}
	var found []*hal.Stream
	for _, t := range c.queued {
		if s := t.stream(); t.awaited && s != nil && !seen[s] {
			seen[s] = true
			found = append(found, s)
		}
	}
	return found
}

// stream returns the stream of an access, nil for one of the host.
func (t *queuedAccess) stream() *hal.Stream {
	if t.in == nil || t.in.timeline == nil {
		return nil
	}
	return t.in.timeline.stream
}

// over calls visit for the accesses to a part of p so far. Of an operation that has yet to hand in
// its own these are all that it declared.
func (c *Checker) over(p piece, visit func(e *entry, write bool)) {
	c.table.over(p, func(cl *cell, _ piece) {
		for i := range cl.writes {
			visit(&cl.writes[i], true)
		}
		for i := range cl.reads {
			visit(&cl.reads[i], false)
		}
	})
	for _, t := range c.queued {
		meets := func(r hal.Range) bool { return t.in != nil && pieceOf(r).meets(p) }
		if slices.ContainsFunc(t.reads, meets) {
			visit(&entry{stamp: t.in.stamp, info: t.in}, false)
		}
		if slices.ContainsFunc(t.writes, meets) {
			visit(&entry{stamp: t.in.stamp, info: t.in}, true)
		}
	}
}

// Exposed says that memory may be written unseen from now on.
//
// Contract: K5.
func (c *Checker) Exposed(r hal.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue(queuedAccess{other: func() { c.unwritten.write(pieceOf(r)) }})
}
