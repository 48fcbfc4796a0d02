// Package driver holds the interfaces that a backend implements.
//
// A backend is trusted and trusting: package hal has validated every call
// before it arrives (objects are open, belong together, and the call is legal
// in the stream's state), so a method here is one call into the vendor's
// library and one check of its result. Misuse that reaches a backend is a
// defect of hal, and the backend may panic.
//
// Priorities are levels here: 0 is the most urgent, Levels-1 the least.
package driver

import "halstream/hal/park"

// Levels is the number of stream priorities the core tells apart.
const Levels = 8

// Tag is the number that the core gives an operation somebody follows, 0 else.
// A backend that can tell when operations run tells it by their tags.
type Tag = uint32

// Forever as a limit means: wait without one.
const Forever int64 = -1

// Driver is a backend: all devices that one vendor library shows.
type Driver interface {
	// Name is "host", "cuda", "ascend".
	Name() string
	// DeviceCount returns how many devices there are; it does not change.
	DeviceCount() int
	// Open returns a device. It is called once per ordinal.
	Open(ordinal int) (Device, error)
	// Close gives up what the driver holds. No object of it is used afterwards.
	Close()
}

// Device creates the objects that live on it.
type Device interface {
	// Name is the hardware's own name.
	Name() string
	// NewStream makes a stream.
	NewStream(o StreamOptions) (Stream, error)
	// NewEvent makes an event.
	NewEvent(o EventOptions) (Event, error)
	// Legacy returns the legacy default stream, always the same one.
	Legacy() Stream
	// Point returns the point at which all work enqueued so far is done.
	Point() Point
	// Pending returns how many operations are enqueued and not done.
	Pending() int
	// Describe says which streams are pending and why, for time-out texts.
	Describe() string
}

// StreamOptions says what kind of stream to make.
type StreamOptions struct {
	// Level is the priority, 0 the most urgent.
	Level uint8
	// Ordered streams take part in the order with the legacy default stream.
	Ordered bool
	// ID is the stream's number in texts.
	ID uint64
}

// EventOptions says what kind of event to make.
type EventOptions struct {
	// Timing makes the event keep the time of its latest record.
	Timing bool
	// BlockingSync asks for a sleeping rather than a spinning wait.
	BlockingSync bool
	// Settable events are set by their record and stay so until a Reset; a wait
	// before the record waits for it.
	Settable bool
	// Counted events tell how many waits for them have not been passed.
	Counted bool
	// ID is the event's number in texts.
	ID uint64
}

// Stream is an ordered line of work. Work enqueued by one method call starts
// after everything enqueued before on the same stream is done.
type Stream interface {
	// Record makes e stand for all work enqueued on the stream so far.
	Record(e Event, tag Tag) error
	// Wait makes later work start after what e stands for at this call. When
	// limit (nanoseconds) is not Forever and passes first, the stream goes on
	// with a Timeout error.
	Wait(e Event, limit int64, tag Tag) error
	// WaitStream makes later work start after all work enqueued on o so far.
	WaitStream(o Stream, tag Tag) error
	// Reset clears a settable event, in stream order.
	Reset(e Event, tag Tag) error
	// Nop enqueues an operation that does nothing.
	Nop(tag Tag) error
	// HostFunc hands f to its sink when the stream gets there.
	HostFunc(f HostFunc) error
	// Query reports whether all work is done. It never blocks, and leaves the
	// stream's errors where they are.
	Query() (bool, error)
	// Point returns the point at which all work enqueued so far is done.
	Point() Point
	// Failure returns the first error since it was last asked, and forgets it.
	// The error of a device that was lost stays.
	Failure() *Error
	// Close gives the stream up; pending work still runs.
	Close()
	// Describe says what is pending and what the head operation waits for.
	Describe() string
}

