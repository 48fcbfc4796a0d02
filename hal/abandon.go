package hal

import "halstream/hal/driver"

// Abandon lets the streams go on that wait for a function which a thread of the queue
// runs: each counts as ended, and its stream has [ErrAborted] unless it has an earlier
// error. It returns how many functions there were. They still run, in no order with
// later work, and their threads serve the queue again when they end.
//
// Contract: H7.
func (q *Queue) Abandon() int {
	q.mu.Lock()
	var left []readyFunc
	for _, t := range q.workers {
		if t.running.c != nil {
			left = append(left, t.running)
			t.running.c = nil // its end completes nothing
		}
	}
	q.mu.Unlock()
	for _, k := range left {
		err := driver.Errorf(driver.Aborted, "call", "function %d of stream %d did not end, and was abandoned",
			k.token, k.stream.index)
		k.stream.keeps(k.c.Complete(err), err)
	}
	return len(left)
}
