package order

import (
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal"
	"halstream/hal/driver"
)

const (
	// sizesKept is of how many operations a session remembers how much they move.
	sizesKept = 1 << 14
	// eventsKept is of how many events a session remembers the latest record.
	eventsKept = 1 << 10
	// streamsKept bounds of how many streams a session remembers where they were made.
	streamsKept = 1 << 16
)

// Finding is a report with what was known of its memory when it was found. By the
// time somebody reads the report the memory may have been freed.
type Finding struct {
	Report
	// Kind is the kind of the memory.
	Kind hal.MemoryKind
	// Block is the block of memory that contains Range. Of memory that the runtime
	// does not know it is what the second operation works on, as far as that is known.
	Block hal.Range
	// BlockSite is where Block was allocated, 0 if that is not known.
	BlockSite uint32
	// FirstSize and SecondSize are the bytes that the operations move, 0 for
	// operations that move none and those too old to be remembered.
	FirstSize, SecondSize uint64
	// Schedule is the text of the schedule that was in force when it was found, "" where a device has its own order.
	Schedule string

	of *following
}

// Origin is where the program made a stream or a block of memory.
type Origin struct {
	// Kind is "stream" or "memory".
	Kind string
	// Device is the ordinal of a stream's device.
	Device int
	// Number is a stream's index on its device, or the address of memory.
	Number uint64
	// Site is where it was made, as the function of [hal.Runtime.SetSites] gave it.
	Site uint32
}

// Session checks what a program does with a runtime, and with those that it uses
// later, and collects the reports together with what people ask about them: which
// memory it was, where it was allocated, how much the operations moved.
//
// Follow, Observe and Stop are called by one thread at a time; the other methods
// may be called by any thread at any time. A session is the inspector of the
// runtime that it follows (see [hal.Runtime.SetInspector]).
type Session struct {
	now atomic.Pointer[following] // nil while no runtime is followed

	mu         sync.Mutex
	observe    bool
	threads    bool        // their beginning is observed
	lastThread *hal.Thread // that made a call
	lastID     uint32      // of an operation
	found      []Finding
	streams    map[streamName]uint32 // the sites where they were made
	blocks     map[uint64]uint32     // the sites where live memory was allocated, by its start
	former     map[uint64]uint32     // of the blocks that had the memory of cached ones before
	sizes      [sizesKept]operationSize
	events     [eventsKept]*hal.Event
	past       Stats // of the runtimes followed before
	taken      []taken
}

// following is the part of a session that is about one runtime.
type following struct {
	session   *Session
	rt        *hal.Runtime
	checker   *Checker
	stop      func()
	collected atomic.Uint64 // reports, as Checker.Found counts them

	proving    sync.Mutex
	baseline   map[pair]side // the findings of the recorded run
	baselineOf int           // how many calls that was of
}

type operationSize struct {
	id    uint32
	bytes uint64
}

type streamName struct {
	device int
	index  uint64
}

// NewSession returns a session that follows no runtime yet. With observe it reports
// also what functions write without declaring it; see [Session.Observe].
func NewSession(observe bool) *Session {
	return &Session{observe: observe, streams: map[streamName]uint32{}, blocks: map[uint64]uint32{},
		former: map[uint64]uint32{}}
}

// Follow checks rt from now on, and the runtime followed so far no longer. What was
// found stays.
func (s *Session) Follow(rt *hal.Runtime) {
	s.Stop()
	f := &following{session: s, rt: rt, checker: New()}
	f.checker.Record()
	if s.threads {
		f.checker.ObserveThreads()
	}
	s.now.Store(f)
	f.stop = rt.Listen(f.handle)
	rt.SetStrictReuse(true)
	f.inspect()
}

// Observe sets whether functions are watched for writes that they do not declare. It
// takes a schedule that runs one operation at a time, on the host backend.
func (s *Session) Observe(on bool) {
	s.mu.Lock()
	changed := s.observe != on
	s.observe = on
	s.mu.Unlock()
	if f := s.now.Load(); f != nil && changed {
		f.inspect()
	}
}

// ObserveThreads says that the beginning of host threads is observed from now on; see
// Checker.ObserveThreads.
func (s *Session) ObserveThreads() {
	s.mu.Lock()
	s.threads = true
	s.mu.Unlock()
	if f := s.now.Load(); f != nil {
		f.checker.ObserveThreads()
	}
}

