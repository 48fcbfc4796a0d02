package hal

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"halstream/hal/driver"
	"halstream/hal/status"
	"halstream/hal/touch"
)

// listeners are the functions and logs that are notified of operations. Without
// any, they cost an operation one atomic load.
type listeners struct {
	notifier notifier
	mu       sync.Mutex
	current  atomic.Pointer[listenerSet]
	status   *atomic.Uint32 // the runtime's
	ids      atomic.Uint32
	sites    atomic.Pointer[func() uint32]
}

// listenerSet is an immutable set of listeners; a change replaces the whole set.
type listenerSet struct {
	functions []*func(Operation)
	logs      []*Log
	timed     bool // a log records times
}

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
		l.status.And(^uint32(status.Listened))
		return
	}
	l.status.Or(status.Listened) // before it is notified, so that no operation is missed
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
func (rt *Runtime) AfterNotified(f func()) {
	rt.listeners.notifier.push(&Operation{afterNotify: f}, rt.listeners.notify)
}

// Notified returns a point that is reached once the listeners were notified of all operations that already have
// their place in the order, which another thread may be about to do.
//
// Contract: V45.
func (rt *Runtime) Notified() driver.Point {
	p := make(notifiedPoint)
	rt.AfterNotified(func() { close(p) })
	return p
}

// notifiedPoint is closed when it is reached.
type notifiedPoint chan struct{}

