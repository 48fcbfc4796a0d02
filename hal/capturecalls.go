package hal

import (
	"maps"
	"slices"
	"sync/atomic"
)

// CapturedCallsMost is how many functions, records and waits a list of captured ones has room for. A fill takes the
// room of two.
const CapturedCallsMost = 1 << 12

// CapturedCall is what was added to a capture without a call of the runtime: a function, a record of an event, a
// wait for such a record, or one half of a fill.
type CapturedCall struct {
	// Token is of the function; the number of the record, also that a wait is for. The first half of a fill has
	// its address, the second one the number of its elements.
	Token uint64
	Site  uint32 // of the function or the fill; the second half of a fill has its value
	// Lane is what CaptureFunc, CaptureRecord or CaptureFill returned for the stream. With LinkedCall the function is
	// released with the one that was added before it to the same capture. The second half of a fill has the
	// number of its block, and above blockBits the bytes of an element.
	Lane uint32
}

// Bits of CapturedCall.Lane.
const (
	LinkedCall uint32 = 1 << 31
	RecordCall uint32 = 1 << 30 // a record, which has a greater number than those before it
	WaitCall   uint32 = 1 << 29 // a wait for a record of the same capture
	FillCall   uint32 = 1 << 28 // each half of a fill; the two are added at once
	laneBits          = FillCall - 1
	blockBits         = 24
)

// CapturedCalls is a list of functions, records, waits and fills that are part of a capture. Who has captured
// one with it adds more without a call of the runtime, on the same streams, until
// the capture ends or is invalidated; fills, of the same blocks, until any memory is freed. At most one thread at
// a time adds to it, or captures with it; the runtime takes from it at any time.
//
// It may lie in memory of C's, whose code does the same as Add and AddFill: the highest bit of the
// word says that more are taken, the next one that fills are, too, the others how many there are.
//
// Contract: G15.
type CapturedCalls struct {
	word    atomic.Uint64
	Capture uint64 // the CaptureID of the capture that the list was lent to last
	Calls   [CapturedCallsMost]CapturedCall
}

// Bits of CapturedCalls.word.
const (
	listOpen  uint64 = 1 << 63
	listFills uint64 = 1 << 62
	listCount        = listFills - 1
)

// Add adds one of them and reports whether the list still took it.
func (l *CapturedCalls) Add(call CapturedCall) bool {
	n := l.word.Load()
	if n < listOpen || n&listCount == CapturedCallsMost {
		return false
	}
	l.Calls[n&listCount] = call
	return l.word.CompareAndSwap(n, n+1)
}

// calls are the functions, records and waits of a capture that are not nodes, places and edges yet. These are made
// when something asks for them: a program captures in a loop that is to be short. The
// mutex of the graph guards it.
type calls struct {
	list    *CapturedCalls // nil: closed
	taken   uint64         // of the list
	lanes   []*Stream      // by the number that callers have for them
	blocks  []*Block       // of fills, by the number that callers have for them
	queued  []CapturedCall // taken from the list, or given to CaptureFunc and CaptureRecord
	records []numbered     // in the order of their numbers
}

// numbered is a record of which only its caller knows the event.
type numbered struct {
	number uint64
	tails  []*Node // what the stream had then
}

// CaptureFunc is HostFunc on a capturing stream, for a caller that knows where the program
// makes the call: that is the site of the node. It reports false with nothing done if s does
// not capture. From then on more functions, records and waits can be added to list, with the number of s that is
// returned; -1 if they cannot. What other captures have in the list is taken from it, and
// fresh says that the numbers of their streams are not valid any more.
//
// # Errors: as for HostFunc.
//
// Contract: G1, G6, G15.
func (s *Stream) CaptureFunc(t *Thread, token uint64, site uint32, list *CapturedCalls) (lane int, fresh, captured bool, err error) {
	if err := s.checkEnqueue(t, "call"); err != nil {
		return -1, false, false, err
	}
	c := s.capture.Load()
	if c == nil {
		return -1, false, false, nil
	}
	if !c.takesCalls(t, s) {
		return -1, false, true, c.addFunc(s, token, Accesses{}, site)
	}
	lane, fresh, err = c.addCall(s, "call", list, CapturedCall{Token: token, Site: site})
	return lane, fresh, true, err
}

// CaptureRecord is Record on a capturing stream of an event that only the caller knows, under a number
// greater than those of its earlier records; see NewCapturedEvent. It returns what CaptureFunc does, and
// reports false with nothing done if s does not capture, or only Record can tell what happens.
//
// # Errors: as for Record.
//
// Contract: G1, G15.
func (s *Stream) CaptureRecord(t *Thread, number uint64, list *CapturedCalls) (lane int, fresh, captured bool, err error) {
	if err := s.checkEnqueue(t, "record"); err != nil {
		return -1, false, false, err
	}
	c := s.capture.Load()
	if c == nil || !c.takesCalls(t, s) {
		return -1, false, false, nil
	}
	lane, fresh, err = c.addCall(s, "record", list, CapturedCall{Token: number, Lane: RecordCall})
	return lane, fresh, true, err
}

