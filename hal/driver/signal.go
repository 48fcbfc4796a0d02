package driver

import "halstream/hal/park"

// EndWaitsOnSignal sets whether a [Point]'s Wait on this thread may return
// false before its limit because a signal handler has run on the thread, and
// reports whether one has ended so since it was last called. Backends whose waits
// sleep in package park ignore it on systems other than Linux.
func EndWaitsOnSignal(on bool) (ended bool) { return park.EndOnSignal(on) }