// Wait implements driver.Point.
func (p notifiedPoint) Wait(limit int64) bool {
	if limit == driver.Forever {
		<-p
		return true
	}
	timer := time.NewTimer(time.Duration(limit))
	defer timer.Stop()
	select {
	case <-p: // also where the time has passed, too
		return true
	default:
	}
	select {
	case <-p:
		return true
	case <-timer.C:
		return false
	}
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
	l := &rt.listeners
	if o.Site == 0 {
		o.Site = l.site()
	}
	if o.Seq == 0 && o.Name != seenByPage && o.Name != seenInLine {
		rt.reportTouched(o.Thread, o.Site, seenByPage)
	}
	if o.ID == 0 {
		o.ID = l.number()
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

// Missing implements driver.FencedPoint.
func (p *observedPoint) Missing() []driver.Fence { return driver.Missing(p.Point) }

// notifier passes operations to the listeners in the order in which the backend
// enqueued them on its streams, whichever threads made the calls.
//
// An operation is announced before the backend gets it, complete except for its
// sequence number. The backend sequences it, under its own lock, when its place on
// the stream is final. There logs get it, and from then on any thread may deliver it
// to the functions that listen. One thread at a time delivers, with no lock held; the
// others add to the list it works on. So a thread that is delayed between two of these
// steps delays no other one.
type notifier struct {
	slots     [announceSlots]announceSlot
	mu        sync.Mutex   // held for a few instructions only, never across a callback
	announced []*Operation // those that found their slot in use
	sequenced []*Operation // to be delivered
	spare     []*Operation // the storage of the list delivered last
	unused    []*Operation // delivered, to be used again
	seq       uint64
	logs      []*Log
	functions bool // there are some to deliver to
	// delivering is set while a thread delivers; that thread takes what is added to
	// sequenced meanwhile.
	delivering bool
	// listed is the length of announced and sequenced, for callers without mu.
	listed atomic.Int64
}

// announceSlots is more than the threads that usually enqueue at the same time.
const announceSlots = 16

// announceSlot holds one announced operation, which needs neither mu nor memory. Who
// announces it writes it without a lock: nobody else knows its ID yet.
type announceSlot struct {
	id atomic.Uint32 // of the operation, 0 for none
	o  Operation
}

func (n *notifier) slot(id uint32) *announceSlot { return &n.slots[id%announceSlots] }

// maxBacklog is the number of operations waiting for delivery above which threads
// that add more yield to the thread that delivers.
const maxBacklog = 4096

// maxUnused is the number of delivered operations that are kept to be used again.
const maxUnused = 64

// store returns a copy of o on the heap. The caller holds mu.
func (n *notifier) store(o *Operation) *Operation {
	last := len(n.unused) - 1
	if last < 0 {
		stored := *o
		return &stored
	}
	stored := n.unused[last]
	n.unused = n.unused[:last]
	*stored = *o
	return stored
}

// announce adds an operation that is about to be given to the backend.
func (n *notifier) announce(o *Operation) {
	if slot := n.slot(o.ID); slot.id.CompareAndSwap(0, o.ID) {
		slot.o = *o
		return
	}
	n.mu.Lock()
	n.announced = append(n.announced, n.store(o))
	n.listed.Add(1)
	n.mu.Unlock()
}

// sequence gives an announced operation its number in the order; for an id that is
// not announced it does nothing. Backends call it under their locks.
func (n *notifier) sequence(id uint32) {
	n.mu.Lock()
	n.sequenceLocked(id, false)
	n.mu.Unlock()
}

// sequenceLocked ends the announcement of an operation, if there is one of this id: it
// gets its place in the order, unless it is dropped. The caller holds mu.
func (n *notifier) sequenceLocked(id uint32, dropped bool) {
	if slot := n.slot(id); slot.id.Load() == id {
		if !dropped {
			n.place(&slot.o, false)
		}
		slot.o = Operation{} // so that it keeps nothing alive
		slot.id.Store(0)
		return
	}
	if o := n.take(id); o != nil {
		if dropped {
			n.recycle(o)
		} else {
			n.place(o, true)
		}
	}
}

// take removes an announced operation, and returns nil if there is none of this id.
// The search is short: each thread announces at most one operation at a time. The
// caller holds mu.
func (n *notifier) take(id uint32) *Operation {
	for i, o := range n.announced {
		if o.ID == id {
			last := len(n.announced) - 1
			n.announced[i] = n.announced[last]
			n.announced[last] = nil
			n.announced = n.announced[:last]
			n.listed.Add(-1)
			return o
		}
	}
	return nil
}

// place gives an operation that was announced its version of the event and adds it,
// as add does. The caller holds mu.
func (n *notifier) place(o *Operation, stored bool) {
	if e := o.Event; e != nil {
		switch o.Kind {
		case OpRecord:
			o.Version = e.version.Add(1)
		case OpWait, OpReset:
			o.Version = e.version.Load()
		}
	}
	if o.Nodes != nil {
		o.bindEvents()
	}
	n.add(o, stored)
}

// add puts an operation whose place is final into the logs, and appends it to those
// to deliver: itself if stored is set, so that it is memory of store, else a copy. The
// caller holds mu.
func (n *notifier) add(o *Operation, stored bool) {
	if o.Seq == 0 {
		n.seq++
		o.Seq = n.seq
	}
	if o.Kind != OpNone {
		for _, g := range n.logs {
			g.add(o)
		}
	}
	if n.functions || o.afterNotify != nil {
		if !stored {
			o = n.store(o)
		}
		n.sequenced = append(n.sequenced, o)
		n.listed.Add(1)
	} else if stored {
		n.recycle(o)
	}
}

// recycle keeps an operation's memory for the next one. The caller holds mu.
func (n *notifier) recycle(o *Operation) {
	if len(n.unused) < maxUnused {
		*o = Operation{} // so that it keeps nothing alive
		n.unused = append(n.unused, o)
	}
}

// change replaces the set of listeners.
func (n *notifier) change(a *listenerSet) {
	n.mu.Lock()
	n.logs, n.functions = a.logs, len(a.functions) > 0
	n.mu.Unlock()
}

// number returns the next number in the order, for an operation that is added later.
func (n *notifier) number() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq++
	return n.seq
}

// push adds an operation of the host, whose place in the order is this call, and
// delivers.
func (n *notifier) push(o *Operation, notify func(*Operation)) {
	n.mu.Lock()
	n.add(o, false)
	n.deliverLocked(notify)
}

// end delivers an announced operation, or drops it if the backend refused it.
func (n *notifier) end(id uint32, refused bool, notify func(*Operation)) {
	if n.slot(id).id.Load() != id && n.listed.Load() == 0 {
		return // the backend has sequenced it, and only logs wanted it
	}
	n.mu.Lock()
	n.sequenceLocked(id, refused)
	n.deliverLocked(notify)
}

// deliver calls notify with each sequenced operation, in order. If another thread
// does so already, that thread delivers these operations as well.
func (n *notifier) deliver(notify func(*Operation)) {
	n.mu.Lock()
	n.deliverLocked(notify)
}

// deliverLocked is deliver for a caller that holds mu, which it unlocks.
func (n *notifier) deliverLocked(notify func(*Operation)) {
	if n.delivering {
		// Bounded, since a listener on that thread may wait for this thread.
		for tries := 0; len(n.sequenced) > maxBacklog && tries < 100; tries++ {
			n.mu.Unlock()
			runtime.Gosched()
			n.mu.Lock()
		}
		n.mu.Unlock()
		return
	}
	n.delivering = true
	for len(n.sequenced) > 0 {
		list := n.sequenced
		n.sequenced = n.spare
		n.spare = nil
		n.listed.Add(-int64(len(list)))
		n.mu.Unlock()
		n.call(list, notify)
		n.mu.Lock()
		for i, o := range list {
			n.recycle(o)
			list[i] = nil
		}
		if cap(list) <= maxBacklog {
			n.spare = list[:0]
		}
	}
	n.delivering = false
	n.mu.Unlock()
}

// call notifies of a list of operations. If a listener panics, the rest of the list
// is lost, but other threads can deliver afterwards.
func (n *notifier) call(list []*Operation, notify func(*Operation)) {
	done := false
	defer func() {
		if !done {
			n.mu.Lock()
			n.delivering = false
			n.mu.Unlock()
		}
	}()
	for _, o := range list {
		notify(o)
	}
	done = true
}

// Log begins to collect operations, with their times if times is set. The program
// ends the log with Stop.
//
// Contract: O1, O5.
func (rt *Runtime) Log(times bool) *Log {
	g := &Log{mu: &rt.listeners.notifier.mu, into: newLogged()}
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

// SetInspector sets the inspector, nil for none. It is used only while there are
// listeners. Operations that were enqueued before keep the previous inspector.
func (rt *Runtime) SetInspector(i *Inspector) {
	if i == nil {
		rt.CompareSources() // nobody waits for these copies any more while it listens
		rt.sources.forget(Range{})
	}
	rt.inspector.Store(i)
}

// watchSource returns what a copy from pinned memory calls right before it reads,
// and what is called after the listeners were notified of the copy; both are nil
// without an inspector for such copies. src is the block of the source.
func (rt *Runtime) watchSource(id uint32, c CopySpec, span uint64, src *Block) (before, afterNotify func()) {
	i := rt.inspector.Load()
	if i == nil || i.Refilled == nil {
		return nil, nil
	}
	source := Range{c.Src, span}
	if i.Source != nil {
		afterNotify = func() { i.Source(id, source) }
	}
	sum, registered := c.sum(), src.registration() != nil
	kept := registered || src.ownMemory() // not what another library lends, which may be gone any time
	return func() {
		switch {
		case c.sum() != sum:
			rt.AfterNotified(func() { i.Refilled(id, source) })
		case kept:
			rt.sources.add(&copySource{id: id, c: c, r: source, sum: sum, in: i, registered: registered})
		}
	}, afterNotify
}

// CompareSources calls the inspector for copies whose sources have changed since they ran,
// and that no host thread has waited for. Each wait of the host begins with it.
//
// Contract: V42.
func (rt *Runtime) CompareSources() {
	i := rt.inspector.Load()
	if i == nil || i.InUse == nil {
		return
	}
	l := &rt.sources
	l.mu.Lock()
	list := slices.Clone(l.list)
	l.mu.Unlock()
	waited := map[*copySource]bool{}
	for _, s := range list {
		waited[s] = s.in != i || !i.InUse(s.id) // without the lock: it is a callback
	}
	var changed []*copySource
	l.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(s *copySource) bool {
		if waited[s] {
			return true
		}
		now, there := l.sumNow(s)
		if there && now != s.sum {
			changed = append(changed, s)
		}
		return !there || now != s.sum
	})
	l.mu.Unlock()
	for _, s := range changed {
		rt.AfterNotified(func() { i.Overwritten(s.id, s.r) })
	}
}

// newWatch returns the watch of a function with these declared writes: of ranges that
// it declares as read, or that it can reach. It returns nil without an inspector for
// functions, and under a schedule where other work may change the same bytes at the
// same time.
func (rt *Runtime) newWatch(id uint32, writes []Range, ranges ...[]Range) *watch {
	i := rt.inspector.Load()
	if i == nil || i.Observed == nil || !rt.Deterministic() && !rt.WatchesPages() {
		return nil
	}
	return &watch{rt: rt, id: id, ranges: slices.Concat(ranges...), writes: writes, report: i}
}

// newWideWatch is newWatch for a function that may change what it does not declare: it
// watches all memory of the devices, too, and what is watched by its pages.
func (rt *Runtime) newWideWatch(id uint32, a Accesses) *watch {
	w := rt.newWatch(id, a.Writes, a.Reads, a.Reached)
	if w != nil {
		w.blocks, w.pages, w.reads = rt.Deterministic(), rt.WatchesPages(), a.Reads
	}
	return w
}

// newDeclaredWatch is newWatch for a function that declares all that it accesses. Where pages are watched
// they are closed when it ends, so that others' accesses are seen, and what its threads touch is not taken for
// that of another function.
func (rt *Runtime) newDeclaredWatch(id uint32, reads, writes []Range) (before, after func()) {
	w := rt.newWatch(id, writes, reads)
	if w == nil {
		return nil, nil
	}
	if w.pages, w.declares = rt.WatchesPages(), true; w.pages {
		return w.onThread()
	}
	return w.begin, w.end
}

// comparableBlocks returns the blocks of device memory, the smallest ones first, as
// far as they are at most room bytes together, and whether these are all.
func (rt *Runtime) comparableBlocks(room uint64) (blocks []Range, all bool) {
	rt.memory.mu.Lock()
	for b := range rt.memory.blocks.All() {
		if b.Kind == DeviceMemory && !b.isForeign() && !b.isCode() && !isWatched(b.Start) {
			blocks = append(blocks, Range{b.Start, b.Size})
		}
	}
	rt.memory.mu.Unlock()
	slices.SortFunc(blocks, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Start, b.Start))
	})
	for i, b := range blocks {
		if b.Size > room {
			return blocks[:i], false
		}
		room -= b.Size
	}
	return blocks, true
}