// Event marks a point on a stream.
type Event interface {
	// Query reports whether the latest record is done; true if there is none.
	Query() (bool, error)
	// Point returns the point that the latest record stands for.
	Point() Point
	// Elapsed returns nanoseconds from this event's latest record to end's.
	// Both are recorded and were made with Timing. It fails with NotReady.
	Elapsed(end Event) (int64, error)
	// Time returns when the latest record was done, nanoseconds of the device's clock.
	Time() (int64, error)
	// WaitsPending returns how many enqueued waits have not been passed.
	WaitsPending() int
	// Close gives the event up; enqueued waits keep their points.
	Close()
	// Describe says where the event stands.
	Describe() string
}

// Point is a place on one or more timelines that a host thread can wait for.
type Point interface {
	// Wait blocks for at most limit nanoseconds (0 only looks, Forever has no
	// limit) and reports whether the point was reached.
	Wait(limit int64) bool
}

// HostFunc is a function of the program in stream order. The backend never
// runs it: it hands the token over and is told when the function has ended.
type HostFunc struct {
	// Token names the function.
	Token uint64
	// Sink takes the token when the stream gets there.
	Sink Sink
	// Passing functions do not hold the stream: later work starts at once.
	Passing bool
	// Report functions are taken by threads of the program, whenever they ask.
	Report bool
	// Tag is the operation's number.
	Tag Tag
}

// Sink receives host functions whose turn has come.
type Sink interface {
	// Ready takes a token. The backend calls it with its lock held, so it must
	// neither block nor call back. The caller unparks the result, if any, after
	// it released its locks. c is nil for a passing function.
	Ready(token uint64, level uint8, c Completer) *park.Parker
	// Drop takes a token that will not run, under the same rules.
	Drop(token uint64) *park.Parker
}

// Completer is told that a host function has ended.
type Completer interface {
	// Complete ends the function. It reports whether err, if not nil, became the
	// stream's error; it does not while an earlier one waits to be asked for.
	Complete(err *Error) (kept bool)
}

// Gater is implemented by streams that tests can hold.
type Gater interface {
	// Gate enqueues an operation that blocks the stream until Open.
	Gate(id uint64, tag Tag) (Gate, error)
}

// Gate is a held place on a stream.
type Gate interface {
	// Open lets the stream go on; again is a no-op. It may be called from
	// anywhere, host functions included.
	Open()
	// Opened reports whether Open was called.
	Opened() bool
}

// Delayer is implemented by streams that can be kept busy for a while.
type Delayer interface {
	// Delay enqueues an engine operation that lasts ns nanoseconds.
	Delay(ns int64, tag Tag) error
}

// Aborter is implemented by streams that can drop their work, and by devices
// that can drop the work of all streams.
type Aborter interface {
	// Abort drops what has not started and returns how much it was.
	Abort() int
}

// Execution says when an operation ran, in nanoseconds of the backend's clock.
type Execution struct {
	Tag          Tag
	Began, Ended int64
}

// Follower is implemented by drivers that can tell when operations run.
type Follower interface {
	// Now returns the time of the devices' clock, nanoseconds.
	Now() int64
	// Follow switches the notes on or off; off forgets them.
	Follow(on bool)
	// Executions returns the notes since the last call, in the order of the
	// operations' ends. Operations without a tag are not in them.
	Executions() []Execution
}

// Sequencer is implemented by drivers that can say in which order operations took
// their places on streams and events.
type Sequencer interface {
	// OnSequence sets what is called with the tag of each operation that has one,
	// once, at the moment from which every later operation comes after it. It is
	// called with the driver's locks held, so it neither blocks nor calls back.
	OnSequence(f func(Tag))
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

// Scheduled is implemented by drivers whose operations can be made to run in a
// chosen order.
type Scheduled interface {
	// SetSchedule begins a new run under a schedule: "parallel", or the text of
	// a deterministic one. It fails with InvalidValue for one that does not
	// exist, and with NotReady while work is pending.
	SetSchedule(text string, c Caller) error
	// Schedule returns the text of the schedule in force.
	Schedule() string
	// Deterministic reports whether it is another one than "parallel". Memory
	// that the driver gives out is then overwritten first.
	Deterministic() bool
	// Run returns what happened since the schedule was set.
	Run() Run
}

// Run is what happened under a deterministic schedule. Streams are numbered
// from 1 in the order of their first operation, operations on each stream, and
// calls, likewise.
type Run struct {
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
