package order

import (
	"slices"

	"halstream/hal"
)

// Each call has three nodes in the graph of what waits for what.
const (
	nodeReturn = iota // the call returns to its thread
	nodeStart         // what it enqueued begins
	nodeEnd           // what it enqueued is done
	nodesEach
)

// runGraph is what waits for what in a recorded run.
type runGraph struct {
	calls []*recordedCall
	after [][]int32 // by node: the nodes that come after it
	needs []int32   // by node: how many it comes after

	onStream map[*hal.Stream]int // the latest operation
	legacy   map[*hal.Device]*deviceGraph
	onThread map[uint64]int
	released map[uint64]int    // by object: the latest release
	inFunc   map[uint64]int    // by token: what the function did last
	token    map[uint64]int    // by token: its operation
	records  map[recordKey]int // of the run
	late     []int             // operations that nothing recorded lets begin
}

type recordKey struct {
	event   *hal.Event
	version uint64
}

// deviceGraph is the operations that the legacy default stream of a device orders.
type deviceGraph struct {
	latest  int // of the legacy default stream, -1 for none
	ordered map[*hal.Stream]int
}

// canEnd reports whether every operation and every call of a run can end with added
// operations, or else not without them either. What opens a gate, or meets a value that no
// stream writes, counts as done as late as the run allows.
func canEnd(calls []*recordedCall, added []addedCall) bool {
	plain := newRunGraph(calls)
	first := map[*recordedCall]*recordedCall{} // by operation that nothing recorded lets begin: the first wait for it
	for _, i := range plain.late {
		first[calls[i]] = plain.firstWaitFor(i)
	}
	plain.openLate(first)
	if !plain.acyclic() {
		return true
	}
	g := newRunGraph(merge(calls, added))
	g.openLate(first)
	return g.acyclic()
}

func newRunGraph(calls []*recordedCall) *runGraph {
	g := &runGraph{
		calls: calls, onStream: map[*hal.Stream]int{}, legacy: map[*hal.Device]*deviceGraph{},
		onThread: map[uint64]int{}, released: map[uint64]int{}, inFunc: map[uint64]int{},
		token: map[uint64]int{}, records: map[recordKey]int{},
	}
	for i, call := range calls {
		if op := &call.op; op.Kind == hal.OpRecord {
			g.records[recordKey{op.Event, op.Version}] = i
		}
	}
	g.after = make([][]int32, nodesEach*len(calls))
	g.needs = make([]int32, nodesEach*len(calls))
	for i := range calls {
		g.add(i)
	}
	return g
}

// merge returns recorded calls with added ones in their places.
func merge(calls []*recordedCall, added []addedCall) []*recordedCall {
	out := make([]*recordedCall, 0, len(calls)+len(added))
	for i := 0; i <= len(calls); i++ {
		for len(added) > 0 && added[0].at <= i {
			out = append(out, &recordedCall{what: toHandle, thread: added[0].thread, op: added[0].op})
			added = added[1:]
		}
		if i < len(calls) {
			out = append(out, calls[i])
		}
	}
	return out
}

// edge makes a node come after another one.
func (g *runGraph) edge(from, fromNode, to, toNode int) {
	a, b := nodesEach*from+fromNode, nodesEach*to+toNode
	g.after[a] = append(g.after[a], int32(b))
	g.needs[b]++
}

