package stall_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// program is a runtime with a thread that calls it.
type program struct {
	t  *testing.T
	rt *hal.Runtime
	me *hal.Thread
}

func newProgram(t *testing.T) *program {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	return &program{t, rt, hal.NewThread()}
}

func (p *program) stream() *hal.Stream {
	d, err := p.rt.Device(0)
	require.NoError(p.t, err)
	s, err := d.NewStream(p.me, hal.StreamOptions{NonBlocking: true})
	require.NoError(p.t, err)
	return s
}

func (p *program) hold(s *hal.Stream) driver.Gate {
	g, err := s.Gate(p.me)
	require.NoError(p.t, err)
	p.t.Cleanup(g.Open)
	return g
}

func (p *program) point(s *hal.Stream) driver.Point {
	point, err := s.Point(p.me)
	require.NoError(p.t, err)
	return point
}

func (p *program) busy() driver.Busy {
	busy := p.rt.Busy()
	require.Len(p.t, busy, 1)
	return busy[0]
}

func TestWaits_listWhoIsBlockedAndOnWhat(t *testing.T) {
	p := newProgram(t)
	s := p.stream()
	gate := p.hold(s)
	var waits stall.Waits
	handling := false
	w := waits.Begin(p.rt, stall.Waiter{Thread: 7, Point: p.point(s), Active: func() bool { return handling }})
	blocked := waits.Blocked()
	require.Len(t, blocked, 1)
	require.EqualValues(t, 7, blocked[0].Thread)
	require.False(t, blocked[0].Report)
	require.Len(t, blocked[0].On, 1)
	require.Equal(t, s.Index(), blocked[0].On[0].Stream)

	handling = true
	require.Empty(t, waits.Blocked(), "a handler of a signal runs on it")
	handling = false
	gate.Open()
	require.True(t, p.point(s).Wait(driver.Forever))
	require.Empty(t, waits.Blocked(), "it is about to go on")
	w.End()
	w.End()
	require.Empty(t, waits.Blocked())
}

func TestWaits_listWhoWaitsForAReport(t *testing.T) {
	p := newProgram(t)
	s, q := p.stream(), hal.NewReportQueue()
	require.NoError(t, s.Subscribe(p.me, q))
	var waits stall.Waits
	defer waits.Begin(p.rt, stall.Waiter{Thread: 7, Reports: q}).End()
	require.Equal(t, []stall.Blocked{{Thread: 7, Report: true}}, waits.Blocked())
	require.NoError(t, s.Report(p.me, q, 1, false, hal.Accesses{}))
	require.Eventually(t, func() bool { return len(waits.Blocked()) == 0 }, limit, step)
	task, err := q.Next(p.me, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, task.Token)
	q.Done(p.me, false, nil)
}

func TestWait_isDueOnceNothingHasMovedForAWhile(t *testing.T) {
	p := newProgram(t)
	s := p.stream()
	p.hold(s)
	var waits stall.Waits
	w := waits.Begin(p.rt, stall.Waiter{Thread: 1, Point: p.point(s)})
	defer w.End()
	slices := func() (n int) {
		for n = 1; !w.Due(); n++ {
			require.Less(t, n, 100)
		}
		return n
	}
	require.Equal(t, 4, slices(), "the first look only takes note of what is pending")
	w.Answered(true)
	require.Equal(t, 1, slices(), "it may be a stall")
	w.Answered(false)
	require.Equal(t, 5, slices())
	require.NoError(t, s.Nop(p.me)) // something moved
	w.Answered(true)
	require.Equal(t, 4, slices())
}

func TestWait_withoutAGraphIsNoWait(t *testing.T) {
	var waits stall.Waits
	w := waits.Begin(nil, stall.Waiter{})
	require.Nil(t, w)
	require.False(t, w.Due())
	w.End()
	require.EqualValues(t, 5, stall.Slice(nil, driver.Forever, 5))
}

func TestSlice_isShortWhereDevicesMoveOnlyDuringCalls(t *testing.T) {
	p := newProgram(t)
	require.EqualValues(t, 50, stall.Slice(p.rt, driver.Forever, 50))
	require.NoError(t, p.rt.SetSchedule(p.me, "fifo", driver.Caller{}))
	require.EqualValues(t, 10_000_000, stall.Slice(p.rt, driver.Forever, 50))
	require.EqualValues(t, 50, stall.Slice(p.rt, 100, 50), "a wait with a limit ends by itself")
}
