package pybuild

import (
	"encoding/json"

	"halstream/hal"
	"halstream/hal/driver"
)

// GraphBuilder returns the id of a stream that makes one node of a graph, after others. It is to be
// given to GraphBuilt or GraphUnbuilt.
func GraphBuilder(id, ordinal int64, after string) (builder int64, err error) {
	return onGraph(id, addNode, func(g *hal.Graph) (int64, error) {
		d, err := device(ordinal)
		if err != nil {
			return 0, err
		}
		nodes, err := nodesOf(g, addNode, after)
		if err != nil {
			return 0, err
		}
		return insertBuilder(g.Builder(caller(), d, nodes))
	})
}

// GraphBuilt returns the index of the node that a stream of GraphBuilder has made.
func GraphBuilt(builder int64) (index int64, err error) {
	return onBuilder(builder, addNode, func(s *hal.Stream) (int64, error) { return indexOf(s.Built()) })
}

// GraphUnbuilt gives up a stream of GraphBuilder, or of ExecutableNodeBuilder: nothing gets a node.
func GraphUnbuilt(builder int64) (zero int64, err error) {
	return onBuilder(builder, addNode, func(s *hal.Stream) (int64, error) {
		s.Unbuilt()
		return 0, nil
	})
}

// ExecutableNodeBuilder returns the id of a stream on which one operation is enqueued. It is to be
// given to ExecutableNodeBuilt or GraphUnbuilt.
func ExecutableNodeBuilder(id, index int64) (builder int64, err error) {
	return on(id, updateNode, "executable graph", func(x *hal.GraphExec) (int64, error) {
		return insertBuilder(x.NodeBuilder(caller(), int(index)))
	})
}

// ExecutableNodeBuilt puts what was enqueued on a stream of ExecutableNodeBuilder in the place of a node.
func ExecutableNodeBuilt(id, builder, index int64) (zero int64, err error) {
	return onBuilder(builder, updateNode, func(s *hal.Stream) (int64, error) {
		x, err := lookup[*hal.GraphExec](id, updateNode, "executable graph")
		if err != nil {
			s.Unbuilt()
			return 0, err
		}
		return nothing(x.BuiltUpdate(s, int(index)))
	})
}

// The names of the calls in errors.
const addNode, updateNode = "add node", "update node"

// insertBuilder returns the id of a stream on which a node is built, and has the line of the program
// noted that does so, until onBuilder.
func insertBuilder(s *hal.Stream, err error) (builder int64, _ error) {
	if err != nil {
		return 0, err
	}
	addLines(s.Device().Runtime(), 1)
	return insert(s), nil
}

// onBuilder ends the use of a stream of insertBuilder with f.
func onBuilder(builder int64, op string, f func(*hal.Stream) (int64, error)) (value int64, err error) {
	return on(builder, op, "stream", func(s *hal.Stream) (int64, error) {
		remove(builder)
		defer addLines(s.Device().Runtime(), -1)
		return f(s)
	})
}

// withLines has the line of the program noted that calls f, which makes a node.
func withLines(f func() (*hal.Node, error)) (index int64, err error) {
	r, err := backend()
	if err != nil {
		return 0, err
	}
	addLines(r, 1)
	defer addLines(r, -1)
	return indexOf(f())
}

func indexOf(n *hal.Node, err error) (index int64, _ error) {
	if err != nil {
		return 0, err
	}
	return int64(n.Index()), nil
}

// GraphChild adds a graph as a node of another one, and returns its index.
func GraphChild(id, child int64, after string) (index int64, err error) {
	return onGraph(id, addNode, func(g *hal.Graph) (int64, error) {
		c, err := lookup[*hal.Graph](child, addNode, "graph")
		if err != nil {
			return 0, err
		}
		nodes, err := nodesOf(g, addNode, after)
		if err != nil {
			return 0, err
		}
		return withLines(func() (*hal.Node, error) { return g.AddChild(caller(), nodes, c) })
	})
}

// GraphCondition adds graphs, a list of ids, as the bodies of a node of a kind with a condition, the word
// of 4 bytes at addr, and returns the node's index. Without resets the word keeps its value from launch to
// launch.
func GraphCondition(id int64, kind, bodies, after string, addr, initial int64, resets bool) (index int64, err error) {
	return onGraph(id, addNode, func(g *hal.Graph) (int64, error) {
		var ids []int64
		if err := json.Unmarshal([]byte(bodies), &ids); err != nil {
			return 0, err
		}
		graphs := make([]*hal.Graph, len(ids))
		for i, body := range ids {
			if graphs[i], err = lookup[*hal.Graph](body, addNode, "graph"); err != nil {
				return 0, err
			}
		}
		nodes, err := nodesOf(g, addNode, after)
		if err != nil {
			return 0, err
		}
		c := hal.GraphCondition{Addr: uint64(addr), Initial: uint32(initial), Resets: resets}
		return withLines(func() (*hal.Node, error) {
			switch {
			case kind == "switch":
				return g.AddSwitch(caller(), nodes, c, graphs)
			case kind == "while" && len(graphs) == 1:
				return g.AddWhile(caller(), nodes, c, graphs[0])
			case kind == "if" && len(graphs) == 2:
				return g.AddIfElse(caller(), nodes, c, graphs[0], graphs[1])
			case kind == "if" && len(graphs) == 1:
				return g.AddIf(caller(), nodes, c, graphs[0])
			}
			return nil, driver.Errorf(driver.InvalidValue, addNode, "no node %q has %d bodies", kind, len(graphs))
		})
	})
}
