package driver

// Need says what the operation at the head of a stream waits for.
type Need uint8

// The needs.
const (
	NeedNothing  Need = iota // it runs, or will without anybody's help
	NeedGate                 // somebody opens a gate
	NeedEvent                // a settable event is recorded
	NeedStream               // another stream gets to a fence
	NeedOrder                // the legacy order: all streams it names come to an end
	NeedFunction             // a function that was handed over ends
	NeedReport               // a thread of the program takes a function and ends it
	NeedValue                // a value in memory changes
	NeedNative               // a native function that runs ends
)

// Fence is the Seq-th operation of a stream, which is named by its device and
// its number there: what an event or a wait refers to.
type Fence struct {
	Device int
	Stream uint64
	Seq    uint64
}

// Busy is a stream with pending work.
type Busy struct {
	// At is its head operation.
	At      Fence
	Title   string
	Pending uint64
	// Head says what the head operation is, in words.
	Head string
	Tag  Tag
	// Site is where the program made the node of a graph that it is, 0 if it is none.
	Site uint32
	Need Need
	// Number is that of the gate, the event or the function; of a native function,
	// the system's number of the thread that runs it.
	Number uint64
	// On are the fences that it waits for; of an event, that of its latest record
	// while that is pending.
	On []Fence
}

// FencedPoint is implemented by points that know which fences they stand for.
type FencedPoint interface {
	// Missing returns those that are not reached yet.
	Missing() []Fence
}

// Missing returns the fences that p stands for and that are not reached, none
// for a point that does not know.
func Missing(p Point) []Fence {
	if fenced, ok := p.(FencedPoint); ok {
		return fenced.Missing()
	}
	return nil
}
