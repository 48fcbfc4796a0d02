// Package schedules finds out for a deterministic schedule which functions of the program wait for the host.
package schedules

import (
	"time"

	"halstream/hal/stall"
)

// uncertainLimit is for how long a function must be seen waiting before it counts as waiting for the host, where it
// may wait for other threads than those that wait for it.
const uncertainLimit = 30 * time.Millisecond

// Suspicion is since when a function has been seen waiting. The zero value is none. One call is made at a time.
type Suspicion struct {
	token uint64
	since time.Time
}

// Lasts reports whether the function with a token, which waits now, has been seen waiting for long enough.
func (s *Suspicion) Lasts(token uint64) bool {
	if s.token != token {
		*s = Suspicion{token, time.Now()}
	}
	return time.Since(s.since) >= uncertainLimit
}

// Clear forgets the function, which has been seen going on.
func (s *Suspicion) Clear() { *s = Suspicion{} }

// Waits reports whether the thread with the system's number waits for what only another thread can give it. Where the
// system does not tell what threads do, none does.
func Waits(system int) bool { return stall.NeverEnds(system) != "" }
