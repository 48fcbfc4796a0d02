package hal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// GraphExec is an executable graph. Its launches run one at a time, in the order of the
// calls, on any streams.
type GraphExec struct {
	rt       *Runtime
	d        driver.Executable
	source   *Graph
	autoFree bool
	// now is what launches run, nil once it is closed.
	now atomic.Pointer[version]
	// ended calls ExecOptions.Ended after its last user: the executable, and each version of it. It is nil without that.
	ended *keep
}

// ExecOptions are options of an executable. The zero value is the default.
type ExecOptions struct {
	// AutoFree frees memory that the graph allocates, and that nothing has freed since the
	// launch before, at the next launch, which else fails.
	AutoFree bool
	// Ended is called, on another thread, when the executable was closed and its launches have run.
	Ended func()
}

// version is what the launches of an executable run until its next update.
type version struct {
	keep  *keep
	base  *keep         // of the graph of the instantiation or the latest update
	own   map[int]*keep // of the nodes that UpdateNode has replaced since, by index
	graph *Graph        // a view or a clone, which nobody changes
	nodeTable
	events  []*Event // recorded by nodes
	reads   []Range
	writes  []Range
	blocks  []*Block
	blockOf []*Node             // the node that uses each of blocks
	has     map[*Block]struct{} // the blocks as a set, nil while they are few
	calls   []*graphCall        // native functions that can fail
	memory  *memoryNodes
	running atomic.Pointer[Stream] // of the launch in progress
	// plain is the latest launch without listeners, which later ones on its stream are the same as.
	plain atomic.Pointer[launched]
	// nodeList is what listeners get, once listed is done.
	listed   sync.Once
	nodeList *NodeList
}

// check rejects what no launch could run.
func (v *version) check(op string) error {
	if err := v.checkFreed(v.graph.rt, op); err != nil {
		return err
	}
	return v.graph.checkBodies(op)
}

// disown lets a graph that allocates memory have another executable.
func (x *GraphExec) disown() {
	if x.source != nil {
		x.source.owned.Store(false)
	}
}

// nodeTable is the nodes that a launch, or a body of one, runs.
type nodeTable struct {
	nodes  []driver.GraphNode
	from   []*Node              // the node of the graph that each of nodes is made of
	inside []*Inside            // where each of from is
	bodies map[int][]*nodeTable // of the nodes with a condition, by their index in nodes
}

// flatten appends the nodes of a graph, which is inside of a node, to a list, behind the given
// ones, child graphs as their nodes, and returns those that nothing in the graph comes after.
func (v *version) flatten(list *nodeTable, g *Graph, inside *Inside, after []int) []int {
	list.nodes = slices.Grow(list.nodes, len(g.nodes))
	list.from, list.inside = slices.Grow(list.from, len(g.nodes)), slices.Grow(list.inside, len(g.nodes))
	edges := make([]int, 0, g.edges())
	place := make([]int, len(g.nodes))
	last := make([]bool, len(g.nodes))
	for _, n := range g.sorted() {
		spec := n.forDriver()
		before := len(edges)
		deps := g.afterOf(n)
		for _, dep := range deps {
			last[dep.index] = false
			edges = append(edges, place[dep.index])
		}
		spec.After = edges[before:len(edges):len(edges)]
		if len(deps) == 0 {
			spec.After = after
		}
		last[n.index] = true
		v.uses(n)
		switch spec.Kind {
		case driver.ChildNode:
			spec.Kind = driver.EmptyNode
			child := &Inside{Of: n, Outer: inside}
			ends := v.flatten(list, n.child, child, []int{v.append(list, n, inside, spec)})
			spec.After = ends
		case driver.AllocNode, driver.FreeNode:
			spec.Kind = driver.EmptyNode
		case driver.IfNode, driver.WhileNode, driver.SwitchNode:
			own := *spec.GraphWork
			own.Bodies = make([][]driver.GraphNode, len(n.bodies))
			bodies := make([]*nodeTable, len(n.bodies))
			for i, body := range n.bodies {
				bodies[i] = &nodeTable{}
				v.flatten(bodies[i], body, &Inside{Of: n, Body: i, Outer: inside}, nil)
				own.Bodies[i] = bodies[i].nodes
			}
			if list.bodies == nil {
				list.bodies = map[int][]*nodeTable{}
			}
			list.bodies[len(list.nodes)] = bodies
			spec.GraphWork = &own
		case driver.RecordNode:
			v.events = append(v.events, n.event)
		}
		place[n.index] = v.append(list, n, inside, spec)
	}
	var ends []int
	for i, ok := range last {
		if ok {
			ends = append(ends, place[i])
		}
	}
	if ends == nil {
		ends = after
	}
	return ends
}

