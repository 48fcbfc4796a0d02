package pybuild

/*
#include <stdlib.h>
#include "dispatch.h"
#include "sites.h"
*/
import "C"

import (
	"encoding/json"
	"strconv"
	"strings"
	"unsafe"

	"halstream/bindings/python"
	"halstream/bindings/records"
	"halstream/hal"
	"halstream/hal/driver"
)

// packageRoot is the folder of the package, whose frames are not the program's.
var packageRoot string

// PackageRoot says which folder is the package's, once, before any other call.
func PackageRoot(root string) (zero int64, err error) {
	packageRoot = root
	folder := C.CString(root)
	C.halstream_sites_install(folder)
	C.free(unsafe.Pointer(folder))
	return 0, nil
}

// useGraphs lets graphs keep functions of Python's, and name places of the program.
func useGraphs(r *hal.Runtime) {
	r.SetKept(func(token uint64) { C.halstream_call_keep(C.halstream_call_find(C.int64_t(token))) })
	r.SetPlaces(place)
}

// place returns the file and line of the program's innermost frame of a site, or of the
// installed package that called where there is none; "" if it is unknown.
func place(site uint32) string {
	var frames []records.Frame
	if json.Unmarshal([]byte(python.SiteText(site)), &frames) != nil {
		return ""
	}
	found := ""
	for _, f := range frames {
		if packageRoot != "" && strings.HasPrefix(f.File, packageRoot) {
			continue
		}
		text := f.File + ":" + strconv.Itoa(f.Line)
		if !strings.Contains(f.File, "/site-packages/") && !strings.Contains(f.File, "/dist-packages/") {
			return text
		}
		if found == "" {
			found = text
		}
	}
	return found
}

// GraphNew makes a graph without nodes.
func GraphNew() (id int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		g, err := r.NewGraph(caller())
		if err != nil {
			return 0, err
		}
		return insert(g), nil
	})
}

// GraphClone copies a graph.
func GraphClone(id int64) (clone int64, err error) {
	return onGraph(id, "clone graph", func(g *hal.Graph) (int64, error) {
		c, err := g.Clone(caller())
		if err != nil {
			return 0, err
		}
		return insert(c), nil
	})
}

func onGraph[T any](id int64, op string, f func(*hal.Graph) (T, error)) (T, error) {
	return on(id, op, "graph", f)
}

// GraphNodes returns the nodes of a graph: a list of nodeRecord.
func GraphNodes(id int64) (nodes string, err error) {
	return onGraph(id, "nodes", func(g *hal.Graph) (string, error) {
		list := []nodeRecord{}
		for _, n := range g.Nodes() {
			r := nodeRecord{Kind: n.Kind().String(), Name: n.Name(), Site: n.Site(), After: []int{}, Token: n.Token()}
			for _, dep := range n.After() {
				r.After = append(r.After, dep.Index())
			}
			reads, writes := n.Accesses()
			r.Reads, r.Writes = records.Ranges(reads), records.Ranges(writes)
			for _, c := range graphsOf(n) {
				r.Child += len(c.Nodes())
			}
			list = append(list, r)
		}
		return encode(list), nil
	})
}

// GraphDot returns a graph in the language of graphviz, with the names of functions, by their tokens.
// With details nodes have what they work on.
func GraphDot(id int64, names string, details bool) (text string, err error) {
	return onGraph(id, "dot", func(g *hal.Graph) (string, error) {
		var list map[string]string
		if err := json.Unmarshal([]byte(names), &list); err != nil {
			return "", err
		}
		return g.DOT(func(token uint64) string { return list[strconv.FormatUint(token, 10)] }, details), nil
	})
}

// GraphTokens returns the tokens of the functions of a graph, those of its graphs included.
func GraphTokens(id int64) (tokens string, err error) {
	return onGraph(id, "dot", func(g *hal.Graph) (string, error) { return encode(tokensOf(g, []uint64{})), nil })
}

func tokensOf(g *hal.Graph, found []uint64) []uint64 {
	for _, n := range g.Nodes() {
		if n.Token() != 0 {
			found = append(found, n.Token())
		}
		for _, c := range graphsOf(n) {
			found = tokensOf(c, found)
		}
	}
	return found
}

// graphsOf returns the graphs that a node has: of a graph node its graph, of one with a condition its bodies.
func graphsOf(n *hal.Node) []*hal.Graph {
	if c := n.Child(); c != nil {
		return []*hal.Graph{c}
	}
	return n.Bodies()
}

