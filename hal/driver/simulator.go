package driver

// Simulator is implemented by drivers whose devices are simulated: they can say
// what runs when, and what waits for what, and let the program choose the order.
type Simulator interface {
	// Now returns the time of the devices' clock, nanoseconds.
	Now() int64
	// Follow switches on or off that the driver notes when operations run; off
	// forgets the notes.
	Follow(on bool)
	// Executions returns the notes since the last call, in the order of the
	// operations' ends. Operations without a tag are not in them.
	Executions() []Execution
	Sequencer

	// SetSchedule begins a new run under a schedule: "parallel", or the text of
	// a deterministic one. It fails with InvalidValue for one that does not
	// exist, and with NotReady while work is pending.
	SetSchedule(text string, c Caller) error
	// Schedule returns the text of the schedule in force.
	Schedule() string
	// Deterministic reports whether it is another one than "parallel": the devices
	// move only during calls then, and memory that the driver gives out is
	// overwritten first.
	Deterministic() bool
	// Run returns what happened since the schedule was set.
	Run() Run

	// Quiet reports whether no stream can move unless the program does something:
	// none is ready, no engine works and no limit of a wait runs. Functions that
	// were handed over are the program's. Two calls that return the same mark had
	// the same work pending at the same places; it is 0 only where none is pending.
	Quiet() (quiet bool, mark uint64)
	// WorkPending returns a channel that is closed once a stream has pending work.
	WorkPending() <-chan struct{}
	// Busy returns all streams with pending work.
	Busy() []Busy

	// AbortStream and AbortDevice drop what has not started and return how many
	// operations it was.
	AbortStream(s Stream) int
	AbortDevice(d Device) int
}

// Execution says when an operation ran, in nanoseconds of the backend's clock.
type Execution struct {
	Tag          Tag
	Began, Ended int64
}

// Caller is what a backend that moves its devices only during calls needs to
// know of the threads that call, each with a default for callers without it.
type Caller struct {
	// Wait waits for p as the calling thread may: it lets others run meanwhile.
	// It reports whether p was reached within limit nanoseconds, and whether
	// the call shall end at once.
	Wait func(p Point, limit int64) (reached, interrupted bool)
	// Thread returns the number of the calling thread, and whether it runs a
	// function of a stream.
	Thread func() (id uint64, inside bool)
	// Stuck reports whether the function with this token waits for something
	// that only another thread can give it, and whether the call shall end at once.
	Stuck func(token uint64) (stuck, interrupted bool)
	// Asleep reports whether no thread of the program can do anything now.
	Asleep func() bool
}

// Unlogged is the text of the schedule that runs operations in the order of the calls, as fifo does, and keeps nothing of
// what happens: for long runs that nobody replays.
const Unlogged = "fifo unlogged"

// Run is what happened under a deterministic schedule. Streams are numbered
// from 1 in the order of their first operation, operations on each stream, and
// calls, likewise.
type Run struct {
	// Moves is how many calls and operations there were.
	Moves int
	// Steps and Calls are empty under a schedule that keeps no log.
	Steps []Step
	Calls []Call
}

// Step is a call, or an operation that ran.
type Step struct {
	Call       uint32 // its number; 0 if an operation ran
	Stream, Op uint32
	Tag        Tag
}

// Call is one call of the program at which the device could move.
type Call struct {
	Thread uint32 // from 1, in the order of their first calls
	Kind   string
	Stream uint32
}
