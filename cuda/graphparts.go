package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"unsafe"

	"halstream/hal/driver"
)

// graphParts are nodes that are about to become those of a graph of the driver: C code adds as many as
// possible in one call, as each call of it gives Python's lock up and looks for the context.
type graphParts struct {
	graph C.CUgraph
	// handles are those of the nodes that the others come after, and behind these `first` ones those of the nodes.
	handles []C.CUgraphNode
	first   int
	added   int // nodes, with those that are not flushed
	// What is not flushed: the nodes, the indices in handles that they come after, and the arguments of kernels.
	nodes []C.hs_node
	after []C.uint32_t
	args  []byte
}

func newGraphParts(graph C.CUgraph, nodes int, first []C.CUgraphNode) *graphParts {
	p := &graphParts{graph: graph, first: len(first), handles: make([]C.CUgraphNode, len(first)+nodes),
		nodes: make([]C.hs_node, 0, nodes), after: make([]C.uint32_t, 0, nodes)}
	copy(p.handles, first)
	return p
}

// made returns the handles of the nodes that were added; flush has made them.
func (p *graphParts) made() []C.CUgraphNode { return p.handles[p.first:] }

// next returns where the handle of a node goes that the caller makes. All before it were flushed.
func (p *graphParts) next() *C.CUgraphNode {
	p.added++
	return &p.handles[p.first+p.added-1]
}

// handlesOf returns what a node comes after; it was flushed.
func (p *graphParts) handlesOf(after []int) []C.CUgraphNode {
	if len(after) == 0 {
		return p.handles[:p.first]
	}
	found := make([]C.CUgraphNode, len(after))
	for i, at := range after {
		found[i] = p.made()[at]
	}
	return found
}

// add adds a node behind others, by their indices; behind the first ones if it comes after none.
func (p *graphParts) add(after []int, n C.hs_node) {
	n.after, n.count = C.uint32_t(len(p.after)), C.uint32_t(len(after))
	for _, at := range after {
		p.after = append(p.after, C.uint32_t(p.first+at))
	}
	if len(after) == 0 {
		n.count = C.uint32_t(p.first)
		for i := range p.first {
			p.after = append(p.after, C.uint32_t(i))
		}
	}
	p.nodes = append(p.nodes, n)
	p.added++
}

func (p *graphParts) addCopy(after []int, rows C.hs_copy) {
	n := C.hs_node{kind: C.HS_NODE_COPY}
	*(*C.hs_copy)(unsafe.Pointer(&n.work)) = rows
	p.add(after, n)
}

func (p *graphParts) addFill(after []int, f *driver.Fill) {
	n := C.hs_node{kind: C.HS_NODE_FILL}
	*(*C.hs_memset)(unsafe.Pointer(&n.work)) = C.hs_memset{dst: C.uint64_t(f.Dst), count: C.uint64_t(f.Count),
		value: C.uint32_t(f.Value), size: C.uint32_t(f.Size)}
	p.add(after, n)
}

func (p *graphParts) addLaunch(after []int, l *driver.Launch) {
	n := C.hs_node{kind: C.HS_NODE_LAUNCH, args: C.size_t(len(p.args))}
	*(*C.hs_launch)(unsafe.Pointer(&n.work)) = launchOf(l)
	p.args = append(p.args, l.Args...)
	p.add(after, n)
}

// flush makes what was added nodes of the graph.
func (p *graphParts) flush(d *Device) error {
	if len(p.nodes) == 0 {
		return nil
	}
	made := p.first + p.added - len(p.nodes) // the index of the first of them
	status := C.hs_graph_add(d.ctx(), p.graph, &p.nodes[0], C.size_t(len(p.nodes)), unsafe.SliceData(p.after),
		unsafe.Pointer(unsafe.SliceData(p.args)), driver.Cell, &p.handles[0], C.size_t(made))
	p.nodes, p.after, p.args = p.nodes[:0], p.after[:0], p.args[:0]
	return d.check(status, "instantiate")
}
