package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
)

// wholeGraph is an executable of the driver: all nodes are work of one device, and a launch is one call.
type wholeGraph struct {
	dev  *Device
	exec C.CUgraphExec
}

// isWhole reports whether a graph of the driver can have a node: conditional says that the graph has
// nodes with conditions, or is the body of one.
func isWhole(n *driver.GraphNode, conditional bool) bool {
	const farthest = 1<<31 - 1 // from row to row
	switch n.Kind {
	case driver.EmptyNode, driver.DelayNode:
		return true
	case driver.FillNode:
		return n.Fill.On == driver.OnDevice || conditional && n.Fill.On == driver.Pinned
	case driver.CopyNode:
		c := &n.Copy
		return within(c.From, c.SrcDevice, n.Device) && within(c.To, c.DstDevice, n.Device) &&
			(c.To == driver.OnDevice || c.From == driver.OnDevice) &&
			c.SrcPitch <= farthest && c.DstPitch <= farthest && c.Width*c.Height > 0
	case driver.KernelNode:
		return !n.Launch.Cooperative && n.Launch.Cluster == [3]uint32{}
	}
	return n.Kind.Conditional() // the bodies have been checked
}

// within reports whether memory is that of a device, or pinned.
func within(where driver.Where, ordinal, device int) bool {
	return where == driver.Pinned || where == driver.OnDevice && ordinal == device
}

// whole returns a graph of the driver, nil where the driver cannot have it.
func (d *Driver) whole(nodes []driver.GraphNode) (w *wholeGraph, err error) {
	const doing = "instantiate"
	if len(nodes) == 0 || C.hs_graphs() == 0 {
		return nil, nil
	}
	dev, conditions := d.devices[nodes[0].Device], conditional(nodes)
	if slices.ContainsFunc(nodes, func(n driver.GraphNode) bool { return n.Device != dev.ordinal || !isWhole(&n, conditions) }) {
		return nil, nil
	}
	return dev.whole(nodes, resetsOf(nodes))
}

// whole returns a graph of the driver with nodes that it can have, in front of which words are reset.
func (d *Device) whole(nodes []driver.GraphNode, resets []driver.GraphCondition) (w *wholeGraph, err error) {
	const doing = "instantiate"
	if err := d.usable(doing); err != nil {
		return nil, err
	}
	var graph C.CUgraph
	if err := d.check(C.hs_graph_new(d.ctx(), &graph), doing); err != nil {
		return nil, err
	}
	if err := d.addAll(graph, nodes, resets); err != nil {
		C.hs_graph_drop(d.ctx(), graph)
		return nil, err
	}
	w = &wholeGraph{dev: d}
	if err := d.check(C.hs_graph_exec(d.ctx(), graph, &w.exec), doing); err != nil {
		return nil, err
	}
	return w, nil
}

func (d *Device) addAll(graph C.CUgraph, nodes []driver.GraphNode, resets []driver.GraphCondition) error {
	first := make([]C.CUgraphNode, len(resets))
	for i, c := range resets {
		reset := driver.GraphNode{Kind: driver.FillNode, GraphWork: &driver.GraphWork{Fill: resetOf(c)}}
		if err := d.addNode(graph, &reset, nil, &first[i]); err != nil {
			return err
		}
	}
	_, err := d.addNodes(graph, nodes, first)
	return err
}

// addNodes adds nodes behind others, and returns those that none of them comes after.
func (d *Device) addNodes(graph C.CUgraph, nodes []driver.GraphNode, first []C.CUgraphNode) (ends []C.CUgraphNode, err error) {
	handles, last := make([]C.CUgraphNode, len(nodes)), make([]bool, len(nodes))
	for i := range nodes {
		after := first
		if len(nodes[i].After) > 0 {
			after = make([]C.CUgraphNode, len(nodes[i].After))
		}
		for k, at := range nodes[i].After {
			after[k], last[at] = handles[at], false
		}
		if err := d.addNode(graph, &nodes[i], after, &handles[i]); err != nil {
			return nil, err
		}
		last[i] = true
	}
	for i, handle := range handles {
		if last[i] {
			ends = append(ends, handle)
		}
	}
	return ends, nil
}

