package order

import (
	"slices"

	"halstream/hal"
)

// Action is what a fix adds to a program.
type Action string

const (
	// WaitForStream: Fix.Second waits for the work so far on Fix.First.
	WaitForStream Action = "wait stream"
	// WaitForEvent: Fix.Second waits for the latest record of Fix.Event.
	WaitForEvent Action = "wait event"
	// SynchronizeStream: the host waits for Fix.First.
	SynchronizeStream Action = "synchronize stream"
	// SynchronizeEvent: the host waits for the latest record of Fix.Event.
	SynchronizeEvent Action = "synchronize event"
	// SynchronizeDevice: the host waits for the device of Fix.First.
	SynchronizeDevice Action = "synchronize device"
)

// Actions are all that a fix may add.
var Actions = []Action{WaitForStream, WaitForEvent, SynchronizeStream, SynchronizeEvent, SynchronizeDevice}

// String returns the action as fixes give it.
func (a Action) String() string { return string(a) }

// Fix is a change of a program that is to order the operations of a finding.
type Fix struct {
	Finding int // the place of the finding among all that Session.Take has returned
	Action  Action
	// First and Second are streams, by device and index.
	First, Second [2]uint64
	Event         uint64
	// Sites are the call sites of the statement that the change goes in front of, or behind.
	Sites []uint32
	After bool
	// Early: the statement is a call of a function that leads to those sites, perhaps in a loop, and may have begun at
	// any moment since the thread's call before. What another thread did meanwhile comes behind the change then.
	Early bool
}

// Verdict says what the recorded run would be with fixes.
type Verdict string

const (
	// Unproven: the run was not recorded, or is too long.
	Unproven Verdict = ""
	// Silent: the finding does not occur any more, and every operation can still run.
	Silent Verdict = "silent"
	// Reported: the operations of the finding have no order still.
	Reported Verdict = "reported"
	// Reversed: they have, where those of the first are called before those of the second. In
	// a loop the second ones are called before further ones of the first, which is a finding.
	Reversed Verdict = "reversed"
	// Stuck: some operations wait for each other, or may do so.
	Stuck Verdict = "stuck"
)

// taken is a finding that was returned.
type taken struct {
	key   pair
	first side // that was called first
	of    *following
}

func takenOf(f *Finding) taken { return taken{keyOf(&f.Report), sideOf(&f.First), f.of} }

// keyOf returns what a checker identifies a report by.
func keyOf(r *Report) pair {
	key := pair{category: r.Category, a: sideOf(&r.First), b: sideOf(&r.Second)}
	if key.b.before(&key.a) {
		key.a, key.b = key.b, key.a
	}
	return key
}

func sideOf(a *Access) side { return side{a.Site, a.Kind, a.Name, a.Device, a.Stream, a.Node.side()} }

// Prove returns for each of several fixes what the run so far would be with all of them: it
// checks the recorded operations once more, with those that the fixes add at each execution
// of their statements. All fixes are stuck if the run would be.
func (s *Session) Prove(fixes []Fix) []Verdict {
	verdicts := make([]Verdict, len(fixes))
	f := s.now.Load()
	if f == nil {
		return verdicts
	}
	calls, baseline := f.recorded()
	if len(calls) == 0 {
		return verdicts
	}
	known := make([]*taken, len(fixes))
	var added []addedCall
	s.mu.Lock()
	for i, fix := range fixes {
		if fix.Finding >= 0 && fix.Finding < len(s.taken) {
			if t := &s.taken[fix.Finding]; t.of == f && reportedIn(baseline, t) == Reported {
				known[i] = t
			}
		}
	}
	s.mu.Unlock()
	if !slices.ContainsFunc(known, func(t *taken) bool { return t != nil }) {
		return verdicts
	}
	index := indexed(calls)
	for i := range fixes {
		if known[i] != nil {
			added = append(added, fixes[i].added(index)...)
		}
	}
	slices.SortStableFunc(added, func(a, b addedCall) int { return a.at - b.at })
	seen := replayed(calls, added)
	stuck := !canEnd(calls, added)
	for i, t := range known {
		if t == nil {
			continue
		}
		verdicts[i] = reportedIn(seen, t)
		if stuck && verdicts[i] != Reported {
			verdicts[i] = Stuck
		}
	}
	return verdicts
}

