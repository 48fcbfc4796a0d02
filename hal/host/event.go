package host

import (
	"slices"
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
	"halstream/hal/park"
	"halstream/hal/status"
)

// place is the n-th operation of a stream.
type place struct {
	on  *Stream
	seq uint64
}

func (p place) reached() bool { return p.on == nil || p.on.words.Completed.Load() >= p.seq }

// Event names the place of its latest record. Waits take a copy of the place,
// so a later record does not move them.
type Event struct {
	eng      *engine
	dev      *Device
	opts     driver.EventOptions
	at       place
	recorded bool
	when     int64 // device time of the latest record, once it is done
	set      bool  // settable events: recorded and not reset
	parked   []*Stream
	waits    int
}

// Recorded implements driver.StatusEvent.
func (v *Event) Recorded() {
	v.eng.Lock()
	v.at, v.recorded = place{}, true
	v.eng.Unlock()
}

// RecordedAt implements driver.StatusEvent.
func (v *Event) RecordedAt(s driver.Stream, seq uint64) {
	v.eng.Lock()
	v.at, v.recorded = place{s.(*Stream), seq}, true
	v.eng.Unlock()
}

// recordedPlace is in the operation of a wait for an event that only C code knows.
type recordedPlace struct{}

// WithStatus implements driver.StatusDevice.
func (d *Device) WithStatus(w *status.Stream) driver.Stream {
	d.eng.Lock()
	defer d.eng.Unlock()
	for s := d.active; s != nil; s = s.next {
		if s.words == w {
			return s
		}
	}
	return nil
}

// Place implements driver.StatusEvent.
func (v *Event) Place() (*status.Stream, uint64) {
	if v.at.on == nil {
		return nil, 0
	}
	return v.at.on.words, v.at.seq
}

// Query implements driver.Event.
func (v *Event) Query() (bool, error) {
	e := v.eng
	e.Lock()
	at := v.at
	e.point(sched.Queried, at.launched().on, nil, 0)
	done := at.reached()
	e.Unlock()
	return done, nil
}

// Point implements driver.Event.
func (v *Event) Point() driver.Point {
	v.eng.Lock()
	defer v.eng.Unlock()
	return point{v.eng, v.at}
}

// Time implements driver.Event.
func (v *Event) Time() (int64, error) {
	v.eng.Lock()
	defer v.eng.Unlock()
	if !v.at.reached() {
		return 0, v.pending()
	}
	return v.when, nil
}

// Elapsed implements driver.Event.
func (v *Event) Elapsed(end driver.Event) (int64, error) {
	w := end.(*Event)
	v.eng.Lock()
	defer v.eng.Unlock()
	for _, ev := range []*Event{v, w} {
		if !ev.at.reached() {
			return 0, ev.pending()
		}
	}
	return w.when - v.when, nil
}

func (v *Event) pending() error {
	return driver.Errorf(driver.NotReady, "elapsed",
		"event %s is still pending; synchronize it first", name(v.opts.ID))
}

// WaitsPending implements driver.Event.
func (v *Event) WaitsPending() int {
	v.eng.Lock()
	defer v.eng.Unlock()
	return v.waits
}

// Close implements driver.Event: enqueued operations hold what they need.
func (v *Event) Close() {}

// point is a place a host thread can wait for.
type point struct {
	eng *engine
	at  place
}

// waiterSpinNS is for how many nanoseconds a thread that waits for a worker spins before it parks.
const waiterSpinNS = 20_000

// Wait implements driver.Point. The thread runs what it can before it sleeps.
// Once the backend was closed nothing moves any more, and every point counts as
// reached.
func (p point) Wait(limit int64) bool {
	e := p.eng
	if e.completeByDefinition(p.at) {
		return true
	}
	e.Lock()
	e.point(sched.Blocked, p.at.launched().on, p.at.reached, limit)
	if !e.parallel.Load() {
		done := p.at.reached()
		e.Unlock()
		return done
	}
	if p.at.reached() || limit == 0 || e.closed {
		done := p.at.reached() || e.closed
		e.Unlock()
		return done
	}
	spin := int64(0)
	if p.at.on.atWork() {
		spin = waiterSpinNS // a worker may be done before this thread could fall asleep
	}
	w := park.Get()
	p.at.on.waiting.add(waiter{seq: p.at.seq, parker: w})
	e.Unlock()
	if !w.Park(limit, spin) {
		e.Lock()
		removed := p.at.on.waiting.take(w)
		e.Unlock()
		if removed {
			park.Put(w)
			return false
		}
		w.Park(driver.Forever, 0) // another thread is about to unpark it
	}
	park.Put(w)
	return true
}

// atWork reports whether workers run the head operation of s, or nodes of the graph that it launches.
// The lock is held.
func (s *Stream) atWork() bool {
	if s.state != sched.Running {
		return false
	}
	kind := s.q.front().kind
	return kind == opWork || kind == opLaunch
}

// Announce implements driver.Announced.
func (p point) Announce() (end func()) {
	if p.at.on == nil {
		return func() {}
	}
	p.eng.Lock()
	defer p.eng.Unlock()
	p.at.announce()
	return func() {
		p.eng.Lock()
		defer p.eng.Unlock()
		p.at.withdraw()
	}
}

// notice is a driver.Notice that waits for a place.
type notice struct{ to driver.Notice }

// Notify implements driver.Notifying.
func (p point) Notify(to driver.Notice) (cancel func()) {
	e, n := p.eng, &notice{to}
	e.Lock()
	if p.at.reached() || e.closed {
		e.reached = append(e.reached, n)
	} else {
		p.at.on.waiting.add(waiter{seq: p.at.seq, notice: n})
	}
	e.Unlock()
	return func() {
		if p.at.on == nil {
			return
		}
		e.Lock()
		p.at.on.waiting.takeNotice(n)
		e.Unlock()
	}
}

// announce lists a thread that waits for the place. The lock is held.
func (p place) announce() { x := p.on.extra(); x.awaited = append(x.awaited, p.seq) }

// withdraw ends announce. The lock is held.
func (p place) withdraw() {
	x := p.on.extra()
	if i := slices.Index(x.awaited, p.seq); i >= 0 {
		x.awaited = slices.Delete(x.awaited, i, i+1)
	}
}

// awaited reports whether a thread waits for a place that s has not reached. The
// lock is held.
func (s *Stream) awaited() bool {
	if slices.ContainsFunc(s.waiting, func(w waiter) bool { return w.stream == nil }) {
		return true
	}
	return s.extras != nil && slices.ContainsFunc(s.extras.awaited, func(seq uint64) bool {
		return !place{on: s, seq: seq}.reached()
	})
}

// gate is an operation that blocks its stream until it is opened.
type gate struct {
	eng    *engine
	id     uint64
	open   atomic.Bool
	parked *Stream
}

// Gate implements driver.Stream.
func (s *Stream) Gate(id uint64, tag driver.Tag) (driver.Gate, error) {
	g := &gate{eng: s.eng, id: id}
	if err := s.eng.submit(s, &op{kind: opGate, tag: tag, ref: g}); err != nil {
		return nil, err
	}
	return g, nil
}

// Open implements driver.Gate.
func (g *gate) Open() {
	e := g.eng
	e.Lock()
	g.open.Store(true)
	s := g.parked
	if s != nil {
		g.parked = nil
		e.advance(s)
	}
	if !e.parallel.Load() {
		e.point(sched.Opened, s, nil, 0)
	}
	e.Unlock()
}

// Opened implements driver.Gate.
func (g *gate) Opened() bool { return g.open.Load() }
