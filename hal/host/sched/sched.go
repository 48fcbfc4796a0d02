// Package sched holds the schedulers of the host device: they decide which
// ready stream runs its head operation next.
//
// The parallel scheduler runs streams as soon as it can, on threads of its own.
// The deterministic ones move the device only at schedule points, one operation
// at a time, as a policy chooses, and measure time by what the operations cost.
package sched

import (
	"time"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// Reason says why a host thread is at a schedule point.
type Reason uint8

// The reasons.
const (
	// Enqueued: an operation was put on a stream.
	Enqueued Reason = iota
	// Queried: a stream or an event was asked whether it is done.
	Queried
	// Blocked: the thread waits for a point and may run operations meanwhile.
	Blocked
	// Ended: an engine operation or a host function came to its end.
	Ended
	// Opened: a gate was opened.
	Opened
)

// String returns the reason in a word or two.
func (r Reason) String() string {
	return [...]string{"enqueue", "query", "synchronize", "end", "open gate"}[r]
}

// State is what a stream does.
type State uint8

// The states.
const (
	// Idle streams have no pending work.
	Idle State = iota
	// Stalled streams have a head operation that waits for something.
	Stalled
	// Ready streams can run their head operation: the scheduler has them.
	Ready
	// Queued streams have a head operation that waits for an engine.
	Queued
	// Running streams have a head operation on an engine or in a host function.
	Running
)

// Op is what a scheduler needs to know of an operation.
type Op struct {
	Tag driver.Tag
	// Token is that of a function which holds the stream, 0 for everything else.
	Token uint64
	// Report functions are run by threads of the program when they poll for them.
	Report bool
	// Spreads marks an operation that ends when operations which it puts on other streams
	// have ended.
	Spreads bool
	// Delay operations do nothing for a time.
	Delay bool
	// Cost is the virtual time that the operation takes, nanoseconds.
	Cost int64
}

// Stream is a stream as a scheduler sees it. Its methods are called with the
// runner's lock held.
type Stream interface {
	// Level is the priority, 0 the most urgent.
	Level() uint8
	// State says what the stream does.
	State() State
	// Enqueued returns how many operations were ever enqueued, and Completed how many
	// of them are done. Completed may be called without the lock.
	Enqueued() uint64
	Completed() uint64
	// Head describes the head operation. The stream is not idle.
	Head() Op
	// HandsOver reports whether Runner.Run only starts the head operation on another
	// thread.
	HandsOver() bool
	// Pending reports whether a query of the stream would find pending work.
	Pending() bool
	// Holder returns a stream that must move before this one can, nil if there is
	// none or it waits for something else.
	Holder() Stream
}

// Scheduler decides which ready stream runs its head operation next.
//
// The engine passes on which streams are ready and when a host thread is at a
// schedule point; the scheduler answers by calling Runner.Run on ready streams,
// one at a time, from Point or from threads of its own. Ready streams that it
// never runs never move.
type Scheduler interface {
	// Attach is called once, before everything else, and with the runner's lock
	// held where the scheduler replaces another one. It may start threads, but
	// must not take the lock itself.
	Attach(r Runner)
	// Clock returns the clock under this scheduler; real is the machine's.
	Clock(real Clock) Clock
	// Parallel reports whether streams advance on their own, without schedule
	// points.
	Parallel() bool
	// Added is called when an operation was enqueued, before the stream moves; kind
	// names it. A parallel scheduler is not called. The lock is held.
	Added(s Stream, kind string)
	// Numbered gives a stream its number in the run before its first operation is
	// enqueued. The lock is held.
	Numbered(s Stream)
	// Ready is called when a stream's head operation can run. The lock is held.
	Ready(s Stream)
	// Point is called by a host thread with the lock held, and returns with it
	// held. s is the stream the reason is about, or nil. done is nil but for
	// Blocked, where it reports whether the thread's wait is over, and limit is
	// for how many nanoseconds the thread waits (0: it only looks;
	// driver.Forever: without limit). A scheduler that needs schedule points must
	// wait itself; for others the thread sleeps after the call.
	Point(why Reason, s Stream, done func() bool, limit int64)
	// Unlocking is called before each release of the lock; true asks for a call
	// of Unlocked after it.
	Unlocking() bool
	// Unlocked is called without the lock, to wake a thread that runs streams.
	Unlocked()
	// Run returns what happened since Attach. The lock is held.
	Run() driver.Run
	// Close ends the scheduler's threads. The lock is not held. Afterwards the
	// runner may run streams that were ready.
	Close()
}

// Runner is the engine as a scheduler sees it.
type Runner interface {
	// Lock takes the lock under which streams move; it is held for a handful
	// of instructions only.
	Lock()
	// Unlock releases it and wakes the threads that can proceed now.
	Unlock()
	// Wake unparks a thread once the lock is released. The lock is held.
	Wake(p *park.Parker)
	// Run executes the head operation of a ready stream, or starts it if it is
	// one for an engine or a host function, and reports whether an engine runs
	// the stream's head operation now, or soon. The lock is held, but may be released and
	// taken again meanwhile.
	Run(s Stream) (onEngine bool)
	// Help runs work that an engine was woken for and has not begun, on the calling thread, which waits. It reports false if
	// there is none. The lock is held, but released meanwhile.
	Help() bool
	// Step is Run in virtual time, which was began before the operation: a delay
	// takes no time of the machine's, copies and fills of moderate size run on
	// the calling thread, and a function that does not hold its stream does.
	Step(s Stream, began int64)
}

// Clock tells the device's time and measures limits in it. A virtual one
// replaces it under a deterministic scheduler.
type Clock interface {
	// Now returns nanoseconds since some fixed moment; it never goes back.
	Now() int64
	// After calls f once, with no lock held, when ns nanoseconds have passed,
	// unless the timer is stopped first. The runner's lock is held.
	After(ns int64, f func()) Timer
}

// Timer is a pending call of Clock.After.
type Timer interface {
	// Stop prevents the call and reports whether it did. A call that has begun
	// is not waited for. The runner's lock is held.
	Stop() bool
}

// Options configures a deterministic scheduler besides its text.
type Options struct {
	Caller driver.Caller
	// Stall is how long a function may run before it counts as waiting for the
	// host.
	Stall time.Duration
	// Tick is the interval at which the scheduler checks whether the program waits for
	// the device outside the runtime.
	Tick time.Duration
}

// New returns the scheduler with a text: "parallel", or that of a deterministic
// one. It fails with InvalidValue for a text that is no schedule.
func New(text string, o Options) (Scheduler, error) {
	if text == "parallel" {
		return NewParallel(), nil
	}
	return newDeterministic(text, o)
}
