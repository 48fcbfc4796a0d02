package libcuda

// #include <stdlib.h>
// #include "entry.h"
import "C"

import (
	"runtime"
	"sync"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
)

// node is a node of a graph, with what the program has said that it does.
type node struct {
	*hal.Node
	graph  *graph
	handle uintptr
	inside *graph // of a node that is a graph

	kernel *keptKernel
	copies *copy3D
	fills  *fillParameters
	calls  *hostParameters
	memory *allocParameters
	frees  uint64
	event  uintptr // that it records or waits for

	hints hints // of a kernel
}

// copyParameters gives a node of a clone the parameters of the node that it was made of.
func (n *node) copyParameters(of *node) {
	n.kernel, n.copies, n.fills, n.calls = of.kernel, of.copies, of.fills, of.calls
	n.memory, n.frees, n.event = of.memory, of.frees, of.event
	n.hints.copyFrom(&of.hints)
}

func nodeOf(handle uintptr) (*node, error) { return find[*node](handle, invalidValue, "node") }

// childGraph returns what the library keeps of the graph that the node runs.
func (n *node) childGraph(child *hal.Graph) *graph {
	n.graph.mu.Lock()
	defer n.graph.mu.Unlock()
	if n.inside == nil {
		n.inside = newGraph(child, n.graph.x)
		n.inside.child = true
	}
	return n.inside
}

// onNode returns a function for a node that is its argument i.
func onNode(i int, f func(c *caller, n *node, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		n, err := nodeOf(a.handle(i))
		if err != nil {
			return err
		}
		return f(c, n, a)
	}
}

// onKernelNode returns a function for a node of a kernel that is its argument i.
func onKernelNode(i int, f func(n *node, a *args) error) func(c *caller, a *args) error {
	return onNode(i, func(_ *caller, n *node, a *args) error {
		if n.kind() != kernelNode {
			return refuse(invalidValue, "the node is no kernel")
		}
		return f(n, a)
	})
}

// isNodeAttribute reports whether a number is that of an attribute of kernel nodes that is no hint.
func isNodeAttribute(number int) bool {
	return number == attributeCooperative || number == attributeCluster || number == attributeDeviceUpdatable
}

func noNodeAttribute(number int) error {
	if isNodeAttribute(number) {
		return refuse(notSupported, "attribute %d of a node is not set or kept; capture a launch that has it", number)
	}
	return refuse(invalidValue, "there is no attribute %d of a node", number)
}

// Kinds of nodes. Source: CUDA driver API, CUgraphNodeType.
const (
	kernelNode = 0
	copyNode   = 1
	fillNode   = 2
	hostNode   = 3
	graphNode  = 4
	emptyNode  = 5
	waitNode   = 6
	recordNode = 7
	allocNode  = 10
	freeNode   = 11
)

var nodeKinds = map[hal.OperationKind]int32{
	hal.OpKernel: kernelNode, hal.OpLaunch: kernelNode, hal.OpCopy: copyNode, hal.OpFill: fillNode, hal.OpNative: hostNode,
	hal.OpGraph: graphNode, hal.OpEmpty: emptyNode, hal.OpWait: waitNode, hal.OpRecord: recordNode, hal.OpAllocate: allocNode,
	hal.OpFree: freeNode,
}

func (n *node) kind() int32 {
	switch {
	case n.fills != nil:
		return fillNode
	case n.Child() != nil:
		return graphNode
	}
	if kind, known := nodeKinds[n.Kind()]; known {
		return kind
	}
	return emptyNode
}

// kernelParameters is CUDA_KERNEL_NODE_PARAMS; programs of before CUDA 12 have not the last two members.
type kernelParameters struct {
	function      uintptr
	grid, block   [3]uint32
	shared        uint32
	params, extra uint64
}

type newKernelParameters struct {
	kernelParameters
	kernel, context uintptr
}

// fillParameters is CUDA_MEMSET_NODE_PARAMS.
type fillParameters struct {
	dst, pitch  uint64
	value, size uint32
	width, rows uint64
}

// hostParameters is CUDA_HOST_NODE_PARAMS.
type hostParameters struct{ function, argument uintptr }

