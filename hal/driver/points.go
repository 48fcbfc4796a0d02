package driver

import "time"

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

// Missing implements Placed.
func (ps Points) Missing() []Place {
	var places []Place
	for _, p := range ps {
		places = append(places, Missing(p)...)
	}
	return places
}