// append appends a node, which was made of from, to a list.
func (v *version) append(list *nodeTable, from *Node, inside *Inside, n driver.GraphNode) int {
	if n.GraphWork != nil && n.Native != nil {
		if c, ok := n.Native.Call.(*graphCall); ok {
			own, native, copied := *n.GraphWork, *n.Native, *c
			native.Call, own.Native = &copied, &native
			n.GraphWork = &own
			v.calls = append(v.calls, &copied)
		}
	}
	list.from, list.inside = append(list.from, from), append(list.inside, inside)
	list.nodes = append(list.nodes, n)
	return len(list.nodes) - 1
}

// uses notes what a node works on.
func (v *version) uses(n *Node) {
	if n.kind == driver.ChildNode {
		return // its nodes are noted
	}
	v.reads, v.writes = append(v.reads, n.reads...), append(v.writes, n.writes...)
	for _, b := range n.blocks {
		if b != nil && (len(v.blocks) == 0 || v.blocks[len(v.blocks)-1] != b) && !v.hasBlock(b) {
			v.blocks, v.blockOf = append(v.blocks, b), append(v.blockOf, n)
		}
	}
}

// fewBlocks is how many blocks are looked through one by one, which is faster than a set then.
const fewBlocks = 16

// hasBlock reports whether a block is one of v.blocks, to which the caller adds it if not.
func (v *version) hasBlock(b *Block) bool {
	if len(v.blocks) < fewBlocks {
		return slices.Contains(v.blocks, b)
	}
	if v.has == nil {
		v.has = make(map[*Block]struct{}, 2*fewBlocks)
		for _, before := range v.blocks {
			v.has[before] = struct{}{}
		}
	}
	_, found := v.has[b]
	v.has[b] = struct{}{}
	return found
}

// Update makes later launches do what a graph does that has the same kinds of nodes in
// the same order, with the same edges, on the same devices. Launches that were enqueued
// before keep what they do.
//
// # Errors
//   - [ErrCapture]: the graph differs in more than what its nodes do; the text says in what.
//   - [ErrInvalidValue]: memory that a node of it works on was freed.
//   - [ErrClosed], [ErrWrongDevice], [ErrInHostFunction].
//
// Contract: G9, G10. Source: CUDA driver API, cuGraphExecUpdate.
func (x *GraphExec) Update(t *Thread, g *Graph) error {
	const op = "update executable"
	if err := g.checkNodes(t, op, nil); err != nil {
		return err
	}
	if g.rt != x.rt {
		return otherRuntimeError(op, "the graph")
	}
	return x.become(t, op, func(*version) (*version, error) {
		v := g.version()
		if err := v.check(op); err != nil {
			v.keep.release()
			return nil, err
		}
		return v, nil
	})
}

// become makes later launches run the version that next makes of the one that they run now.
func (x *GraphExec) become(t *Thread, op string, next func(before *version) (*version, error)) error {
	for {
		err := x.tryBecome(t, op, next)
		if err != driver.ErrUpdated { //nolint:errorlint // an error of the driver as it is
			return err
		}
	}
}