// allocParameters is CUDA_MEM_ALLOC_NODE_PARAMS.
type allocParameters struct {
	properties struct {
		poolProperties
		_ [56]byte
	}
	access  uintptr
	count   uint64
	size    uint64
	address uint64
}

// keptKernel are the parameters of a kernel's node, which clones of it share.
type keptKernel struct {
	kernelParameters
	sizes []int
	args  []byte
	once  sync.Once
}

// kept returns parameters with the arguments of a launch, for which the program may ask.
func (p *kernelParameters) kept(l *launch) *keptKernel {
	k := &keptKernel{kernelParameters: *p, args: l.spec.Args}
	k.params, k.extra = 0, 0
	k.sizes, _ = l.k.f.Parameters()
	return k
}

// given returns the parameters for the program, which reads the arguments where they say. That is memory of C, from the
// first time on until no node has them any more.
func (k *keptKernel) given() kernelParameters {
	k.once.Do(func() {
		if len(k.sizes) == 0 {
			return
		}
		memory := C.malloc(C.size_t(8*len(k.sizes) + len(k.args)))
		runtime.AddCleanup(k, func(memory unsafe.Pointer) { C.free(memory) }, memory)
		pointers := unsafe.Slice((*uint64)(memory), len(k.sizes))
		values := unsafe.Slice((*byte)(unsafe.Add(memory, 8*len(k.sizes))), len(k.args))
		copy(values, k.args)
		cell := 0
		for i, size := range k.sizes {
			pointers[i] = uint64(uintptr(unsafe.Pointer(&values[cell*driver.Cell])))
			cell += driver.Cells(size)
		}
		k.params = uint64(uintptr(memory))
	})
	return k.kernelParameters
}

// operation is an operation that becomes a node.
type operation struct {
	dev        *hal.Device
	enqueue    func(s *hal.Stream) error
	parameters node // those that the program may ask for
}

func (c *caller) kernelNode(x *context, p *newKernelParameters) (*operation, error) {
	handle := p.function
	if handle == 0 {
		handle = p.kernel
	}
	l, err := c.newLaunch(handle, x, hal.LaunchSpec{Grid: p.grid, Block: p.block, Shared: p.shared}, p.params, p.extra)
	if err != nil {
		return nil, err
	}
	known := p.kernelParameters
	known.function = handle
	return &operation{x.dev, func(s *hal.Stream) error { return l.enqueue(c, s) }, node{kernel: known.kept(l)}}, nil
}

func (c *caller) copyNode(x *context, p *copy3D) (*operation, error) {
	shape, err := p.shape()
	if err != nil {
		return nil, err
	}
	spec, single := shape.single()
	switch {
	case shape.width == 0 || shape.rows == 0 || shape.layers == 0:
		return nil, refuse(invalidValue, "a node copies one byte or more")
	case !single:
		return nil, refuse(notSupported, "a node copies rows that follow each other, not %d layers; add a node for each", shape.layers)
	}
	known := *p
	return &operation{x.dev, func(s *hal.Stream) error {
		_, err := s.CopyAs(c.t, spec, hal.AsyncCopy)
		return err
	}, node{copies: &known}}, nil
}

func (c *caller) fillNode(x *context, p *fillParameters) (*operation, error) {
	known := *p
	shape := &fillShape{dst: p.dst, pitch: p.pitch, value: p.value, size: p.size, width: p.width, rows: p.rows}
	return &operation{x.dev, func(s *hal.Stream) error { return shape.enqueue(c, s) }, node{fills: &known}}, nil
}

func (c *caller) hostNode(x *context, p *hostParameters) (*operation, error) {
	if p.function == 0 {
		return nil, refuse(invalidValue, "the function is NULL")
	}
	known := *p
	return &operation{x.dev, func(s *hal.Stream) error {
		return c.callProgram(s, C.hs_cuda_call{function: C.uintptr_t(p.function), argument: C.uintptr_t(p.argument)})
	}, node{calls: &known}}, nil
}

func (c *caller) eventNode(handle uintptr, enqueue func(s *hal.Stream, e *hal.Event) error) (*operation, error) {
	e, err := eventOf(handle)
	if err != nil {
		return nil, err
	}
	return &operation{e.x.dev, func(s *hal.Stream) error { return enqueue(s, e.Event) }, node{event: handle}}, nil
}

