package hal

import (
	"halstream/hal/driver"
)

// OperationKind is what an operation does: work that is enqueued on a stream, a node of a graph,
// or an action of the host. Its text is what logs, traces and reports call it.
type OperationKind uint8

// The kinds of operations. Those up to OpLaunchGraph are enqueued, those up to OpSwitch are nodes of
// a graph only, and the rest are actions of the host, for which nothing is enqueued.
const (
	// OpNone is no operation.
	OpNone OperationKind = iota

	OpNop
	OpDelay
	OpGate
	OpCall   // a function of the program
	OpReport // a function that a thread of the program runs, see Stream.Report
	OpNative // a C function
	OpCopy
	OpFill
	OpLaunch // a kernel
	OpAllocate
	OpFree
	OpRecord
	OpWait
	OpWaitStream
	OpReset
	OpWriteValue
	OpWaitValue
	OpLaunchGraph

	OpEmpty
	OpKernel
	OpGraph
	OpIf
	OpWhile
	OpSwitch

	OpSynchronizeStream
	OpSynchronizeEvent
	OpSynchronizeDevice
	OpSynchronizeMemory // the host waited for all work on the bytes of Reads
	OpWaitMemory        // a stream waits for it
	OpQueryStream       // answered true
	OpQueryEvent        // answered true
	OpHostRead
	OpHostWrite
	OpNewMemory
	OpFreeMemory
	OpNewStream
	OpCloseStream
	OpNewEvent
	OpCloseEvent
	OpEndCapture
	OpInstantiate
	OpUpdateExecutable
	OpOpenGate
	OpWaitForNoRecord // a stream was to wait for an event that was never recorded

	operationKinds // how many there are
)

var operationKindTexts = [operationKinds]string{
	OpNop: "nop", OpDelay: "delay", OpGate: "gate", OpCall: "call", OpReport: "report", OpNative: "native",
	OpCopy: "copy", OpFill: "fill", OpLaunch: "launch", OpAllocate: "allocate", OpFree: "free",
	OpRecord: "record", OpWait: "wait", OpWaitStream: "wait stream", OpReset: "reset",
	OpWriteValue: "write value", OpWaitValue: "wait value", OpLaunchGraph: "launch graph",
	OpEmpty: "empty", OpKernel: "kernel", OpGraph: "graph", OpIf: "if", OpWhile: "while", OpSwitch: "switch",
	OpSynchronizeStream: "synchronize stream", OpSynchronizeEvent: "synchronize event",
	OpSynchronizeDevice: "synchronize device", OpSynchronizeMemory: "synchronize memory",
	OpWaitMemory: "wait memory", OpQueryStream: "query stream", OpQueryEvent: "query event",
	OpHostRead: "host read", OpHostWrite: "host write", OpNewMemory: "new memory", OpFreeMemory: "free memory",
	OpNewStream: "new stream", OpCloseStream: "close stream", OpNewEvent: "new event", OpCloseEvent: "close event",
	OpEndCapture: "end capture", OpInstantiate: "instantiate", OpUpdateExecutable: "update executable",
	OpOpenGate: "open gate", OpWaitForNoRecord: "wait for no record",
}

// String returns the kind as logs, traces and reports call it.
func (k OperationKind) String() string { return operationKindTexts[k] }

// OperationKinds returns all kinds of operations.
func OperationKinds() []OperationKind {
	all := make([]OperationKind, 0, operationKinds-1)
	for k := OpNop; k < operationKinds; k++ {
		all = append(all, k)
	}
	return all
}

// kindOfNode returns what an operation is called that a node of a graph is.
func kindOfNode(k driver.GraphNodeKind) OperationKind {
	return [...]OperationKind{
		driver.EmptyNode: OpEmpty, driver.CallNode: OpCall, driver.NativeNode: OpNative, driver.CopyNode: OpCopy,
		driver.FillNode: OpFill, driver.DelayNode: OpDelay, driver.RecordNode: OpRecord, driver.WaitNode: OpWait,
		driver.KernelNode: OpKernel, driver.IfNode: OpIf, driver.WhileNode: OpWhile, driver.SwitchNode: OpSwitch,
		driver.ChildNode: OpGraph, driver.AllocNode: OpAllocate, driver.FreeNode: OpFree,
	}[k]
}