// tryBecome is become, or fails with ErrUpdated because another update came first.
func (x *GraphExec) tryBecome(t *Thread, op string, next func(before *version) (*version, error)) error {
	before, err := x.use(op)
	if err != nil {
		return err
	}
	defer before.keep.release()
	v, err := next(before)
	if err != nil {
		return err
	}
	x.keepEnded(v)
	if err = v.differs(before); err == nil {
		err = x.d.Update(v.nodes, func() bool { return x.now.CompareAndSwap(before, v) })
	}
	if err != nil {
		if errors.Is(err, ErrInvalidValue) { // of a backend that makes all nodes again, also those that stay
			if freed := v.checkFreed(x.rt, op); freed != nil {
				err = freed
			}
		}
		v.keep.release()
		return err
	}
	before.keep.release() // what the executable had of it
	x.notify(t, OpUpdateExecutable, v.graph, v)
	return nil
}

// use returns the version that is launched now, with one more use of it.
func (x *GraphExec) use(op string) (*version, error) {
	for {
		v := x.now.Load()
		switch {
		case v == nil:
			return nil, closedError(op, "executable graph")
		case v.keep.tryUse():
			return v, nil
		}
	}
}

// Close ends the use of the executable; launches that were enqueued still run. Closing
// again does nothing.
//
// # Errors: [ErrInHostFunction].
//
// Contract: G6.
func (x *GraphExec) Close(t *Thread) error {
	if err := t.checkCaller("close executable"); err != nil {
		return err
	}
	if v := x.close(); v != nil {
		v.keep.release()
	}
	return nil
}

// Collect is Close for an owner that was collected, and returns what [Graph.Collect] does.
//
// Contract: G6.
func (x *GraphExec) Collect() (tokens []uint64) {
	if v := x.close(); v != nil {
		return v.keep.releaseTokens()
	}
	return nil
}

// close ends the use of the executable, and returns the version that it had, nil if it was closed.
func (x *GraphExec) close() *version {
	v := x.now.Swap(nil)
	if v != nil {
		x.d.Close()
		x.disown()
		if x.ended != nil {
			x.ended.release()
		}
	}
	return v
}

// keepEnded lets a version, and so each of its launches, be before what ExecOptions.Ended is called after.
func (x *GraphExec) keepEnded(v *version) {
	if x.ended != nil {
		v.keep.addKeep(x.ended)
	}
}

// Closed reports whether Close was called.
func (x *GraphExec) Closed() bool { return x.now.Load() == nil }

// Nodes returns how many nodes a launch runs, those of child graphs included.
func (x *GraphExec) Nodes() int {
	if v := x.now.Load(); v != nil {
		return len(v.nodes)
	}
	return 0
}

// Launch enqueues a run of all nodes as one operation on s. Where s captures, the graph
// becomes a node of that capture.
//
// # Errors
//   - [ErrInvalidValue]: memory that a node works on was freed, or what the graph allocates
//     is allocated since an earlier launch; nothing runs then.
//   - [ErrWrongDevice]: s belongs to another Runtime.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: G8, G10, G12. Source: CUDA driver API, cuGraphLaunch.
func (x *GraphExec) Launch(t *Thread, s *Stream) error {
	const op = "launch graph"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if s.dev.rt != x.rt {
		return otherRuntimeError(op, "the executable")
	}
	for {
		v, err := x.use(op)
		if err != nil {
			return err
		}
		if err = x.launch(t, s, v); err != driver.ErrUpdated { //nolint:errorlint // an error of the driver as it is
			return err
		}
	}
}

