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

// isWhole reports whether a graph of the driver can have a node.
func isWhole(n *driver.GraphNode) bool {
	const farthest = 1<<31 - 1 // from row to row
	switch n.Kind {
	case driver.EmptyNode, driver.DelayNode:
		return true
	case driver.FillNode:
		return n.Fill.On == driver.OnDevice
	case driver.CopyNode:
		c := &n.Copy
		return c.SrcDevice == c.DstDevice && c.SrcPitch <= farthest && c.DstPitch <= farthest && c.Width*c.Height > 0 &&
			(c.To == driver.OnDevice || c.From == driver.OnDevice) && c.To != driver.Pageable && c.From != driver.Pageable
	case driver.KernelNode:
		return !n.Launch.Cooperative && n.Launch.Cluster == [3]uint32{}
	}
	return false
}

// whole returns a graph of the driver, nil where the driver cannot have it.
func (d *Driver) whole(nodes []driver.GraphNode) (w *wholeGraph, err error) {
	const doing = "instantiate"
	if len(nodes) == 0 || C.hs_graphs() == 0 {
		return nil, nil
	}
	dev := d.devices[nodes[0].Device]
	if slices.ContainsFunc(nodes, func(n driver.GraphNode) bool { return n.Device != dev.ordinal || !isWhole(&n) }) {
		return nil, nil
	}
	if err := dev.usable(doing); err != nil {
		return nil, err
	}
	var graph C.CUgraph
	if err := dev.check(C.hs_graph_new(dev.ctx(), &graph), doing); err != nil {
		return nil, err
	}
	handles := make([]C.CUgraphNode, len(nodes))
	for i := range nodes {
		after := make([]C.CUgraphNode, len(nodes[i].After)+1)
		for k, at := range nodes[i].After {
			after[k] = handles[at]
		}
		if err := dev.addNode(graph, &nodes[i], after, &handles[i]); err != nil {
			C.hs_graph_drop(dev.ctx(), graph)
			return nil, err
		}
	}
	w = &wholeGraph{dev: dev}
	if err := dev.check(C.hs_graph_exec(dev.ctx(), graph, &w.exec), doing); err != nil {
		return nil, err
	}
	return w, nil
}

// addNode adds a node behind others. The last element of after stands only for the address of none.
func (d *Device) addNode(graph C.CUgraph, n *driver.GraphNode, after []C.CUgraphNode, made *C.CUgraphNode) error {
	const doing = "instantiate"
	ctx, first, count := d.ctx(), unsafe.SliceData(after), C.size_t(len(after)-1)
	switch n.Kind {
	case driver.CopyNode:
		rows := rowsOf(&n.Copy)
		return d.check(C.hs_graph_add_copy(ctx, graph, &rows, first, count, made), doing)
	case driver.FillNode:
		fill := C.hs_memset{dst: C.uint64_t(n.Fill.Dst), count: C.uint64_t(n.Fill.Count), value: C.uint32_t(n.Fill.Value),
			size: C.uint32_t(n.Fill.Size)}
		return d.check(C.hs_graph_add_fill(ctx, graph, &fill, first, count, made), doing)
	case driver.KernelNode:
		spec := launchOf(&n.Launch)
		args := unsafe.Pointer(unsafe.SliceData(n.Launch.Args))
		return d.check(C.hs_graph_add_launch(ctx, graph, &spec, args, driver.Cell, first, count, made), doing)
	case driver.DelayNode:
		f, err := d.delayFunction()
		if err != nil {
			return err
		}
		launch := delayOf(f, n.Delay)
		spec := launchOf(&launch)
		args := unsafe.Pointer(unsafe.SliceData(launch.Args))
		return d.check(C.hs_graph_add_launch(ctx, graph, &spec, args, driver.Cell, first, count, made), doing)
	}
	return d.check(C.hs_graph_add_empty(ctx, graph, first, count, made), doing)
}

// launch enqueues a run.
func (w *wholeGraph) launch(s *Stream, l driver.GraphLaunch) error {
	const doing = "launch graph"
	d := w.dev
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	if err := s.enqueuedOne(C.hs_graph_launch(s.dev.ctx(), w.exec, s.h), doing); err != nil {
		return err
	}
	d.endings.add(ending{s, s.enqueued.Load(), l})
	return nil
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
