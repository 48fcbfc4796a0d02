package hal

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// Graph is a set of operations with edges that order them. It is made by capturing
// streams, or node by node with Add, and runs once it is instantiated.
type Graph struct {
	rt     *Runtime
	keep   *keep
	mu     sync.Mutex
	nodes  []*Node
	room   []Node // for the next nodes: to allocate each by itself takes longer than to capture it
	closed atomic.Bool
	memory memoryNodes
	// owned says that there is an executable: of a graph that allocates memory there is one at a time.
	owned atomic.Bool
	// viewed is the graph whose nodes these are, of a view of it, and before is what each of them came after then.
	viewed *Graph
	before [][]*Node
}

// Node is an operation of a graph. What it does never changes.
type Node struct {
	graph  *Graph
	index  int
	device int
	kind   driver.GraphNodeKind
	level  uint8
	site   uint32
	token  uint64            // of a function of the program
	spec   *driver.GraphWork // the rest of what it does, by its kind; nil for nothing. It is shared by clones
	name   string
	after  []*Node
	reads  []Range
	writes []Range
	// handsIn: reads and writes are an upper bound, see NativeFunc.
	handsIn bool
	// complete says that a function works on nothing but reads and writes.
	complete bool
	blocks   []*Block
	event    *Event
	child    *Graph   // of a graph node
	bodies   []*Graph // of a node with a condition
	stream   *Stream  // that it was captured on
	self     [1]*Node // the node, as the list of those that the next one comes after
}

// forDriver returns what the driver gets, all but After and, of RecordNode and WaitNode, Event.
func (n *Node) forDriver() driver.GraphNode {
	return driver.GraphNode{Kind: n.kind, Device: n.device, Level: n.level, Site: n.site, Token: n.token, GraphWork: n.spec}
}

// Kind returns what the node does.
func (n *Node) Kind() OperationKind { return kindOfNode(n.kind) }

// Index returns the number of the node in its graph, from 0.
func (n *Node) Index() int { return n.index }

// Site identifies where the program made the call that became the node, 0 if unknown.
func (n *Node) Site() uint32 { return n.site }

// Accesses returns the ranges that the node reads and writes.
func (n *Node) Accesses() (reads, writes []Range) { return n.reads, n.writes }

// HandsIn reports whether these are an upper bound in a launch: what the node accesses comes when
// it has run (Inspector.HandedIn). A node of a body, which may run several times, hands in nothing.
func (n *Node) HandsIn() bool { return n.handsIn }

// Complete reports whether a function works on nothing but its Accesses.
func (n *Node) Complete() bool { return n.complete }

// Token returns the function of a call node, 0 for others.
func (n *Node) Token() uint64 { return n.token }

// Name returns what the program calls the node, "" where it has given no name.
func (n *Node) Name() string { return n.name }

// Stream returns the stream that the node was captured on, nil for one of Add.
func (n *Node) Stream() *Stream { return n.stream }

// Child returns the graph of a graph node, nil for others.
func (n *Node) Child() *Graph { return n.child }

// After returns the nodes that the node comes after.
func (n *Node) After() []*Node {
	n.graph.mu.Lock()
	defer n.graph.mu.Unlock()
	return slices.Clone(n.after)
}

// title names the node in texts.
func (n *Node) title() string {
	text := fmt.Sprintf("node %d (%s", n.index, n.Kind())
	if n.name != "" {
		text += " " + n.name
	}
	return text + n.graph.rt.at(n.site) + ")"
}

// Nodes returns the nodes in the order in which they were added.
//
// Contract: G5.
func (g *Graph) Nodes() []*Node {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.nodes)
}

// Size returns how many nodes there are.
//
// Contract: G5.
func (g *Graph) Size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.nodes)
}

// add appends a copy of a node. The caller holds mu.
func (g *Graph) add(n *Node) *Node {
	if len(g.room) == 0 {
		g.room = make([]Node, min(max(len(g.nodes), leastRoom), mostRoom))
	}
	made := &g.room[0]
	g.room = g.room[1:]
	*made = *n
	made.graph, made.index = g, len(g.nodes)
	g.nodes = append(g.nodes, made)
	g.memory.note(made)
	return made
}

// leastRoom and mostRoom bound how many nodes are allocated at a time.
const leastRoom, mostRoom = 4, 64

