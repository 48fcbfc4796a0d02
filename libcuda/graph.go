package libcuda

// #include "entry.h"
import "C"

import (
	"os"
	"sync"

	"halstream/hal"
)

// graph is a graph of the program.
type graph struct {
	*hal.Graph
	x      *context // where its nodes run
	handle uintptr
	child  bool // of a node, with which it ends
	// original is the handle of the graph that a clone was made of, when that had so many nodes.
	original uintptr
	copied   int

	mu      sync.Mutex
	nodes   map[*hal.Node]*node
	objects references
}

func newGraph(made *hal.Graph, x *context) *graph {
	g := &graph{Graph: made, x: x}
	g.handle = newHandle(g)
	return g
}

// graphOf returns the graph of a handle, which no capture makes any more.
func graphOf(handle uintptr) (*graph, error) {
	g, err := find[*graph](handle, invalidValue, "graph")
	if err == nil && g.Graph == nil {
		err = refuse(illegalState, "the capture of the graph has not ended")
	}
	return g, err
}

// onGraph returns a function for a graph that is its argument i.
func onGraph(i int, f func(c *caller, g *graph, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		g, err := graphOf(a.handle(i))
		if err != nil {
			return err
		}
		return f(c, g, a)
	}
}

// node returns what the library keeps of a node of the graph.
func (g *graph) node(is *hal.Node) *node {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[is]
	if n == nil {
		n = &node{Node: is, graph: g}
		n.handle = newHandle(n)
		if g.nodes == nil {
			g.nodes = map[*hal.Node]*node{}
		}
		g.nodes[is] = n
	}
	return n
}

func (g *graph) close(c *caller) error {
	objects := g.removeHandles()
	err := g.Close(c.t)
	objects.release()
	return err
}

// removeHandles forgets the graph, its nodes and the graphs of those, and returns the references that it had.
func (g *graph) removeHandles() references {
	g.mu.Lock()
	defer g.mu.Unlock()
	objects := g.objects
	for _, n := range g.nodes {
		if n.inside != nil {
			n.inside.removeHandles()
		}
		removeHandle(n.handle)
	}
	g.nodes, g.objects = nil, nil
	removeHandle(g.handle)
	return objects
}

// executable is a graph that can be launched.
type executable struct {
	*hal.GraphExec
	x      *context
	graph  uintptr // the handle of the graph that it was made of
	handle uintptr
	flags  uint64
	// objects are kept for it until its launches have run.
	objects references
}

func executableOf(handle uintptr) (*executable, error) {
	return find[*executable](handle, invalidValue, "executable graph")
}

// onExecutable returns a function for an executable graph that is its first argument.
func onExecutable(f func(c *caller, x *executable, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		x, err := executableOf(a.handle(0))
		if err != nil {
			return err
		}
		return f(c, x, a)
	}
}

// Flags of an executable.
const (
	autoFree        = 1
	uploadFirst     = 2
	deviceLaunch    = 4
	nodePriority    = 8
	executableFlags = autoFree | uploadFirst | nodePriority
)

// instantiateParameters is CUDA_GRAPH_INSTANTIATE_PARAMS.
type instantiateParameters struct {
	flags  uint64
	upload uintptr
	failed uintptr
	result int32
}

func (c *caller) instantiate(g *graph, flags uint64) (*executable, error) {
	if flags&^uint64(executableFlags) != 0 {
		if flags&deviceLaunch != 0 {
			return nil, refuse(notSupported, "kernels do not launch graphs here")
		}
		return nil, refuse(invalidValue, "an executable graph has no flags %#x", flags)
	}
	options, objects := hal.ExecOptions{AutoFree: flags&autoFree != 0}, g.retainedReferences()
	if len(objects) > 0 {
		options.Ended = objects.releaseOnOwnThread
	}
	made, err := g.InstantiateWith(c.t, options)
	if err != nil {
		objects.release()
		return nil, err
	}
	x := &executable{GraphExec: made, x: g.x, graph: g.handle, flags: flags, objects: objects}
	x.handle = newHandle(x)
	return x, nil
}