func (c *caller) recordNode(handle uintptr) (*operation, error) {
	return c.eventNode(handle, func(s *hal.Stream, e *hal.Event) error { return s.RecordExternal(c.t, e) })
}

func (c *caller) waitNode(handle uintptr) (*operation, error) {
	return c.eventNode(handle, func(s *hal.Stream, e *hal.Event) error { return s.WaitExternal(c.t, e) })
}

// allocNode is a node that allocates; its address is known, and given to the program, once it was added.
func (c *caller) allocNode(p *allocParameters) (*operation, error) {
	d, err := p.properties.at.device()
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(p.size)
	if err != nil {
		return nil, err
	}
	x := primaryOf(d)
	known := &allocParameters{}
	return &operation{d, func(s *hal.Stream) error {
		b, err := s.AllocAsync(c.t, size)
		if err == nil {
			p.address = b.Start
			*known = *p
			known.access, known.count = 0, 0 // an array of the program
			noteAllocation(b.Start, allocation{x: x, ofGraph: true, size: p.size, pool: &pool{dev: d}})
		}
		return err
	}, node{memory: known}}, nil
}

func (c *caller) freeNode(x *context, address uint64) *operation {
	return &operation{x.dev, func(s *hal.Stream) error {
		free := func(*allocation) error { return s.FreeAsync(c.t, address) }
		found, err := endAllocation(address, (*allocation).onDevice, free)
		if !found {
			err = free(nil)
		}
		return err
	}, node{frees: address}}
}

// addNode adds a node behind others, which are two arguments: an array and its length.
func (c *caller) addNode(g *graph, a *args, after, count int, o *operation) error {
	before, err := g.dependencies(a, after, count)
	if err != nil {
		return err
	}
	made, err := g.Add(c.t, o.dev, before, o.enqueue)
	if err != nil {
		return err
	}
	n := g.node(made)
	n.copyParameters(&o.parameters)
	put(a, 0, n.handle)
	return nil
}

// dependencies returns the nodes of an array that is two arguments. What CUDA 12 says of the edges to them in addition allows a
// kernel to begin before those that it depends on end; here it waits for their ends.
func (g *graph) dependencies(a *args, i, count int) (nodes []*hal.Node, err error) {
	handles, err := elements[uintptr](a, i, count)
	if err != nil {
		return nil, err
	}
	return g.nodesOf(handles)
}

// nodesOf returns the nodes with handles, which are ones of the graph.
func (g *graph) nodesOf(handles []uintptr) (nodes []*hal.Node, err error) {
	for _, handle := range handles {
		n, err := nodeOf(handle)
		if err != nil {
			return nil, err
		}
		if n.graph != g {
			return nil, refuse(invalidValue, "node %#x is one of another graph", handle)
		}
		nodes = append(nodes, n.Node)
	}
	return nodes, nil
}

// operationOf makes the operation for a node of a graph of the arguments of a call.
type operationOf func(c *caller, g *graph, a *args) (*operation, error)

// addNodeCall returns a function that adds a node for the operation that of makes of its arguments.
func addNodeCall(of operationOf) func(c *caller, a *args) error {
	return onGraph(1, func(c *caller, g *graph, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		o, err := of(c, g, a)
		if err != nil {
			return err
		}
		return c.addNode(g, a, 2, 3, o)
	})
}

// nodeParameters is CUgraphNodeParams: which of its forms it has is the kind of the node.
type nodeParameters struct {
	kind int32
	_    [3]int32
	form [29]uint64
	_    int64
}

// contextIn returns the context of a handle, where NULL stands for another one.
func contextIn(handle uintptr, otherwise *context) (*context, error) {
	if handle == 0 {
		return otherwise, nil
	}
	return contextOf(handle)
}