// launch is Launch with a use of v, which it takes over.
func (x *GraphExec) launch(t *Thread, s *Stream, v *version) error {
	if c := s.capture.Load(); c != nil {
		defer v.keep.release()
		if v.memory.any() {
			return c.refuse(s, "launch graph", "a graph that allocates or frees memory cannot be a node of another one; launch it by itself")
		}
		_, err := c.addChild(s, v.graph)
		return err
	}
	if v.memory.any() {
		if err := s.checkCapturedElsewhere("launch graph", "a graph that allocates or frees memory"); err != nil {
			v.keep.release()
			return err
		}
	}
	before, err := v.begin(s, x.autoFree)
	if err != nil {
		v.keep.release()
		return err
	}
	l := v.plain.Load()
	if s.listened() {
		l = &launched{Stream: s, x: x, v: v}
		l.announceLaunch(t, x)
	} else if l == nil || l.Stream != s {
		l = &launched{Stream: s, x: x, v: v}
		v.plain.Store(l)
	}
	err = x.d.Launch(s.d, l)
	s.endUses(v.blocks, err)
	if err != nil {
		v.undoMemory(s.dev.rt, before)
	} else {
		for _, e := range v.events {
			if l.tag == 0 { // with listeners it counts where the launch gets its place among the others
				e.version.Add(1)
			}
			e.captured.Store(nil)
			e.recordedOn.Store(s)
		}
	}
	return s.settle(t, l.tag, err)
}

// begin marks the memory of all nodes as used on s. It fails if a part of it was freed, or if
// what the graph allocates is still allocated. before is for undoMemory.
func (v *version) begin(s *Stream, autoFree bool) (before []bool, err error) {
	m := &s.dev.rt.memory
	m.mu.Lock()
	freed := v.freedBlock(m)
	if freed < 0 {
		err = v.checkMemory(autoFree)
	}
	if freed < 0 && err == nil {
		before = v.beginMemory()
		for _, b := range v.blocks {
			b.beginUse(s, "a graph")
		}
	}
	m.mu.Unlock()
	if freed < 0 {
		return before, err
	}
	return nil, v.freedError("launch graph", freed)
}

// checkFreed fails if memory that a node works on was freed.
func (v *version) checkFreed(rt *Runtime, op string) error {
	rt.memory.mu.Lock()
	freed := v.freedBlock(&rt.memory)
	rt.memory.mu.Unlock()
	if freed < 0 {
		return nil
	}
	return v.freedError(op, freed)
}

// freedBlock returns which one of the blocks was freed, -1 for none. The caller holds the memory's lock.
func (v *version) freedBlock(m *memoryState) int {
	return slices.IndexFunc(v.blocks, func(b *Block) bool {
		return b.freed || m.blocks.Find(b.Start) != b && !b.isCode()
	})
}

func (v *version) freedError(op string, block int) error {
	b, n := v.blocks[block], v.blockOf[block]
	return driver.Errorf(driver.InvalidValue, op, "the %d bytes at %#x that %s works on were freed; "+
		"keep memory until the last launch, or capture again", b.Size, b.Start, n.title())
}

// launched is a launch, or all launches of a version on a stream that no listener gets. It is their
// driver.GraphLaunch: functions go to the queue of its stream.
type launched struct {
	*Stream
	x   *GraphExec
	v   *version
	tag uint32
	// runs are the nodes while there are listeners, nil otherwise.
	runs []driver.NodeRun
}

// Begin implements driver.GraphLaunch.
func (l *launched) Begin() { l.v.running.Store(l.Stream) }

// End implements driver.GraphLaunch.
func (l *launched) End() { l.v.keep.release() }

// Current implements driver.GraphLaunch.
func (l *launched) Current() bool { return l.x.now.Load() == l.v }

// Tag implements driver.GraphLaunch.
func (l *launched) Tag() driver.Tag { return l.tag }

// Drop implements driver.Sink: the graph keeps the function for its next launch.
func (l *launched) Drop(uint64) *park.Parker { return nil }

// graphCall is a native function of a graph. It is its driver.NativeCall.
type graphCall struct {
	nativeCall
	v *version
}

