package pybuild

// #include <stdlib.h>
// #include "dispatch.h"
// #include "sites.h"
import "C"

import (
	"encoding/json"
	"strconv"
	"strings"
	"unsafe"

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
	c := C.halstream_site_text(C.uint32_t(site))
	if c == nil {
		return ""
	}
	defer C.free(unsafe.Pointer(c))
	var frames []frameRecord
	if json.Unmarshal([]byte(C.GoString(c)), &frames) != nil {
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
			r.Reads, r.Writes = rangeRecords(reads), rangeRecords(writes)
			for _, c := range graphsOf(n) {
				r.Child += len(c.Nodes())
			}
			list = append(list, r)
		}
		return encode(list), nil
	})
}

// GraphSize returns how many nodes a graph has.
func GraphSize(id int64) (count int64, err error) {
	return onGraph(id, "nodes", func(g *hal.Graph) (int64, error) { return int64(g.Size()), nil })
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