// Stop ends the check of the runtime. Waits for a record that was not enqueued are
// given up, and the reports found stay until they are taken.
func (s *Session) Stop() {
	f := s.now.Load()
	if f == nil {
		return
	}
	f.rt.SetInspector(nil)
	f.rt.SetStrictReuse(false)
	f.stop()
	f.checker.Finish()
	f.collect(nil)
	counts := f.checker.Stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = s.past.plus(counts)
	s.now.Store(nil)
}

// Take returns what was found since the last call. With finish, operations held
// back by a wait for a record that was never enqueued are checked first, as if it
// had been enqueued last.
func (s *Session) Take(finish bool) []Finding {
	if f := s.now.Load(); f != nil {
		if finish {
			f.rt.CompareSources()
			f.checker.Finish()
		}
		f.collect(nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.found
	s.found = nil
	for i := range found {
		s.taken = append(s.taken, takenOf(&found[i]))
	}
	return found
}

// Awaited returns the streams of operations that have yet to hand in what they access: with their
// work waited for, Take(true) need not count them as accessing all that they declared.
//
// Contract: V45.
func (s *Session) Awaited() []*hal.Stream {
	if f := s.now.Load(); f != nil {
		return f.checker.Awaited()
	}
	return nil
}

// Notified returns a point that is reached once the check knows of all that was called until now, and of all that was
// handed in; nil where no check is on.
func (s *Session) Notified() driver.Point {
	if f := s.now.Load(); f != nil {
		return f.rt.Notified()
	}
	return nil
}

// Found returns how many findings wait to be taken. Take may return more: refills,
// and what operations held back did, are looked for there.
func (s *Session) Found() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.found)
}

// Origins returns where streams, and memory that is alive, were made since the
// session began, in no particular order.
func (s *Session) Origins() []Origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	origins := make([]Origin, 0, len(s.streams)+len(s.blocks))
	for name, site := range s.streams {
		origins = append(origins, Origin{"stream", name.device, name.index, site})
	}
	for start, site := range s.blocks {
		origins = append(origins, Origin{Kind: "memory", Number: start, Site: site})
	}
	return origins
}

// Stats returns what the session has seen and what it keeps. Operations, Reports
// and Dropped count all runtimes that it followed.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var counts Stats
	if f := s.now.Load(); f != nil {
		counts = f.checker.Stats()
	}
	return counts.plus(s.past)
}

// plus adds the counts that go on over several runtimes.
func (s Stats) plus(other Stats) Stats {
	s.Operations += other.Operations
	s.Reports += other.Reports
	s.Dropped += other.Dropped
	s.Compared += other.Compared
	s.Partly += other.Partly
	s.Paged += other.Paged
	s.Untouched += other.Untouched
	s.Beside += other.Beside
	return s
}

// Forget says that a range of pageable memory was freed and may be allocated again:
// work on it so far has nothing to do with later work. t is the calling thread.
func (s *Session) Forget(t *hal.Thread, r hal.Range) {
	f := s.now.Load()
	if f == nil {
		return
	}
	s.mu.Lock()
	id := s.lastID
	s.mu.Unlock()
	f.checker.Handle(hal.Operation{ID: id, Kind: hal.OpNewMemory, Host: true, Thread: t, Writes: []hal.Range{r}})
}

// Exposed says that the program has got memory in a way in which it may write there unseen.
func (s *Session) Exposed(r hal.Range) {
	if f := s.now.Load(); f != nil {
		f.rt.AfterNotified(func() { f.checker.Exposed(r) })
	}
}

// Order says what t did with an object that orders host threads; see Checker.Order. It is
// handled behind what listeners were not notified of yet.
func (s *Session) Order(t *hal.Thread, what HostOrder, object uint64) {
	if f := s.now.Load(); f != nil {
		f.rt.ReportTouched(t)
		token := t.Running()
		f.rt.AfterNotified(func() { f.checker.Order(t, what, object, token) })
	}
}

// inspect asks the runtime for what can be seen only when operations run.
func (f *following) inspect() {
	f.session.mu.Lock()
	observe := f.session.observe
	f.session.mu.Unlock()
	i := &hal.Inspector{Source: f.checker.Source, Refilled: func(id uint32, source hal.Range) {
		f.checker.Refilled(id, source)
		f.collect(nil)
	}, InUse: f.checker.SourceInUse, Overwritten: func(id uint32, source hal.Range) {
		f.checker.Overwritten(id, source)
		f.collect(nil)
	}}
	i.KernelRan = func(id uint32, r hal.KernelReport) {
		f.checker.KernelRan(id, r)
		f.collect(nil)
	}
	i.HandedIn = func(id uint32, reads, writes []hal.Range) {
		f.checker.HandedIn(id, reads, writes)
		f.collect(nil)
	}
	if observe && f.onHost() { // the host does not see the memory of other devices
		i.Observed = func(id uint32, changed []hal.Range) {
			f.checker.Observed(id, changed)
			f.collect(nil)
		}
		i.Read = func(id uint32, reads []hal.Range) {
			f.checker.ObservedReads(id, reads)
			f.collect(nil)
		}
		i.Paged = func(_ uint32, touched, beside bool) { f.session.countPaged(touched, beside) }
		i.Compared = func(_ uint32, all bool) {
			f.session.mu.Lock()
			defer f.session.mu.Unlock()
			f.session.past.Compared++
			if !all {
				f.session.past.Partly++
			}
		}
	}
	f.rt.SetInspector(i)
}