// Run implements driver.NativeCall.
func (c *graphCall) Run() *driver.Error {
	run := c.nativeCall
	run.s, run.release = c.v.running.Load(), 0
	// A kernel takes longer where its accesses are noted.
	run.handsIn = c.handsIn && run.s.dev.rt.handsInTo(true) != nil
	err := run.Run()
	c.handed = run.handed
	return err
}

// Drop implements driver.NativeCall: the graph keeps the argument.
func (c *graphCall) Drop() {}

// NodeBuilder returns a stream on which the caller enqueues one operation, which BuiltUpdate puts
// in the place of a node of an executable: one of the same kind on the same device.
//
// # Errors
//   - [ErrInvalidValue]: the executable has no such node.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: G11. Source: CUDA driver API, cuGraphExecNodeSetParams.
func (x *GraphExec) NodeBuilder(t *Thread, index int) (*Stream, error) {
	const op = "update node"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	ordinal, err := x.NodeDevice(index)
	if err != nil {
		return nil, err
	}
	return x.rt.newGraph().Builder(t, x.rt.devices[ordinal], nil)
}

// NodeDevice returns the ordinal of the device that a node runs on.
//
// # Errors
//   - [ErrInvalidValue]: the executable has no such node.
//   - [ErrClosed].
func (x *GraphExec) NodeDevice(index int) (int, error) {
	v := x.now.Load()
	if v == nil {
		return 0, closedError("update node", "executable graph")
	}
	nodes := v.graph.nodes
	if index < 0 || index >= len(nodes) {
		return 0, driver.Errorf(driver.InvalidValue, "update node", "the graph has no node %d, but %d nodes", index, len(nodes))
	}
	return nodes[index].device, nil
}

// BuiltUpdate makes later launches do at a node of an executable what was enqueued on s, a stream
// of NodeBuilder.
//
// # Errors
//   - [ErrCapture]: the operation is of another kind than the node.
//   - [ErrInvalidValue]: not exactly one was enqueued.
//   - [ErrClosed].
//
// Contract: G11. Source: CUDA driver API, cuGraphExecNodeSetParams.
func (x *GraphExec) BuiltUpdate(s *Stream, index int) error {
	const op = "update node"
	n, err := s.Built()
	if err != nil {
		return err
	}
	defer n.graph.keep.release()
	return x.become(nil, op, func(before *version) (*version, error) {
		old := before.graph.nodes[index]
		switch {
		case old.kind != n.kind:
			return nil, captureError(codeUpdate, op, "%s cannot become a node of kind %s; give an operation of its kind", old.title(), n.Kind())
		case old.device != n.device:
			return nil, captureError(codeUpdate, op, "%s cannot move from device %d to device %d", old.title(), old.device, n.device)
		case n.kind == driver.AllocNode || n.kind == driver.FreeNode:
			return nil, captureError(codeUpdate, op, "%s cannot change: its address is that of the graph", old.title())
		}
		return before.replaced(index, n), nil
	})
}

// replaced returns a version with another node in the place of one. It keeps what the graph that
// was instantiated keeps, and what the nodes that stand for others do, but not what those did that
// were replaced twice.
func (v *version) replaced(index int, n *Node) *version {
	own := maps.Clone(v.own)
	if own == nil {
		own = map[int]*keep{}
	}
	own[index] = n.graph.keep
	g := v.graph.copyInto(v.graph.rt.newGraph())
	g.keep.addKeep(v.base)
	for _, k := range own {
		g.keep.addKeep(k)
	}
	old := g.nodes[index]
	after, stream := old.after, old.stream
	*old = *n
	old.graph, old.index, old.after, old.stream = g, index, after, stream
	return g.versionOf(v.base, own)
}

