package hal

import "halstream/hal/driver"

// Graphed reports whether the backend can tell what its streams wait for.
func (rt *Runtime) Graphed() bool {
	_, ok := rt.drv.(driver.Grapher)
	return ok
}

// Stepped reports whether the devices move only during calls.
func (rt *Runtime) Stepped() bool {
	g, ok := rt.drv.(driver.Grapher)
	return ok && g.Stepped()
}

// Quiet reports whether nothing of the runtime moves by itself: no stream can,
// and no thread is about to take a function. What functions do that run is not
// looked at. Two calls that return the same mark had the same work pending at
// the same places.
//
// Contract: W1, W2.
func (rt *Runtime) Quiet() (quiet bool, mark uint64) {
	g, ok := rt.drv.(driver.Grapher)
	if !ok {
		return false, 0
	}
	quiet, mark = g.Quiet()
	return quiet && rt.Funcs.still(), mark
}

// Busy returns all streams with pending work, and what each waits for; none
// where the backend cannot tell.
//
// Contract: W1, W2.
func (rt *Runtime) Busy() []driver.Busy {
	if g, ok := rt.drv.(driver.Grapher); ok {
		return g.Busy()
	}
	return nil
}

// still reports whether no function will be taken before one has ended.
func (q *Queue) still() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	busy := 0
	for _, t := range q.workers {
		if t.running.stream != nil {
			busy++
		}
	}
	// A thread that neither runs a function nor sleeps is on its way here.
	return q.coming == 0 && busy+len(q.idle) >= q.threads && (q.tickets.Len() == 0 || len(q.idle) == 0)
}

// Waiting returns how many functions no thread has taken yet.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tickets.Len()
}

// Missing implements driver.Placed.
func (p *told) Missing() []driver.Place { return driver.Missing(p.Point) }