// handle is the listener: it may be called on any thread.
func (f *following) handle(o hal.Operation) {
	s := f.session
	s.mu.Lock()
	s.remember(&o)
	s.mu.Unlock()
	f.checker.Handle(o)
	if f.checker.Found() != f.collected.Load() {
		f.collect(&o)
	}
	if o.Kind == hal.OpFreeMemory && !o.Cached { // after the reports about it
		s.mu.Lock()
		for _, r := range o.Writes {
			delete(s.blocks, r.Start)
		}
		s.mu.Unlock()
	}
}

// remember keeps what later reports will need of an operation; the caller holds mu.
func (s *Session) remember(o *hal.Operation) {
	if o.Thread != nil {
		s.lastThread = o.Thread
	} else {
		o.Thread = s.lastThread // finalizers free objects on some thread that called before
	}
	s.lastID = o.ID
	switch o.Kind {
	case hal.OpRecord:
		s.events[o.Event.ID()%eventsKept] = o.Event
	case hal.OpCopy, hal.OpFill:
		if len(o.Writes) > 0 {
			s.sizes[o.ID%sizesKept] = operationSize{o.ID, o.Writes[0].Size}
		}
	case hal.OpLaunchGraph:
		if o.Nodes == nil {
			break
		}
		for i := range o.Nodes.All() {
			n := o.Nodes.Node(i)
			if _, writes := n.Accesses(); len(writes) > 0 && n.Kind() != hal.OpGraph && n.Condition().Size == 0 {
				id := o.NodeID(i)
				s.sizes[id%sizesKept] = operationSize{id, writes[0].Size}
			}
		}
	case hal.OpNewStream:
		if len(s.streams) == streamsKept {
			clear(s.streams)
		}
		s.streams[streamName{o.Stream.Device().Ordinal(), o.Stream.Index()}] = o.Site
	case hal.OpNewMemory, hal.OpAllocate:
		for _, r := range o.Writes {
			if o.Cached {
				s.former[r.Start] = s.blocks[r.Start]
			}
			s.blocks[r.Start] = o.Site
		}
	}
}

// collect takes new reports from the checker while what they are about still
// exists. o is the operation that brought them, nil if it is not known.
func (f *following) collect(o *hal.Operation) {
	n := f.checker.Found()
	for _, r := range f.checker.Take() {
		found := Finding{Report: r, of: f}
		found.Kind, found.Block = f.memory(r.Range.Start, o)
		if f.onHost() {
			found.Schedule = f.rt.Schedule()
		}
		f.session.add(found)
	}
	f.collected.Store(n)
}

// onHost reports whether the devices are simulated.
func (f *following) onHost() bool { return f.rt.Name() == "host" }

// memory returns the kind and the block of the memory at an address.
func (f *following) memory(address uint64, o *hal.Operation) (hal.MemoryKind, hal.Range) {
	kind, start, size, _ := f.rt.Lookup(address)
	block := hal.Range{Start: start, Size: size}
	if kind != hal.Pageable || o == nil {
		return kind, block
	}
	for _, list := range [][]hal.Range{o.Reads, o.Writes} {
		for _, a := range list {
			if address-a.Start < a.Size {
				block = a
			}
		}
	}
	if o.Kind == hal.OpFree || o.Kind == hal.OpFreeMemory { // the runtime has forgotten it already
		kind = hal.DeviceMemory
	}
	return kind, block
}

// add keeps a finding.
func (s *Session) add(f Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.latest(f.Reason.Record) {
		f.Reason.Record = nil
	}
	f.BlockSite = s.blocks[f.Block.Start]
	if f.Reason.Memory == GivenOut {
		f.BlockSite = s.former[f.Block.Start]
	}
	f.FirstSize, f.SecondSize = s.sizeOf(f.First.ID), s.sizeOf(f.Second.ID)
	s.found = append(s.found, f)
}

