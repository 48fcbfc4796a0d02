package pybuild

/*
#include "caller.h"

static uint32_t self_slot(void) { return (uint32_t)halstream_self.slot; }
static int32_t self_inside(void) { return halstream_self.native; }
*/
import "C"

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"halstream/bindings/python"
	"halstream/bindings/schedules"
	"halstream/hal"
	"halstream/hal/driver"
)

// reaping is the slot of the thread that closes an object whose owner was garbage
// collected, which is no call of the program; 0 while none does.
var reaping atomic.Uint32

// reap makes calls of this thread no calls of the program, until the function that it
// returns is called. Python's lock is held.
func reap() (end func()) {
	before := reaping.Swap(uint32(C.halstream_caller.slot))
	return func() { reaping.Store(before) }
}

// whoCalls returns how the host device waits for and finds out about calling threads.
func whoCalls() driver.Caller {
	funcs := rt.Funcs
	return driver.Caller{
		Wait: python.Await,
		Thread: func() (uint64, bool) {
			slot := uint32(C.self_slot())
			if slot != 0 && reaping.Load() == slot || C.self_inside() != 0 {
				return 0, true
			}
			if slot == 0 {
				return 0, false
			}
			t := python.ThreadAt(int32(slot))
			return t.ID, t.Serves()
		},
		Stuck: func(token uint64) (stuck, interrupted bool) {
			t := funcs.Runner(token)
			if t == nil {
				return funcs.DescribeBusy() != "", false // no thread is left to take it
			}
			waits, certain, raised := stuckInPython(token)
			if certain || raised {
				return certain, raised
			}
			// A function may also wait for threads that it uses itself, and they are busy.
			return usage.nearlyIdle() && (waits || schedules.Waits(systemNumber(t))) && suspected.Lasts(token), false
		},
		Asleep: asleep,
	}
}

var suspected schedules.Suspicion

// processorUsage is how much processor time this process had used at a moment.
type processorUsage struct{ used, at time.Duration }

var usage processorUsage

// nearlyIdle reports whether the process has used less than a quarter of one
// processor since the last call.
func (p *processorUsage) nearlyIdle() bool {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return true
	}
	before := *p
	p.used = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	p.at = time.Since(loaded)
	return (p.used-before.used)*4 < p.at-before.at
}

// loaded is when the extension was loaded.
var loaded = time.Now()

// systemNumber returns the system's number of a thread, 0 if it is unknown.
func systemNumber(t *hal.Thread) int {
	for _, one := range python.Threads.All() {
		if one.Hal == t {
			return one.System
		}
	}
	return 0
}

// asleep reports whether every thread that has called the runtime sleeps, those
// that run functions of streams left out.
func asleep() bool {
	for _, t := range python.Threads.All() {
		if t.Hal.Serves() {
			continue
		}
		text, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(t.System) + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ") // behind the name
		if strings.HasPrefix(rest, "R") || strings.HasPrefix(rest, "D") {
			return false
		}
	}
	return true
}

// deterministic is true under a schedule in which operations run only during calls.
var deterministic bool

// ScheduleSet begins a new run under a schedule.
func ScheduleSet(text string) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (_ int64, err error) {
		t := caller()
		if err := refreshEnviron(); err != nil {
			return 0, err
		}
		unlocked(func() { err = r.SetSchedule(t, text, whoCalls()) })
		deterministic = r.Schedule() != "parallel"
		return 0, err
	})
}

// ScheduleGet returns the schedule in force.
func ScheduleGet() (text string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) { return r.Schedule(), nil })
}

// ScheduleOrder returns what happened since the run began: a list of stepRecord.
func ScheduleOrder() (steps string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) {
		list := []stepRecord{}
		for _, s := range r.Run().Steps {
			list = append(list, stepRecord{s.Call, s.Stream, s.Op, uint32(s.Tag)})
		}
		return encode(list), nil
	})
}

// ScheduleCalls returns the host's calls since the run began: a list of callRecord.
func ScheduleCalls() (calls string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) {
		list := []callRecord{}
		for _, c := range r.Run().Calls {
			list = append(list, callRecord{c.Thread, c.Kind, c.Stream})
		}
		return encode(list), nil
	})
}

// ScheduleFingerprint returns 16 digits that stand for what each thread called.
func ScheduleFingerprint() (digits string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) { return r.Fingerprint(), nil })
}

// ScheduleSteps returns how many calls and operations the run has so far.
func ScheduleSteps() (n int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return int64(r.Run().Moves), nil })
}
