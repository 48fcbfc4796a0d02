package host

import (
	"fmt"
	"strings"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// maxChain bounds how far a description follows who waits for whom.
const maxChain = 4

func name(id uint64) string { return fmt.Sprint(id) }

// titleMark stands in a text for the title of a node, which the runtime gives without locks.
const titleMark = "\x00"

func withTitles(text string, titles []func() string) string {
	for _, title := range titles {
		text = strings.Replace(text, titleMark, title(), 1)
	}
	return text
}

func (s *Stream) title() string {
	if p := s.parent(); p != nil {
		return "a graph on " + p.title()
	}
	if s.legacy {
		return fmt.Sprintf("the legacy default stream of device %d", s.dev.ordinal)
	}
	return fmt.Sprintf("stream %d of device %d", s.id, s.dev.ordinal)
}

// Describe implements driver.Stream.
func (s *Stream) Describe() string {
	return s.eng.text(func() string { return s.describe(maxChain) })
}

func (s *Stream) describe(depth int) string {
	if s.state == sched.Idle {
		return s.title() + " is idle"
	}
	return fmt.Sprintf("%s has %d operation(s) pending; first is %s",
		s.title(), s.pending(), s.head(depth))
}

// head says what the head operation of a stream with work is, and what it waits for.
func (s *Stream) head(depth int) string {
	o := s.q.front()
	if o.ep != nil && !o.ep.open {
		if s.legacy {
			return "work that waits for the earlier work of the streams ordered with it" + s.dev.others(s, depth)
		}
		return "work that waits for the legacy default stream: " + s.dev.default_.follow(depth)
	}
	switch o.kind {
	case opWait:
		what := "a wait for a stream"
		if event, ok := o.ref.(*Event); ok {
			what = "a wait for event " + name(event.opts.ID)
		}
		return what + ": " + fence{o.on, o.arg}.launched().on.follow(depth)
	case opWaitSet:
		return "a wait for " + o.ref.(*Event).describe(depth)
	case opGate:
		if g := o.ref.(*gate); !g.open.Load() {
			return fmt.Sprintf("gate %d, which nobody has opened", g.id)
		}
		return "an open gate"
	case opCall, opReport:
		if s.state == sched.Running {
			return fmt.Sprintf("host function %d, handed over and not ended", o.arg)
		}
		return fmt.Sprintf("host function %d", o.arg)
	case opPass, opReportPass:
		return fmt.Sprintf("report %d", o.arg)
	case opWork:
		return title(o.ref.(work))
	case opRecord:
		return "a record of event " + name(o.ref.(*Event).opts.ID)
	case opReset:
		return "a reset of event " + name(o.ref.(*Event).opts.ID)
	case opWriteValue:
		return "a write of a value"
	case opWaitValue:
		return o.ref.(*valueOp).describe()
	case opLaunch:
		if l := s.started(); l != nil {
			if on := l.pendingBranch(); on != nil {
				return "a launch of a graph, at " + on.node(depth)
			}
		} else if o.on != nil {
			return "a launch of a graph, behind its launch before: " + o.on.follow(depth)
		}
		return "a launch of a graph"
	case opBody:
		if l := s.started(); l != nil {
			if on := l.pendingBranch(); on != nil {
				return "the body of a node of a graph, at " + on.node(depth)
			}
		}
		return "the body of a node of a graph"
	case opBranchEnd:
		return "the end of a branch of a graph"
	}
	return "an empty operation"
}

func (s *Stream) follow(depth int) string {
	if depth <= 1 {
		return s.title() + " ..."
	}
	return s.describe(depth - 1)
}

// Describe implements driver.Device.
func (d *Device) Describe() string {
	return d.eng.text(func() string {
		var parts []string
		for s := d.active; s != nil && len(parts) < maxChain; s = s.next {
			parts = append(parts, s.describe(maxChain))
		}
		if len(parts) == 0 {
			return fmt.Sprintf("device %d is idle", d.ordinal)
		}
		return strings.Join(parts, "; ")
	})
}

// others describes one pending stream of the device besides s.
func (d *Device) others(s *Stream, depth int) string {
	for t := d.active; t != nil; t = t.next {
		if t != s && t.ordered {
			return ": " + t.follow(depth)
		}
	}
	return ""
}

// Describe implements driver.Event.
func (v *Event) Describe() string {
	return v.eng.text(func() string { return v.describe(maxChain) })
}

func (v *Event) describe(depth int) string {
	title := "event " + name(v.opts.ID)
	switch {
	case v.opts.Settable && v.set:
		return title + ", which is set"
	case !v.recorded:
		return title + ", which nobody has recorded"
	case v.at.reached() && v.opts.Settable:
		return title + ", which was reset and not recorded again"
	case v.at.reached():
		return title + ", which is done"
	}
	return title + ": " + v.at.launched().on.follow(depth)
}

func title(w work) string {
	switch w := w.(type) {
	case *copyWork:
		return fmt.Sprintf("a copy of %d bytes", w.Width*w.Height)
	case *fillWork:
		return fmt.Sprintf("a fill of %d bytes", w.Count*uint64(w.Size))
	case *nativeWork:
		if w.Call != nil {
			return w.Call.Title()
		}
		if name := symbol(w.Fn); name != "" {
			return "a native function (" + name + ")"
		}
		return "a native function"
	}
	return "a delay"
}

func (s *Stream) busy() driver.Busy {
	o := s.q.front()
	b := driver.Busy{
		At:      driver.Fence{Device: s.dev.ordinal, Stream: s.id, Seq: s.completed.Load() + 1},
		Title:   s.title(),
		Pending: s.pending(),
		Head:    o.description(),
		Tag:     o.tag,
		Site:    s.site(),
		Need:    s.need(),
	}
	switch b.Need {
	case driver.NeedGate:
		b.Number = o.ref.(*gate).id
	case driver.NeedEvent:
		ev := o.ref.(*Event)
		b.Number = ev.opts.ID
		if ev.recorded && !ev.at.reached() {
			b.On = []driver.Fence{ev.at.named()}
		}
	case driver.NeedFunction, driver.NeedReport:
		b.Number = o.arg
	case driver.NeedNative:
		b.Number = uint64(o.ref.(*nativeWork).thread.Load())
	case driver.NeedStream:
		if l := s.started(); l != nil {
			b.On = l.ends()
			return b
		}
		if ev, ok := o.ref.(*Event); ok {
			b.Number = ev.opts.ID
		}
		if o.kind == opLaunch {
			b.Head += ", behind an earlier launch of the same executable"
		}
		b.On = []driver.Fence{fence{o.on, o.arg}.named()}
	case driver.NeedOrder:
		b.On = s.before()
	case driver.NeedValue:
		b.Number = o.ref.(*valueOp).Addr
	}
	return b
}

// need says what the head operation of a stream with work waits for.
func (s *Stream) need() driver.Need {
	o := s.q.front()
	switch s.state {
	case sched.Running:
		switch o.kind {
		case opLaunch, opBody:
			return driver.NeedStream
		case opCall:
			return driver.NeedFunction
		case opReport:
			return driver.NeedReport
		}
		if w, ok := o.ref.(*nativeWork); ok && w.thread.Load() != 0 {
			return driver.NeedNative
		}
		return driver.NeedNothing
	case sched.Stalled:
	default:
		return driver.NeedNothing // ready, or queued for a worker
	}
	if o.ep != nil && !o.ep.open {
		return driver.NeedOrder
	}
	switch o.kind {
	case opGate:
		return driver.NeedGate
	case opLaunch:
		return driver.NeedStream
	case opWait, opWaitSet:
		if s.limited() {
			return driver.NeedNothing
		}
		if o.kind == opWait {
			return driver.NeedStream
		}
		return driver.NeedEvent
	case opWaitValue:
		if v := o.ref.(*valueOp); v.shared || v.met() {
			return driver.NeedNothing // another process may write it, or somebody did
		}
		return driver.NeedValue
	}
	return driver.NeedNothing
}

// before returns the operations that the legacy order puts before the head
// operation of s: the heads of the streams with work of the open epoch.
func (s *Stream) before() []driver.Fence {
	var fences []driver.Fence
	for t := s.dev.active; t != nil; t = t.next {
		if ep := t.q.front().ep; t != s && ep != nil && ep.open {
			fences = append(fences, fence{t, t.completed.Load() + 1}.named())
		}
	}
	return fences
}
