package vendor

import (
	"fmt"
	"sync/atomic"
	"time"

	"halstream/hal/driver"
)

// Blocker is an operation for which a stream needs the host: a function of the program, a gate, or work on memory of the
// host. The stream stops there until the backend lets it go on.
type Blocker struct {
	// Title describes the operation in texts.
	Title string
	// Run is called once, when the stream has reached the operation, by a thread of the backend that must not block. Drop
	// is called instead when the stream never will.
	Run, Drop func()
}

// NewTask returns the blocker of work that runs on a thread of this package while the stream waits, and that may use memory
// of the program. resume lets the stream go on.
func NewTask(d *Device, title string, work, drop, resume func()) Blocker {
	return Blocker{Title: title, Drop: drop, Run: func() {
		if !d.BeginTask() {
			drop()
			resume()
			return
		}
		go func() {
			work()
			resume()
			d.EndTask()
		}()
	}}
}

// NewFunction returns the blocker of a function of the program. begin is called when the stream has reached it, and returns
// what completes it.
func NewFunction(f driver.HostFunc, level uint8, begin func() driver.Completer) Blocker {
	return Blocker{
		Title: fmt.Sprintf("function %d", f.Token),
		Run: func() {
			if w := f.Sink.Ready(f.Token, level, begin()); w != nil {
				w.Unpark()
			}
		},
		Drop: func() {
			if w := f.Sink.Drop(f.Token); w != nil {
				w.Unpark()
			}
		},
	}
}

// Completer completes a function that blocks its stream, once.
type Completer struct {
	stream    *Progress
	resume    func()
	completed atomic.Bool
}

// NewCompleter returns a completer. resume lets the stream go on.
func NewCompleter(s *Progress, resume func()) *Completer {
	return &Completer{stream: s, resume: resume}
}

// Complete implements driver.Completer.
func (c *Completer) Complete(err *driver.Error) (kept bool) {
	if c.completed.Swap(true) {
		return false
	}
	if err != nil {
		kept = c.stream.Fail(err)
	}
	c.resume()
	return kept
}

// NewTimedWait returns the blocker of a wait with a limit, in nanoseconds, for an event of the program: a thread of the host
// waits on behalf of the stream. wait reports whether the event was reached within the limit; drop gives up what it
// needs where it is not called. It is no task: the wait for an event of a lost device waits for tasks.
func NewTimedWait(s *Progress, event uint64, limit int64, wait func() bool, drop, resume func()) Blocker {
	return Blocker{
		Title: fmt.Sprintf("wait for event %d with a limit", event),
		Drop:  drop,
		Run: func() {
			go func() {
				if !wait() {
					s.Fail(driver.Errorf(driver.Timeout, "wait event", "wait for event %d passed its limit of %v",
						event, time.Duration(limit)))
				}
				resume()
			}()
		},
	}
}

// NativeWork returns what a task does for a native function, and the title and the drop of the task. It does not run
// on a thread of the library: that has few for functions, so a long one would delay other streams. call calls a function by
// its address.
func NativeWork(s *Progress, n driver.Native, call func(fn, arg uint64)) (title string, work, drop func()) {
	title, drop = "a native function", func() {}
	if n.Call != nil {
		title, drop = n.Call.Title(), n.Call.Drop
	}
	return title, func() {
		if n.Before != nil {
			n.Before()
		}
		if n.Call == nil {
			call(n.Fn, n.Arg)
		} else if err := n.Call.Run(); err != nil {
			s.Fail(err)
		}
		if n.After != nil {
			n.After()
		}
	}, drop
}
