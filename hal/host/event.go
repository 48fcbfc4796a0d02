package host

import (
	"sync/atomic"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// Event has the fence of its latest record. Waits take a copy of the fence,
// so a later record does not move them.
type Event struct {
	eng      *engine
	dev      *Device
	opts     driver.EventOptions
	at       fence
	recorded bool
	when     int64     // device time of the latest record, once it is done
	set      bool      // settable events: recorded and not reset
	blocked  []*Stream // settable events: whose head operation waits for it
	waits    int       // how many enqueued waits are pending
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

// Close implements driver.Event: enqueued operations refer to what they need.
func (v *Event) Close() {}

// gate is an operation that blocks its stream until it is opened.
type gate struct {
	eng     *engine
	id      uint64
	open    atomic.Bool
	blocked *Stream
}

// Open implements driver.Gate.
func (g *gate) Open() {
	e := g.eng
	e.Lock()
	g.open.Store(true)
	s := g.blocked
	if s != nil {
		g.blocked = nil
		e.advance(s)
	}
	if !e.parallel.Load() {
		e.point(sched.Opened, s, nil, 0)
	}
	e.Unlock()
}

// Opened implements driver.Gate.
func (g *gate) Opened() bool { return g.open.Load() }

// Number returns the gate's number in texts.
func (g *gate) Number() uint64 { return g.id }
