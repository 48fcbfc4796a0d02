package program

// #include "thread.h"
import "C"

import (
	"os"

	"halstream/bindings/schedules"
	"halstream/hal"
	"halstream/hal/driver"
)

// schedule sets the schedule that HALSTREAM_SCHEDULE asks for.
func schedule(rt *hal.Runtime) error {
	text := os.Getenv("HALSTREAM_SCHEDULE")
	if text == "" {
		return nil
	}
	t := hal.NewThread()
	defer t.Retire()
	return rt.SetSchedule(t, text, whoCalls(rt))
}

// whoCalls returns how the host device finds out about calling threads.
func whoCalls(rt *hal.Runtime) driver.Caller {
	return driver.Caller{Thread: threadNow, Stuck: stuck(rt)}
}

// threadNow returns the calling thread's number, and whether it runs functions of streams.
func threadNow() (id uint64, inside bool) {
	number := C.hs_program_self_number()
	if number == 0 {
		return 0, false // not a thread of the program
	}
	t := Threads.At(uint32(number)).T
	return t.ID, t.Serves()
}

// stuck returns a function that reports whether the function with a token waits for
// something that only another thread can give it. One call is made at a time.
func stuck(rt *hal.Runtime) func(token uint64) (stuck, interrupted bool) {
	var suspected schedules.Suspicion
	return func(token uint64) (stuck, interrupted bool) {
		t := rt.Funcs.Runner(token)
		if t == nil {
			return rt.Funcs.DescribeBusy() != "", false // no thread is left to take it
		}
		if !schedules.Waits(systemNumber(t)) {
			suspected.Clear()
			return false, false
		}
		return suspected.Lasts(token), false
	}
}

// systemNumber returns the system's number of a thread, 0 if it is unknown.
func systemNumber(t *hal.Thread) int {
	for _, c := range Threads.All() {
		if c.T == t {
			return c.System
		}
	}
	return 0
}
