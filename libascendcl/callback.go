package main

// #include "acl/acl_lookalike.h"
// #include "callback.h"
import "C"

import (
	"sync"
	"time"
	"unsafe"

	"halstream/bindings/ascendcl"
	"halstream/hal"
	"halstream/hal/driver"
)

// function is a function of the program that a stream is to call.
type function struct {
	code, argument C.uintptr_t
	kept           bool // by a graph, so that it can run any number of times
}

// functions are those that streams have, by hal's tokens.
var functions struct {
	mu     sync.Mutex
	by     map[uint64]*function
	last   uint64
	served bool // a thread for functions that are no reports was started
}

// keep gives a function its token.
func keep(f function) uint64 {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	if functions.by == nil {
		functions.by = map[uint64]*function{}
	}
	functions.last++
	functions.by[functions.last] = &f
	return functions.last
}

// drop forgets a function that will not run any more.
func drop(token uint64) {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	delete(functions.by, token)
}

// take returns a function that is about to run, and forgets it unless a graph keeps it.
func take(token uint64) *function {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	f := functions.by[token]
	if f != nil && !f.kept {
		delete(functions.by, token)
	}
	return f
}

// keepFunction notes that a graph keeps a function.
func keepFunction(token uint64) {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	if f := functions.by[token]; f != nil {
		f.kept = true
	}
}

//export hsAclLaunchHostFunc
func hsAclLaunchHostFunc(me C.uint32_t, handle, code, argument C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		if code == 0 {
			return missing("the function")
		}
		if err := s.UseRuntimeThreads(c.t); err != nil {
			return err
		}
		if err := serve(s.Device().Runtime()); err != nil {
			return err
		}
		token := keep(function{code: code, argument: argument})
		err := s.HostFunc(c.t, token)
		if err != nil {
			drop(token)
		}
		return err
	}, kindCode{driver.NotSubscribed, ascendcl.StreamSubscribe})
}

// mostRanges is how many accesses a function may declare.
const mostRanges = 1 << 16

//export hsAclLaunchDeclared
func hsAclLaunchDeclared(me C.uint32_t, handle, code, argument C.uintptr_t, ranges *C.aclLookalikeRange, count C.size_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		switch {
		case code == 0:
			return missing("the function")
		case count > mostRanges:
			return refuse(ascendcl.InvalidParam, "a function has at most %d ranges, not %d", mostRanges, uint64(count))
		}
		if err := s.UseRuntimeThreads(c.t); err != nil {
			return err
		}
		if err := serve(s.Device().Runtime()); err != nil {
			return err
		}
		var a hal.Accesses
		for _, one := range unsafe.Slice(ranges, int(count)) {
			list := &a.Reads
			if one.write != 0 {
				list = &a.Writes
			}
			*list = append(*list, hal.Range{Start: uint64(uintptr(one.start)), Size: uint64(one.size)})
		}
		token := keep(function{code: code, argument: argument})
		err := s.HostFuncOn(c.t, token, a)
		if err != nil {
			drop(token)
		}
		return err
	}, kindCode{driver.NotSubscribed, ascendcl.StreamSubscribe})
}

//export hsAclHostAccess
func hsAclHostAccess(me C.uint32_t, start C.uintptr_t, size C.size_t, write C.int32_t) C.int {
	return call(me, func(c *caller) error {
		rt, err := inUse()
		if err != nil {
			return err
		}
		return rt.HostAccess(c.t, hal.Range{Start: uint64(start), Size: uint64(size)}, write != 0)
	})
}

// serve starts the first thread that runs functions; it starts others when they are needed.
func serve(rt *hal.Runtime) error {
	functions.mu.Lock()
	defer functions.mu.Unlock()
	if functions.served {
		return nil
	}
	rt.Funcs.Start()
	if C.hs_acl_start_worker() == 0 {
		rt.Funcs.Stop()
		return driver.Errorf(driver.OutOfMemory, "launch host function", "the system starts no thread for it")
	}
	functions.served = true
	return nil
}

// hsAclNextFunction waits for a function for a thread of the library, and returns 0 if the thread is to end. With
// ran the thread has run the one that it took before.
//
//export hsAclNextFunction
func hsAclNextFunction(me C.uint32_t, ran C.int, code, argument *C.uintptr_t) C.int {
	c := callerOf(me)
	rt, err := inUse()
	if err != nil {
		return 0
	}
	q := rt.Funcs
	var task hal.Task
	if ran != 0 {
		task, _ = q.DoneNext(c.t, false, nil)
	}
	for {
		if task == (hal.Task{}) {
			var err error
			if task, err = q.Next(c.t, driver.Forever); err != nil {
				return 0
			}
		}
		if task.End {
			return 0
		}
		if task.Spawn && C.hs_acl_start_worker() == 0 {
			q.Stop()
		}
		if task.Drop {
			drop(task.Token)
		} else if f := take(task.Token); f != nil {
			*code, *argument = f.code, f.argument
			return 1
		} else if task.Token != 0 {
			q.Done(c.t, false, nil)
		}
		task = hal.Task{}
	}
}

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
	}, kindCode{driver.NotSubscribed, ascendcl.StreamSubscribe}, kindCode{driver.WrongDevice, ascendcl.ThreadSubscribe})
}

//export hsAclUnSubscribeReport
func hsAclUnSubscribeReport(me C.uint32_t, thread C.uint64_t, handle C.uintptr_t) C.int {
	return on(me, handle, func(c *caller, s *stream) error {
		q := queueOf(uint64(thread), false)
		if q == nil {
			return refuse(ascendcl.ThreadSubscribe, "thread %#x serves no stream", uint64(thread))
		}
		defer forgetUnusedQueues()
		return s.Unsubscribe(c.t, q)
	}, kindCode{driver.NotSubscribed, ascendcl.StreamSubscribe})
}

//export hsAclLaunchCallback
func hsAclLaunchCallback(me C.uint32_t, code, argument C.uintptr_t, block C.int32_t, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		switch {
		case code == 0:
			return missing("the function")
		case block != 0 && block != 1:
			return refuse(ascendcl.InvalidParam, "the block type is 0 or 1, not %d", block)
		}
		s, err := c.streamOf(handle)
		if err != nil {
			return err
		}
		q := s.ReportQueue()
		if q == nil {
			return refuse(ascendcl.NoCallback, "no thread is subscribed to the reports of this stream; call aclrtSubscribeReport")
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
			return refuse(ascendcl.InvalidParam, "the time limit is -1 or more than 0 milliseconds, not %d", ms)
		}
		q := queueOf(c.Ident, false)
		if q == nil {
			return refuse(ascendcl.ThreadSubscribe, "this thread is subscribed to no stream")
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
					return refuse(ascendcl.ReportTimeout, "no callback came within %d ms", ms)
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
	c.Reporting.Store(token)
}

// endReport notes that the thread goes on with what it ran before, if anything.
func (c *caller) endReport() {
	n := len(c.reports) - 1
	c.reports = c.reports[:n]
	if n == 0 {
		c.Reporting.Store(0)
	} else {
		c.Reporting.Store(c.reports[n-1])
	}
}