// addNode adds a node behind others.
func (d *Device) addNode(graph C.CUgraph, n *driver.GraphNode, after []C.CUgraphNode, made *C.CUgraphNode) error {
	const doing = "instantiate"
	ctx, first, count := d.ctx(), unsafe.SliceData(after), C.size_t(len(after))
	switch n.Kind {
	case driver.IfNode, driver.WhileNode, driver.SwitchNode:
		return d.addCondition(graph, n, after, made)
	case driver.CopyNode:
		rows := rowsOf(&n.Copy)
		return d.check(C.hs_graph_add_copy(ctx, graph, &rows, first, count, made), doing)
	case driver.FillNode:
		fill := C.hs_memset{dst: C.uint64_t(n.Fill.Dst), count: C.uint64_t(n.Fill.Count), value: C.uint32_t(n.Fill.Value),
			size: C.uint32_t(n.Fill.Size)}
		return d.check(C.hs_graph_add_fill(ctx, graph, &fill, first, count, made), doing)
	case driver.KernelNode:
		return d.addLaunch(graph, n.Launch, after, made)
	case driver.DelayNode:
		f, err := d.delayFunction()
		if err != nil {
			return err
		}
		return d.addLaunch(graph, delayOf(f, n.Delay), after, made)
	}
	return d.check(C.hs_graph_add_empty(ctx, graph, first, count, made), doing)
}

// addLaunch adds a launch of a kernel.
func (d *Device) addLaunch(graph C.CUgraph, launch driver.Launch, after []C.CUgraphNode, made *C.CUgraphNode) error {
	spec := launchOf(&launch)
	args := unsafe.Pointer(unsafe.SliceData(launch.Args))
	return d.check(C.hs_graph_add_launch(d.ctx(), graph, &spec, args, driver.Cell, unsafe.SliceData(after), C.size_t(len(after)), made),
		"instantiate")
}

// launch enqueues a run, at whose end l has ended.
func (w *wholeGraph) launch(s *Stream, l driver.GraphLaunch) error {
	if err := w.enqueue(s); err != nil {
		return err
	}
	w.dev.endings.add(ending{s, s.enqueued.Load(), l})
	return nil
}

// enqueue enqueues a run.
func (w *wholeGraph) enqueue(s *Stream) error {
	const doing = "launch graph"
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	return s.enqueuedOne(C.hs_graph_launch(s.dev.ctx(), w.exec, s.h), doing)
}

// close gives the executable up; launches that were enqueued still run.
func (w *wholeGraph) close() {
	if w.dev.opened() {
		_ = w.dev.check(C.hs_graph_end(w.dev.ctx(), w.exec), "close executable")
	}
}

// endings are launches of the driver's graphs that have not ended as far as is known. Only what
// they keep waits for their end, so no call of the driver asks for it.
type endings struct {
	any  atomic.Bool
	mu   sync.Mutex
	list []ending
}

func (p *endings) add(e ending) {
	p.collect()
	p.mu.Lock()
	p.list = append(p.list, e)
	p.any.Store(true)
	p.mu.Unlock()
}

// collect ends the launches that are known to be done. It is called where a stream has got further.
func (p *endings) collect() {
	if !p.any.Load() {
		return
	}
	var done []ending
	p.mu.Lock()
	p.list = slices.DeleteFunc(p.list, func(e ending) bool {
		if !e.s.Reached(e.place) {
			return false
		}
		done = append(done, e)
		return true
	})
	p.any.Store(len(p.list) > 0)
	p.mu.Unlock()
	for _, e := range done {
		e.l.End()
	}
}

// drop ends all launches: the device was lost, or is closed.
func (p *endings) drop() {
	p.mu.Lock()
	list := p.list
	p.list = nil
	p.any.Store(false)
	p.mu.Unlock()
	for _, e := range list {
		e.l.End()
	}
}

type ending struct {
	s     *Stream
	place uint64
	l     driver.GraphLaunch
}
