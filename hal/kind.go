package hal

import "halstream/hal/driver"

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