func (c *caller) nodeOfParameters(g *graph, p *nodeParameters) (o *operation, err error) {
	form := unsafe.Pointer(&p.form[0])
	switch p.kind {
	case kernelNode:
		kernel := (*newKernelParameters)(form)
		x, err := contextIn(kernel.context, g.x)
		if err != nil {
			return nil, err
		}
		return c.kernelNode(x, kernel)
	case copyNode: // flags and a reserved number, the context, and the copy
		x, err := contextIn(uintptr(p.form[1]), g.x)
		if err != nil {
			return nil, err
		}
		return c.copyNode(x, (*copy3D)(unsafe.Pointer(&p.form[2])))
	case fillNode:
		x, err := contextIn(uintptr(p.form[5]), g.x)
		if err != nil {
			return nil, err
		}
		return c.fillNode(x, (*fillParameters)(form))
	case hostNode:
		return c.hostNode(g.x, (*hostParameters)(form))
	case waitNode:
		return c.waitNode(uintptr(p.form[0]))
	case recordNode:
		return c.recordNode(uintptr(p.form[0]))
	case allocNode:
		return c.allocNode((*allocParameters)(form))
	case freeNode:
		return c.freeNode(g.x, p.form[0]), nil
	}
	return nil, refuse(notSupported, "nodes of kind %d are not executed here", p.kind)
}

// addAny returns a function that adds a node of any kind; parameters says where they are, behind the number of nodes.
func addAny(count, parameters int) func(c *caller, a *args) error {
	return onGraph(1, func(c *caller, g *graph, a *args) error {
		if err := a.need(0, parameters); err != nil {
			return err
		}
		p := in[nodeParameters](a, parameters)
		switch p.kind {
		case emptyNode:
			return c.addEmpty(g, a, count)
		case graphNode:
			return c.addChild(g, a, count, uintptr(p.form[0]))
		}
		o, err := c.nodeOfParameters(g, p)
		if err != nil {
			return err
		}
		return c.addNode(g, a, 2, count, o)
	})
}

func (c *caller) addEmpty(g *graph, a *args, count int) error {
	before, err := g.dependencies(a, 2, count)
	if err != nil {
		return err
	}
	made, err := g.AddEmpty(c.t, before)
	if err == nil {
		put(a, 0, g.node(made).handle)
	}
	return err
}

func (c *caller) addChild(g *graph, a *args, count int, handle uintptr) error {
	child, err := graphOf(handle)
	if err != nil {
		return err
	}
	before, err := g.dependencies(a, 2, count)
	if err != nil {
		return err
	}
	made, err := g.AddChild(c.t, before, child.Graph)
	if err == nil {
		g.retainReferences(child.currentReferences())
		put(a, 0, g.node(made).handle)
	}
	return err
}

// anyKind stands for the kind that the parameters say.
const anyKind = -1

// updateNodeCall returns a function by which later launches of an executable do another operation at a node, which is of a
// kind, and one of the graph that the executable was made of.
func updateNodeCall(kind int32, of operationOf) func(c *caller, a *args) error {
	return onExecutable(func(c *caller, x *executable, a *args) error {
		n, err := nodeOf(a.handle(1))
		if err == nil {
			err = a.need(2)
		}
		if err != nil {
			return err
		}
		wanted := kind
		if kind == anyKind {
			wanted = in[nodeParameters](a, 2).kind
		}
		switch {
		case n.graph.child:
			return refuse(notSupported, "nodes of child graphs are not updated one by one; use cuGraphExecUpdate")
		case n.graph.handle != x.graph:
			return refuse(invalidValue, "the executable was not made of the graph of the node")
		case n.kind() != wanted:
			return refuse(invalidValue, "the node is of kind %d, and its parameters of kind %d", n.kind(), wanted)
		case wanted == graphNode:
			return refuse(notSupported, "%s", noChildUpdate)
		case wanted == allocNode || wanted == freeNode:
			return refuse(invalidValue, "nodes that allocate or free memory are not updated")
		}
		o, err := of(c, n.graph, a)
		if err != nil {
			return err
		}
		s, err := x.NodeBuilder(c.t, n.Index())
		if err != nil {
			return err
		}
		if err := o.enqueue(s); err != nil {
			s.Unbuilt()
			return err
		}
		return x.BuiltUpdate(s, n.Index())
	})
}

// parametersCall returns a function that stores the parameters that the program has added a node with.
func parametersCall[T any](of func(n *node) *T) func(c *caller, a *args) error {
	return onNode(0, func(_ *caller, n *node, a *args) error {
		p := of(n)
		if p == nil {
			return refuse(notSupported, "the parameters of a node that a capture made, or of another kind, are not kept")
		}
		put(a, 1, *p)
		return a.need(1)
	})
}

