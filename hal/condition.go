package hal

import (
	"slices"

	"halstream/hal/driver"
)

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
