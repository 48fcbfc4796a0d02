package main

// #include "known.h"
// #include "thread.h"
// #include <stdlib.h>
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
)

// reportQueues are those that streams are subscribed to, by the numbers of their threads.
var reportQueues struct {
	mu sync.Mutex
	by map[uint64]*hal.Queue
}

// queueOf returns the queue that a thread serves, nil for none; with makes a new one then.
func queueOf(thread uint64, makes bool) *hal.Queue {
	reportQueues.mu.Lock()
	defer reportQueues.mu.Unlock()
	q := reportQueues.by[thread]
	if q == nil && makes {
		q = newReportQueue()
		if reportQueues.by == nil {
			reportQueues.by = map[uint64]*hal.Queue{}
		}
		reportQueues.by[thread] = q
	}
	return q
}

// newReportQueue returns a queue whose word for SetPressure is memory of C's: bursts point to it.
func newReportQueue() *hal.Queue {
	q := hal.NewReportQueue()
	if word := C.calloc(1, C.sizeof_uint32_t); word != nil {
		q.SetPressure((*atomic.Uint32)(word))
		// Not when the queue is forgotten: a thread may wait in it then.
		runtime.AddCleanup(q, func(word unsafe.Pointer) { C.free(word) }, word)
	}
	return q
}

// forgetUnusedQueues forgets the queues that no stream is subscribed to any more.
func forgetUnusedQueues() {
	reportQueues.mu.Lock()
	defer reportQueues.mu.Unlock()
	for thread, q := range reportQueues.by {
		if q.Unused() {
			delete(reportQueues.by, thread)
		}
	}
}

//export lookalikeSubscribeReport
func lookalikeSubscribeReport(me C.uint32_t, thread C.uint64_t, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		defer forgetUnusedQueues() // where it fails
		return s.Subscribe(c.t, queueOf(uint64(thread), true))
	}, kindCode{driver.NotSubscribed, streamSubscribe}, kindCode{driver.WrongDevice, threadSubscribe})
}

//export lookalikeUnSubscribeReport
func lookalikeUnSubscribeReport(me C.uint32_t, thread C.uint64_t, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		q := queueOf(uint64(thread), false)
		if q == nil {
			return refuse(threadSubscribe, "thread %#x serves no stream", uint64(thread))
		}
		defer forgetUnusedQueues()
		return s.Unsubscribe(c.t, q)
	}, kindCode{driver.NotSubscribed, streamSubscribe})
}

//export lookalikeLaunchCallback
func lookalikeLaunchCallback(me C.uint32_t, code, argument C.uintptr_t, block C.int32_t, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		switch {
		case code == 0:
			return missing("the function")
		case block != 0 && block != 1:
			return refuse(invalidParam, "the block type is 0 or 1, not %d", block)
		}
		s, err := c.streamOf(handle)
		if err != nil {
			return err
		}
		q := s.ReportQueue()
		if q == nil {
			return refuse(noCallback, "no thread is subscribed to the reports of this stream; call aclrtSubscribeReport")
		}
		word := (*C.uint32_t)(unsafe.Pointer(q.Pressure()))
		if block == 1 && word != nil && s.Device().Runtime().Status().Load() == 0 && handle != 0 && !s.standing {
			if b := C.lookalike_burst_new(C.uint64_t(handle), code, argument, word); b != nil {
				growing, err := s.Reports(c.t, q, burstToken(b), (*hal.Burst)(unsafe.Pointer(b)))
				C.lookalike_burst_made(b, C.int(truth(growing)), C.int(truth(err != nil)))
				return err
			}
		}
		token := keep(function{code: code, argument: argument})
		if err = s.Report(c.t, q, token, block == 1, hal.Accesses{}); err != nil {
			drop(token)
		}
		return err
	})
}

// lookalikeNextReport waits for a callback of the calling thread's streams, or for a burst of them, and ends what the
// thread took before. Without one *code is 0 where the call succeeds, which it does after the first one.
//
//export lookalikeNextReport
func lookalikeNextReport(me C.uint32_t, ms C.int32_t, before C.int, code, argument *C.uintptr_t, burst **C.lookalike_burst) C.int {
	return call(me, func(c *caller) error {
		*code, *burst = 0, nil
		first := before == C.LOOKALIKE_NOTHING
		if ms < -1 || ms == 0 {
			return refuse(invalidParam, "the time limit is -1 or more than 0 milliseconds, not %d", ms)
		}
		q := queueOf(c.ident, false)
		if q == nil {
			return refuse(threadSubscribe, "this thread is subscribed to no stream")
		}
		var task hal.Task
		switch before {
		case C.LOOKALIKE_RAN:
			c.endReport()
			q.Done(c.t, false, nil)
		case C.LOOKALIKE_YIELDS:
			c.endReport()
			task = q.Yield(c.t)
		}
		end := time.Now().Add(time.Duration(ms) * time.Millisecond)
		for {
			limit := int64(0)
			if first {
				if limit = driver.Forever; ms > 0 {
					limit = max(0, int64(time.Until(end)))
				}
			}
			if task == (hal.Task{}) {
				var err error
				if task, err = q.Next(c.t, limit); err != nil {
					return err
				}
			}
			token, dropped := task.Token, task.Drop
			task = hal.Task{}
			switch b := burstOf(token); {
			case token == 0:
				forgetUnusedQueues()
				if first {
					return refuse(reportTimeout, "no callback came within %d ms", ms)
				}
				return nil
			case dropped:
				drop(token)
			case b != nil:
				C.lookalike_burst_kept(b, code, argument)
				*burst = b
				c.beginReport(token)
				return nil
			default:
				if f := take(token); f != nil {
					*code, *argument = f.code, f.argument
					c.beginReport(token)
					return nil
				}
				q.Done(c.t, false, nil)
			}
		}
	})
}

// beginReport notes what the thread runs now.
func (c *caller) beginReport(token uint64) {
	c.reports = append(c.reports, token)
	c.reporting.Store(token)
}

// endReport notes that the thread goes on with what it ran before, if anything.
func (c *caller) endReport() {
	n := len(c.reports) - 1
	c.reports = c.reports[:n]
	if n == 0 {
		c.reporting.Store(0)
	} else {
		c.reporting.Store(c.reports[n-1])
	}
}
