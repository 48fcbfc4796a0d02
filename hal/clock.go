package hal

import "time"

var start = time.Now()

// now returns nanoseconds of the machine's monotonic clock.
func now() int64 { return int64(time.Since(start)) }
