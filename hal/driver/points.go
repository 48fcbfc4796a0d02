package driver

import "time"

// Announced is implemented by points whose backend must know of a wait that
// consists of several calls of Wait also between these: it reports an abort to
// whoever waits.
type Announced interface {
	// Announce counts the caller as waiting until it calls end, once.
	Announce() (end func())
}

// Announce counts the caller as waiting for p until it calls end; for a point that
// does not have to know it does nothing.
func Announce(p Point) (end func()) {
	if announced, ok := p.(Announced); ok {
		return announced.Announce()
	}
	return func() {}
}

// Points is reached when all of its points are.
type Points []Point

// Wait implements Point. The limit is one deadline for all points: what the wait
// for one of them took is no longer there for the next. After the deadline the
// rest are still queried, since a backend may keep something for a point until
// somebody has looked at it.
func (ps Points) Wait(limit int64) bool {
	reached := true
	start := time.Now()
	for _, p := range ps {
		left := limit
		if limit > 0 {
			left = max(0, limit-int64(time.Since(start)))
		}
		if !p.Wait(left) {
			reached = false
			limit = 0 // a signal or an abort may have ended the wait before the deadline
		}
	}
	return reached
}

// Announce implements Announced.
func (ps Points) Announce() (end func()) {
	ends := make([]func(), len(ps))
	for i, p := range ps {
		ends[i] = Announce(p)
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// Missing implements FencedPoint.
func (ps Points) Missing() []Fence {
	var fences []Fence
	for _, p := range ps {
		fences = append(fences, Missing(p)...)
	}
	return fences
}
