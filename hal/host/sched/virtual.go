package sched

import (
	"math"
	"slices"
)

// virtual is the clock of a deterministic schedule: it moves by what the
// operations cost, and nothing ever sleeps. The engine's lock guards it.
type virtual struct {
	now    int64
	timers []*virtualTimer
}

// virtualTimer is a pending call at a moment of virtual time.
type virtualTimer struct {
	clock *virtual
	at    int64
	f     func()
}

// Now implements Clock.
func (c *virtual) Now() int64 { return c.now }

// After implements Clock. The scheduler makes the call when it moves the time.
func (c *virtual) After(ns int64, f func()) Timer {
	at := c.now + ns
	if at < c.now { // overflow
		at = math.MaxInt64
	}
	t := &virtualTimer{c, at, f}
	c.timers = append(c.timers, t)
	return t
}

// Stop implements Timer.
func (t *virtualTimer) Stop() bool {
	i := slices.Index(t.clock.timers, t)
	if i < 0 {
		return false
	}
	t.clock.timers = slices.Delete(t.clock.timers, i, i+1)
	return true
}

// due removes and returns the first timer whose moment is not after a moment,
// nil if there is none.
func (c *virtual) due(moment int64) *virtualTimer {
	var first *virtualTimer
	for _, t := range c.timers {
		if t.at <= moment && (first == nil || t.at < first.at) {
			first = t
		}
	}
	if first != nil {
		first.Stop()
	}
	return first
}
