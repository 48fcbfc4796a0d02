package ascend

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/vendor"
)

// blocker is an operation on a stream that needs the host: a function of the program, a gate, or work on memory
// of the host. It is a blocking callback, on the thread of the stream's line, that posts its number and returns once the
// host has completed the operation. The goroutine that reads the inbox runs it.
type blocker struct {
	vendor.Blocker
	s      *Stream
	what   C.int // NA_HOLD, NA_PASS, NA_GATE or NA_DELAY
	ns     int64 // of a delay
	number uint64
	visit  *C.na_visit

	launching bool // its call of the library has not returned; guarded by arrivals
	opened    atomic.Bool
}

// open lets the stream continue, once.
func (h *blocker) open() {
	if !h.opened.Swap(true) {
		C.na_visit_open(h.visit)
		C.na_visit_drop(h.visit)
	}
}

// arrivals hands the operations that streams have reached over.
type arrivals struct {
	mu      sync.Mutex
	list    map[uint64]*blocker // those that were not reached; gates until they are opened
	next    uint64
	running bool
	closed  bool
	inbox   *C.na_inbox
	ended   chan struct{}
	asking  atomic.Bool // a thread queries whether a device was lost
	asks    sync.WaitGroup
}

func newArrivals() *arrivals {
	return &arrivals{list: map[uint64]*blocker{}, inbox: C.na_inbox_new(), ended: make(chan struct{})}
}

// add lists an operation before its callback is launched.
func (a *arrivals) add(h *blocker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	h.number, h.launching = a.next, true
	a.list[h.number] = h
	if !a.running && !a.closed {
		a.running = true
		go a.serve()
	}
}

// take removes the operation with a number, nil if it was dropped.
func (a *arrivals) take(number uint64) *blocker {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.list[number]
	delete(a.list, number)
	return h
}

// launched ends the launch of h. It reports whether h is enqueued; otherwise h is removed. What the stream has
// reached already is enqueued, whatever the call has returned.
func (a *arrivals) launched(h *blocker, ok bool) bool {
	a.mu.Lock()
	h.launching = false
	if !ok || h.s.dev.IsLost() {
		_, waiting := a.list[h.number]
		ok = !waiting
		delete(a.list, h.number)
	}
	a.mu.Unlock()
	if !ok {
		h.open()
	}
	return ok
}

// drop drops the operations of a device that was lost, or is being closed.
func (a *arrivals) drop(d *Device) {
	a.mu.Lock()
	var dropped []*blocker
	for number, h := range a.list {
		if h.s.dev == d && !h.launching { // the thread that launches it removes it otherwise
			dropped = append(dropped, h)
			delete(a.list, number)
		}
	}
	a.mu.Unlock()
	for _, h := range dropped {
		h.Drop()
		h.open()
	}
}

func (a *arrivals) serve() {
	defer close(a.ended)
	for {
		number := uint64(C.na_inbox_next(a.inbox, askNS))
		if number != 0 {
			if h := a.take(number); h != nil {
				h.Run()
			}
			continue
		}
		a.mu.Lock()
		over, devices := a.closed, map[*Device]bool{}
		for _, h := range a.list {
			devices[h.s.dev] = true
		}
		a.mu.Unlock()
		if over {
			return
		}
		if len(devices) > 0 {
			a.ask(devices)
		}
	}
}

// ask queries whether a device was lost: its streams reach no operation any more. It does so on another
// thread, as a call of the library may wait for what only this one can let go on.
func (a *arrivals) ask(devices map[*Device]bool) {
	if a.asking.Swap(true) {
		return
	}
	a.asks.Add(1)
	go func() {
		defer a.asks.Done()
		defer a.asking.Store(false)
		for d := range devices {
			if d.opened() {
				_, _ = d.answer(C.na_stream_query(d.ctx(), 0), "look at device")
			}
		}
	}()
}

// close ends the goroutine.
func (a *arrivals) close() {
	a.mu.Lock()
	a.closed = true
	running := a.running
	a.mu.Unlock()
	if running {
		C.na_inbox_wake(a.inbox)
		<-a.ended
	}
	a.asks.Wait()
}

// anyGate reports whether a stream has a gate that was not opened.
func (a *arrivals) anyGate() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range a.list {
		if h.what == C.NA_GATE {
			return true
		}
	}
	return false
}