// WatchesPages reports whether accesses to memory that is allocated from now on are
// seen by their pages, whoever makes them; see package touch.
//
// Contract: V23.
func (rt *Runtime) WatchesPages() bool { return touch.Active() && rt.sim != nil }

// countUnseen counts a block that is about to be added to the map, and those that it shares
// pages with. The caller holds the memory's lock.
func (rt *Runtime) countUnseen(b *Block) {
	if !isWatched(b.Start) {
		unseen.unwatched.Add(1)
		return
	}
	end := b.Start + b.Size
	for _, beside := range []Range{
		{b.Start &^ (touch.Page - 1), b.Start & (touch.Page - 1)},
		{end, touch.RoundUp(end) - end},
	} {
		if beside.Size == 0 {
			continue
		}
		if other := rt.memory.blocks.Overlapping(beside.Start, beside.Size); other != nil {
			for _, one := range []*Block{b, other} {
				if !one.sharesPage {
					one.sharesPage = true
					unseen.sharing.Add(1)
				}
			}
		}
	}
}

// known returns the parts of ranges that lie in blocks, by address.
func (rt *Runtime) known(ranges []touch.Range) (found []Range) {
	if len(ranges) == 0 {
		return nil
	}
	slices.SortFunc(ranges, func(a, b touch.Range) int { return cmp.Compare(a.Start, b.Start) })
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	for _, r := range ranges {
		b := rt.memory.blocks.Find(r.Start)
		if b == nil {
			continue // it was freed
		}
		size := min(r.Size, b.Start+b.Size-r.Start)
		if n := len(found); n > 0 && found[n-1].Start+found[n-1].Size >= r.Start {
			last := &found[n-1] // the first byte of a write is among those that changed
			last.Size = max(last.Size, r.Start+size-last.Start)
			continue
		}
		found = append(found, Range{r.Start, size})
	}
	return found
}

