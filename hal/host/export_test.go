package host

import "time"

// ShortenUnattendedTick shortens how long the device waits before it goes on by itself. It
// is called before any test runs.
func ShortenUnattendedTick() { unattendedTick = 10 * time.Millisecond }
