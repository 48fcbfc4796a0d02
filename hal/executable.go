package hal

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
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
}

// ExecOptions are options of an executable. The zero value is the default.
type ExecOptions struct {
	// AutoFree frees memory that the graph allocates, and that nothing has freed since the
	// launch before, at the next launch, which else fails.
	AutoFree bool
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

// Instantiate makes an executable of the graph as it is now.
//
// # Errors
//   - [ErrNotSupported]: the graph allocates memory and has an executable already, or the
//     backend does not have nodes of a kind.
//   - [ErrInvalidValue]: memory that a node works on was freed.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: G8, G10, G12.
func (g *Graph) Instantiate(t *Thread) (*GraphExec, error) {
	return g.InstantiateWith(t, ExecOptions{})
}

// InstantiateWith is Instantiate with options.
//
// # Errors: as for Instantiate.
//
// Contract: G8, G10, G12. Source: CUDA driver API, cuGraphInstantiate.
func (g *Graph) InstantiateWith(t *Thread, o ExecOptions) (*GraphExec, error) {
	const op = "instantiate"
	if err := g.checkNodes(t, op, nil); err != nil {
		return nil, err
	}
	drv, err := g.rt.graphDriver(op)
	if err != nil {
		return nil, err
	}
	x := &GraphExec{rt: g.rt, autoFree: o.AutoFree}
	if g.refuseMemory(op, "") != nil {
		if !g.owned.CompareAndSwap(false, true) {
			return nil, driver.Errorf(driver.NotSupported, op,
				"the graph allocates or frees memory, and has an executable already: close that first")
		}
		x.source = g
	}
	v := g.version()
	if err = v.check(op); err == nil {
		x.d, err = drv.Instantiate(v.nodes)
	}
	if err != nil {
		v.keep.release()
		x.disown()
		return nil, err
	}
	x.now.Store(v)
	x.notify(t, OpInstantiate, g, v)
	return x, nil
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

// version returns the graph in the form that is launched.
func (g *Graph) version() *version {
	return g.view().versionOf(g.keep, nil)
}

// versionOf returns g, a view or a clone, in the form that is launched.
func (g *Graph) versionOf(base *keep, own map[int]*keep) *version {
	v := &version{keep: g.keep, base: base, own: own, graph: g, memory: &g.memory}
	v.writes = make([]Range, 0, len(g.nodes)) // most nodes have one
	v.flatten(&v.nodeTable, g, nil, nil)
	v.has = nil // nothing is added any more
	for _, n := range v.calls {
		n.v = v
	}
	return v
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
	if n.Kind == driver.NativeNode {
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
	}
	return v
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
