package host

import (
	"time"

	"halstream/hal/host/sched"
)

// realTime is the monotonic clock of the machine.
type realTime struct{ start time.Time }

// machineClock returns the machine's monotonic clock.
func machineClock() sched.Clock { return realTime{time.Now()} }

// Now implements sched.Clock.
func (c realTime) Now() int64 { return int64(time.Since(c.start)) }

// After implements sched.Clock.
func (c realTime) After(ns int64, f func()) sched.Timer { return time.AfterFunc(time.Duration(ns), f) }
