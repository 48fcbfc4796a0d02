package vendor

import "time"

// Stopwatch returns a function that returns the nanoseconds since this call.
func Stopwatch() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}