// storeNodes stores handles of nodes in an array of the program, as many as there is room for, and how many those are;
// without an array, how many there are. edges is the place of an array that says how the nodes are depended on: nowhere if
// the function has none.
func storeNodes(nodes []uintptr, a *args, into, edges, count int) error {
	if err := a.need(count); err != nil {
		return err
	}
	n := in[uint64](a, count)
	if a[into] == 0 {
		*n = uint64(len(nodes))
		return nil
	}
	if *n > mostElements {
		return refuse(invalidValue, "%d nodes are more than there can be", *n)
	}
	room := list[uintptr](a, into, *n)
	clear(room)
	*n = uint64(copy(room, nodes))
	if edges != nowhere {
		clear(list[uint64](a, edges, *n)) // every node waits for the ends of others
	}
	return nil
}

func (g *graph) handles(nodes []*hal.Node) (handles []uintptr) {
	for _, n := range nodes {
		handles = append(handles, g.node(n).handle)
	}
	return handles
}

// edgesCall returns a function that gives the edges of a graph; data and count say where what there is to know of them and
// their number are.
func edgesCall(data, count int) func(c *caller, a *args) error {
	return onGraph(0, func(_ *caller, g *graph, a *args) error {
		if err := a.need(count); err != nil {
			return err
		}
		if (a[1] == 0) != (a[2] == 0) {
			return refuse(invalidValue, "there is an array for one end of the edges, and none for the other")
		}
		var from, to []uintptr
		for _, n := range g.Nodes() {
			for _, before := range n.After() {
				from, to = append(from, g.node(before).handle), append(to, g.node(n).handle)
			}
		}
		room := *in[uint64](a, count)
		if err := storeNodes(from, a, 1, data, count); err != nil {
			return err
		}
		*in[uint64](a, count) = room
		return storeNodes(to, a, 2, nowhere, count)
	})
}

func dependenciesCall(data, count int) func(c *caller, a *args) error {
	return onNode(0, func(_ *caller, n *node, a *args) error {
		return storeNodes(n.graph.handles(n.After()), a, 1, data, count)
	})
}

func dependentsCall(data, count int) func(c *caller, a *args) error {
	return onNode(0, func(_ *caller, n *node, a *args) error {
		var after []uintptr
		for _, one := range n.graph.Nodes() {
			for _, before := range one.After() {
				if before == n.Node {
					after = append(after, n.graph.node(one).handle)
				}
			}
		}
		return storeNodes(after, a, 1, data, count)
	})
}

