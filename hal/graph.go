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
	blocks []*Block
	event  *Event
	child  *Graph   // of a graph node
	bodies []*Graph // of a node with a condition
	stream *Stream  // that it was captured on
	self   [1]*Node // the node, as the list of those that the next one comes after
}

// NewGraph makes a graph without nodes.
//
// # Errors
//   - [ErrNotSupported]: the backend has no graphs.
//   - [ErrInHostFunction].
//
// Contract: G5.
func (rt *Runtime) NewGraph(t *Thread) (*Graph, error) {
	const op = "create graph"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	if _, err := rt.graphDriver(op); err != nil {
		return nil, err
	}
	return rt.newGraph(), nil
}

func (rt *Runtime) newGraph() *Graph { return &Graph{rt: rt, keep: newKeep(rt)} }

// graphDriver returns the driver's graphs. It fails with NotSupported if there are none.
func (rt *Runtime) graphDriver(op string) (driver.GraphDriver, error) {
	if g, ok := rt.drv.(driver.GraphDriver); ok {
		return g, nil
	}
	return nil, driver.Errorf(driver.NotSupported, op,
		"graphs are not built yet for the %s backend; use the host backend, or enqueue the operations one by one", rt.Name())
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

// Built ends the use of a stream of Builder and returns the node that was made. After an error
// the graph is as it was.
//
// # Errors
//   - [ErrInvalidValue]: not exactly one was made.
//   - [ErrCapture]: a call was made that cannot become a node.
//   - [ErrClosed].
//
// Contract: G5.
func (s *Stream) Built() (*Node, error) {
	const op = "add node"
	c := s.endBuilding()
	if c == nil {
		return nil, driver.Errorf(driver.InvalidValue, op, "this is no stream that builds a graph")
	}
	n, err := c.onlyNode(op)
	if err == nil && !c.target.keep.tryUse() {
		err = closedError(op, "graph")
	}
	if err != nil {
		c.dropNodes()
		return nil, err
	}
	defer c.target.keep.release()
	c.target.keep.take(c.graph.keep)
	c.target.adopt(n)
	return n, nil
}

// Unbuilt ends the use of a stream of Builder without a node: the graph is as it was. It does
// nothing for other streams.
//
// Contract: G5.
func (s *Stream) Unbuilt() {
	if c := s.endBuilding(); c != nil {
		c.dropNodes()
	}
}

// endBuilding ends the use of a stream of Builder. It returns nil for others and after the first call.
func (s *Stream) endBuilding() *Capture {
	c := s.capture.Load()
	if c == nil || c.origin != s || !c.builds() || !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	c.ended = true
	return c
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

// SetPlaces sets the function that returns the text of a place of the program, such as
// "app.py:41", for the number that the function of SetSites has returned.
func (rt *Runtime) SetPlaces(f func(site uint32) string) { rt.places.Store(&f) }

// at returns " at" and the place of the program that a number stands for, "" if unknown.
func (rt *Runtime) at(site uint32) string {
	if f := rt.places.Load(); f != nil && site != 0 {
		if text := (*f)(site); text != "" {
			return " at " + text
		}
	}
	return ""
}
