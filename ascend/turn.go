package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"sync/atomic"

	"halstream/hal/driver"
)

// turn lets one thread at a time enqueue what listeners follow: the library does not say in which order it has
// taken two calls that overlap.
// It counts how often it was taken and given: odd while it is taken.
type turn struct{ count atomic.Uint64 }

func (t *turn) try() bool {
	n := t.count.Load()
	return n%2 == 0 && t.count.CompareAndSwap(n, n+1)
}

// turnLimitNS bounds how long a thread waits for one and the same holder of the turn. The holder may be in a call of the
// library that waits for the program, because the queue of a stream is full, and the program may need the waiting thread
// for that. The order of such calls is that of their returns. The wait for many holders, one after the other, has no limit.
const turnLimitNS = 1_000_000_000

// follow begins the enqueue of an operation that may be followed by listeners. It waits with Python's lock released.
func (d *Driver) follow(tag driver.Tag) (held bool) {
	if tag == 0 {
		return false
	}
	clock, holder := stopwatch(), d.turn.count.Load()
	for ; !d.turn.try(); C.na_pause() {
		if now := d.turn.count.Load(); now != holder {
			clock, holder = stopwatch(), now
		}
		if clock() >= turnLimitNS {
			return false
		}
	}
	return true
}

// followed settles the place of an operation that was enqueued, and gives the turn back.
func (d *Driver) followed(tag driver.Tag, held bool, err error) {
	if tag != 0 && err == nil {
		d.sequenced(tag)
	}
	if held {
		d.turn.count.Add(1)
	}
}

// OnSequence implements driver.Sequencer.
func (d *Driver) OnSequence(f func(driver.Tag)) { d.sequenced = f }
