package host

import (
	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// all is the point of a device under a deterministic schedule: one call,
// whatever is pending. The engine's lock is held.
func (d *Device) all() driver.Point {
	a := &deviceAll{dev: d}
	for s := d.active; s != nil; s = s.next {
		a.places = append(a.places, place{s, s.words.Submitted.Load()})
	}
	return a
}

type deviceAll struct {
	dev    *Device
	places []place
}

func (a *deviceAll) reached() bool {
	for _, at := range a.places {
		if !at.reached() {
			return false
		}
	}
	return true
}

// Announce implements driver.Announced.
func (a *deviceAll) Announce() (end func()) {
	points := make(driver.Points, len(a.places))
	for i, at := range a.places {
		points[i] = point{a.dev.eng, at}
	}
	return points.Announce()
}

// Wait implements driver.Point.
func (a *deviceAll) Wait(limit int64) bool {
	e := a.dev.eng
	e.Lock()
	defer e.Unlock()
	s := a.dev.default_
	if len(a.places) > 0 {
		s = a.places[0].on
	}
	e.point(sched.Blocked, s, a.reached, limit)
	return a.reached()
}