// titles describes the first operations of a stream that it has not reached, at most most of them.
func (a *arrivals) titles(s *Stream, most int) (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var numbers []uint64
	for number, h := range a.list {
		if h.s == s {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	for _, number := range numbers[:min(most, len(numbers))] {
		names = append(names, a.list[number].Title)
	}
	return names
}

// askNS is for how many nanoseconds nothing arrives before the devices are asked whether they are lost.
const askNS = 50_000_000

// block enqueues h. If it fails neither run nor drop is called.
func (s *Stream) block(h *blocker, tag driver.Tag, doing string) error {
	return s.enqueue(tag, doing, func() error { return s.launch(h, doing) })
}

func (s *Stream) launch(h *blocker, doing string) error {
	d := s.dev
	line, err := s.lineOf(doing)
	if err != nil {
		return err
	}
	h.s = s
	a := d.drv.arrivals
	a.add(h)
	h.visit = C.na_visit_new(a.inbox, line, h.what, C.uint64_t(h.number), C.int64_t(h.ns))
	err = s.took(C.na_visit_launch(d.ctx(), s.h, h.visit), doing)
	if h.what == C.NA_DELAY && err == nil {
		a.take(h.number) // nothing waits for it
		C.na_visit_drop(h.visit)
		return nil
	}
	if a.launched(h, err == nil) {
		return nil // run was called, or will be
	}
	if err == nil {
		err = d.usable(doing) // lost while the call was in flight
	}
	return err
}

// task enqueues work that runs on a thread of this package while the stream waits, and that may use memory of
// the program.
func (s *Stream) task(tag driver.Tag, doing, title string, work, drop func()) error {
	return s.block(s.working(title, work, drop), tag, doing)
}

func (s *Stream) working(title string, work, drop func()) *blocker {
	h := &blocker{what: C.NA_HOLD}
	h.Blocker = vendor.NewTask(&s.dev.Device, title, work, drop, h.open)
	return h
}

// HostFunc implements driver.Stream.
func (s *Stream) HostFunc(f driver.HostFunc) error {
	h := &blocker{what: C.NA_HOLD}
	if f.Passing {
		h.what = C.NA_PASS
	}
	h.Blocker = vendor.NewFunction(f, s.level, func() driver.Completer {
		if f.Passing {
			h.open()
			return nil
		}
		if f.Report {
			s.dev.drv.reports.Add(1)
		}
		return vendor.NewCompleter(&s.Progress, func() {
			if f.Report {
				s.dev.drv.reports.Add(-1)
			}
			h.open()
		})
	})
	return s.block(h, f.Tag, "call")
}

// Gate implements driver.Stream.
func (s *Stream) Gate(id uint64, tag driver.Tag) (driver.Gate, error) {
	h := &blocker{what: C.NA_GATE, Blocker: vendor.Blocker{Title: fmt.Sprintf("gate %d", id), Run: func() {}, Drop: func() {}}}
	if err := s.block(h, tag, "gate"); err != nil {
		return nil, err
	}
	return gate{h, id}, nil
}

type gate struct {
	h  *blocker
	id uint64
}

// Number returns the gate's number, for reports.
func (g gate) Number() uint64 { return g.id }

// Open implements driver.Gate.
func (g gate) Open() {
	g.h.s.dev.drv.arrivals.take(g.h.number)
	g.h.open()
}

// Opened implements driver.Gate.
func (g gate) Opened() bool { return g.h.opened.Load() }

// Delay implements driver.Stream. It is a callback that sleeps: the library has no operation that takes a time.
func (s *Stream) Delay(ns int64, tag driver.Tag) error {
	h := &blocker{what: C.NA_DELAY, ns: ns, Blocker: vendor.Blocker{Title: "a delay", Run: func() {}, Drop: func() {}}}
	return s.block(h, tag, "delay")
}

// Native implements driver.Stream.
func (s *Stream) Native(n driver.Native) error {
	title, work, drop := vendor.NativeWork(&s.Progress, n, func(fn, arg uint64) { C.na_host_native(C.uint64_t(fn), C.uint64_t(arg)) })
	return s.task(n.Tag, "call native", title, work, drop)
}
