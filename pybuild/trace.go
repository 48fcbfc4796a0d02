package pybuild

import (
	"fmt"
	"strings"
	"sync"

	"halstream/hal"
)

// trace is the log of operations that TraceStart began; its listener may be
// called on any thread.
var trace struct {
	sync.Mutex
	lines []string
	stop  func()
}

// TraceStart begins to log what is enqueued; 0 if that is logged already.
func TraceStart() (started int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	trace.Lock()
	defer trace.Unlock()
	if trace.stop != nil {
		return 0, nil
	}
	trace.lines = nil
	trace.stop = r.Listen(func(o hal.Operation) {
		line := traceLine(o)
		trace.Lock()
		trace.lines = append(trace.lines, line)
		trace.Unlock()
	})
	return 1, nil
}

// TraceTake returns the oldest line of the log and takes it off, "" when there
// is none: kind, device, stream, thread, event, version, other stream, token,
// reads and writes, separated by the unit separator.
func TraceTake() (line string, err error) {
	defer guard(&err)
	trace.Lock()
	defer trace.Unlock()
	if len(trace.lines) > 0 {
		line = trace.lines[0]
		trace.lines = trace.lines[1:]
	}
	return line, nil
}

// TraceStop ends the log.
func TraceStop() (zero int64, err error) {
	defer guard(&err)
	trace.Lock()
	stop := trace.stop
	trace.stop = nil
	trace.Unlock()
	if stop != nil {
		stop()
	}
	return 0, nil
}

func traceLine(o hal.Operation) string {
	var thread, event, other uint64
	if o.Thread != nil {
		thread = o.Thread.ID
	}
	if o.Event != nil {
		event = o.Event.ID()
	}
	if o.Other != nil {
		other = o.Other.Index()
	}
	return strings.Join([]string{
		o.Kind, fmt.Sprint(o.Stream.Device().Ordinal()), fmt.Sprint(o.Stream.Index()), fmt.Sprint(thread),
		fmt.Sprint(event), fmt.Sprint(o.Version), fmt.Sprint(other), fmt.Sprint(o.Token),
		ranges(o.Reads), ranges(o.Writes),
	}, separator)
}

func ranges(list []hal.Range) string {
	var parts []string
	for _, r := range list {
		parts = append(parts, fmt.Sprintf("%d+%d", r.Start, r.Size))
	}
	return strings.Join(parts, " ")
}