// addEdgesCall returns a function that orders nodes; count says where their number is.
func addEdgesCall(count int) func(c *caller, a *args) error {
	return onGraph(0, func(c *caller, g *graph, a *args) error {
		from, err := g.dependencies(a, 1, count)
		if err != nil {
			return err
		}
		to, err := g.dependencies(a, 2, count)
		if err != nil {
			return err
		}
		for i := range from {
			if err := g.AddEdge(c.t, from[i], to[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// eventOfNode returns a function that gives the event of a node of a kind.
func eventOfNode(kind int32) func(n *node) *uintptr {
	return func(n *node) *uintptr {
		if n.event == 0 || n.kind() != kind {
			return nil
		}
		return &n.event
	}
}

// kernelOperation is operationOf for parameters that are argument i: long ones, which programs of CUDA 12 and later have, or not.
func kernelOperation(i int, long bool) operationOf {
	return func(c *caller, g *graph, a *args) (*operation, error) {
		if err := a.need(i); err != nil {
			return nil, err
		}
		given := newKernelParameters{kernelParameters: *in[kernelParameters](a, i)}
		if long {
			given = *in[newKernelParameters](a, i)
		}
		x, err := contextIn(given.context, g.x)
		if err != nil {
			return nil, err
		}
		return c.kernelNode(x, &given)
	}
}

// inContextOf is operationOf for parameters that are argument i, and a context that is the next one.
func inContextOf[T any](i int, of func(c *caller, x *context, p *T) (*operation, error)) operationOf {
	return func(c *caller, g *graph, a *args) (*operation, error) {
		if err := a.need(i); err != nil {
			return nil, err
		}
		x, err := contextIn(a.handle(i+1), g.x)
		if err != nil {
			return nil, err
		}
		return of(c, x, in[T](a, i))
	}
}

func hostOperation(i int) operationOf {
	return func(c *caller, g *graph, a *args) (*operation, error) {
		if err := a.need(i); err != nil {
			return nil, err
		}
		return c.hostNode(g.x, in[hostParameters](a, i))
	}
}

func recordOperation(i int) operationOf {
	return func(c *caller, _ *graph, a *args) (*operation, error) { return c.recordNode(a.handle(i)) }
}

func waitOperation(i int) operationOf {
	return func(c *caller, _ *graph, a *args) (*operation, error) { return c.waitNode(a.handle(i)) }
}

const (
	noChildUpdate = "a child graph of an executable is not updated by itself; use cuGraphExecUpdate with a graph that has the new one"
	noValueNodes  = "values in memory are not written and waited for in graphs; use events"
	noRemoval     = "nodes and edges of a graph are not removed; make the graph anew"
	noChange      = "what a node of a graph does is not changed; change the executable (cuGraphExec...SetParams), or make the graph anew"
)

var nodeFunctions = []function{
	{name: "cuGraphAddKernelNode", version: 10000, call: addNodeCall(kernelOperation(4, false))},
	{name: "cuGraphAddKernelNode_v2", version: 12000, call: addNodeCall(kernelOperation(4, true))},
	{name: "cuGraphAddMemcpyNode", version: 10000, call: addNodeCall(inContextOf(4, (*caller).copyNode))},
	{name: "cuGraphAddMemsetNode", version: 10000, call: addNodeCall(inContextOf(4, (*caller).fillNode))},
	{name: "cuGraphAddHostNode", version: 10000, call: addNodeCall(hostOperation(4))},
	{name: "cuGraphAddEventRecordNode", version: 11010, call: addNodeCall(recordOperation(4))},
	{name: "cuGraphAddEventWaitNode", version: 11010, call: addNodeCall(waitOperation(4))},
	{name: "cuGraphAddMemAllocNode", version: 11040, call: addNodeCall(func(c *caller, _ *graph, a *args) (*operation, error) {
		if err := a.need(4); err != nil {
			return nil, err
		}
		return c.allocNode(in[allocParameters](a, 4))
	})},
	{name: "cuGraphAddMemFreeNode", version: 11040, call: addNodeCall(func(c *caller, g *graph, a *args) (*operation, error) {
		return c.freeNode(g.x, a[4]), nil
	})},
	{name: "cuGraphAddEmptyNode", version: 10000, call: onGraph(1, func(c *caller, g *graph, a *args) error {
		return c.addEmpty(g, a, 3)
	})},
	{name: "cuGraphAddChildGraphNode", version: 10000, call: onGraph(1, func(c *caller, g *graph, a *args) error {
		return c.addChild(g, a, 3, a.handle(4))
	})},
	{name: "cuGraphAddNode", version: 12020, call: addAny(3, 4)},
	{name: "cuGraphAddNode_v2", version: 12030, call: addAny(4, 5)},
	{name: "cuGraphAddNode_v3", version: 13040, wholeName: true, call: addAny(4, 5)},
	{name: "cuGraphAddBatchMemOpNode", version: 11070, call: unsupported(noValueNodes)},
	{name: "cuGraphBatchMemOpNodeGetParams", version: 11070, call: unsupported(noValueNodes)},
	{name: "cuGraphBatchMemOpNodeSetParams", version: 11070, call: unsupported(noValueNodes)},
	{name: "cuGraphConditionalHandleCreate", version: 12030, call: unsupported(
		"kernels do not set conditions of graphs here; decide on the host which graph is launched")},
	{name: "cuGraphDestroyNode", version: 10000, call: unsupported(noRemoval)},
	{name: "cuGraphRemoveDependencies", version: 10000, call: unsupported(noRemoval)},
	{name: "cuGraphRemoveDependencies_v2", version: 12030, call: unsupported(noRemoval)},
	{name: "cuGraphAddDependencies", version: 10000, call: addEdgesCall(3)},
	{name: "cuGraphAddDependencies_v2", version: 12030, call: addEdgesCall(4)},
	{name: "cuGraphGetNodes", version: 10000, call: onGraph(0, func(_ *caller, g *graph, a *args) error {
		return storeNodes(g.handles(g.Nodes()), a, 1, nowhere, 2)
	})},
	{name: "cuGraphGetRootNodes", version: 10000, call: onGraph(0, func(_ *caller, g *graph, a *args) error {
		var roots []*hal.Node
		for _, n := range g.Nodes() {
			if len(n.After()) == 0 {
				roots = append(roots, n)
			}
		}
		return storeNodes(g.handles(roots), a, 1, nowhere, 2)
	})},
	{name: "cuGraphGetEdges", version: 10000, call: edgesCall(nowhere, 3)},
	{name: "cuGraphGetEdges_v2", version: 12030, call: edgesCall(3, 4)},
	{name: "cuGraphNodeGetDependencies", version: 10000, call: dependenciesCall(nowhere, 2)},
	{name: "cuGraphNodeGetDependencies_v2", version: 12030, call: dependenciesCall(2, 3)},
	{name: "cuGraphNodeGetDependentNodes", version: 10000, call: dependentsCall(nowhere, 2)},
	{name: "cuGraphNodeGetDependentNodes_v2", version: 12030, call: dependentsCall(2, 3)},
	{name: "cuGraphNodeGetType", version: 10000, call: onNode(0, func(_ *caller, n *node, a *args) error {
		put(a, 1, n.kind())
		return a.need(1)
	})},
	{name: "cuGraphNodeGetContainingGraph", version: 13010, call: onNode(0, func(_ *caller, n *node, a *args) error {
		put(a, 1, n.graph.handle)
		return a.need(1)
	})},
	{name: "cuGraphNodeGetLocalId", version: 13010, call: onNode(0, func(_ *caller, n *node, a *args) error {
		put(a, 1, uint32(n.Index()))
		return a.need(1)
	})},
	{name: "cuGraphNodeGetToolsId", version: 13010, call: onNode(0, func(_ *caller, n *node, a *args) error {
		put(a, 1, uint64(n.handle))
		return a.need(1)
	})},
	{name: "cuGraphNodeFindInClone", version: 10000, call: onNode(1, func(_ *caller, n *node, a *args) error {
		g, err := graphOf(a.handle(2))
		if err != nil {
			return err
		}
		if g.original != n.graph.handle || n.Index() >= g.copied {
			return refuse(invalidValue, "the graph is no clone of that of the node, or was made before the node")
		}
		put(a, 0, g.node(g.Nodes()[n.Index()]).handle)
		return a.need(0)
	})},
	{name: "cuGraphChildGraphNodeGetGraph", version: 10000, call: onNode(0, func(_ *caller, n *node, a *args) error {
		child := n.Child()
		if child == nil {
			return refuse(invalidValue, "the node is no graph")
		}
		put(a, 1, n.childGraph(child).handle)
		return a.need(1)
	})},
	{name: "cuGraphKernelNodeGetParams", version: 10000, call: parametersCall(func(n *node) *kernelParameters {
		if n.kernel == nil {
			return nil
		}
		known := n.kernel.given()
		return &known
	})},
	{name: "cuGraphKernelNodeGetParams_v2", version: 12000, call: parametersCall(func(n *node) *newKernelParameters {
		if n.kernel == nil {
			return nil
		}
		return &newKernelParameters{kernelParameters: n.kernel.given(), context: n.graph.x.handle}
	})},
	{name: "cuGraphKernelNodeGetAttribute", version: 11000, call: onKernelNode(0, func(n *node, a *args) error {
		number := a.int(1)
		switch {
		case nodeHints[number]:
			put(a, 2, n.hints.get(number))
		case isNodeAttribute(number) && n.kernel != nil:
			put(a, 2, hint{}) // the program cannot have set it
		default:
			return noNodeAttribute(number)
		}
		return a.need(2)
	})},
	{name: "cuGraphKernelNodeSetAttribute", version: 11000, call: onKernelNode(0, func(n *node, a *args) error {
		if err := a.need(2); err != nil {
			return err
		}
		number := a.int(1)
		if !nodeHints[number] {
			return noNodeAttribute(number)
		}
		n.hints.set(number, *in[hint](a, 2))
		return nil
	})},
	{name: "cuGraphKernelNodeCopyAttributes", version: 11000, call: onKernelNode(0, func(to *node, a *args) error {
		return onKernelNode(1, func(from *node, a *args) error {
			to.hints.copyFrom(&from.hints)
			return nil
		})(nil, a)
	})},
	{name: "cuGraphMemcpyNodeGetParams", version: 10000, call: parametersCall(func(n *node) *copy3D { return n.copies })},
	{name: "cuGraphMemsetNodeGetParams", version: 10000, call: parametersCall(func(n *node) *fillParameters { return n.fills })},
	{name: "cuGraphHostNodeGetParams", version: 10000, call: parametersCall(func(n *node) *hostParameters { return n.calls })},
	{name: "cuGraphMemAllocNodeGetParams", version: 11040, call: parametersCall(func(n *node) *allocParameters { return n.memory })},
	{name: "cuGraphMemFreeNodeGetParams", version: 11040, call: parametersCall(func(n *node) *uint64 {
		if n.frees == 0 {
			return nil
		}
		return &n.frees
	})},
	{name: "cuGraphEventRecordNodeGetEvent", version: 11010, call: parametersCall(eventOfNode(recordNode))},
	{name: "cuGraphEventWaitNodeGetEvent", version: 11010, call: parametersCall(eventOfNode(waitNode))},
	{name: "cuGraphEventRecordNodeSetEvent", version: 11010, call: unsupported(noChange)},
	{name: "cuGraphEventWaitNodeSetEvent", version: 11010, call: unsupported(noChange)},
	{name: "cuGraphKernelNodeSetParams", version: 10000, call: unsupported(noChange)},
	{name: "cuGraphKernelNodeSetParams_v2", version: 12000, call: unsupported(noChange)},
	{name: "cuGraphMemcpyNodeSetParams", version: 10000, call: unsupported(noChange)},
	{name: "cuGraphMemsetNodeSetParams", version: 10000, call: unsupported(noChange)},
	{name: "cuGraphHostNodeSetParams", version: 10000, call: unsupported(noChange)},
	{name: "cuGraphNodeSetParams", version: 12020, call: unsupported(noChange)},
	{name: "cuGraphNodeSetParams_v2", version: 13040, wholeName: true, call: unsupported(noChange)},
	{name: "cuGraphNodeGetParams", version: 13020, call: unsupported("ask with the function of the node's kind, such as " +
		"cuGraphKernelNodeGetParams")},
	{name: "cuGraphExecKernelNodeSetParams", version: 10010, call: updateNodeCall(kernelNode, kernelOperation(2, false))},
	{name: "cuGraphExecKernelNodeSetParams_v2", version: 12000, call: updateNodeCall(kernelNode, kernelOperation(2, true))},
	{name: "cuGraphExecMemcpyNodeSetParams", version: 10020, call: updateNodeCall(copyNode, inContextOf(2, (*caller).copyNode))},
	{name: "cuGraphExecMemsetNodeSetParams", version: 10020, call: updateNodeCall(fillNode, inContextOf(2, (*caller).fillNode))},
	{name: "cuGraphExecHostNodeSetParams", version: 10020, call: updateNodeCall(hostNode, hostOperation(2))},
	{name: "cuGraphExecEventRecordNodeSetEvent", version: 11010, call: updateNodeCall(recordNode, recordOperation(2))},
	{name: "cuGraphExecEventWaitNodeSetEvent", version: 11010, call: updateNodeCall(waitNode, waitOperation(2))},
	{name: "cuGraphExecChildGraphNodeSetParams", version: 11010, call: unsupported(noChildUpdate)},
	{name: "cuGraphExecBatchMemOpNodeSetParams", version: 11070, call: unsupported(noValueNodes)},
	{name: "cuGraphExecNodeSetParams", version: 12020, call: updateNodeCall(anyKind, func(c *caller, g *graph, a *args) (*operation, error) {
		return c.nodeOfParameters(g, in[nodeParameters](a, 2))
	})},
	{name: "cuGraphNodeSetEnabled", version: 11060, call: unsupported("a node of an executable always runs; launch another graph")},
	{name: "cuGraphNodeGetEnabled", version: 11060, call: func(_ *caller, a *args) error {
		if _, err := executableOf(a.handle(0)); err != nil {
			return err
		}
		put(a, 2, uint32(1))
		return a.need(2)
	}},
}
