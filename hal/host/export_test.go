package host

import "time"

// Hasten shortens how long the device waits before it goes on by itself. It
// is called before any test runs.
func Hasten() { aloneTick = 10 * time.Millisecond }
