package host_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

// bench is a runtime of its own for a test.
type bench struct {
	t  *testing.T
	rt *hal.Runtime
	me *hal.Thread
}

func newBench(t *testing.T, schedule string) *bench {
	drv, err := host.Open(host.Options{Devices: 2, Memory: 8 << 20})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 2)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	require.NoError(t, rt.SetSchedule(nil, schedule, driver.Caller{}))
	return &bench{t, rt, hal.NewThread()}
}

func (b *bench) stream(ordinal int) *hal.Stream {
	d, err := b.rt.Device(ordinal)
	require.NoError(b.t, err)
	s, err := d.NewStream(b.me, hal.StreamOptions{})
	require.NoError(b.t, err)
	return s
}

func (b *bench) gate(s *hal.Stream) driver.Gate {
	g, err := s.Gate(b.me)
	require.NoError(b.t, err)
	return g
}

func (b *bench) event(kind hal.EventKind) *hal.Event {
	e, err := b.rt.NewEvent(b.me, nil, hal.EventOptions{Kind: kind})
	require.NoError(b.t, err)
	return e
}

// rest waits until nothing moves by itself and returns what the streams wait for.
func (b *bench) rest() map[uint64]driver.Busy {
	require.Eventually(b.t, func() bool {
		quiet, _ := b.rt.Quiet()
		return quiet
	}, limit, tick)
	found := map[uint64]driver.Busy{}
	for _, one := range b.rt.Busy() {
		found[one.At.Stream] = one
	}
	return found
}

func schedules(t *testing.T, f func(t *testing.T, b *bench)) {
	for _, schedule := range []string{"parallel", "fifo", "latest"} {
		t.Run(schedule, func(t *testing.T) { f(t, newBench(t, schedule)) })
	}
}

func TestGraphOfAGateAndWhoWaitsForIt(t *testing.T) {
	schedules(t, func(t *testing.T, b *bench) {
		held, waits, far := b.stream(0), b.stream(0), b.stream(1)
		g := b.gate(held)
		e := b.event(hal.Standard)
		require.NoError(t, held.Record(b.me, e))
		require.NoError(t, waits.Wait(b.me, e))
		require.NoError(t, far.WaitStream(b.me, waits))
		p, err := far.Point(b.me)
		require.NoError(t, err)
		p.Wait(int64(tick)) // under a schedule what can move does so now
		found := b.rest()
		gate := found[held.Index()]
		assert.Equal(t, driver.NeedGate, gate.Need)
		assert.EqualValues(t, 1, gate.Number)
		assert.EqualValues(t, 2, gate.Pending)
		assert.Equal(t, driver.Place{Device: 0, Stream: held.Index(), Seq: 1}, gate.At)
		wait := found[waits.Index()]
		assert.Equal(t, driver.NeedStream, wait.Need)
		assert.Equal(t, e.ID(), wait.Number)
		assert.Equal(t, []driver.Place{{Device: 0, Stream: held.Index(), Seq: 2}}, wait.On)
		for _, one := range b.rt.Busy() {
			if one.At.Device == 1 {
				assert.Equal(t, []driver.Place{{Device: 0, Stream: waits.Index(), Seq: 1}}, one.On)
			}
		}
		assert.Equal(t, []driver.Place{{Device: 1, Stream: far.Index(), Seq: 1}}, driver.Missing(p))
		g.Open()
		assert.True(t, p.Wait(int64(limit)))
		assert.Empty(t, driver.Missing(p))
	})
}

func TestGraphOfTheLegacyOrder(t *testing.T) {
	schedules(t, func(t *testing.T, b *bench) {
		held, later := b.stream(0), b.stream(0)
		g := b.gate(held)
		d, err := b.rt.Device(0)
		require.NoError(t, err)
		require.NoError(t, d.DefaultStream().Nop(b.me))
		require.NoError(t, later.Nop(b.me))
		found := b.rest()
		assert.Equal(t, driver.NeedGate, found[held.Index()].Need)
		for _, index := range []uint64{0, later.Index()} {
			assert.Equal(t, driver.NeedOrder, found[index].Need)
			assert.Equal(t, []driver.Place{{Device: 0, Stream: held.Index(), Seq: 1}}, found[index].On)
		}
		g.Open()
		ok, err := later.Synchronize(b.me, int64(limit))
		require.NoError(t, err)
		assert.True(t, ok)
	})
}

