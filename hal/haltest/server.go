package haltest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"halstream/hal"
	"halstream/hal/driver"
)

// server runs functions on streams for the suite, as a language's dispatcher
// threads do.
type server struct {
	rt    *hal.Runtime
	mu    sync.Mutex
	last  uint64
	funcs map[uint64]func(*hal.Thread) error
	kept  map[uint64]bool // by graphs, until they are dropped
	group sync.WaitGroup
	// unreported counts the errors that were handed back since no call can return them.
	unreported atomic.Int32
	// unknown counts functions that were to run after they had been dropped.
	unknown atomic.Int32
}

// errUnchecked is returned by functions that fail without an error of their stream.
var errUnchecked = errors.New("failed unchecked")

func serve(rt *hal.Runtime) *server {
	v := &server{rt: rt, funcs: map[uint64]func(*hal.Thread) error{}, kept: map[uint64]bool{}}
	rt.SetKept(v.keep)
	rt.Funcs.Start()
	v.thread()
	return v
}

func (v *server) thread() {
	v.group.Add(1)
	go func() {
		defer v.group.Done()
		t := hal.NewThread()
		defer t.Retire()
		var task hal.Task
		for {
			var err error
			if task == (hal.Task{}) {
				task, err = v.rt.Funcs.Next(t, int64(time.Second))
			}
			if task.End || err != nil {
				return
			}
			taken := task
			task = hal.Task{}
			if taken.Spawn {
				v.thread()
			}
			if taken.Token == 0 {
				continue
			}
			f := v.take(taken.Token, taken.Drop)
			if taken.Drop {
				if f == nil { // it has run
					v.unreported.Add(1)
				}
				continue
			}
			err = nil
			if f == nil {
				v.unknown.Add(1)
			} else {
				err = f(t)
			}
			var failure *hal.Error
			if err != nil && err != errUnchecked { //nolint:errorlint // the tests' own
				failure = &hal.Error{Kind: driver.HostFunction, Op: "call", Text: err.Error(), Token: taken.Token}
			}
			var unreported bool
			if task, unreported = v.rt.Funcs.DoneNext(t, err != nil, failure); unreported {
				v.unreported.Add(1)
			}
		}
	}()
}

func (v *server) put(f func(*hal.Thread) error) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	v.funcs[v.last] = f
	return v.last
}

// keep lets a function run any number of times, until it is dropped.
func (v *server) keep(token uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept[token] = true
}

func (v *server) take(token uint64, dropped bool) func(*hal.Thread) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.funcs[token]
	if dropped || !v.kept[token] {
		delete(v.funcs, token)
		delete(v.kept, token)
	}
	return f
}

// left returns how many functions have neither run nor been dropped.
func (v *server) left() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.funcs)
}

// has reports whether a function has neither run nor been dropped, or is kept by a graph.
func (v *server) has(token uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.funcs[token] != nil
}

func (v *server) call(t *hal.Thread, s *hal.Stream, f func(*hal.Thread) error) error {
	token := v.put(f)
	err := s.HostFunc(t, token)
	if err != nil {
		v.take(token, true)
	}
	return err
}

func (v *server) stop(t *testing.T) {
	done := make(chan struct{})
	go func() { v.group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(Limit):
		t.Error("threads that serve functions did not end after the queue was closed")
	}
}
