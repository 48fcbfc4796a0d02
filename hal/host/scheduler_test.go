package host_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
	"halstream/hal/host/sched"
)

// lazy is the least helpful scheduler: a stream moves only while a host thread
// waits for something, and then the last one that became ready goes first.
type lazy struct {
	r     sched.Runner
	ready []sched.Stream
	seen  []sched.Reason
}

func (l *lazy) Attach(r sched.Runner)              { l.r = r }
func (l *lazy) Ready(s sched.Stream)               { l.ready = append(l.ready, s) }
func (l *lazy) Unlocking() bool                    { return false }
func (l *lazy) Unlocked()                          {}
func (l *lazy) Close()                             {}
func (l *lazy) Added(sched.Stream, string)         {}
func (l *lazy) Numbered(sched.Stream)              {}
func (l *lazy) Parallel() bool                     { return false }
func (l *lazy) Run() driver.Run                    { return driver.Run{} }
func (l *lazy) Clock(real sched.Clock) sched.Clock { return real }

func (l *lazy) Point(why sched.Reason, _ sched.Stream, done func() bool, _ int64) {
	l.seen = append(l.seen, why)
	if why != sched.Blocked {
		return
	}
	for len(l.ready) > 0 && !done() {
		last := len(l.ready) - 1
		s := l.ready[last]
		l.ready = l.ready[:last]
		l.r.Run(s)
	}
}

// frozen is a clock that only a test moves.
type frozen struct {
	now    int64
	mu     sync.Mutex // timers are started by whichever thread moves a stream
	timers []*frozenTimer
}

func (f *frozen) Now() int64 { return f.now }

func (f *frozen) After(ns int64, call func()) sched.Timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &frozenTimer{ns: ns, call: call}
	f.timers = append(f.timers, t)
	return t
}

// count is how many timers were ever started.
func (f *frozen) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers)
}

func (f *frozen) timer(i int) *frozenTimer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.timers[i]
}

// frozenTimer is a timer that only a test fires.
type frozenTimer struct {
	ns      int64
	call    func()
	stopped atomic.Bool
}

func (t *frozenTimer) Stop() bool { return !t.stopped.Swap(true) }

func (t *frozenTimer) isStopped() bool { return t.stopped.Load() }

func TestASchedulerAndAClockDecideWhatMovesAndWhen(t *testing.T) {
	scheduler, clock := &lazy{}, &frozen{}
	drv, err := host.Open(host.Options{Devices: 1, Scheduler: scheduler, Clock: clock})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	defer rt.Close()
	d, err := rt.Device(0)
	require.NoError(t, err)
	me := hal.NewThread()
	a, err := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	b, err := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	start, err := rt.NewEvent(me, d, hal.EventOptions{Timing: true})
	require.NoError(t, err)
	end, err := rt.NewEvent(me, d, hal.EventOptions{Timing: true})
	require.NoError(t, err)

	require.NoError(t, a.Record(me, start))
	done, err := a.Query(me)
	require.NoError(t, err)
	require.False(t, done, "not even a record runs by itself")
	done, err = a.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, a.Nop(me))
	require.NoError(t, a.Record(me, end))
	require.NoError(t, b.Nop(me))
	for _, s := range []*hal.Stream{a, b} {
		done, err := s.Query(me)
		require.NoError(t, err)
		require.False(t, done, "a query moves nothing under this scheduler")
	}
	clock.now = 5_000_000
	done, err = b.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	done, err = a.Query(me)
	require.NoError(t, err)
	require.False(t, done, "the scheduler ran more than was waited for")
	done, err = a.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	ms, err := start.Elapsed(me, end)
	require.NoError(t, err)
	require.Equal(t, 5.0, ms, "time comes from the clock")
	require.Contains(t, scheduler.seen, sched.Enqueued)
	require.Contains(t, scheduler.seen, sched.Queried)
}