// Add adds the node that enqueue makes: it makes one call that enqueues, on the stream
// that it is given, which is one of d and of the graph only. The node comes after the
// given ones.
//
// # Errors
//   - [ErrInvalidValue]: a node belongs to another graph, or enqueue made no node.
//   - [ErrClosed], and the errors of enqueue.
//
// Contract: G5.
func (g *Graph) Add(t *Thread, d *Device, after []*Node, enqueue func(*Stream) error) (*Node, error) {
	s, err := g.Builder(t, d, after)
	if err != nil {
		return nil, err
	}
	if err := enqueue(s); err != nil {
		s.Unbuilt()
		return nil, err
	}
	return s.Built()
}

// AddEmpty adds a node that only orders others.
//
// # Errors: as for Add.
//
// Contract: G5.
func (g *Graph) AddEmpty(t *Thread, after []*Node) (*Node, error) {
	return g.Add(t, g.rt.devices[0], after, func(s *Stream) error { return s.Nop(t) })
}

// AddChild adds a graph as one node: a clone of child as it is now.
//
// # Errors: as for Add.
//
// Contract: G5.
func (g *Graph) AddChild(t *Thread, after []*Node, child *Graph) (*Node, error) {
	if err := child.refuseMemory("add node", "it cannot be a node of another graph; capture its work there"); err != nil {
		return nil, err
	}
	return g.Add(t, g.rt.devices[0], after, func(s *Stream) error {
		_, err := s.capture.Load().addChild(s, child)
		return err
	})
}

// Builder returns the stream of Add, for callers that end with Built or Unbuilt themselves.
//
// # Errors: as for Add.
//
// Contract: G5.
func (g *Graph) Builder(t *Thread, d *Device, after []*Node) (*Stream, error) {
	if err := g.checkNodes(t, "add node", after); err != nil {
		return nil, err
	}
	s := &Stream{dev: d, d: d.legacy.d, level: d.legacy.level}
	own := g.rt.newGraph() // so that g has the node only when all went well
	own.room = make([]Node, 1)
	s.capture.Store(&Capture{rt: g.rt, graph: own, target: g, origin: s, mode: RelaxedMode,
		first: branch{tails: slices.Clone(after)}})
	return s, nil
}

// result returns the graph that the nodes are for.
func (c *Capture) result() *Graph {
	if c.target != nil {
		return c.target
	}
	return c.graph
}

// onlyNode returns the node that was built.
func (c *Capture) onlyNode(op string) (*Node, error) {
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	if c.cause != nil {
		return nil, c.invalidated(op, "")
	}
	made := len(c.graph.nodes)
	if made == 0 && c.anyRecord {
		return nil, driver.Errorf(driver.InvalidValue, op, "the call made no node: it recorded an event, which a graph does "+
			"only as an external one; use record_external")
	}
	if made != 1 {
		return nil, driver.Errorf(driver.InvalidValue, op, "the call made %d nodes; enqueue one operation", made)
	}
	return c.graph.nodes[0], nil
}

// dropNodes gives up what was built, with what it keeps.
func (c *Capture) dropNodes() {
	c.graph.mu.Lock()
	nodes := c.graph.nodes
	c.graph.mu.Unlock()
	for _, n := range nodes {
		if n.kind == driver.FreeNode {
			n.blocks[0].freedByNone(n) // now, as the program may free it by another node at once
		}
	}
	c.graph.keep.release()
}

// adopt makes a node that was built one of g.
func (g *Graph) adopt(n *Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n.graph, n.index = g, len(g.nodes)
	g.nodes = append(g.nodes, n)
	g.memory.note(n)
}

// AddEdge makes node to come after node from.
//
// # Errors
//   - [ErrInvalidValue]: a node belongs to another graph, or the edge exists or would
//     close a cycle.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: G5.
func (g *Graph) AddEdge(t *Thread, from, to *Node) error {
	const op = "add edge"
	if err := g.checkNodes(t, op, []*Node{from, to}); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(to.after, from) {
		return driver.Errorf(driver.InvalidValue, op, "node %d comes after node %d already", to.index, from.index)
	}
	if from == to {
		return driver.Errorf(driver.InvalidValue, op, "node %d cannot come after itself; give two nodes", to.index)
	}
	if g.upTo([]*Node{from})[to.index] {
		return driver.Errorf(driver.InvalidValue, op,
			"node %d comes before node %d, so that the edge would close a cycle", to.index, from.index)
	}
	to.after = append(slices.Clone(to.after), from)
	return nil
}

// upTo returns, by index, which nodes are the given ones or come before them. The caller
// holds mu.
func (g *Graph) upTo(nodes []*Node) []bool {
	seen := make([]bool, len(g.nodes))
	todo := slices.Clone(nodes)
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[n.index] {
			seen[n.index] = true
			todo = append(todo, n.after...)
		}
	}
	return seen
}

