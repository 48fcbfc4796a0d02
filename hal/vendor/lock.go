package vendor

import (
	"sync/atomic"

	"halstream/hal/driver"
)

// EnqueueLock lets one thread at a time enqueue what listeners follow, on one stream or with one event: a library
// does not say in which order it has taken two calls that overlap. It is no mutex: threads wait for it with Python's
// lock released, which its holder may need.
type EnqueueLock struct {
	// changes counts how often the lock was taken and given back: it is odd while a thread has it.
	changes atomic.Uint64
}

// TryLock takes the lock unless a thread has it, and reports whether it did.
func (l *EnqueueLock) TryLock() bool {
	n := l.changes.Load()
	return n%2 == 0 && l.changes.CompareAndSwap(n, n+1)
}

// free reports whether no thread has the lock.
func (l *EnqueueLock) free() bool { return l.changes.Load()%2 == 0 }

// Unlock gives the lock back.
func (l *EnqueueLock) Unlock() { l.changes.Add(1) }

// holder tells one holder of the lock from the next; it is 0 where there is no lock.
func (l *EnqueueLock) holder() uint64 {
	if l == nil {
		return 0
	}
	return l.changes.Load()
}

// holderLimit is for how many nanoseconds a thread waits for one and the same holder of the enqueue lock of an event. The
// holder may be in a call of the library that waits for the program, because the queue of its stream is full, and the
// program may need the waiting thread for that, whose stream has room. The order of such calls is that of their returns.
// The wait for many holders, one after the other, has no limit, nor has the one for the lock of a stream: in a stream that
// is full the library would make the thread wait as well.
const holderLimit = 1_000_000_000

// Sequencer tells listeners in which order the operations of a driver were enqueued. It implements driver.Sequencer.
type Sequencer struct {
	pause  func() bool
	notify func(driver.Tag)
}

// NewSequencer returns a sequencer. pause lets the calling thread sleep for a moment with Python's lock released.
func NewSequencer(pause func() bool) Sequencer {
	return Sequencer{pause: pause, notify: func(driver.Tag) {}}
}

// OnSequence implements driver.Sequencer.
func (q *Sequencer) OnSequence(f func(driver.Tag)) { q.notify = f }

// Enqueuing is an operation between the begin of its enqueue and the end, with the enqueue locks that it has.
type Enqueuing struct {
	of           *Sequencer
	tag          driver.Tag
	stream, also *EnqueueLock // nil where it does not have them
}

// Enqueue begins the enqueue of an operation. If listeners follow it, which its tag says, it has the lock of its stream
// until End, and also that of the event or the other stream that it concerns, nil without one. It goes on without the
// latter if a holder keeps it for too long.
func (q *Sequencer) Enqueue(tag driver.Tag, stream, also *EnqueueLock) Enqueuing {
	e := Enqueuing{of: q, tag: tag}
	if tag == 0 {
		return e
	}
	clock, holder := Stopwatch(), also.holder()
	for ; ; q.pause() {
		// Both or none: two streams that wait for each other must not have one each. The second lock is left alone while the
		// first one is taken: else it would seem to have one holder after another.
		if stream.free() && (also == nil || also.TryLock()) {
			if stream.TryLock() {
				e.stream, e.also = stream, also
				return e
			}
			if also != nil {
				also.Unlock()
			}
		}
		if now := also.holder(); now != holder {
			clock, holder = Stopwatch(), now
		}
		if also != nil && !also.free() && clock() >= holderLimit && stream.TryLock() {
			e.stream = stream
			return e
		}
	}
}

// End ends Enqueue: it tells the listeners of an operation that was enqueued, which err says, and gives the locks back.
func (e *Enqueuing) End(err error) {
	if e.tag != 0 && err == nil {
		e.of.notify(e.tag)
	}
	if e.stream != nil {
		e.stream.Unlock()
	}
	if e.also != nil {
		e.also.Unlock()
	}
}
