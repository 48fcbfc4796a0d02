package hal

import (
	"slices"

	"halstream/hal/driver"
)

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
	nodes := g.made()
	n.graph, n.index = g, len(nodes)
	g.nodes = append(nodes, n)
	g.memory.note(n)
}

// take keeps what another one has kept, which has no other users and is not used any more.
func (k *keep) take(other *keep) {
	other.mu.Lock()
	free, others, tokens := other.free, other.others, other.tokens
	other.free, other.others, other.tokens = nil, nil, nil
	other.mu.Unlock()
	k.mu.Lock()
	k.free, k.others, k.tokens = append(k.free, free...), append(k.others, others...), append(k.tokens, tokens...)
	k.mu.Unlock()
}