// ReportTouched notifies the listeners of what the calling thread, which t stands for,
// has read and written itself since it called last.
//
// Contract: V24.
func (rt *Runtime) ReportTouched(t *Thread) { rt.reportTouched(t, 0, seenByPage) }

// ReportTouchedHere is ReportTouched for a thread that makes no call of the runtime, but has touched memory
// just now.
//
// Contract: V24.
func (rt *Runtime) ReportTouchedHere(t *Thread) { rt.reportTouched(t, 0, seenInLine) }

// reportTouched is ReportTouched at a place, 0 for the present one, and with a name for the accesses.
func (rt *Runtime) reportTouched(t *Thread, site uint32, name string) {
	if !rt.WatchesPages() || t == nil || !t.Bound || t.running.stream != nil {
		return
	}
	read, written := touch.TakeHost()
	for _, accesses := range []struct {
		kind OperationKind
		what []Range
	}{{OpHostRead, rt.known(read)}, {OpHostWrite, rt.known(written)}} {
		if len(accesses.what) == 0 {
			continue
		}
		o := Operation{Kind: accesses.kind, Name: name, Thread: t, Site: site, Host: true, Reads: accesses.what}
		if o.Kind == OpHostWrite {
			o.Reads, o.Writes = nil, accesses.what
		}
		rt.notify(o)
	}
}

// numbers returns the first of n numbers of operations in a row, none of which is 0.
func (l *listeners) numbers(n int) uint32 {
	for {
		last := l.ids.Add(uint32(n))
		if first := last - uint32(n) + 1; first != 0 && first <= last {
			return first
		}
	}
}

// handsInTo returns who gets what an operation hands in, nil if it hands in nothing or nobody asks.
func (rt *Runtime) handsInTo(handsIn bool) *Inspector {
	if i := rt.inspector.Load(); handsIn && i != nil && i.HandedIn != nil {
		return i
	}
	return nil
}

// handIn returns what is called with what the operation id, which was given these ranges, has handed in.
func (rt *Runtime) handIn(to *Inspector, id uint32, given *handedIn) func(*handedIn) {
	return func(h *handedIn) {
		if h == nil {
			h = given
		}
		// It may run before the thread that enqueued it, which a driver has only just given it to, gives it its place in the
		// order; listeners know it before they get this.
		rt.listeners.notifier.sequence(id)
		rt.AfterNotified(func() {
			if to.KernelRan != nil && len(h.kernel.Findings)+len(h.kernel.Inputs) > 0 {
				to.KernelRan(id, h.kernel)
			}
			to.HandedIn(id, h.reads, h.writes)
		})
	}
}
