package driver

// GraphNodeKind is the kind of a node of a graph.
type GraphNodeKind uint8

// The kinds of nodes.
const (
	// EmptyNode does nothing: it only orders others.
	EmptyNode GraphNodeKind = iota
	// CallNode is a function of the program.
	CallNode
	// NativeNode is a C function.
	NativeNode
	// CopyNode is a copy.
	CopyNode
	// FillNode is a fill.
	FillNode
	// DelayNode keeps an engine busy for a time.
	DelayNode
	// RecordNode records an event each time the graph runs.
	RecordNode
	// WaitNode waits for the latest record of an event at the begin of the run.
	WaitNode
	// KernelNode is a launch of a function of a module.
	KernelNode
	// IfNode runs other nodes if a word of memory is not 0, WhileNode for as long as it is not, and
	// SwitchNode those that the word is the number of.
	IfNode
	WhileNode
	SwitchNode
	// ChildNode is a whole graph. Backends get its nodes instead.
	ChildNode
	// AllocNode and FreeNode are where memory of the graph begins and ends. Backends get empty
	// nodes instead.
	AllocNode
	FreeNode
)

// String returns the kind as texts name it.
func (k GraphNodeKind) String() string {
	return [...]string{"empty", "call", "native", "copy", "fill", "delay", "record", "wait", "kernel",
		"if", "while", "switch", "graph", "allocate", "free"}[k]
}

// Conditional reports whether nodes of the kind have a condition.
func (k GraphNodeKind) Conditional() bool { return k >= IfNode && k <= SwitchNode }

// GraphNode is an operation of a graph.
type GraphNode struct {
	Kind GraphNodeKind
	// Device is the ordinal of the device that the node runs on, and Level its priority.
	Device int
	Level  uint8
	// Site is where the program made it, 0 if that is not known.
	Site uint32
	// After are the nodes that it comes after, by their index, which is lower.
	After []int
	// Token is the function of a CallNode.
	Token uint64
	// GraphWork is nil for nodes of kinds that need nothing of it. Nobody changes it.
	*GraphWork
}

// GraphWork is what a node does, by its kind; what is large is nil for other kinds. Copy.Release is 0.
type GraphWork struct {
	Copy   *Copy
	Fill   Fill
	Native *Native
	Delay  int64
	Event  Event
	Launch *Launch
	// Condition is what a node with a condition looks at, and Bodies what it may run: a WhileNode has
	// one, an IfNode may have another one for 0. The indices of After are of their body.
	Condition GraphCondition
	Bodies    [][]GraphNode
}

// GraphCondition is a word of 4 bytes in pinned memory.
type GraphCondition struct {
	Addr uint64
	// Initial is what the word is set to when a launch begins, if Resets says so.
	Initial uint32
	Resets  bool
}

// GraphDriver is implemented by drivers that run graphs.
type GraphDriver interface {
	// Instantiate makes an executable of nodes.
	Instantiate(nodes []GraphNode) (Executable, error)
}

// BodyChecker is implemented by drivers that cannot run every node in the body of a condition.
type BodyChecker interface {
	// CheckBody returns why a node cannot be in a body whose work begins on a device, "" if it can.
	CheckBody(on int, n *GraphNode) string
}

// Executable is a graph that can be launched. Its launches run one at a time, in the
// order of the calls, whichever streams they are on.
type Executable interface {
	// Launch enqueues one run of all nodes as one operation of s. Functions of the
	// program are handed to the launch. If it fails, a part may have been enqueued; the launch's
	// End is called all the same. It enqueues nothing and fails with ErrUpdated where the launch
	// is not Current: looked at in one step with the nodes that it runs.
	Launch(s Stream, l GraphLaunch) error
	// Update makes later launches run other nodes. It calls commit in one step with that, with
	// locks held, and changes nothing and fails with ErrUpdated if commit returns false.
	Update(nodes []GraphNode, commit func() bool) error
	// Close gives it up. Launches that were enqueued still run.
	Close()
}

// Uploader is implemented by executables whose first launch takes longer than later ones.
type Uploader interface {
	// Upload does on a stream what the next launch would have to do first.
	Upload(s Stream) error
}

// ErrUpdated is the error of a launch or an update beside which another update came first: its caller
// looks at the nodes that the executable has now, and calls again.
var ErrUpdated = Errorf(InvalidValue, "update executable", "another update came first")

// GraphLaunch is one run of an executable, as its caller sees it.
type GraphLaunch interface {
	Sink
	// Begin is called when the run begins, and End when it has ended or will not begin;
	// then the backend does not use what the nodes refer to any more. They are called
	// with locks held, so they neither block nor call back.
	Begin()
	End()
	// Current reports whether the launch is of the nodes of the latest Update. Like Begin, it is
	// called with locks held.
	Current() bool
	// Tag is the launch's number.
	Tag() Tag
	// NodeRuns are the nodes by their index, nil where nobody observes them. Backends whose
	// devices are not simulated need not use them.
	NodeRuns() []NodeRun
	// NodeTitle is what texts call the node with an index, those of bodies behind the others. It is
	// called without locks.
	NodeTitle(index int) string
}

// NodeRun is a node in one run of an executable.
type NodeRun struct {
	// Tag is its number.
	Tag Tag
	// Sink gets its function, if it is one of the program's; nil: the launch does.
	Sink Sink
	// Before and After are called right before and after a copy or a C function, if not nil.
	Before, After func()
}