// Upload prepares the next launch of the executable, so that it takes no longer than later ones.
//
// # Errors: as for Launch, but that memory is not looked at.
//
// Contract: G11. Source: CUDA driver API, cuGraphUpload.
func (x *GraphExec) Upload(t *Thread, s *Stream) error {
	const op = "upload graph"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if x.Closed() {
		return closedError(op, "executable graph")
	}
	if s.dev.rt != x.rt {
		return otherRuntimeError(op, "the executable")
	}
	if c := s.capture.Load(); c != nil {
		return c.refuse(s, op, "upload the graph before the capture begins")
	}
	if u, ok := x.d.(driver.Uploader); ok {
		return u.Upload(s.d)
	}
	return nil
}

// What an update of an executable may not change.

// refuseUpdate is the error of an update to a graph that differs in more than what its nodes do.
func refuseUpdate(format string, args ...any) error {
	return captureError(codeUpdate, "update executable", format+"; instantiate the new graph", args...)
}

// differs returns the error of an update to v.
func (v *version) differs(before *version) error {
	if !slices.Equal(v.memory.allocates, before.memory.allocates) || !slices.Equal(v.memory.frees, before.memory.frees) {
		return refuseUpdate("the nodes that allocate or free memory cannot change, whose address is that of one graph")
	}
	if was, is := len(before.graph.nodes), len(v.graph.nodes); was != is {
		return refuseUpdate("the topology changed: the number of nodes is %d, and was %d", is, was)
	}
	return before.differ(&v.nodeTable)
}

// differ returns the error of an update of nodes to others.
func (t *nodeTable) differ(to *nodeTable) error {
	for i := range min(len(t.nodes), len(to.nodes)) {
		a, b := &t.nodes[i], &to.nodes[i]
		what := to.from[i].title() + to.inside[i].text()
		switch was, is := t.from[i].Kind(), to.from[i].Kind(); {
		case !t.inside[i].same(to.inside[i]):
			return refuseUpdate("the topology changed%s: it has more or fewer nodes", deeper(t.inside[i], to.inside[i]).text())
		case was != is:
			return refuseUpdate("the type of %s changed from %s to %s", t.from[i].title()+t.inside[i].text(), was, is)
		case !slices.Equal(a.After, b.After):
			return refuseUpdate("the topology changed: %s comes after other nodes", what)
		case a.Device != b.Device:
			return refuseUpdate("%s moved from device %d to device %d", what, a.Device, b.Device)
		}
		if len(t.bodies[i]) != len(to.bodies[i]) {
			return refuseUpdate("%s has %d bodies, and had %d", what, len(to.bodies[i]), len(t.bodies[i]))
		}
		for k, body := range to.bodies[i] {
			if err := t.bodies[i][k].differ(body); err != nil {
				return err
			}
		}
	}
	if len(t.nodes) != len(to.nodes) { // in a body, or in a graph at its end
		longer := t
		if len(to.nodes) > len(t.nodes) {
			longer = to
		}
		at := longer.inside[min(len(t.nodes), len(to.nodes))]
		return refuseUpdate("the topology changed%s: it has more or fewer nodes", at.text())
	}
	return nil
}

// same reports whether two places inside of nodes are the same.
func (in *Inside) same(other *Inside) bool {
	if in == nil || other == nil {
		return in == other
	}
	return in.Of.index == other.Of.index && in.Body == other.Body && in.Outer.same(other.Outer)
}

// deeper returns the place that is inside of more nodes.
func deeper(a, b *Inside) *Inside {
	for x, y := a, b; ; x, y = x.Outer, y.Outer {
		switch {
		case x == nil:
			return b
		case y == nil:
			return a
		}
	}
}

// text says where a node is, behind its title: "" in the graph itself.
func (in *Inside) text() string {
	switch {
	case in == nil:
		return ""
	case in.Of.child != nil:
		return " in the graph of " + in.Of.title() + in.Outer.text()
	}
	return fmt.Sprintf(" in body %d of %s", in.Body, in.Of.title()) + in.Outer.text()
}

