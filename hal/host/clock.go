package host

import "time"

// Clock tells the device's time. A virtual one replaces it under a
// deterministic scheduler.
type Clock interface {
	// Now returns nanoseconds since some fixed moment; it never goes back.
	Now() int64
}

// realTime is the monotonic clock of the machine.
type realTime struct{ start time.Time }

// RealTime returns the machine's monotonic clock.
func RealTime() Clock { return realTime{time.Now()} }

func (c realTime) Now() int64 { return int64(time.Since(c.start)) }
