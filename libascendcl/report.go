package main

// #include <stdint.h>
import "C"

import (
	"sync"
	"time"

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
		q = hal.NewReportQueue()
		if reportQueues.by == nil {
			reportQueues.by = map[uint64]*hal.Queue{}
		}
		reportQueues.by[thread] = q
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

//export hsAclSubscribeReport
func hsAclSubscribeReport(me C.uint32_t, thread C.uint64_t, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		defer forgetUnusedQueues() // where it fails
		return s.Subscribe(c.t, queueOf(uint64(thread), true))
	}, kindCode{driver.NotSubscribed, streamSubscribe}, kindCode{driver.WrongDevice, threadSubscribe})
}

//export hsAclUnSubscribeReport
func hsAclUnSubscribeReport(me C.uint32_t, thread C.uint64_t, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		q := queueOf(uint64(thread), false)
		if q == nil {
			return refuse(threadSubscribe, "thread %#x serves no stream", uint64(thread))
		}
		defer forgetUnusedQueues()
		return s.Unsubscribe(c.t, q)
	}, kindCode{driver.NotSubscribed, streamSubscribe})
}

//export hsAclLaunchCallback
func hsAclLaunchCallback(me C.uint32_t, code, argument C.uintptr_t, block C.int32_t, handle C.uintptr_t) C.int {
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
		token := keep(function{code: code, argument: argument})
		if err = s.Report(c.t, q, token, block == 1, hal.Accesses{}); err != nil {
			drop(token)
		}
		return err
	})
}

// hsAclNextReport waits for a callback of the calling thread's streams. With ran the thread has run the one that it took
// before, and there need be no other: *code is 0 then.
//
//export hsAclNextReport
func hsAclNextReport(me C.uint32_t, ms C.int32_t, ran C.int, code, argument *C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		*code = 0
		if ms < -1 || ms == 0 {
			return refuse(invalidParam, "the time limit is -1 or more than 0 milliseconds, not %d", ms)
		}
		q := queueOf(c.ident, false)
		if q == nil {
			return refuse(threadSubscribe, "this thread is subscribed to no stream")
		}
		if ran != 0 {
			c.endReport()
			q.Done(c.t, false, nil)
		}
		end := time.Now().Add(time.Duration(ms) * time.Millisecond)
		for {
			limit := int64(0)
			if ran == 0 {
				if limit = driver.Forever; ms > 0 {
					limit = max(0, int64(time.Until(end)))
				}
			}
			task, err := q.Next(c.t, limit)
			if err != nil {
				return err
			}
			switch {
			case task.Token == 0:
				forgetUnusedQueues()
				if ran == 0 {
					return refuse(reportTimeout, "no callback came within %d ms", ms)
				}
				return nil
			case task.Drop:
				drop(task.Token)
			default:
				if f := take(task.Token); f != nil {
					*code, *argument = f.code, f.argument
					c.beginReport(task.Token)
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
