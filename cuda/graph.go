package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"slices"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// executable is a graph whose launches enqueue its nodes on streams of its own, a branch on each.
type executable struct {
	drv *Driver
	// turn belongs to a launch until all of its nodes are enqueued. It is no mutex: threads wait for
	// it with Python's lock released, which the launch may need.
	turn turn
	now  *plan
	// last is behind the launch before, which was on the stream lastOn.
	last   *Event
	lastOn *Stream
	// updated says that the next launch has to wait for last, whatever stream it is on.
	updated bool
}

// plan is what the launches of an executable enqueue until its next update.
type plan struct {
	nodes  []driver.GraphNode
	branch []int // of each node
	lanes  []*Stream
	// ends are behind the nodes that nodes of other branches wait for, nil for the others.
	ends []*Event
	// whole is the driver's graph, nil if the driver cannot have all nodes: then there are
	// branches.
	whole *wholeGraph
	// parts are the driver's graphs for the nodes of branches that have a condition, nil for others,
	// and resets what a launch sets in front of them.
	parts  map[int]*wholeGraph
	resets []driver.GraphCondition
}

// Instantiate implements driver.GraphDriver.
func (d *Driver) Instantiate(nodes []driver.GraphNode) (driver.Executable, error) {
	p, err := d.plan(nodes)
	if err != nil {
		return nil, err
	}
	return &executable{drv: d, now: p}, nil
}

// begin takes the turn.
func (x *executable) begin() {
	for !x.turn.try() {
		C.hs_pause()
	}
}

// Update implements driver.Executable.
func (x *executable) Update(nodes []driver.GraphNode, commit func() bool) error {
	p, err := x.drv.plan(nodes)
	if err != nil {
		return err
	}
	x.begin()
	before := x.now
	if before.whole != nil && x.lastOn != nil {
		if err := x.markLast(x.lastOn); err != nil {
			x.turn.give()
			p.close()
			return err
		}
		x.updated = true
	}
	if !commit() {
		x.turn.give()
		p.close()
		return driver.ErrUpdated
	}
	x.now = p
	x.turn.give()
	before.close()
	return nil
}

// Close implements driver.Executable. Launches that were enqueued still run.
func (x *executable) Close() {
	x.begin()
	defer x.turn.give()
	x.now.close()
	if x.last != nil {
		x.last.Close()
	}
}

// divide puts nodes into branches: a node continues the branch of one that it comes after and
// that no other node has continued, on the same device and with the same priority.
func divide(nodes []driver.GraphNode) (branch []int, first []int) {
	continued := make([]bool, len(nodes))
	branch = make([]int, len(nodes))
	for i, n := range nodes {
		at := slices.IndexFunc(n.After, func(k int) bool {
			return !continued[k] && nodes[k].Device == n.Device && nodes[k].Level == n.Level
		})
		if at < 0 {
			branch[i] = len(first)
			first = append(first, i)
			continue
		}
		continued[n.After[at]] = true
		branch[i] = branch[n.After[at]]
	}
	return branch, first
}

func (d *Driver) plan(nodes []driver.GraphNode) (p *plan, err error) {
	if err := d.checkConditions(nodes); err != nil {
		return nil, err
	}
	nodes = placed(nodes)
	p = &plan{nodes: nodes}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.whole, err = d.whole(nodes); p.whole != nil || err != nil {
		return p, err
	}
	branch, first := divide(nodes)
	p.branch, p.ends = branch, make([]*Event, len(nodes))
	for _, i := range first {
		s, err := d.devices[nodes[i].Device].NewStream(driver.StreamOptions{Level: nodes[i].Level})
		if err != nil {
			return p, err
		}
		p.lanes = append(p.lanes, s.(*Stream))
	}
	p.resets = resetsOf(nodes)
	for i, n := range nodes {
		if n.Kind.Conditional() {
			alone := n
			alone.After = nil
			part, err := d.devices[n.Device].whole([]driver.GraphNode{alone}, nil)
			if err != nil {
				return p, err
			}
			if p.parts == nil {
				p.parts = map[int]*wholeGraph{}
			}
			p.parts[i] = part
		}
		for _, k := range n.After {
			if branch[k] == branch[i] || p.ends[k] != nil {
				continue
			}
			e, err := d.devices[nodes[k].Device].NewEvent(driver.EventOptions{})
			if err != nil {
				return p, err
			}
			p.ends[k] = e.(*Event)
		}
	}
	return p, nil
}

// close gives the streams and events up; their work is done first.
func (p *plan) close() {
	if p.whole != nil {
		p.whole.close()
		p.whole = nil
	}
	for _, part := range p.parts {
		part.close()
	}
	for _, s := range p.lanes {
		s.Close()
	}
	for _, e := range p.ends {
		if e != nil {
			e.Close()
		}
	}
	p.lanes, p.ends, p.parts = nil, nil, nil
}