// CaptureWait is [Stream.WaitCaptured] on a stream of the capture. It returns what CaptureFunc does, and reports false with
// nothing done if only WaitCaptured can tell what happens.
//
// # Errors: as for Wait.
//
// Contract: G3, G15.
func (s *Stream) CaptureWait(t *Thread, capture, number uint64, list *CapturedCalls) (lane int, fresh, captured bool, err error) {
	if err := s.checkEnqueue(t, "wait event"); err != nil {
		return -1, false, false, err
	}
	c := s.capture.Load()
	if c == nil || c.id != capture || !c.takesCalls(t, s) || !c.knows(number) {
		return -1, false, false, nil
	}
	lane, fresh, err = c.addCall(s, "wait event", list, CapturedCall{Token: number, Lane: WaitCall})
	return lane, fresh, true, err
}

// knows reports whether there is a record with a number.
func (c *Capture) knows(number uint64) bool {
	c.graph.mu.Lock()
	defer c.graph.mu.Unlock()
	c.takeCalls()
	for _, call := range slices.Backward(c.calls.queued) { // most waits are for the latest record
		if call.Lane&RecordCall != 0 && call.Token == number {
			return true
		}
	}
	_, ok := c.calls.place(number)
	return ok
}

// takesCalls reports whether what is captured on s may be added to a list: nothing has to be checked for each call.
func (c *Capture) takesCalls(t *Thread, s *Stream) bool {
	return c.legacy == nil && !c.builds() && s.ctx == nil && !s.opts.BlockHost
}

// addCall adds a function, a record or a wait, and lets the caller add more to list.
func (c *Capture) addCall(s *Stream, op string, list *CapturedCalls, call CapturedCall) (lane int, fresh bool, err error) {
	c.lendList(list)
	g := c.graph
	g.mu.Lock()
	defer g.mu.Unlock()
	lane, fresh, err = c.openList(s, op, list)
	if err != nil {
		return -1, false, err
	}
	if call.Lane&(RecordCall|WaitCall) == 0 {
		g.keep.addToken(call.Token)
	}
	call.Lane |= uint32(lane)
	c.calls.queued = append(c.calls.queued, call)
	return lane, fresh, nil
}

// lendList takes a list from the capture that it belonged to before.
func (c *Capture) lendList(list *CapturedCalls) {
	if before := c.rt.captures.lend(list, c); before != nil {
		before.graph.mu.Lock()
		before.closeCalls()
		before.graph.mu.Unlock()
	}
}

// openList lets the caller add calls on s to a list that lendList has lent. The caller holds the graph's mu.
func (c *Capture) openList(s *Stream, op string, list *CapturedCalls) (lane int, fresh bool, err error) {
	if err := c.usableLocked(s, op); err != nil {
		if c.ended {
			c.closeCalls()
			c.rt.captures.takeBack(c) // another thread has ended it since the list was lent to it
		}
		return -1, false, err
	}
	c.takeCalls()
	fresh = c.calls.list != list
	if fresh || c.calls.taken+fillCalls > CapturedCallsMost {
		list.Capture = c.id
		list.word.Store(listOpen)
		c.calls.list, c.calls.taken = list, 0
	}
	return c.lane(s), fresh, nil
}

// lend notes that list belongs to c, and returns another capture that it belonged to before.
func (a *captures) lend(list *CapturedCalls, c *Capture) (before *Capture) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before = a.lists[list]
	if before == c {
		return nil
	}
	if a.lists == nil {
		a.lists = map[*CapturedCalls]*Capture{}
	}
	a.lists[list] = c
	return before
}

// takeBack forgets the lists of a capture that has ended.
func (a *captures) takeBack(c *Capture) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.lists, func(_ *CapturedCalls, of *Capture) bool { return of == c })
}

// closeLists takes what callers have added to captures, and lets them add no more.
func (a *captures) closeLists() {
	a.mu.Lock()
	var lent []*Capture
	for _, c := range a.lists {
		lent = append(lent, c)
	}
	a.lists = nil
	a.mu.Unlock()
	for _, c := range lent {
		c.graph.mu.Lock()
		c.closeCalls()
		c.graph.mu.Unlock()
	}
}

// lane returns the number of a stream of the capture. The caller holds the graph's mu.
func (c *Capture) lane(s *Stream) int {
	for i := len(c.calls.lanes) - 1; i >= 0; i-- {
		if c.calls.lanes[i] == s {
			return i
		}
	}
	c.calls.lanes = append(c.calls.lanes, s)
	return len(c.calls.lanes) - 1
}

// added returns what was added to the list since it was called last. The caller holds the graph's mu, and uses what it
// gets no longer than that.
func (c *Capture) added() []CapturedCall {
	l := &c.calls
	if l.list == nil {
		return nil
	}
	added := l.list.Calls[l.taken : l.list.word.Load()&listCount]
	l.taken += uint64(len(added))
	if !c.ended { // its end has kept them
		c.graph.keep.addCalls(added)
	}
	return added
}

// takeCalls takes what was added to the list. The caller holds the graph's mu.
func (c *Capture) takeCalls() {
	c.calls.queued = append(c.calls.queued, c.added()...)
}

// closeCalls takes what was added to the list, to which no more can be added
// afterwards. The caller holds the graph's mu.
func (c *Capture) closeCalls() {
	if c.calls.list != nil {
		c.calls.list.word.And(listCount)
		c.takeCalls()
		c.calls.list = nil
	}
}

// endCalls lets no more be added to the list, as the capture ends. What was added stays there: many graphs are never
// asked for their nodes again before the list is lent to the next capture. The caller holds the graph's mu.
func (c *Capture) endCalls() {
	if l := &c.calls; l.list != nil {
		l.list.word.And(listCount)
		c.graph.keep.addCalls(l.list.Calls[l.taken : l.list.word.Load()&listCount])
	}
	c.ended = true
}