func (s *Session) sizeOf(id uint32) uint64 {
	if kept := s.sizes[id%sizesKept]; kept.id == id {
		return kept.bytes
	}
	return 0
}

// latest reports whether a record is still the latest one of its event, so that a
// wait for the event now would be a wait for this record.
func (s *Session) latest(record *Note) bool {
	if record == nil || record.Event == 0 {
		return false
	}
	e := s.events[record.Event%eventsKept]
	return e != nil && e.ID() == record.Event && e.Version() == record.Version && !e.Closed() &&
		e.Options().Kind != hal.Future && !e.Options().NotWaitable
}

// Unwaited is that of the checker that is in use.
func (s *Session) Unwaited(t *hal.Thread) bool {
	f := s.now.Load()
	return f != nil && f.checker.Unwaited(t)
}

// countPaged counts a function that was seen by the pages of memory.
func (s *Session) countPaged(touched, beside bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.Paged++
	if !touched {
		s.past.Untouched++
	}
	if beside {
		s.past.Beside++
	}
}

// Touched takes over what the calling thread t has accessed itself since it called last,
// where that is seen.
func (s *Session) Touched(t *hal.Thread) {
	if f := s.now.Load(); f != nil {
		f.rt.ReportTouched(t)
	}
}

// orderingBack is how many operations before the latest one of a finding are searched for
// records and waits.
const orderingBack = 512

// RecordedOperation is an operation of the recorded run, without its thread's object.
type RecordedOperation struct {
	hal.Operation
	ThreadID uint64
}

// Nearby returns, for each of several lists of numbers of operations, these and others around
// them, as places in ascending order in the list of all recorded operations that it returns,
// too. At most most are given, or those asked for: first the records and waits between the
// earliest and the latest one, the latest first, then their neighbours, then what else is
// between them. Objects that are made and closed are left out. Of a run that is too long to
// be recorded there is nothing.
//
// Contract: V40.
func (s *Session) Nearby(around [][]uint32, most int) ([]RecordedOperation, [][]int) {
	found := make([][]int, len(around))
	f := s.now.Load()
	if f == nil {
		return nil, found
	}
	calls, _ := f.recorded()
	place := map[uint32]int{}
	for _, ids := range around {
		for _, id := range ids {
			place[id] = -1
		}
	}
	var all []RecordedOperation
	for _, call := range calls {
		_, asked := place[call.op.ID]
		if call.what != toHandle || onlyKeepsObjects(&call.op) && !asked {
			continue
		}
		if asked {
			place[call.op.ID] = len(all)
		}
		all = append(all, RecordedOperation{call.op, call.thread})
	}
	for i, ids := range around {
		found[i] = nearby(all, ids, place, most)
	}
	return all, found
}

func nearby(all []RecordedOperation, ids []uint32, place map[uint32]int, most int) []int {
	var shown []int
	add := func(at int) {
		if at >= 0 && at < len(all) && !slices.Contains(shown, at) {
			shown = append(shown, at)
		}
	}
	for _, id := range ids {
		add(place[id])
	}
	if len(shown) == 0 {
		return nil
	}
	asked := slices.Clone(shown)
	first, last := slices.Min(asked), slices.Max(asked)
	from := max(first, last-orderingBack)
	for at := last; at > from && len(shown) < most*3/4; at-- {
		if orders(&all[at].Operation) {
			add(at)
		}
	}
	for distance := 1; distance <= 4; distance++ {
		for _, at := range asked {
			for _, near := range []int{at - distance, at + distance} {
				if len(shown) < most {
					add(near)
				}
			}
		}
	}
	for at := last; at > max(first, last-most) && len(shown) < most; at-- {
		add(at)
	}
	slices.Sort(shown)
	return shown
}

// onlyKeepsObjects reports whether an operation neither orders anything nor works on memory.
func onlyKeepsObjects(op *hal.Operation) bool {
	switch op.Kind {
	case hal.OpNewStream, hal.OpNewEvent, hal.OpNewMemory, hal.OpCloseStream, hal.OpCloseEvent, hal.OpFreeMemory:
		return true
	}
	return false
}

// orders reports whether an operation orders others.
func orders(op *hal.Operation) bool {
	switch op.Kind {
	case hal.OpRecord, hal.OpWait, hal.OpWaitStream, hal.OpWaitValue, hal.OpWaitMemory, hal.OpWaitForNoRecord,
		hal.OpSynchronizeStream, hal.OpSynchronizeEvent, hal.OpSynchronizeDevice, hal.OpSynchronizeMemory:
		return true
	}
	return false
}