// Operation is what listeners are notified of: a call that enqueued work, or an
// action of the host that matters for the order of operations.
type Operation struct {
	// ID is the number of the operation, which also identifies its execution. It is
	// never 0, and is reused only after all 32-bit numbers were.
	ID uint32
	// Seq is the place of the operation in the order of all operations: of two on
	// one stream, or on one event, the one with the lower number came first. A wait
	// of the host has the number of its begin: it waits only for operations with
	// lower numbers.
	Seq uint64
	// Kind is what the operation does; [OpNone] where listeners are not notified.
	Kind OperationKind
	// Name is what the program calls the operation, "" where it has given no name.
	Name string
	// Complete says that a function works on nothing but Reads and Writes.
	Complete bool
	Stream   *Stream
	Thread   *Thread
	Event    *Event // record, wait, reset, and what the host does with events
	Version  uint64 // of the event: the one made by a record, or bound by a wait
	Other    *Stream
	Exec     *GraphExec // launch graph
	Graph    *Graph     // end capture, instantiate, update executable: the graph
	// Nodes are those of the graph. A launch graph runs them; NodeID gives their numbers, which follow that
	// of the launch. NodeVersions are those of their events, in the order of the nodes.
	Nodes        *NodeList
	NodeVersions []NodeVersion
	// Launch is set for the nodes of a launch in a log, which come behind it: its ID. Branch
	// is the number of the node's branch, from 0, and Node its index; -1 in a graph inside of
	// the one that is launched.
	Launch uint32
	Branch int
	Node   int
	Token  uint64       // host functions
	Value  *ValueAccess // write value, wait value
	Reads  []Range
	Writes []Range
	// HandsIn says that Reads and Writes are an upper bound: what the operation accesses comes
	// when it has run (Inspector.HandedIn). Of a launch graph it says that of those nodes that hand in.
	HandsIn bool
	// Cached is set for allocate, free and free memory of a block of AllocCached. Its
	// free is no access: only work that touches the memory when it was given out again
	// can conflict with work that was still using it.
	Cached bool
	// InOrder is set for allocate with Cached where work of other streams may use the
	// memory only behind the allocation all the same.
	InOrder bool
	// NoWait is set for free memory by a call that waits for nothing, as its caller knows:
	// work that the host has not waited for may still use the memory.
	NoWait bool
	// Users, for free memory of such a block: the stream that it was allocated on, and
	// those whose work so far it waits for. For synchronize device: the streams that the
	// host waited for, nil for all.
	Users []*Stream
	// Site identifies where the program made the call: what the program has given, or
	// else the result of the function given to Runtime.SetSites, 0 without one.
	Site uint32
	// Host says that nothing was enqueued: the operation is an action of the host, of which
	// listeners are notified afterwards. The Stream of what concerns a device is its legacy one.
	Host bool
	// Internal marks what the runtime did without a call of the program.
	Internal bool

	time        int64  // of the call, while a log records times
	afterNotify func() // called after the listeners, if not nil
}

// Range is a range of bytes, Size long.
type Range struct{ Start, Size uint64 }

// NodeID returns the number of the i-th node of a launch, which identifies its execution. A node of a
// body has one number for all of its executions in the launch.
func (o *Operation) NodeID(i int) uint32 { return o.ID + 1 + uint32(i) }

// bindEvents gives a launch that gets its place in the order the versions of the events that
// its nodes record and wait for. The notifier's mu is held.
func (o *Operation) bindEvents() {
	for i, n := range o.Nodes.nodes {
		switch {
		case n.event == nil:
			continue
		case n.kind == driver.RecordNode:
			o.NodeVersions = append(o.NodeVersions, NodeVersion{i, n.event.version.Add(1)})
		default:
			o.NodeVersions = append(o.NodeVersions, NodeVersion{i, n.event.version.Load()})
		}
	}
}