// NodeList is the nodes of a graph in the order and form in which an executable runs
// them: each comes after those that it depends on, and a node that is a graph is followed
// by the nodes of that graph. Behind all of them are the nodes of bodies, which a launch may
// run once, often or not at all. It never changes.
type NodeList struct {
	nodes  []*Node // without those of bodies
	listed []listed
	// branches are the numbers of the nodes' branches.
	branches []int
}

// listed is a node in a list.
type listed struct {
	node   *Node
	inside *Inside
	after  []int
	// owner is the node with a condition whose body the node is in, -1 for none, and members
	// are the nodes of its own bodies, each behind those that it depends on.
	owner   int
	members []int
}

// Inside says in which node's graph a node is, where that is not the graph itself.
type Inside struct {
	// Of is a node that is a graph or has a condition, in its graph, and Body the number of the
	// body, from 0.
	Of   *Node
	Body int
	// Outer says where Of is, nil if it is in the graph itself.
	Outer *Inside
}

// list returns the nodes with what they come after.
func (v *version) list() *NodeList {
	l := &NodeList{nodes: v.from, listed: make([]listed, 0, len(v.nodes))}
	l.add(&v.nodeTable, -1)
	l.branch()
	return l
}

// add lists nodes and those of their bodies, and notes them as members of their owner.
func (l *NodeList) add(t *nodeTable, owner int) {
	base := len(l.listed)
	for i, n := range t.from {
		one := listed{node: n, inside: t.inside[i], after: t.nodes[i].After, owner: owner}
		if owner >= 0 {
			one.after = make([]int, len(t.nodes[i].After))
			for k, dep := range t.nodes[i].After {
				one.after[k] = base + dep
			}
			l.listed[owner].members = append(l.listed[owner].members, base+i)
		}
		l.listed = append(l.listed, one)
	}
	for i := range t.from {
		for _, body := range t.bodies[i] {
			l.add(body, base+i)
		}
	}
}

// listOnce is list, the same each time.
func (v *version) listOnce() *NodeList {
	v.listed.Do(func() { v.nodeList = v.list() })
	return v.nodeList
}

// notify notifies the listeners that x runs v from now on, which was made of g.
func (x *GraphExec) notify(t *Thread, kind OperationKind, g *Graph, v *version) {
	if x.rt.listened() {
		x.rt.notifyHost(Operation{Kind: kind, Stream: x.rt.devices[0].legacy, Thread: t, Graph: g, Exec: x, Nodes: v.listOnce()})
	}
}

// Len returns how many nodes each launch runs.
func (l *NodeList) Len() int { return len(l.nodes) }

// All returns how many nodes there are with those of bodies, whose numbers begin with Len.
func (l *NodeList) All() int { return len(l.listed) }

// Node returns the i-th node. A node that is a graph is there twice, before and behind
// the nodes of that graph, without accesses of its own.
func (l *NodeList) Node(i int) *Node { return l.listed[i].node }

// After returns the numbers of the nodes that the i-th one comes after, which are lower. Of a
// node in a body they are in that body.
func (l *NodeList) After(i int) []int { return l.listed[i].after }

// Owner returns the number of the node with a condition in one of whose bodies the i-th node is,
// the innermost one; -1 if there is none.
func (l *NodeList) Owner(i int) int { return l.listed[i].owner }

// Members returns the numbers of the nodes in the bodies of the i-th node, without those of
// bodies in these, body by body, each node behind those that it comes after.
func (l *NodeList) Members(i int) []int { return l.listed[i].members }

// Inside says in which node's graph the i-th node is, nil for one of the graph itself.
func (l *NodeList) Inside(i int) *Inside { return l.listed[i].inside }

// Branch returns the number of the i-th node's branch, from 0: nodes of one branch follow
// each other.
func (l *NodeList) Branch(i int) int { return l.branches[i] }