func (g *runGraph) add(i int) {
	call := g.calls[i]
	op := &call.op
	switch {
	case call.what == toOrder:
		g.addOrder(i, call)
		return
	case call.what != toHandle:
		return
	}
	before, called := g.onThread[call.thread]
	g.onThread[call.thread] = i
	if called {
		g.edge(before, nodeReturn, i, nodeReturn)
	}
	if op.Host {
		g.addHost(i, op)
		return
	}
	if op.Stream == nil {
		return
	}
	g.edge(i, nodeStart, i, nodeEnd)
	if called {
		g.edge(before, nodeReturn, i, nodeStart)
	}
	if last, ok := g.onStream[op.Stream]; ok {
		g.edge(last, nodeEnd, i, nodeStart)
	}
	g.onStream[op.Stream] = i
	if op.Stream.BlocksHost() {
		g.edge(i, nodeEnd, i, nodeReturn)
	}
	if op.Token != 0 {
		g.token[op.Token] = i
	}
	g.addLegacy(i, op)
	switch op.Kind {
	case hal.OpWait:
		g.addWait(i, op)
	case hal.OpWaitStream:
		if op.Other != nil && op.Other != op.Stream {
			g.endsOf(op.Other, i, nodeStart)
			if d := g.device(op.Other.Device()); d.latest >= 0 && op.Other.Ordered() { // as a record on it would
				g.edge(d.latest, nodeEnd, i, nodeStart)
			}
		}
	case hal.OpWaitValue:
		g.addWaitValue(i, op)
	case hal.OpGate:
		g.late = append(g.late, i)
	}
}

func (g *runGraph) device(d *hal.Device) *deviceGraph {
	found := g.legacy[d]
	if found == nil {
		found = &deviceGraph{latest: -1, ordered: map[*hal.Stream]int{}}
		g.legacy[d] = found
	}
	return found
}

func (g *runGraph) addLegacy(i int, op *hal.Operation) {
	s := op.Stream
	if s == s.Device().Legacy() {
		d := g.device(s.Device())
		for _, last := range d.ordered {
			g.edge(last, nodeEnd, i, nodeStart)
		}
		d.latest = i
	} else if s.Ordered() {
		d := g.device(s.Device())
		if d.latest >= 0 && op.Kind != hal.OpWait && op.Kind != hal.OpWaitStream {
			g.edge(d.latest, nodeEnd, i, nodeStart)
		}
		d.ordered[s] = i
	}
}

// endsOf makes a node come after the work so far on a stream, and on those that are ordered
// with it if it is the legacy default stream.
func (g *runGraph) endsOf(s *hal.Stream, to, toNode int) {
	if last, ok := g.onStream[s]; ok {
		g.edge(last, nodeEnd, to, toNode)
	}
	if s == s.Device().Legacy() {
		for _, last := range g.device(s.Device()).ordered {
			g.edge(last, nodeEnd, to, toNode)
		}
	}
}

// addWait makes a wait come after the record that it is for. A wait for a Future event
// may come before it.
func (g *runGraph) addWait(i int, op *hal.Operation) {
	if op.Event == nil {
		return
	}
	if op.Event.Options().Kind != hal.Future {
		if at, ok := g.records[recordKey{op.Event, op.Version}]; ok {
			g.edge(at, nodeEnd, i, nodeStart)
		}
		return
	}
	for at := i - 1; at >= 0; at-- {
		if of := &g.calls[at].op; of.Event == op.Event && of.Kind == hal.OpReset {
			break
		} else if of.Event == op.Event && of.Kind == hal.OpRecord {
			g.edge(at, nodeEnd, i, nodeStart)
			return
		}
	}
	for at := i + 1; at < len(g.calls); at++ {
		if of := &g.calls[at].op; of.Event == op.Event && of.Kind == hal.OpRecord {
			g.edge(at, nodeEnd, i, nodeStart)
			return
		}
	}
}

// addWaitValue makes a wait come after the nearest write that meets it, one before it if
// there is one.
func (g *runGraph) addWaitValue(i int, op *hal.Operation) {
	meets := func(at int) bool {
		of := &g.calls[at].op
		return of.Kind == hal.OpWriteValue && of.Value.Addr == op.Value.Addr &&
			op.Value.Condition.Met(of.Value.Value, op.Value.Value)
	}
	for at := i - 1; at >= 0; at-- {
		if meets(at) {
			g.edge(at, nodeEnd, i, nodeStart)
			return
		}
	}
	for at := i + 1; at < len(g.calls); at++ {
		if meets(at) {
			g.edge(at, nodeEnd, i, nodeStart)
			return
		}
	}
	g.late = append(g.late, i)
}