// checkNodes rejects nodes of other graphs, and a closed graph.
func (g *Graph) checkNodes(t *Thread, op string, nodes []*Node) error {
	if err := t.checkCaller(op); err != nil {
		return err
	}
	if g.closed.Load() {
		return closedError(op, "graph")
	}
	for _, n := range nodes {
		if n == nil || n.graph != g {
			return driver.Errorf(driver.InvalidValue, op, "a node belongs to another graph; give nodes of this one")
		}
	}
	return nil
}

// The order of the nodes of a graph.

// view returns the graph as it is now, with the same nodes: what they do never changes, and edges that are added later
// are not those of the view. It keeps what the graph keeps.
func (g *Graph) view() *Graph {
	g.mu.Lock()
	defer g.mu.Unlock()
	nodes := slices.Clip(g.nodes)
	v := g.rt.newGraph()
	v.viewed, v.nodes, v.before = g, nodes, make([][]*Node, len(nodes))
	for i, n := range nodes {
		v.before[i] = n.after
	}
	v.memory = memoryNodes{slices.Clip(g.memory.allocates), slices.Clip(g.memory.frees)}
	v.keep.addKeep(g.keep)
	return v
}

// afterOf returns what a node of the graph comes after. The caller holds mu, unless the graph is a view.
func (g *Graph) afterOf(n *Node) []*Node {
	if g.viewed != nil {
		return g.before[n.index]
	}
	return n.after
}

// edges returns how many edges there are. The caller holds mu.
func (g *Graph) edges() (count int) {
	for _, n := range g.nodes {
		count += len(g.afterOf(n))
	}
	return count
}

// sorted returns the nodes so that each comes after those that it depends on. AddEdge
// lets no cycle in. The caller holds mu.
func (g *Graph) sorted() []*Node {
	if g.inOrder() {
		return g.nodes
	}
	done := make([]bool, len(g.nodes))
	list := make([]*Node, 0, len(g.nodes))
	var todo []*Node
	for _, n := range g.nodes {
		todo = append(todo[:0], n)
		for len(todo) > 0 {
			n := todo[len(todo)-1]
			pending := len(todo)
			if !done[n.index] {
				for _, dep := range g.afterOf(n) {
					if !done[dep.index] {
						todo = append(todo, dep)
					}
				}
			}
			if len(todo) > pending {
				continue
			}
			todo = todo[:pending-1]
			if !done[n.index] {
				done[n.index] = true
				list = append(list, n)
			}
		}
	}
	return list
}

// inOrder reports whether each node comes after nodes that were added before it only, as it is so in captures.
// The caller holds mu.
func (g *Graph) inOrder() bool {
	for i, n := range g.nodes {
		for _, dep := range g.afterOf(n) {
			if dep.index > i {
				return false
			}
		}
	}
	return true
}

// Clone returns a copy of the graph. It keeps the same functions and arguments alive.
//
// # Errors
//   - [ErrNotSupported]: it allocates or frees memory.
//   - [ErrClosed], [ErrInHostFunction].
//
// Contract: G5, G12.
func (g *Graph) Clone(t *Thread) (*Graph, error) {
	if err := g.checkNodes(t, "clone graph", nil); err != nil {
		return nil, err
	}
	if err := g.refuseMemory("clone graph", "it cannot be cloned; capture it again"); err != nil {
		return nil, err
	}
	return g.clone(), nil
}

func (g *Graph) clone() *Graph {
	c := g.copyInto(g.rt.newGraph())
	c.keep.addKeep(g.keep)
	return c
}