func TestGraphOfEventsOfTheFuture(t *testing.T) {
	schedules(t, func(t *testing.T, b *bench) {
		waits, records := b.stream(0), b.stream(0)
		e := b.event(hal.Future)
		require.NoError(t, waits.Wait(b.me, e))
		found := b.rest()[waits.Index()]
		assert.Equal(t, driver.NeedEvent, found.Need)
		assert.Equal(t, e.ID(), found.Number)
		assert.Empty(t, found.On)
		g := b.gate(records)
		require.NoError(t, records.Record(b.me, e))
		found = b.rest()[waits.Index()]
		assert.Equal(t, []driver.Place{{Device: 0, Stream: records.Index(), Seq: 2}}, found.On)
		g.Open()
		ok, err := waits.Synchronize(b.me, int64(limit))
		require.NoError(t, err)
		assert.True(t, ok)
	})
}

func TestAFunctionIsTheProgramsUntilItEnds(t *testing.T) {
	b := newBench(t, "parallel")
	s := b.stream(0)
	require.NoError(t, s.HostFunc(b.me, 7))
	found := b.rest()[s.Index()] // nobody serves the queue
	assert.Equal(t, driver.NeedFunction, found.Need)
	assert.EqualValues(t, 7, found.Number)
	assert.Equal(t, 1, b.rt.Funcs.Waiting())
	worker := hal.NewThread()
	b.rt.Funcs.Start()
	quiet, _ := b.rt.Quiet()
	assert.False(t, quiet, "a thread is about to take the function")
	task := b.rt.Funcs.Next(worker, int64(limit))
	assert.EqualValues(t, 7, task.Token)
	assert.Zero(t, b.rt.Funcs.Waiting())
	// It asked for one more thread, which is counted and on its way.
	assert.True(t, task.Spawn)
	quiet, _ = b.rt.Quiet()
	assert.False(t, quiet)
	b.rt.Funcs.Stop() // it could not be started
	quiet, before := b.rt.Quiet()
	assert.True(t, quiet, "what the function does is the program's")
	b.rt.Funcs.Done(worker, false, nil)
	_, after := b.rt.Quiet()
	assert.NotEqual(t, before, after)
	ok, err := s.Synchronize(b.me, int64(limit))
	require.NoError(t, err)
	assert.True(t, ok)
}

func TestAReportWaitsForAThreadOfTheProgram(t *testing.T) {
	b := newBench(t, "parallel")
	s, q := b.stream(0), hal.NewReportQueue()
	require.NoError(t, s.Subscribe(b.me, q))
	require.NoError(t, s.Report(b.me, q, 9, true))
	found := b.rest()[s.Index()]
	assert.Equal(t, driver.NeedReport, found.Need)
	assert.EqualValues(t, 9, found.Number)
	task := q.Next(b.me, int64(limit))
	assert.EqualValues(t, 9, task.Token)
	q.Done(b.me, false, nil)
	ok, err := s.Synchronize(b.me, int64(limit))
	require.NoError(t, err)
	assert.True(t, ok)
}

func TestWorkAndLimitsMoveByThemselves(t *testing.T) {
	b := newBench(t, "parallel")
	s, limited := b.stream(0), b.stream(0)
	require.NoError(t, limited.WaitLimited(b.me, b.event(hal.Future), int64(2*tick)))
	quiet, _ := b.rt.Quiet()
	assert.False(t, quiet, "the limit of a wait runs")
	_, err := limited.Synchronize(b.me, int64(limit))
	assert.ErrorIs(t, err, hal.ErrTimeout)
	require.NoError(t, s.Delay(b.me, int64(2*tick)))
	quiet, _ = b.rt.Quiet()
	assert.False(t, quiet, "an engine works")
	ok, err := s.Synchronize(b.me, int64(limit))
	require.NoError(t, err)
	assert.True(t, ok)
	quiet, first := b.rt.Quiet()
	assert.True(t, quiet)
	_, second := b.rt.Quiet()
	assert.Equal(t, first, second)
	assert.Empty(t, b.rt.Busy())
}
