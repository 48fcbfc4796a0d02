package host

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

// Scheduler decides which ready stream runs its head operation next.
//
// The engine tells it which streams are ready and when a host thread passes a
// schedule point; it answers by calling Runner.Run on ready streams, one at a
// time, from Point or from threads of its own. Ready streams that it never
// runs never move.
type Scheduler interface {
	// Attach is called once, before everything else, and with the runner's lock
	// held where the scheduler replaces another one. It may start threads, but
	// must not take the lock itself.
	Attach(r Runner)
	// Added tells that an operation was put on a stream, before the stream moves.
	// A scheduler that needs no schedule points is not told. The runner's lock is held.
	Added(s *Stream)
	// Ready tells that a stream's head operation can run. The runner's lock is
	// held: the scheduler only takes note.
	Ready(s *Stream)
	// Point is called by a host thread with the runner's lock held, and returns
	// with it held. s is the stream the reason is about. done is nil but for
	// Blocked, where it tells whether what the thread waits for has come, and
	// limit is for how many nanoseconds the thread waits (0: it only looks;
	// driver.Forever: without limit). A scheduler that needs schedule points must
	// wait itself; for others the thread sleeps after the call.
	Point(why Reason, s *Stream, done func() bool, limit int64)
	// Unlocking is called before each release of the lock; true asks for a call
	// of Unlocked after it.
	Unlocking() bool
	// Unlocked is called without the lock, to wake a thread that runs streams.
	Unlocked()
	// Close ends the scheduler's threads.
	Close()
}

// Runner is what the engine gives to a scheduler.
type Runner interface {
	// Lock takes the lock under which streams move; it is held for a handful
	// of instructions only.
	Lock()
	// Unlock releases it and wakes whoever has something to do now.
	Unlock()
	// Run executes the head operation of a ready stream, or starts it if it is
	// one for an engine or a host function. The lock is held, but may be
	// released and taken again meanwhile.
	Run(s *Stream)
}
