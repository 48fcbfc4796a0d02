package hal

import (
	"runtime"
	"sync"
	"time"

	"halstream/hal/driver"
)

// looks looks at the points of backends that cannot say when a point is reached: one
// goroutine for all of them, which ends when there is none.
type looks struct {
	mu      sync.Mutex
	points  map[*notice]driver.Point
	running bool
}

var looker = looks{points: map[*notice]driver.Point{}}

const (
	// lookBusy is for how long it looks without a pause after a point was reached or added.
	lookBusy = 50 * time.Microsecond
	// The pauses after that double from the first to the last length.
	lookFirst = 20 * time.Microsecond
	lookLast  = time.Millisecond
)

// add has w called when p is reached.
func (l *looks) add(p driver.Point, w *notice) (cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.points[w] = p
	if !l.running {
		l.running = true
		go l.work()
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.points, w)
	}
}

func (l *looks) work() {
	pause := time.Duration(0)
	since := time.Now()
	known := 0
	for {
		found, all := l.look()
		switch {
		case all == 0:
			return
		case found > 0 || all > known:
			pause, since = 0, time.Now()
		case pause > 0:
			pause = min(2*pause, lookLast)
		case time.Since(since) > lookBusy:
			pause = lookFirst
		}
		if known = all; pause > 0 {
			time.Sleep(pause)
		} else {
			runtime.Gosched()
		}
	}
}

// look looks at each point once, and returns how many were reached and how many there
// were. If there are none the goroutine ends.
func (l *looks) look() (found, all int) {
	l.mu.Lock()
	points := make(map[*notice]driver.Point, len(l.points))
	for w, p := range l.points {
		points[w] = p
	}
	l.running = len(points) > 0
	l.mu.Unlock()
	for w, p := range points {
		if !p.Wait(0) {
			continue
		}
		l.mu.Lock()
		_, still := l.points[w]
		delete(l.points, w)
		l.mu.Unlock()
		if still {
			w.Reached()
			found++
		}
	}
	return found, len(points)
}
