package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"sync/atomic"

	"halstream/hal/driver"
)

// turn lets one thread at a time enqueue what listeners follow, on one stream or
// with one event: the driver does not say in which order it has taken two calls
// that overlap. It counts how often it was taken and given: odd while it is taken.
type turn struct{ count atomic.Uint64 }

func (t *turn) try() bool {
	n := t.count.Load()
	return n%2 == 0 && t.count.CompareAndSwap(n, n+1)
}

func (t *turn) give() { t.count.Add(1) }

// seen tells one holder from the next; 0 for no turn.
func (t *turn) seen() uint64 {
	if t == nil {
		return 0
	}
	return t.count.Load()
}

// turnLimitNS bounds how long a thread waits for one and the same holder of a turn. The
// holder may be in a call of the driver that waits for the program, because the launch
// queue is full, and the program may need the waiting thread for that. The order of such
// calls is that of their returns.
const turnLimitNS = 1_000_000_000

// followed is an operation between the begin of its enqueue and the end, with the
// turns that it holds. The zero value is one that no listener follows.
type followed struct {
	tag          driver.Tag
	held         bool
	stream, also *turn
}

// follow begins the enqueue of an operation on s. also is the turn of the event or
// the other stream that it concerns, nil without one. It waits for both turns with
// Python's lock released, since their holder may need that lock.
func (s *Stream) follow(tag driver.Tag, also *turn) followed {
	f := followed{tag: tag, stream: &s.turn, also: also}
	if tag == 0 {
		return f
	}
	clock, holders := stopwatch(), [2]uint64{s.turn.seen(), also.seen()}
	for ; ; C.hs_pause() {
		// Both or none: two streams that wait for each other must not hold one each.
		if also == nil || also.try() {
			if s.turn.try() {
				f.held = true
				return f
			}
			if also != nil {
				also.give()
			}
		}
		if now := [2]uint64{s.turn.seen(), also.seen()}; now != holders {
			clock, holders = stopwatch(), now
		}
		if clock() >= turnLimitNS {
			return f
		}
	}
}

// end settles the place of an operation that was enqueued, and gives the turns back.
func (f *followed) end(d *Driver, err error) {
	if f.tag != 0 && err == nil {
		d.sequenced(f.tag)
	}
	if f.held {
		f.stream.give()
		if f.also != nil {
			f.also.give()
		}
	}
}

// OnSequence implements driver.Sequencer.
func (d *Driver) OnSequence(f func(driver.Tag)) { d.sequenced = f }
