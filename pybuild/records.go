package pybuild

import (
	"encoding/json"
	"strconv"

	"halstream/bindings/records"
)

// Everything that crosses the boundary to Python as more than a number or a plain text is JSON. The structs of this file,
// and those of bindings/records, are its records; the build makes classes of Python of them: see bindings/constants.

// errorRecord is an error.
type errorRecord struct {
	Kind      string `json:"kind"`
	Code      int    `json:"code"`      // the vendor's, 0 without one
	Operation string `json:"operation"` // that failed
	Token     uint64 `json:"token"`     // of the checked function that raised, 0 without one
	Text      string `json:"text"`
}

// nodeRecord is a node of a graph.
type nodeRecord struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`  // of a kernel or a native function, where the program has given one
	Site   uint32          `json:"site"`  // of the call that became it, 0 where it is not known
	After  []int           `json:"after"` // nodes that it comes after
	Token  uint64          `json:"token"` // of a function, 0 without one
	Reads  []records.Range `json:"reads"`
	Writes []records.Range `json:"writes"`
	Child  int             `json:"child"` // nodes of a graph that is a node
}

// placeRecord is a stream.
type placeRecord struct {
	Device int    `json:"device"`
	Stream uint64 `json:"stream"`
}

// stepRecord is a step of a run under a schedule: a call of the host or an operation.
type stepRecord struct {
	Call      uint32 `json:"call"`      // number of the host's call, 0 for an operation
	Stream    uint32 `json:"stream"`    // number of the operation's stream in the run
	Operation uint32 `json:"operation"` // number of the operation on its stream
	ID        uint32 `json:"id"`        // of the operation in a log, 0 without listeners
}

// callRecord is a call that the host made in a run under a schedule.
type callRecord struct {
	Thread uint32 `json:"thread"` // threads are numbered by their first call
	Kind   string `json:"kind"`
	Stream uint32 `json:"stream"` // number of the stream in the run, 0 for none
}

// blockRecord is the block of memory that contains an address.
type blockRecord struct {
	Kind   int    `json:"kind"` // 0 unknown to the runtime, 1 pinned, 2 memory of a device
	Start  uint64 `json:"start"`
	Size   uint64 `json:"size"`
	Device int    `json:"device"` // ordinal, -1 for memory of the host
}

// text is encode for a record that each launch of a kernel asks for: without
// reflection it takes a fifth of the time.
func (r blockRecord) text() string {
	b := append(make([]byte, 0, 96), `{"kind":`...)
	b = strconv.AppendInt(b, int64(r.Kind), 10)
	b = strconv.AppendUint(append(b, `,"start":`...), r.Start, 10)
	b = strconv.AppendUint(append(b, `,"size":`...), r.Size, 10)
	b = strconv.AppendInt(append(b, `,"device":`...), int64(r.Device), 10)
	return string(append(b, '}'))
}

// lossRecord is a device that was lost.
type lossRecord struct {
	Device int    `json:"device"` // ordinal
	Text   string `json:"text"`   // of the error
	Told   bool   `json:"told"`   // the program knows of it
}

// chunkRecord is a part of a segment of a device's pool.
type chunkRecord struct {
	Segment records.Range `json:"segment"`
	Chunk   records.Range `json:"chunk"`
	Size    uint64        `json:"size"`   // of the block that has it, as the program asked; 0 without one
	Used    bool          `json:"used"`   // by the block, or by pending work on one that was freed
	Stream  uint64        `json:"stream"` // id of the stream on which it was allocated, 0 for the default one or none
}

// objectRecord is an object that the program made and has not closed or freed.
type objectRecord struct {
	Kind   string `json:"kind"`   // stream, event, memory or gate
	Device int    `json:"device"` // ordinal of a stream's device
	Number uint64 `json:"number"` // of a stream on its device, of an event or a gate; address of memory
	Size   uint64 `json:"size"`   // of memory, in bytes
	ID     uint32 `json:"id"`     // of the operation that made it
	Site   uint32 `json:"site"`   // of the call that made it, 0 where it is not known
}

// madeRecord is where a stream or a block of memory was made.
type madeRecord struct {
	Kind   string `json:"kind"`   // stream or memory
	Device int    `json:"device"` // ordinal of a stream's device
	Number uint64 `json:"number"` // of a stream on its device; address of memory
	Site   uint32 `json:"site"`
}

// accessRecord is one of the two operations of a report of the checker.
type accessRecord struct {
	ID       uint32 `json:"id"`
	Kind     string `json:"kind"`
	Device   int    `json:"device"` // ordinal, -1 for an access of the host
	Stream   uint64 `json:"stream"` // index of the stream on its device
	Thread   uint64 `json:"thread"` // that made the call
	Site     uint32 `json:"site"`
	Token    uint64 `json:"token"` // of a function
	Write    bool   `json:"write"`
	Observed bool   `json:"observed"` // seen in memory, not declared by the program
	Host     bool   `json:"host"`
	Unknown  bool   `json:"unknown"` // whoever changed the source of a copy
	Size     uint64 `json:"size"`    // bytes that a copy or a fill moves, 0 where it is not known
	// Operation is the name that the program has given it, "" without one.
	Operation string `json:"operation"`
	// Node is the node of a launch, or of a graph that was built without a capture; none for others.
	Node *graphNodeRecord `json:"node"`
}

// graphNodeRecord is a node of a graph that a report names.
type graphNodeRecord struct {
	Index int    `json:"index"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Site  uint32 `json:"site"`
	// Captured: a capture made it of what was enqueued on a stream.
	Captured bool   `json:"captured"`
	Device   int    `json:"device"`
	Stream   uint64 `json:"stream"`
	// Inside are the nodes whose graphs and bodies it is in, from the outside.
	Inside [][3]string `json:"inside"` // the number and the kind of each, and the number of the body
}

