// Package records has the forms in which several ways into the core write what it has seen, in JSON. The build makes
// classes of Python of them: see bindings/constants.
package records

import "halstream/hal"

// ErrorPrefix begins the text of every error that the runtime reports; the record of an error follows. The same prefix is
// in buildsupport/pybindgen.py, where C writes the error of a forked process.
const ErrorPrefix = "halstream error: "

// Range is a range of memory.
type Range struct {
	Start uint64 `json:"start"`
	Size  uint64 `json:"size"`
}

// Ranges returns the records of ranges; an empty list for none.
func Ranges(list []hal.Range) []Range {
	all := make([]Range, 0, len(list))
	for _, one := range list {
		all = append(all, Range(one))
	}
	return all
}

// Frame is a frame of a stack.
type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// Operation is an operation of a log: what was enqueued, or what the host did.
type Operation struct {
	ID          uint32  `json:"id"`
	Kind        string  `json:"kind"`
	Device      int     `json:"device"` // ordinal, -1 where it concerns no device
	Stream      uint64  `json:"stream"` // index of the stream on its device
	Thread      uint64  `json:"thread"` // the runtime's own number, 0 where no thread made the call
	Event       uint64  `json:"event"`  // number of the event, 0 for none
	Version     uint64  `json:"version"`
	OtherDevice int     `json:"other_device"` // of the stream waited for, else that of the operation
	Other       uint64  `json:"other"`        // index of the stream waited for
	Token       uint64  `json:"token"`        // of a function
	Reads       []Range `json:"reads"`
	Writes      []Range `json:"writes"`
	Site        uint32  `json:"site"`   // of the call, 0 where it is not known
	Host        bool    `json:"host"`   // something that the host did
	Time        int64   `json:"time"`   // in nanoseconds, 0 in a log without times
	Name        string  `json:"name"`   // that the program has given it, "" without one
	Launch      uint32  `json:"launch"` // id of the launch of a graph that it is a node of, 0 for others
	Branch      int     `json:"branch"` // of the launch, from 0
	Node        int     `json:"node"`   // its index in the graph that is launched, -1 in another one and for others
}

// Of returns the record of an operation that was enqueued, or done, at a time.
func Of(when int64, o *hal.Operation) Operation {
	r := Operation{ID: o.ID, Kind: o.Kind.String(), Device: -1, Version: o.Version, Token: o.Token,
		Reads: Ranges(o.Reads), Writes: Ranges(o.Writes), Site: o.Site, Host: o.Host, Time: when, Name: o.Name,
		Launch: o.Launch, Branch: o.Branch, Node: o.Node}
	if o.Thread != nil {
		r.Thread = o.Thread.ID
	}
	if o.Stream != nil {
		r.Device, r.Stream = o.Stream.Device().Ordinal(), o.Stream.Index()
	}
	if o.Event != nil {
		r.Event = o.Event.ID()
	}
	if r.OtherDevice = r.Device; o.Other != nil {
		r.OtherDevice, r.Other = o.Other.Device().Ordinal(), o.Other.Index()
	}
	return r
}

// Execution is when an operation ran, in nanoseconds.
type Execution struct {
	ID    uint64 `json:"id"`
	Began int64  `json:"began"`
	Ended int64  `json:"ended"`
}

// Executions returns what has run since the last call.
func Executions(rt *hal.Runtime) []Execution {
	all := []Execution{}
	for _, x := range rt.Executions() {
		all = append(all, Execution{uint64(x.Tag), x.Began, x.Ended})
	}
	return all
}