var graphFunctions = []function{
	{name: "cuGraphCreate", version: 10000, call: func(c *caller, a *args) error {
		x, err := c.context()
		if err == nil {
			err = a.need(0)
		}
		if err == nil && a.u32(1) != 0 {
			err = refuse(invalidValue, "a graph has no flags")
		}
		if err != nil {
			return err
		}
		made, err := x.dev.Runtime().NewGraph(c.t)
		if err == nil {
			put(a, 0, newGraph(made, x).handle)
		}
		return err
	}},
	{name: "cuGraphDestroy", version: 10000, call: onGraph(0, func(c *caller, g *graph, _ *args) error {
		if g.child {
			return refuse(invalidValue, "the graph of a node ends with it")
		}
		return g.close(c)
	})},
	{name: "cuGraphClone", version: 10000, call: onGraph(1, func(c *caller, g *graph, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		made, err := g.Clone(c.t)
		if err != nil {
			return err
		}
		clone := newGraph(made, g.x)
		clone.objects = g.retainedReferences()
		copied, nodes := made.Nodes(), g.Nodes()
		clone.original, clone.copied = g.handle, len(copied)
		for i, n := range copied {
			clone.node(n).copyParameters(g.node(nodes[i]))
		}
		put(a, 0, clone.handle)
		return nil
	})},
	{name: "cuGraphInstantiate_v2", version: 11000, firstVersion: 10000, call: onGraph(1, func(c *caller, g *graph, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		x, err := c.instantiate(g, 0)
		if err == nil {
			put(a, 0, x.handle)
		}
		put(a, 2, uintptr(0))
		return err
	})},
	{name: "cuGraphInstantiateWithFlags", version: 11040, renamed: "cuGraphInstantiate", call: onGraph(1, func(c *caller, g *graph, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		x, err := c.instantiate(g, a[2]&^uploadFirst)
		if err == nil {
			put(a, 0, x.handle)
		}
		return err
	})},
	{name: "cuGraphInstantiateWithParams", version: 12000, twin: ptsz, call: onGraph(1, func(c *caller, g *graph, a *args) error {
		if err := a.need(0, 2); err != nil {
			return err
		}
		p := in[instantiateParameters](a, 2)
		x, err := c.instantiate(g, p.flags)
		p.failed, p.result = 0, boolInt(err != nil)
		if err != nil {
			return err
		}
		put(a, 0, x.handle)
		if p.flags&uploadFirst == 0 {
			return nil
		}
		s, err := c.stream(p.upload)
		if err != nil {
			return err
		}
		return x.Upload(c.t, s.Stream)
	})},
	{name: "cuGraphExecDestroy", version: 10000, call: onExecutable(func(c *caller, x *executable, _ *args) error {
		removeHandle(x.handle)
		return x.Close(c.t)
	})},
	{name: "cuGraphExecGetFlags", version: 12000, call: onExecutable(func(_ *caller, x *executable, a *args) error {
		put(a, 1, x.flags)
		return a.need(1)
	})},
	{name: "cuGraphLaunch", version: 10000, twin: ptsz, call: onExecutable(func(c *caller, x *executable, a *args) error {
		s, err := c.stream(a.handle(1))
		if err != nil {
			return err
		}
		if err := x.Launch(c.t, s.Stream); err != nil {
			return err
		}
		if capture := s.CaptureID(); capture != 0 { // the executable's graph is a node now
			graphOfCapture(capture, s.x).retainReferences(x.objects)
		}
		return nil
	})},
	{name: "cuGraphUpload", version: 11010, twin: ptsz, call: onExecutable(func(c *caller, x *executable, a *args) error {
		s, err := c.stream(a.handle(1))
		if err != nil {
			return err
		}
		return x.Upload(c.t, s.Stream)
	})},
	{name: "cuGraphExecUpdate", version: 10020, call: onExecutable(func(c *caller, x *executable, a *args) error {
		result, err := c.update(x, a)
		put(a, 2, uintptr(0))
		put(a, 3, result)
		return err
	})},
	{name: "cuGraphExecUpdate_v2", version: 12000, call: onExecutable(func(c *caller, x *executable, a *args) error {
		result, err := c.update(x, a)
		put(a, 2, updateResult{result: result})
		return err
	})},
	{name: "cuGraphDebugDotPrint", version: 11030, call: onGraph(0, func(_ *caller, g *graph, a *args) error {
		if err := a.need(1); err != nil {
			return err
		}
		if err := os.WriteFile(a.text(1), []byte(g.DOT(nil, a.u32(2) != 0)), 0o666); err != nil {
			return refuse(operatingSystem, "%v", err)
		}
		return nil
	})},
	{name: "cuGraphGetId", version: 13010, call: onGraph(0, func(_ *caller, g *graph, a *args) error {
		put(a, 1, uint32(g.handle>>4))
		return a.need(1)
	})},
	{name: "cuGraphExecGetId", version: 13010, call: onExecutable(func(_ *caller, x *executable, a *args) error {
		put(a, 1, uint32(x.handle>>4))
		return a.need(1)
	})},
	{name: "cuDeviceGraphMemTrim", version: 11040, call: onDevice(0, func(d *hal.Device, _ *args) error {
		d.TrimPool(0)
		return nil
	})},
	{name: "cuDeviceGetGraphMemAttribute", version: 11040, call: onDevice(0, func(d *hal.Device, a *args) error {
		stats := d.PoolStats()
		values := []uint64{stats.Used, stats.UsedPeak, stats.Reserved, stats.ReservedPeak}
		if a.u32(1) >= uint32(len(values)) {
			return refuse(invalidValue, "there is no attribute %d of the memory of graphs", a.u32(1))
		}
		put(a, 2, values[a.u32(1)])
		return a.need(2)
	})},
	{name: "cuDeviceSetGraphMemAttribute", version: 11040, call: onDevice(0, func(d *hal.Device, a *args) error {
		const usedHigh, reservedHigh = 1, 3
		if err := a.need(2); err != nil {
			return err
		}
		number := a.u32(1)
		if number != usedHigh && number != reservedHigh || *in[uint64](a, 2) != 0 {
			return refuse(invalidValue, "attribute %d of the memory of graphs cannot be set so", number)
		}
		d.ResetPoolPeaks(number == usedHigh, number == reservedHigh)
		return nil
	})},
}

// updateResult is CUgraphExecUpdateResultInfo.
type updateResult struct {
	result           int32
	_                int32
	failed, replaced uintptr
}

// Results of updates.
const (
	updateDone            = 0
	updateFailed          = 1
	updateTopologyChanged = 2
)

func (c *caller) update(x *executable, a *args) (int32, error) {
	g, err := graphOf(a.handle(1))
	if err == nil {
		err = a.need(2)
	}
	if err != nil {
		return updateFailed, err
	}
	if err := x.Update(c.t, g.Graph); err != nil {
		result := int32(updateFailed)
		if g.Size() != x.Nodes() {
			result = updateTopologyChanged
		}
		return result, refuse(graphUpdateFailed, "%v", err)
	}
	return updateDone, nil
}