// branch puts each node on the branch of the first node before it that nothing follows there
// yet, and else on a new one.
func (l *NodeList) branch() {
	l.branches = make([]int, len(l.nodes))
	var tails []int // the last node of each branch
	for i := range l.nodes {
		on := -1
		for _, dep := range l.listed[i].after {
			if b := l.branches[dep]; tails[b] == dep {
				on = b
				break
			}
		}
		if on < 0 {
			on = len(tails)
			tails = append(tails, i)
		}
		l.branches[i], tails[on] = on, i
	}
}

// Event returns the event that a node records or waits for, nil for other nodes.
func (n *Node) Event() *Event { return n.event }

// Device returns the ordinal of the device that the node runs on.
func (n *Node) Device() int { return n.device }

// announceLaunch announces a launch of v, whose nodes get numbers of their own, and
// prepares what watches them.
func (l *launched) announceLaunch(t *Thread, x *GraphExec) {
	rt := l.dev.rt
	v := l.v
	nodes := v.listOnce()
	o := Operation{ID: rt.listeners.numbers(1 + nodes.All()), Kind: OpLaunchGraph, Thread: t, Exec: x,
		Reads: v.reads, Writes: v.writes, Nodes: nodes}
	in := rt.handsInTo(rt.sim != nil) // graphs of vendors call nothing of ours behind a node
	o.HandsIn = in != nil
	l.tag = o.ID
	l.runs = make([]driver.NodeRun, len(v.nodes))
	var notified []func()
	for i := range l.runs {
		id, n := o.NodeID(i), v.from[i]
		run := &l.runs[i]
		run.Tag = id
		switch n.kind {
		case driver.CallNode:
			if w := rt.newWideWatch(id, Accesses{Reads: n.reads, Writes: n.writes}); w != nil {
				run.Sink = nodeSink{l, w}
			}
		case driver.NativeNode, driver.KernelNode:
			if n.spec.Native == nil { // a kernel of a vendor's
				break
			}
			if n.spec.Native.Call != nil {
				run.Before, run.After = rt.newDeclaredWatch(id, n.reads, n.writes)
			} else if w := rt.newWideWatch(id, Accesses{Reads: n.reads, Writes: n.writes}); w != nil {
				run.Before, run.After = w.onThread()
			}
			if n.handsIn && in != nil {
				call, after := v.nodes[i].Native.Call.(*graphCall), run.After
				report := rt.handIn(in, id, &handedIn{reads: n.reads, writes: n.writes})
				run.After = func() {
					if after != nil {
						after()
					}
					report(call.handed)
				}
			}
		case driver.CopyNode:
			c := n.spec.Copy
			if src := n.blocks[0]; src == nil || src.Kind != Pinned {
				break
			}
			from, _ := span(c.Src, c.SrcPitch, c.Width, c.Height)
			before, after := rt.watchSource(id, CopySpec{Dst: c.Dst, Src: c.Src, DstPitch: c.DstPitch, SrcPitch: c.SrcPitch,
				Width: c.Width, Height: c.Height}, from, n.blocks[0])
			run.Before = before
			if after != nil {
				notified = append(notified, after)
			}
		}
	}
	if len(notified) > 0 {
		o.afterNotify = func() {
			for _, f := range notified {
				f()
			}
		}
	}
	l.announce(&o)
}

// NodeRuns implements driver.GraphLaunch.
func (l *launched) NodeRuns() []driver.NodeRun { return l.runs }

// NodeTitle implements driver.GraphLaunch.
func (l *launched) NodeTitle(index int) string { return l.v.listOnce().Node(index).title() }

// NodeVersion is the version of the event that a node of a launch records, or waits for.
type NodeVersion struct {
	Node    int
	Version uint64
}

// nodeSink is the driver.Sink of a watched function of a launch.
type nodeSink struct {
	*launched
	w *watch
}

// Ready implements driver.Sink.
func (x nodeSink) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	return x.dev.rt.Funcs.push(level, readyFunc{token: token, stream: x.Stream, c: c, watch: x.w})
}