// Sites returns the call sites of the recorded operations.
func (s *Session) Sites() []uint32 {
	f := s.now.Load()
	if f == nil {
		return nil
	}
	calls, _ := f.recorded()
	found := map[uint32]bool{}
	for _, call := range calls {
		if call.op.Site != 0 {
			found[call.op.Site] = true
		}
	}
	sites := make([]uint32, 0, len(found))
	for site := range found {
		sites = append(sites, site)
	}
	slices.Sort(sites)
	return sites
}

// recorded returns what was recorded so far, and the findings of a checker that is called
// with it.
func (f *following) recorded() ([]*recordedCall, map[pair]side) {
	calls := f.checker.calls()
	f.proving.Lock()
	defer f.proving.Unlock()
	if f.baseline == nil || f.baselineOf != len(calls) {
		f.baseline, f.baselineOf = replayed(calls, nil), len(calls)
	}
	return calls, f.baseline
}

// reportedIn returns whether a finding is among others, which have the sides called first.
func reportedIn(seen map[pair]side, t *taken) Verdict {
	for _, category := range []Category{Race, Refill, t.key.category} {
		if first, found := seen[pair{category: category, a: t.key.a, b: t.key.b}]; found {
			if first == t.first {
				return Reported
			}
			return Reversed
		}
	}
	return Silent
}

// addedCall is an operation that a fix adds in front of the call with a number.
type addedCall struct {
	at     int
	thread uint64
	op     hal.Operation
}

// replayed returns the findings of a checker that is called with recorded calls and others:
// the sides that were called first.
func replayed(calls []*recordedCall, added []addedCall) map[pair]side {
	c := New()
	c.replaying = true
	threads := replayThreads{}
	add := func(upTo int, seq uint64) {
		for len(added) > 0 && added[0].at <= upTo {
			op := added[0].op
			op.Seq = seq
			op.Thread = threads.get(added[0].thread)
			c.Handle(op)
			if op.Host {
				c.sourcesRead(op.Thread)
			}
			added = added[1:]
		}
	}
	last := uint64(0)
	for i, call := range calls {
		switch call.what {
		case toHandle:
			add(i, 2*call.op.Seq-1)
			last = max(last, 2*call.op.Seq)
		case toRefilled, toOverwritten: // the change may come behind an operation that is added before
			add(i, last+1)
		}
		c.replay(call, threads)
	}
	add(len(calls), last+1)
	c.Finish()
	seen := map[pair]side{}
	for _, r := range c.Take() {
		seen[keyOf(&r)] = sideOf(&r.First)
	}
	return seen
}

// added returns the operations that a fix adds to recorded ones.
func (x *Fix) added(index *callIndex) []addedCall {
	first, second, event := index.streams[x.First], index.streams[x.Second], index.events[x.Event]
	on := first // the stream of which the statement has an operation
	if !x.After {
		on = second
	}
	switch x.Action {
	case WaitForStream:
		if first == nil || second == nil {
			return nil
		}
	case WaitForEvent:
		if event == nil || second == nil {
			return nil
		}
	case SynchronizeEvent:
		if event == nil {
			return nil
		}
	default:
		if first == nil {
			return nil
		}
	}
	if x.host() && !x.After {
		on = nil
	}
	var out []addedCall
	for _, g := range index.executions(x.Sites, on, x.Early) {
		at := g.begin
		switch {
		case x.After:
			at = g.end + 1
		case x.Early:
			at = index.behindThePrevious(g)
		}
		for _, op := range x.operations(first, second, event, index.version(at, event)) {
			out = append(out, addedCall{at, g.thread, op})
		}
	}
	return out
}

func (x *Fix) host() bool {
	return x.Action == SynchronizeStream || x.Action == SynchronizeEvent || x.Action == SynchronizeDevice
}

// operations returns what one execution of the added line does.
func (x *Fix) operations(first, second *hal.Stream, event *hal.Event, version uint64) []hal.Operation {
	switch x.Action {
	case WaitForStream:
		return []hal.Operation{{Kind: hal.OpWaitStream, Stream: second, Other: first}}
	case WaitForEvent:
		if version > 0 {
			return []hal.Operation{{Kind: hal.OpWait, Stream: second, Event: event, Version: version}}
		}
	case SynchronizeEvent:
		if version > 0 {
			return []hal.Operation{{Kind: hal.OpSynchronizeEvent, Host: true, Event: event, Version: version}}
		}
	case SynchronizeStream:
		return []hal.Operation{{Kind: hal.OpSynchronizeStream, Host: true, Stream: first}}
	case SynchronizeDevice:
		return []hal.Operation{{Kind: hal.OpSynchronizeDevice, Host: true, Stream: first.Device().Legacy()}}
	}
	return nil
}