// nodesOf returns the nodes of a graph by their indices.
func nodesOf(g *hal.Graph, op, indices string) (found []*hal.Node, err error) {
	var list []int
	if err := json.Unmarshal([]byte(indices), &list); err != nil {
		return nil, err
	}
	all := g.Nodes()
	for _, i := range list {
		if i < 0 || i >= len(all) {
			return nil, driver.Errorf(driver.InvalidValue, op, "the graph has no node %d, but %d nodes", i, len(all))
		}
		found = append(found, all[i])
	}
	return found, nil
}

// GraphEdge makes a node come after another one.
func GraphEdge(id, before, after int64) (zero int64, err error) {
	return onGraph(id, "add edge", func(g *hal.Graph) (int64, error) {
		nodes, err := nodesOf(g, "add edge", encode([]int64{before, after}))
		if err != nil {
			return 0, err
		}
		return nothing(g.AddEdge(caller(), nodes[0], nodes[1]))
	})
}

// GraphInstantiate makes an executable and returns its id.
func GraphInstantiate(id int64) (executable int64, err error) { return GraphInstantiateWith(id, false) }

// GraphInstantiateWith is GraphInstantiate; with autoFree a launch frees what the graph has allocated
// and nothing has freed.
func GraphInstantiateWith(id int64, autoFree bool) (executable int64, err error) {
	return onGraph(id, "instantiate", func(g *hal.Graph) (int64, error) {
		x, err := g.InstantiateWith(caller(), hal.ExecOptions{AutoFree: autoFree})
		if err != nil {
			return 0, err
		}
		return insert(x), nil
	})
}

// GraphDestroy closes a graph; no other object has its id.
func GraphDestroy(id int64) (zero int64, err error) {
	return onGraph(id, "destroy graph", func(*hal.Graph) (int64, error) { return nothing(closeAs(caller(), id)) })
}

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
	python.AddLines(s.Device().Runtime(), 1)
	return insert(s), nil
}

// onBuilder ends the use of a stream of insertBuilder with f.
func onBuilder(builder int64, op string, f func(*hal.Stream) (int64, error)) (value int64, err error) {
	return on(builder, op, "stream", func(s *hal.Stream) (int64, error) {
		remove(builder)
		defer python.AddLines(s.Device().Runtime(), -1)
		return f(s)
	})
}

// withLines has the line of the program noted that calls f, which makes a node.
func withLines(f func() (*hal.Node, error)) (index int64, err error) {
	r, err := backend()
	if err != nil {
		return 0, err
	}
	python.AddLines(r, 1)
	defer python.AddLines(r, -1)
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

// Executable graphs: launches and updates.

// ExecutableLaunch enqueues a launch.
func ExecutableLaunch(id, streamID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	x, err := lookup[*hal.GraphExec](id, "launch graph", "executable graph")
	if err != nil {
		return 0, err
	}
	s, err := stream(t, streamID, "launch graph")
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, x.Launch(t, s))
}

// ExecutableUpdate makes later launches run another graph of the same topology.
func ExecutableUpdate(id, graph int64) (zero int64, err error) {
	return on(id, "update executable", "executable graph", func(x *hal.GraphExec) (int64, error) {
		g, err := lookup[*hal.Graph](graph, "update executable", "graph")
		if err != nil {
			return 0, err
		}
		return nothing(x.Update(caller(), g))
	})
}

// ExecutableNodeDevice returns the ordinal of the device of a node.
func ExecutableNodeDevice(id, index int64) (ordinal int64, err error) {
	return on(id, updateNode, "executable graph", func(x *hal.GraphExec) (int64, error) {
		ordinal, err := x.NodeDevice(int(index))
		return int64(ordinal), err
	})
}

// ExecutableUpload prepares the next launch on a stream.
func ExecutableUpload(id, streamID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	x, err := lookup[*hal.GraphExec](id, "upload graph", "executable graph")
	if err != nil {
		return 0, err
	}
	s, err := stream(t, streamID, "upload graph")
	if err != nil {
		return 0, err
	}
	if err := x.Upload(t, s); err != nil {
		return 0, raise(err)
	}
	return 0, nil
}

// ExecutableNodes returns how many nodes a launch runs.
func ExecutableNodes(id int64) (count int64, err error) {
	return on(id, "nodes", "executable graph", func(x *hal.GraphExec) (int64, error) { return int64(x.Nodes()), nil })
}

// ExecutableDestroy closes an executable graph; no other object has its id.
func ExecutableDestroy(id int64) (zero int64, err error) {
	return on(id, "destroy executable", "executable graph",
		func(*hal.GraphExec) (int64, error) { return nothing(closeAs(caller(), id)) })
}