// noteRecord is a wait or a record that a report refers to.
type noteRecord struct {
	ID      uint32 `json:"id"`
	Site    uint32 `json:"site"`
	Event   uint64 `json:"event"` // 0 for a wait for a stream
	Version uint64 `json:"version"`
	Device  int    `json:"device"` // of the stream with the record
	Stream  uint64 `json:"stream"`
}

// findingRecord is a report of the checker: two accesses to the same bytes.
type findingRecord struct {
	Category  string        `json:"category"`
	Pairs     int64         `json:"pairs"` // found so far with the same sites, kinds and streams
	Range     records.Range `json:"range"`
	BlockKind int           `json:"block_kind"` // as in blockRecord
	Block     records.Range `json:"block"`      // that contains the range
	BlockSite uint32        `json:"block_site"` // of its allocation, 0 where it is not known
	Why       string        `json:"why"`
	Memory    string        `json:"memory"`   // what was done to the life of the memory, or ""
	Devices   bool          `json:"devices"`  // the accesses are on different devices
	Schedule  string        `json:"schedule"` // that was in force when it was found, or ""
	First     accessRecord  `json:"first"`
	Second    accessRecord  `json:"second"`
	Wait      *noteRecord   `json:"wait"`
	Record    *noteRecord   `json:"record"`
	Check     string        `json:"check"` // that found the mistake of a kernel, or ""
	Text      string        `json:"text"`  // what the kernel did, or ""
}

// fixRecord is a change of the program that is to order the operations of a finding.
type fixRecord struct {
	Finding int       `json:"finding"` // its place among all that CheckTake returned
	Action  string    `json:"action"`  // one of order.Action
	First   [2]uint64 `json:"first"`   // device and index of a stream
	Second  [2]uint64 `json:"second"`
	Event   uint64    `json:"event"` // 0 for none
	Sites   []uint32  `json:"sites"` // of the statement that the change goes before or after
	After   bool      `json:"after"`
	Early   bool      `json:"early"` // the statement may have begun right behind the thread's call before it
}

// nearbyRecord is operations around others.
type nearbyRecord struct {
	Operations []records.Operation `json:"operations"`
	Places     []int               `json:"places"` // how many operations of the run came before each of them
	Around     [][]int             `json:"around"` // for each list that was asked for, indices of operations
}

