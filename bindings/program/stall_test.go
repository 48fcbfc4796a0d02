package program

import (
	"testing"

	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// A wait with such a limit ends with it where nothing shows that it can never end.
func TestN16_a_wait_that_may_end_ends_with_its_limit(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	number, _ := Threads.Enter(&Thread{T: hal.NewThread()})
	if done, text := Await(number, rt, never{}, waits.After(0)); done || text != "" {
		t.Errorf("the wait was done (%v), or reported: %s", done, text)
	}
}

type never struct{ driver.Point }

func (never) Wait(int64) bool { return false }

// A thread may have ended between the look at who waits and the look at the threads.
func TestN16_a_report_leaves_out_a_thread_that_has_ended(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	d, err := rt.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	me := hal.NewThread()
	s, err := d.NewStream(me, hal.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := s.Gate(me)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Open()
	point, err := s.Point(me)
	if err != nil {
		t.Fatal(err)
	}
	number, _ := Threads.Enter(&Thread{T: me})
	for _, thread := range []uint64{uint64(number), 1000} {
		defer blocked.Begin(rt, stall.Waiter{Thread: thread, Point: point}).End()
	}
	l := picture(rt)
	if len(l.Blocked) != 1 || l.Blocked[0].Thread != uint64(number) {
		t.Errorf("thread %d waits, and thread 1000 has ended, not %v", number, l.Blocked)
	}
	l.judge(uint64(number))
}
