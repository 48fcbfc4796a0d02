package npu

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
type turn struct{ taken atomic.Bool }

// turnLimitNS bounds how long a thread waits for it. The holder may be in a call of the library that waits for
// the program, because the queue of a stream is full, and the program may need the waiting thread for that. The order
// of such calls is that of their returns.
const turnLimitNS = 1_000_000_000

// follow begins the enqueue of an operation that may be followed by listeners. It waits with Python's lock released.
func (d *Driver) follow(tag driver.Tag) (held bool) {
	if tag == 0 {
		return false
	}
	for clock := stopwatch(); !d.turn.taken.CompareAndSwap(false, true); C.na_pause() {
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
		d.turn.taken.Store(false)
	}
}

// OnSequence implements driver.Sequencer.
func (d *Driver) OnSequence(f func(driver.Tag)) { d.sequenced = f }