// checkRecord counts what the checker has seen and what it keeps.
type checkRecord struct {
	Operations int `json:"operations"`
	Reports    int `json:"reports"`
	Dropped    int `json:"dropped"` // reports beyond the most that are kept
	Streams    int `json:"streams"`
	Events     int `json:"events"`
	Ranges     int `json:"ranges"`
	Threads    int `json:"threads"`
	Compared   int `json:"compared"`  // functions around which memory was compared
	Partly     int `json:"partly"`    // those for which some device memory was left out
	Paged      int `json:"paged"`     // functions that were seen by the pages of memory
	Untouched  int `json:"untouched"` // those that touched none
	Beside     int `json:"beside"`    // those that ran at the same time as another one
	Unclaimed  int `json:"unclaimed"` // accesses seen by pages, of nobody knows whom
	Sharing    int `json:"sharing"`   // blocks that share a page with another one
	Unwatched  int `json:"unwatched"` // blocks whose pages are not watched
}

// threadRecord is a thread of the process that may act by itself.
type threadRecord struct {
	ID       int    `json:"id"` // the system's number
	Name     string `json:"name"`
	Watchdog bool   `json:"watchdog"` // it waits with a limit and takes no signals, as a debugger's timer does
}

// stateRecord is whether anything can happen without another call.
type stateRecord struct {
	Quiet   bool   `json:"quiet"`   // no operation runs but functions, and none can start
	Mark    uint64 `json:"mark"`    // the same as long as the same work is pending
	Waiting int    `json:"waiting"` // functions that no thread has taken yet
}

// waitRecord is a wait of a host thread that has no limit.
type waitRecord struct {
	Ident  uint64        `json:"ident"`  // of the thread, as threading.get_ident gives it
	Report bool          `json:"report"` // it waits for a report
	On     []placeRecord `json:"on"`
}

// busyRecord is a stream with pending work, and what its first operation waits for.
type busyRecord struct {
	At      placeRecord   `json:"at"`
	Title   string        `json:"title"`
	Pending uint64        `json:"pending"` // operations
	Head    string        `json:"head"`    // the first operation in words
	Need    int           `json:"need"`
	Number  uint64        `json:"number"` // of the gate, the event, the function or the thread that runs it
	Site    uint32        `json:"site"`   // of the call that enqueued it, 0 where it is not known
	On      []placeRecord `json:"on"`
}

// heldRecord is a thread that is blocked by something else than the runtime.
type heldRecord struct {
	Ident uint64 `json:"ident"`
	Owner uint64 `json:"owner"` // the only thread that can let it go on, 0 if several could
}

// runningRecord is a thread that runs a function of a stream.
type runningRecord struct {
	Ident  uint64 `json:"ident"`
	Token  uint64 `json:"token"`
	Report bool   `json:"report"` // the function was taken from a report queue
}

// graphRecord is who waits for whom at a moment.
type graphRecord struct {
	Blocked []waitRecord    `json:"blocked"`
	Streams []busyRecord    `json:"streams"`
	Held    []heldRecord    `json:"held"`
	Running []runningRecord `json:"running"`
	Others  bool            `json:"others"` // a thread that is not in the graph may act
}

// partyRecord is a thread or a stream of a graph.
type partyRecord struct {
	Thread uint64 `json:"thread"` // 0 for a stream
	Device int    `json:"device"`
	Stream uint64 `json:"stream"`
}

// encode returns the JSON of a record or of a list of records.
func encode(records any) string {
	text, err := json.Marshal(records)
	if err != nil { // only for types that JSON has no form for
		panic(err)
	}
	return string(text)
}

// tensorRecord is a tensor of another library.
type tensorRecord struct {
	Deleter uint64   `json:"deleter"` // address of the function that takes it back, 0 for none
	Flags   uint64   `json:"flags"`
	Type    int32    `json:"type"` // of the device, by the numbers of DLPack
	ID      int32    `json:"id"`   // of the device
	Start   uint64   `json:"start"`
	Size    uint64   `json:"size"` // bytes
	Code    uint32   `json:"code"` // of the elements' type, and its bits
	Bits    uint32   `json:"bits"`
	Shape   []int64  `json:"shape"`
	Strides *[]int64 `json:"strides"` // in elements, none in C order
}