// Launch implements driver.Executable.
func (x *executable) Launch(on driver.Stream, l driver.GraphLaunch) error {
	const doing = "launch graph"
	s := on.(*Stream)
	x.begin()
	defer x.turn.give()
	if !l.Current() {
		l.End()
		return driver.ErrUpdated
	}
	if err := s.beginLaunch(doing); err != nil {
		l.End()
		return err
	}
	defer s.endLaunch()
	if x.now.whole == nil && s.Captured() {
		l.End()
		return capturedElsewhere(doing)
	}
	f := s.follow(l.Tag(), nil)
	if x.now.whole != nil {
		err := x.launchWhole(s, l)
		f.end(x.drv, err)
		return err
	}
	err := x.afterLast(s)
	if err == nil {
		err = x.now.enqueue(s, l)
	}
	if err == nil {
		err = x.markLast(s)
	}
	// The launch ends when the stream gets here, however much of it was enqueued.
	if failed := s.hold(&held{what: C.HS_PASS, title: "the end of a graph", run: l.End, drop: l.End}, doing); failed != nil {
		l.End()
		if err == nil {
			err = failed
		}
	}
	f.end(x.drv, err)
	return err
}

// launchWhole launches the driver's graph. The driver lets the launches of an executable run one at
// a time, but knows nothing of those before an update.
func (x *executable) launchWhole(s *Stream, l driver.GraphLaunch) error {
	ends := false // when it is done
	defer func() {
		if !ends {
			l.End()
		}
	}()
	if x.updated {
		if err := s.Wait(x.last, driver.Forever, 0); err != nil {
			return err
		}
		x.updated = false
	}
	if err := x.now.lookAtSources(s, l); err != nil {
		return err
	}
	x.lastOn = s
	w := x.now.whole
	if w.dev == s.dev {
		err := w.launch(s, l)
		ends = err == nil
		return err
	}
	// From a stream of another device.
	if x.now.lanes == nil {
		lane, err := w.dev.NewStream(driver.StreamOptions{})
		if err != nil {
			return err
		}
		x.now.lanes = []*Stream{lane.(*Stream)}
	}
	lane := x.now.lanes[0]
	if err := lane.WaitStream(s, 0); err != nil {
		return err
	}
	if err := w.launch(lane, l); err != nil {
		return err
	}
	ends = true
	return s.WaitStream(lane, 0)
}

// afterLast makes a stream wait for the launch before, if that was on another one.
func (x *executable) afterLast(s *Stream) error {
	if !x.updated && (x.lastOn == nil || x.lastOn == s) {
		return nil
	}
	x.updated = false
	return s.Wait(x.last, driver.Forever, 0)
}

func (x *executable) markLast(s *Stream) error {
	if x.last == nil || x.lastOn.dev != s.dev {
		if x.last != nil {
			x.last.Close()
		}
		e, err := s.dev.NewEvent(driver.EventOptions{})
		if err != nil {
			return err
		}
		x.last = e.(*Event)
	}
	x.lastOn = s
	return s.Record(x.last, 0)
}

func (p *plan) enqueue(s *Stream, l driver.GraphLaunch) error {
	for _, c := range p.resets {
		if err := s.Fill(resetOf(c)); err != nil {
			return err
		}
	}
	for _, lane := range p.lanes {
		if err := lane.WaitStream(s, 0); err != nil {
			return err
		}
	}
	for i := range p.nodes {
		if err := p.enqueueNode(i, s, l); err != nil {
			return err
		}
	}
	for _, lane := range p.lanes {
		if err := s.WaitStream(lane, 0); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) enqueueNode(i int, s *Stream, l driver.GraphLaunch) error {
	n, lane := &p.nodes[i], p.lanes[p.branch[i]]
	for _, k := range n.After {
		if p.branch[k] == p.branch[i] {
			continue
		}
		if err := lane.Wait(p.ends[k], driver.Forever, 0); err != nil {
			return err
		}
	}
	if part := p.parts[i]; part != nil {
		if err := part.enqueue(lane); err != nil {
			return err
		}
	} else if err := lane.run(n, beforeOf(l, i), launching{l, lane, s}); err != nil {
		return err
	}
	if p.ends[i] == nil {
		return nil
	}
	return lane.Record(p.ends[i], 0)
}

// launching is a launch as a branch of it sees it.
type launching struct {
	driver.GraphLaunch
	lane, on *Stream
}

// Begin implements driver.GraphLaunch. What fails on the branch from now on fails the stream of the
// launch.
func (l launching) Begin() {
	l.lane.failing.Store(l.on)
	l.GraphLaunch.Begin()
}

// Ready implements driver.Sink.
func (l launching) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	l.Begin()
	return l.GraphLaunch.Ready(token, level, c)
}

// run enqueues what a node of a graph does; before, if not nil, looks at the source of a copy first.
func (s *Stream) run(n *driver.GraphNode, before func(), l driver.GraphLaunch) error {
	switch n.Kind {
	case driver.CallNode:
		return s.HostFunc(driver.HostFunc{Token: n.Token, Sink: l})
	case driver.NativeNode:
		native := *n.Native
		before := native.Before
		native.Before = func() {
			l.Begin()
			if before != nil {
				before()
			}
		}
		return s.Native(native)
	case driver.CopyNode:
		c := *n.Copy
		c.Before = before
		_, err := s.Copy(c)
		return err
	case driver.FillNode:
		return s.Fill(n.Fill)
	case driver.KernelNode:
		return s.Launch(*n.Launch)
	case driver.DelayNode:
		return s.Delay(n.Delay, 0)
	case driver.RecordNode:
		return s.Record(n.Event, 0)
	case driver.WaitNode:
		return s.Wait(n.Event, driver.Forever, 0)
	}
	return nil
}
