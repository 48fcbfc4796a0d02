package main

// #include "thread.h"
import "C"

import (
	"fmt"
	"os"

	"halstream/bindings/program"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
)

// waiting is a wait of a thread that goes on once its stack is known.
type waiting struct {
	rt   *hal.Runtime
	p    driver.Point
	then func(done bool) error
	own  []kindCode
	code int

	asked *stream // what a failure is of, nil for none in particular
	end   waits.Deadline
}

// errWaits says that the calling thread goes on waiting in hsAclGoOn.
var errWaits = refuse(C.HS_ACL_WAITS, "waits")

// wait waits for a point, for at most limit nanoseconds, and then returns what then returns. Where it has no limit and
// never ends, code is that of the report.
func (c *caller) wait(rt *hal.Runtime, p driver.Point, limit int64, code int, then func(done bool) error, own ...kindCode) error {
	if p == nil {
		return then(true)
	}
	if limit != driver.Forever || !program.Reports() {
		return then(p.Wait(limit))
	}
	return c.waitUntil(waits.Deadline{}, rt, p, code, then, own...)
}

// waitUntil is wait with a limit that is there for waits that never end, so one that never ends is reported all the same.
func (c *caller) waitUntil(end waits.Deadline, rt *hal.Runtime, p driver.Point, code int, then func(done bool) error, own ...kindCode) error {
	if !program.Reports() {
		return then(p.Wait(end.Left()))
	}
	if p.Wait(program.Slice(rt)) {
		return then(true)
	}
	c.waiting = &waiting{rt, p, then, own, code, c.asked, end}
	return errWaits
}

//export hsAclGoOn
func hsAclGoOn(me C.uint32_t) C.int {
	c := callerOf(me)
	w := c.waiting
	c.waiting = nil
	return call(me, func(*caller) error {
		c.asked = w.asked
		done, text := program.Await(c.number, w.rt, w.p, w.end)
		if text != "" {
			fmt.Fprintln(os.Stderr, text)
			return refuse(w.code, "%s", text)
		}
		return w.then(done)
	}, w.own...)
}