// addHost makes the return of a call come after what it waits for.
func (g *runGraph) addHost(i int, op *hal.Operation) {
	switch op.Kind {
	case hal.OpSynchronizeStream:
		if op.Stream != nil {
			g.endsOf(op.Stream, i, nodeReturn)
		}
	case hal.OpSynchronizeEvent:
		if at, ok := g.records[recordKey{op.Event, op.Version}]; ok {
			g.edge(at, nodeEnd, i, nodeReturn)
		}
	case hal.OpSynchronizeDevice:
		for s, last := range g.onStream {
			if op.Stream != nil && s.Device() == op.Stream.Device() && (op.Users == nil || slices.Contains(op.Users, s)) {
				g.edge(last, nodeEnd, i, nodeReturn)
			}
		}
	}
}

// addOrder handles what a host thread, or a function on a stream, did with a lock or
// something like it.
func (g *runGraph) addOrder(i int, call *recordedCall) {
	if call.order == End || call.order == Forget {
		return
	}
	if token := call.op.Token; token != 0 {
		if last, ok := g.inFunc[token]; ok {
			g.edge(last, nodeReturn, i, nodeReturn)
		} else if f, ok := g.token[token]; ok {
			g.edge(f, nodeStart, i, nodeReturn)
		}
		g.inFunc[token] = i
		if f, ok := g.token[token]; ok {
			g.edge(i, nodeReturn, f, nodeEnd)
		}
	} else {
		if before, ok := g.onThread[call.thread]; ok {
			g.edge(before, nodeReturn, i, nodeReturn)
		}
		g.onThread[call.thread] = i
	}
	if call.order == Release {
		g.released[call.object] = i
	} else if at, ok := g.released[call.object]; ok {
		g.edge(at, nodeReturn, i, nodeReturn)
	}
}

// openLate lets operations begin that nothing recorded does: just before the first wait of
// the host for them, and where there is none after the last call.
func (g *runGraph) openLate(first map[*recordedCall]*recordedCall) {
	for _, i := range g.late {
		wait := first[g.calls[i]]
		at := len(g.calls)
		if wait != nil {
			at = slices.Index(g.calls, wait)
		}
		for before := at - 1; before >= 0; before-- {
			call := g.calls[before]
			if call.what == toHandle && before != i && (wait == nil || call.thread == wait.thread) {
				g.edge(before, nodeReturn, i, nodeStart)
				break
			}
		}
	}
}

// firstWaitFor returns the first call that returns only after an operation, nil without one.
func (g *runGraph) firstWaitFor(i int) *recordedCall {
	first := -1
	seen := map[int32]bool{}
	left := []int32{int32(nodesEach*i + nodeEnd)}
	for len(left) > 0 {
		node := left[len(left)-1]
		left = left[:len(left)-1]
		if seen[node] {
			continue
		}
		seen[node] = true
		if at := int(node / nodesEach); node%nodesEach != nodeReturn {
			left = append(left, g.after[node]...)
		} else if first < 0 || at < first {
			first = at
		}
	}
	if first < 0 {
		return nil
	}
	return g.calls[first]
}

// acyclic reports whether every node can be reached.
func (g *runGraph) acyclic() bool {
	left := make([]int32, 0, len(g.needs))
	for node, n := range g.needs {
		if n == 0 {
			left = append(left, int32(node))
		}
	}
	reached := 0
	for len(left) > 0 {
		node := left[len(left)-1]
		left = left[:len(left)-1]
		reached++
		for _, next := range g.after[node] {
			if g.needs[next]--; g.needs[next] == 0 {
				left = append(left, next)
			}
		}
	}
	return reached == len(g.needs)
}
