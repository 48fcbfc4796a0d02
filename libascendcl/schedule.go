package main

// #include "thread.h"
import "C"

import (
	"os"
	"time"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// uncertainLimit is for how long a function must be seen waiting before it counts as
// waiting for the host, where it may wait for other threads, too.
const uncertainLimit = 30 * time.Millisecond

// schedule sets the schedule that HALSTREAM_SCHEDULE asks for.
func schedule(rt *hal.Runtime) error {
	text := os.Getenv("HALSTREAM_SCHEDULE")
	if text == "" {
		return nil
	}
	t := hal.NewThread()
	defer t.Retire()
	return rt.SetSchedule(t, text, driver.Caller{Thread: threadNow, Stuck: new(suspicion).stuck(rt)})
}

// threadNow returns the calling thread's number, and whether it runs functions of streams.
func threadNow() (id uint64, inside bool) {
	number := C.hs_acl_self_number()
	if number == 0 {
		return 0, false // not a thread of the program
	}
	t := callerOf(number).t
	return t.ID, t.Serves()
}

// suspicion is since when a function has been seen waiting.
type suspicion struct {
	token uint64
	since time.Time
}

// stuck returns a function that reports whether the function with a token waits for
// something that only another thread can give it. One call is made at a time.
func (s *suspicion) stuck(rt *hal.Runtime) func(token uint64) (stuck, interrupted bool) {
	return func(token uint64) (stuck, interrupted bool) {
		t := rt.Funcs.Runner(token)
		if t == nil {
			return rt.Funcs.DescribeBusy() != "", false // no thread is left to take it
		}
		if stall.NeverEnds(systemNumber(t)) == "" {
			s.token = 0
			return false, false
		}
		if s.token != token {
			s.token, s.since = token, time.Now()
		}
		return time.Since(s.since) >= uncertainLimit, false
	}
}

// systemNumber returns the system's number of a thread, 0 if it is unknown.
func systemNumber(t *hal.Thread) int {
	for _, c := range *callers.list.Load() {
		if c != nil && c.t == t {
			return c.system
		}
	}
	return 0
}