// copyInto adds the nodes of g to c, which has none, and returns c.
func (g *Graph) copyInto(c *Graph) *Graph {
	of := g
	if g.viewed != nil {
		of = g.viewed
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	c.nodes, c.room = make([]*Node, 0, len(g.nodes)), make([]Node, len(g.nodes))
	for _, n := range g.nodes {
		c.add(n)
	}
	after := make([]*Node, 0, g.edges())
	for i, n := range c.nodes {
		before := len(after)
		for _, dep := range g.afterOf(g.nodes[i]) {
			after = append(after, c.nodes[dep.index])
		}
		n.after = after[before:len(after):len(after)]
	}
	return c
}

// Closed reports whether Close was called.
func (g *Graph) Closed() bool { return g.closed.Load() }

// Close ends the use of the graph, whose nodes are asked for no more. Its executables and
// their launches go on. Closing again does nothing.
//
// # Errors: [ErrInHostFunction].
//
// Contract: G6.
func (g *Graph) Close(t *Thread) error {
	if err := t.checkCaller("close graph"); err != nil {
		return err
	}
	if g.closed.CompareAndSwap(false, true) {
		g.keep.release()
	}
	return nil
}

// Collect is Close for an owner that was collected. It returns the tokens of the functions of the program that nothing
// uses any more, which the caller drops itself; see [Runtime.SetKept].
//
// Contract: G6.
func (g *Graph) Collect() (tokens []uint64) {
	if !g.closed.CompareAndSwap(false, true) {
		return nil
	}
	return g.keep.releaseTokens()
}

// GraphCondition is a word of 4 bytes in pinned memory that nodes of a graph look at. Any node, and
// any function, may write it.
type GraphCondition struct {
	// Addr is its address.
	Addr uint64
	// Initial is what each launch of the graph begins with, if Resets is set.
	Initial uint32
	Resets  bool
}

// AddIf adds a node that runs a graph, a clone of body as it is now, if the condition is not 0
// when the node begins.
//
// # Errors
//   - [ErrInvalidValue]: the condition is not in pinned memory of the runtime.
//   - [ErrNotSupported]: body allocates or frees memory, or has external events.
//   - As for Add.
//
// Contract: G13. Source: CUDA driver API, cuGraphConditionalHandleCreate.
func (g *Graph) AddIf(t *Thread, after []*Node, c GraphCondition, body *Graph) (*Node, error) {
	return g.addCondition(t, after, c, []*Graph{body}, driver.IfNode)
}

// AddIfElse adds a node that runs body if the condition is not 0 when the node begins, and otherwise
// if it is.
//
// # Errors: as for AddIf.
//
// Contract: G13. Source: CUDA driver API, cuGraphConditionalHandleCreate.
func (g *Graph) AddIfElse(t *Thread, after []*Node, c GraphCondition, body, otherwise *Graph) (*Node, error) {
	return g.addCondition(t, after, c, []*Graph{body, otherwise}, driver.IfNode)
}

// AddSwitch adds a node that runs the graph that the condition is the number of when the node begins,
// counted from 0, and nothing if there is none.
//
// # Errors
//   - [ErrInvalidValue]: there are no graphs.
//   - As for AddIf.
//
// Contract: G13. Source: CUDA driver API, cuGraphConditionalHandleCreate.
func (g *Graph) AddSwitch(t *Thread, after []*Node, c GraphCondition, bodies []*Graph) (*Node, error) {
	if len(bodies) == 0 {
		return nil, driver.Errorf(driver.InvalidValue, "add node", "a switch has one graph at least, and none was given")
	}
	return g.addCondition(t, after, c, bodies, driver.SwitchNode)
}

// AddWhile adds a node that runs a graph again and again, each time if the condition is not 0.
//
// # Errors
//   - [ErrInvalidValue]: nothing in body can change the condition.
//   - As for AddIf.
//
// Contract: G13. Source: CUDA driver API, cuGraphConditionalHandleCreate.
func (g *Graph) AddWhile(t *Thread, after []*Node, c GraphCondition, body *Graph) (*Node, error) {
	return g.addCondition(t, after, c, []*Graph{body}, driver.WhileNode)
}

func (g *Graph) addCondition(t *Thread, after []*Node, c GraphCondition, bodies []*Graph, kind driver.GraphNodeKind) (*Node, error) {
	const op = "add node"
	word := Range{Start: c.Addr, Size: 4}
	blocks := g.rt.blocksOf([]Range{word})
	if blocks == nil || blocks[0].Kind != Pinned || word.Start+word.Size > blocks[0].Start+blocks[0].Size || c.Addr%4 != 0 {
		return nil, driver.Errorf(driver.InvalidValue, op, "a condition is a word of 4 bytes in pinned memory, and %#x is none", c.Addr)
	}
	own := make([]*Graph, 0, len(bodies))
	defer func() {
		for _, body := range own {
			body.keep.release()
		}
	}()
	for _, body := range bodies {
		switch {
		case body.rt != g.rt:
			return nil, otherRuntimeError(op, "the body")
		case body.Closed():
			return nil, closedError(op, "graph")
		}
		if err := body.refuseMemory(op, "it cannot be a body; allocate in the graph around it"); err != nil {
			return nil, err
		}
		own = append(own, body.clone())
		if err := own[len(own)-1].checkBody(op); err != nil {
			return nil, err
		}
	}
	if kind == driver.WhileNode && !own[0].mayWrite(word) {
		return nil, driver.Errorf(driver.InvalidValue, op,
			"nothing in the body can change the condition, so that the node would never end; add a function, a copy or a fill that does")
	}
	return g.Add(t, g.rt.devices[0], after, func(s *Stream) error {
		n := &Node{kind: kind, spec: &driver.GraphWork{Condition: driver.GraphCondition{Addr: c.Addr, Initial: c.Initial, Resets: c.Resets}},
			bodies: slices.Clone(own), blocks: blocks, reads: []Range{word}}
		for _, body := range own {
			for _, m := range body.nodes {
				n.reads, n.writes = append(n.reads, m.reads...), append(n.writes, m.writes...)
			}
		}
		capture := s.capture.Load()
		if err := capture.addNode(s, n); err != nil {
			return err
		}
		for _, body := range own {
			capture.graph.keep.addKeep(body.keep)
		}
		return nil
	})
}

// Condition returns the word that a node with a condition looks at, as a range, an empty one for
// other nodes.
func (n *Node) Condition() Range {
	if !n.kind.Conditional() {
		return Range{}
	}
	return Range{Start: n.spec.Condition.Addr, Size: 4}
}

// Bodies returns the graphs that a node with a condition may run, in their order, none for others.
func (n *Node) Bodies() []*Graph { return slices.Clone(n.bodies) }

// inner returns the graphs that the node has: its child or its bodies.
func (n *Node) inner() []*Graph {
	if n.child != nil {
		return []*Graph{n.child}
	}
	return n.bodies
}

// checkBody rejects nodes that a body cannot have. Nobody else knows the graph.
func (g *Graph) checkBody(op string) error {
	for _, n := range g.nodes {
		if n.kind == driver.RecordNode || n.kind == driver.WaitNode {
			return driver.Errorf(driver.NotSupported, op, "%s cannot be in a body: how often it runs is not known; "+
				"put it before or behind the condition", n.title())
		}
		for _, inner := range n.inner() {
			if err := inner.checkBody(op); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBodies rejects nodes that the backend cannot run in a body.
func (g *Graph) checkBodies(op string) error {
	checker, ok := g.rt.drv.(driver.BodyChecker)
	if !ok {
		return nil
	}
	for _, n := range g.nodes {
		if n.child != nil {
			if err := n.child.checkBodies(op); err != nil {
				return err
			}
		}
		on := -1 // where the work of the bodies begins
		for _, body := range n.bodies {
			for _, m := range body.leaves(nil) {
				if on < 0 && m.kind != driver.EmptyNode {
					on = m.device
				}
				spec := m.forDriver()
				if why := checker.CheckBody(on, &spec); why != "" {
					return driver.Errorf(driver.NotSupported, op, "%s cannot be in a body on the %s backend: %s", m.title(), g.rt.Name(), why)
				}
			}
		}
	}
	return nil
}

// leaves appends the nodes of the graph, and of those inside of it, that have no nodes themselves.
func (g *Graph) leaves(found []*Node) []*Node {
	for _, n := range g.nodes {
		inner := n.inner()
		for _, body := range inner {
			found = body.leaves(found)
		}
		if inner == nil {
			found = append(found, n)
		}
	}
	return found
}

// mayWrite reports whether a node may write to a range: a function or a kernel may, whatever was declared
// of it, a copy or a fill where it writes.
func (g *Graph) mayWrite(at Range) bool {
	return slices.ContainsFunc(g.nodes, func(n *Node) bool {
		switch n.kind {
		case driver.CallNode, driver.NativeNode, driver.KernelNode:
			return true
		case driver.CopyNode, driver.FillNode:
			return slices.ContainsFunc(n.writes, func(r Range) bool { return r.Start < at.Start+at.Size && at.Start < r.Start+r.Size })
		}
		return slices.ContainsFunc(n.inner(), func(inner *Graph) bool { return inner.mayWrite(at) })
	})
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
	if o.Ended != nil {
		x.ended = newKeep(g.rt)
		x.ended.add(o.Ended)
		x.keepEnded(v)
	}
	x.now.Store(v)
	x.notify(t, OpInstantiate, g, v)
	return x, nil
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

// NodeList returns the nodes as an executable of the graph would run them now.
func (g *Graph) NodeList() *NodeList {
	v := g.version()
	defer v.keep.release()
	return v.list()
}
