package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

const (
	graphLimit = 10 * time.Second
	graphTick  = 5 * time.Millisecond
)

// bench is a runtime of its own for a test.
type bench struct {
	t  *testing.T
	rt *hal.Runtime
	me *hal.Thread
	// streams are those that were made, and the default streams.
	streams []*hal.Stream
}

func newBench(t *testing.T, schedule string) *bench {
	drv, err := host.Open(host.Options{Devices: 2, Memory: 8 << 20})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 2)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	require.NoError(t, rt.SetSchedule(nil, schedule, driver.Caller{}))
	b := &bench{t: t, rt: rt, me: hal.NewThread()}
	for i := range rt.Devices() {
		d, err := rt.Device(i)
		require.NoError(t, err)
		b.streams = append(b.streams, d.DefaultStream())
	}
	return b
}

func (b *bench) stream(ordinal int) *hal.Stream {
	d, err := b.rt.Device(ordinal)
	require.NoError(b.t, err)
	s, err := d.NewStream(b.me, hal.StreamOptions{})
	require.NoError(b.t, err)
	b.streams = append(b.streams, s)
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

// busyAtRest waits until nothing moves by itself and returns what the streams wait for.
func (b *bench) busyAtRest() map[*hal.Stream]driver.Busy {
	require.Eventually(b.t, func() bool {
		quiet, _ := b.rt.Quiet()
		return quiet
	}, graphLimit, graphTick)
	found := map[*hal.Stream]driver.Busy{}
	for _, one := range b.rt.Busy() {
		for _, s := range b.streams {
			if s.Device().Ordinal() == one.At.Device && s.Index() == one.At.Stream {
				found[s] = one
			}
		}
	}
	return found
}

func schedules(t *testing.T, f func(t *testing.T, b *bench)) {
	for _, schedule := range []string{"parallel", "fifo", "latest"} {
		t.Run(schedule, func(t *testing.T) { f(t, newBench(t, schedule)) })
	}
}

func TestW1_graph_of_a_gate_and_who_waits_for_it(t *testing.T) {
	schedules(t, func(t *testing.T, b *bench) {
		held, waits, far := b.stream(0), b.stream(0), b.stream(1)
		g := b.gate(held)
		e := b.event(hal.Standard)
		require.NoError(t, held.Record(b.me, e))
		require.NoError(t, waits.Wait(b.me, e))
		require.NoError(t, far.WaitStream(b.me, waits))
		p, err := far.Point(b.me)
		require.NoError(t, err)
		p.Wait(int64(graphTick)) // under a schedule what can move does so now
		found := b.busyAtRest()
		gate := found[held]
		assert.Equal(t, driver.NeedGate, gate.Need)
		assert.EqualValues(t, 1, gate.Number)
		assert.EqualValues(t, 2, gate.Pending)
		// Where a stream begins to count depends on the one that had its slot before.
		assert.Equal(t, driver.Fence{Device: 0, Stream: held.Index(), Seq: gate.At.Seq}, gate.At)
		wait := found[waits]
		assert.Equal(t, driver.NeedStream, wait.Need)
		assert.Equal(t, e.ID(), wait.Number)
		assert.Equal(t, []driver.Fence{{Device: 0, Stream: held.Index(), Seq: gate.At.Seq + 1}}, wait.On)
		assert.Equal(t, []driver.Fence{{Device: 0, Stream: waits.Index(), Seq: wait.At.Seq}}, found[far].On)
		assert.Equal(t, []driver.Fence{{Device: 1, Stream: far.Index(), Seq: found[far].At.Seq}}, driver.Missing(p))
		g.Open()
		assert.True(t, p.Wait(int64(graphLimit)))
		assert.Empty(t, driver.Missing(p))
	})
}

func TestW1_graph_of_the_legacy_order(t *testing.T) {
	schedules(t, func(t *testing.T, b *bench) {
		held, later := b.stream(0), b.stream(0)
		g := b.gate(held)
		d, err := b.rt.Device(0)
		require.NoError(t, err)
		require.NoError(t, d.DefaultStream().Nop(b.me))
		require.NoError(t, later.Nop(b.me))
		found := b.busyAtRest()
		assert.Equal(t, driver.NeedGate, found[held].Need)
		for _, s := range []*hal.Stream{d.DefaultStream(), later} {
			assert.Equal(t, driver.NeedOrder, found[s].Need)
			assert.Equal(t, []driver.Fence{{Device: 0, Stream: held.Index(), Seq: found[held].At.Seq}}, found[s].On)
		}
		g.Open()
		ok, err := later.Synchronize(b.me, int64(graphLimit))
		require.NoError(t, err)
		assert.True(t, ok)
	})
}

func TestW1_graph_of_events_of_the_future(t *testing.T) {
	schedules(t, func(t *testing.T, b *bench) {
		waits, records := b.stream(0), b.stream(0)
		e := b.event(hal.Future)
		require.NoError(t, waits.Wait(b.me, e))
		found := b.busyAtRest()[waits]
		assert.Equal(t, driver.NeedEvent, found.Need)
		assert.Equal(t, e.ID(), found.Number)
		assert.Empty(t, found.On)
		g := b.gate(records)
		require.NoError(t, records.Record(b.me, e))
		all := b.busyAtRest()
		assert.Equal(t, []driver.Fence{{Device: 0, Stream: records.Index(), Seq: all[records].At.Seq + 1}}, all[waits].On)
		g.Open()
		ok, err := waits.Synchronize(b.me, int64(graphLimit))
		require.NoError(t, err)
		assert.True(t, ok)
	})
}

func TestW2_a_function_is_the_programs_until_it_ends(t *testing.T) {
	b := newBench(t, "parallel")
	s := b.stream(0)
	require.NoError(t, s.HostFunc(b.me, 7))
	found := b.busyAtRest()[s] // nobody serves the queue
	assert.Equal(t, driver.NeedFunction, found.Need)
	assert.EqualValues(t, 7, found.Number)
	assert.Equal(t, 1, b.rt.Funcs.Waiting())
	worker := hal.NewThread()
	b.rt.Funcs.Start()
	quiet, _ := b.rt.Quiet()
	assert.False(t, quiet, "a thread is about to take the function")
	task, err := b.rt.Funcs.Next(worker, int64(graphLimit))
	require.NoError(t, err)
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
	ok, err := s.Synchronize(b.me, int64(graphLimit))
	require.NoError(t, err)
	assert.True(t, ok)
}

func TestAReportWaitsForAThreadOfTheProgram(t *testing.T) {
	b := newBench(t, "parallel")
	s, q := b.stream(0), hal.NewReportQueue()
	require.NoError(t, s.Subscribe(b.me, q))
	require.NoError(t, s.Report(b.me, q, 9, true, hal.Accesses{}))
	found := b.busyAtRest()[s]
	assert.Equal(t, driver.NeedReport, found.Need)
	assert.EqualValues(t, 9, found.Number)
	task, err := q.Next(b.me, int64(graphLimit))
	require.NoError(t, err)
	assert.EqualValues(t, 9, task.Token)
	q.Done(b.me, false, nil)
	ok, err := s.Synchronize(b.me, int64(graphLimit))
	require.NoError(t, err)
	assert.True(t, ok)
}

func TestW2_work_and_limits_move_by_themselves(t *testing.T) {
	b := newBench(t, "parallel")
	s, limited := b.stream(0), b.stream(0)
	require.NoError(t, limited.WaitLimited(b.me, b.event(hal.Future), int64(time.Hour)))
	quiet, _ := b.rt.Quiet()
	assert.False(t, quiet, "the limit of a wait runs")
	_, err := limited.Abort(b.me)
	require.NoError(t, err)
	b.busyAtRest()
	for work := 300 * time.Millisecond; ; work *= 4 { // longer where this thread did not come to ask in that time
		require.NoError(t, s.Delay(b.me, int64(work)))
		if quiet, _ = b.rt.Quiet(); !quiet {
			break
		}
		require.Less(t, work, 4*time.Second, "an engine works")
	}
	ok, err := s.Synchronize(b.me, int64(graphLimit))
	require.NoError(t, err)
	assert.True(t, ok)
	quiet, first := b.rt.Quiet()
	assert.True(t, quiet)
	_, second := b.rt.Quiet()
	assert.Equal(t, first, second)
	assert.Empty(t, b.rt.Busy())
}
