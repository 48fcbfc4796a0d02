package hal

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// capturedRecord is what an event stands for that was recorded on a capturing stream.
type capturedRecord struct {
	capture *Capture // nil: it has ended, and origin is the title of its first stream
	tails   []*Node
	origin  string
}

// record makes e stand for what was captured on s so far.
func (c *Capture) record(s *Stream, e *Event) error {
	if err := c.usable(s, "record"); err != nil {
		return err
	}
	if _, err := e.bind(s.dev); err != nil {
		return err
	}
	c.graph.mu.Lock()
	c.anyRecord = true
	c.makeNodes()
	e.captured.Store(&capturedRecord{capture: c, tails: c.branch(s).tails})
	c.graph.mu.Unlock()
	return nil
}

// refuse rejects a call on an event that stands for a part of a capture, which is
// invalidated by it.
func (r *capturedRecord) refuse(e *Event, op string) error {
	origin := r.origin
	if r.capture != nil {
		origin = r.capture.origin.title()
	}
	err := captureError(codeCaptured, op,
		"event %d was last recorded in a capture of %s, where nothing runs; record it outside of one", e.id, origin)
	if r.capture == nil {
		return err
	}
	return r.capture.fail(err)
}

// waitRecord makes later work of s come after a record. what names the event in errors.
func (s *Stream) waitRecord(op string, what func() string, r *capturedRecord) error {
	if r.capture != nil {
		return s.waitNodes(op, what, r.capture, r.tails)
	}
	err := captureError(codeIsolation, op, "%s stands for a part of a capture that has ended; record it again", what())
	c := s.capture.Load()
	switch {
	case c == nil:
		return err
	case c.legacy != nil:
		return c.usable(s, op)
	}
	return c.fail(err)
}

// recordOf returns the record that CaptureRecord, or who added to its list, has made with a number in a capture.
func (a *captures) recordOf(capture, number uint64) *capturedRecord {
	if c := a.find(capture); c != nil {
		c.graph.mu.Lock()
		defer c.graph.mu.Unlock()
		if tails, ok := c.recorded(number); ok {
			return &capturedRecord{capture: c, tails: tails}
		}
	}
	return &capturedRecord{origin: a.past.title(capture)}
}

// recorded returns what the record with a number stands for. The caller holds the graph's mu.
func (c *Capture) recorded(number uint64) (tails []*Node, ok bool) {
	c.makeNodes()
	return c.calls.place(number)
}

// place is recorded where all that comes before is made.
func (l *calls) place(number uint64) (tails []*Node, ok bool) {
	i := len(l.records) - 1
	if i < 0 || l.records[i].number != number { // most waits are for the latest record
		i, ok = slices.BinarySearchFunc(l.records, number,
			func(r numbered, n uint64) int { return cmp.Compare(r.number, n) })
		if !ok {
			return nil, false
		}
	}
	return l.records[i].tails, true
}

// find returns the capture with a number, nil if it has ended.
func (a *captures) find(id uint64) *Capture {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.active {
		if c.id == id {
			return c
		}
	}
	return nil
}

// NewCapturedEvent makes an event as NewEvent does, whose latest record is the one that CaptureRecord, or who
// added to its list, has made with a number in the capture that has the CaptureID capture.
//
// # Errors: as for NewEvent.
//
// Contract: G15.
func (rt *Runtime) NewCapturedEvent(t *Thread, d *Device, o EventOptions, capture, number uint64) (*Event, error) {
	e, err := rt.NewEvent(t, d, o)
	if err == nil {
		e.captured.Store(rt.captures.recordOf(capture, number))
	}
	return e, err
}

// WaitCaptured is Wait for an event as NewCapturedEvent makes one.
//
// # Errors: as for Wait.
//
// Contract: G3, G15.
func (s *Stream) WaitCaptured(t *Thread, capture, number uint64) error {
	const op = "wait event"
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if c := s.capture.Load(); c != nil && c.id == capture && c.joinRecord(s, number) {
		return nil
	}
	return s.waitRecord(op, func() string { return "the event" }, s.dev.rt.captures.recordOf(capture, number))
}

// joinRecord makes later work of s, a stream of the capture, come after a record of it. It reports false with
// nothing done if there is an error to tell.
func (c *Capture) joinRecord(s *Stream, number uint64) bool {
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	if c.usableLocked(s, "wait event") != nil {
		return false
	}
	tails, ok := c.recorded(number)
	if ok {
		c.branch(s).join(tails)
	}
	return ok
}

// join makes the next node come after others, too.
func (b *branch) join(tails []*Node) {
	joined := b.tails
	for _, n := range tails {
		if !slices.Contains(joined, n) {
			joined = append(slices.Clip(joined), n)
		}
	}
	b.tails = joined
}

// pastCaptures are the first streams of captures that have ended, the latest ones, for errors of calls on
// events that were recorded there.
type pastCaptures struct {
	mu     sync.Mutex
	latest [64]struct {
		id, stream uint64
		device     int
	}
	next int
}

func (p *pastCaptures) add(c *Capture) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := &p.latest[p.next%len(p.latest)]
	one.id, one.stream, one.device = c.id, c.origin.index, c.origin.dev.ordinal
	p.next++
}

func (p *pastCaptures) title(id uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.latest {
		if one.id == id {
			return fmt.Sprintf("stream %d of device %d", one.stream, one.device)
		}
	}
	return "an earlier stream"
}
