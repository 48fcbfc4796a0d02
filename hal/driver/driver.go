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

// Levels is the number of stream priorities that the core distinguishes.
const Levels = 8

// Tag is the number that the core gives an operation that listeners follow, 0 for
// others. A backend that reports when operations ran identifies them by their tags.
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
	// AllocHost returns the address of size bytes of host memory that devices can
	// read and write when a stream gets there (pinned memory).
	AllocHost(size uint64) (uint64, error)
	// FreeHost frees pinned memory.
	FreeHost(addr uint64)
	// OwnsHost reports whether an address lies where pinned memory lies, under the
	// same rule as Device.Owns.
	OwnsHost(addr uint64) bool
	// Register makes memory of the program pinned; Unregister undoes it.
	Register(addr, size uint64) error
	Unregister(addr uint64) error
	// Close releases the driver's resources. No object of it is used afterwards,
	// except by calls that are in progress: they fail or have no effect.
	Close()
}

// Sequencer is implemented by drivers that report the order in which operations
// took their places on their streams, and with their events.
type Sequencer interface {
	// OnSequence sets what is called with the tag of each operation that has one,
	// once, at the moment from which every later operation comes after it. It is
	// called with the driver's locks held, so it neither blocks nor calls back.
	OnSequence(f func(Tag))
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
	// Alloc returns the address of size bytes of device memory, aligned to 256.
	// Addresses are numbers: what they point to may not be reachable from the host.
	// It fails with OutOfMemory.
	Alloc(size uint64) (uint64, error)
	// Free frees a block that no pending work uses.
	Free(addr uint64)
	// Info returns the free and the total bytes.
	Info() (free, total uint64, err error)
	// Owns reports whether an address lies where the device's memory lies, in
	// use or not. It may be called under locks, so it never calls a vendor's library.
	Owns(addr uint64) bool
	// Point returns the point at which all work enqueued so far is done.
	Point() Point
	// Pending returns how many operations are enqueued and not done.
	Pending() int
	// Describe says which streams are pending and why, for time-out texts.
	Describe() string
}

// LosableDevice is implemented by devices that can fail for good.
type LosableDevice interface {
	// Lost returns the error that made the device useless, nil while it can be used. It
	// never calls a vendor's library. Points of a lost device are reached.
	Lost() *Error
}

// RecoverableDevice is implemented by devices that can be used again after they were lost.
type RecoverableDevice interface {
	LosableDevice
	// Recover makes a lost device work again. What was pending when it was lost never runs.
	Recover()
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
	// Counted events count the enqueued waits for them that are not completed.
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
	// Delay enqueues an engine operation that lasts ns nanoseconds.
	Delay(ns int64, tag Tag) error
	// Gate enqueues an operation that blocks the stream until it is opened.
	Gate(id uint64, tag Tag) (Gate, error)
	// HostFunc hands f to its sink when the stream gets there.
	HostFunc(f HostFunc) error
	// Copy enqueues a copy. Where c.Waited is set the caller waits for the
	// returned point, or for the stream's if it is nil, before it returns. Every
	// range has been checked, here as in Fill.
	Copy(c Copy) (Point, error)
	// Fill enqueues a fill.
	Fill(f Fill) error
	// Native enqueues a call of a C function.
	Native(n Native) error
	// WriteValue enqueues a write of 64 bits. A backend that cannot fails with
	// NotSupported, as in WaitValue.
	WriteValue(v Value) error
	// WaitValue makes later work start after the 64 bits were found to meet the
	// condition. They are looked at when the stream gets there, and again after
	// every change, whoever makes it.
	WaitValue(v Value) error
	// Last returns the sequence number of the operation enqueued last.
	Last() uint64
	// Fence returns the sequence number behind which all work before this call is done,
	// that of other streams included which later work of this one would wait for. The
	// operation with tag comes there in the order of all operations.
	Fence(tag Tag) uint64
	// Reached reports whether the operation with a sequence number is done, as far as is
	// known: it may be called under locks, so it never calls a vendor's library.
	Reached(seq uint64) bool
	// At returns the point at which the operation with a sequence number is done.
	At(seq uint64) Point
	// Query reports whether all work is done. It never blocks, and leaves the
	// stream's errors where they are.
	Query() (bool, error)
	// Point returns the point at which all work enqueued so far is done.
	Point() Point
	// Failure returns the first error since the last call and clears it, nil if there
	// was none. The error of a lost device is not cleared.
	Failure() *Error
	// MayHaveFailed reports whether Failure may return an error: false where the backend knows without
	// a call of a vendor's library that there is none.
	MayHaveFailed() bool
	// Close releases the stream; pending work still runs.
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
	// WaitsPending returns how many enqueued waits for it are pending.
	WaitsPending() int
	// Close releases the event; enqueued waits keep their points.
	Close()
	// Describe says where the event stands.
	Describe() string
}

// Point is a fence on one or more streams that a host thread can wait for.
type Point interface {
	// Wait blocks for at most limit nanoseconds (0 only looks, Forever has no
	// limit) and reports whether the point was reached.
	Wait(limit int64) bool
}

// HostFunc is a function of the program in stream order. The backend never
// runs it: it hands the token over, and Completer.Complete reports the end.
type HostFunc struct {
	// Token names the function.
	Token uint64
	// Sink takes the token when the stream gets there.
	Sink Sink
	// Passing functions do not hold the stream: later work starts at once.
	Passing bool
	// Report functions are run by threads of the program when they poll for them.
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

// Completer receives the end of a host function.
type Completer interface {
	// Complete ends the function. It reports whether err, if not nil, became the
	// stream's error; it does not while Failure has an earlier one to return.
	Complete(err *Error) (kept bool)
}

// LoopCompleter is a Completer of functions that may be in the body of a WhileNode.
type LoopCompleter interface {
	Completer
	// Loops returns where the program made the function, and the loops that it is in, the innermost first.
	Loops() (function uint32, loops []uint32)
	// Faulty says, before Complete, that the function has failed without an error of the stream. A loop ends, and
	// the error of its number becomes the stream's, if its condition is at the end of the body what it was before.
	Faulty(loops []*Error)
}

// Gate is a held place on a stream.
type Gate interface {
	// Open lets the stream continue; later calls do nothing. It may be called from
	// any thread, and by host functions.
	Open()
	// Opened reports whether Open was called.
	Opened() bool
}
