package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

func TestA6_only_a_wait_at_the_head_of_its_stream_has_a_timer(t *testing.T) {
	clock := &frozen{}
	drv, err := host.Open(host.Options{Devices: 1, Clock: clock})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	defer rt.Close()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	me := hal.NewThread()
	s, err := dev.NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	other, err := dev.NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	gate, err := s.Gate(me)
	require.NoError(t, err)
	var events []*hal.Event
	const waits = 3
	for range waits {
		e, err := rt.NewEvent(me, dev, hal.EventOptions{Kind: hal.Future})
		require.NoError(t, err)
		require.NoError(t, s.WaitLimited(me, e, int64(time.Second)))
		events = append(events, e)
	}
	clock.now = int64(time.Hour)
	require.Zero(t, clock.count(), "the stream has not come to any of the waits")

	synchronize := func(s *hal.Stream, limit int64) (bool, error) { return s.Synchronize(me, limit) }
	gate.Open()
	_, _ = synchronize(s, int64(time.Millisecond)) // this thread runs the open gate, if the pump has not
	require.Eventually(t, func() bool { return clock.count() == 1 }, time.Duration(limitNS), time.Millisecond,
		"the first wait is at the head, and the others behind it")
	first := clock.timer(0)
	require.Equal(t, int64(time.Second), first.ns, "the whole limit is left")
	require.NoError(t, other.Record(me, events[0]))
	require.Eventually(t, func() bool { return clock.count() == 2 }, time.Duration(limitNS), time.Millisecond)
	require.True(t, first.isStopped(), "the first wait was met in time")

	clock.timer(1).call()
	require.Eventually(t, func() bool { return clock.count() == waits }, time.Duration(limitNS), time.Millisecond,
		"the stream went on to the last wait")
	first.call() // fired too late: it must not end another wait
	done, err := synchronize(s, 0)
	require.NoError(t, err)
	require.False(t, done)
	clock.timer(2).call()
	done, err = synchronize(s, limitNS)
	require.ErrorIs(t, err, hal.ErrTimeout)
	require.True(t, done)
}

func TestX4_the_limit_of_a_wait_is_measured_in_virtual_time_from_the_head(t *testing.T) {
	for _, c := range []struct {
		name   string
		behind time.Duration // virtual time before the stream comes to the wait
		until  time.Duration // and from then until the record
		passed bool
	}{
		{"the time behind the gate does not count", time.Hour, time.Second / 2, false},
		{"the time at the head counts", 0, 2 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := under(t, "fifo", driver.Caller{})
			e, err := k.rt.NewEvent(k.me, k.dev, hal.EventOptions{Kind: hal.Future})
			require.NoError(t, err)
			gate, err := k.a.Gate(k.me)
			require.NoError(t, err)
			require.NoError(t, k.a.WaitLimited(k.me, e, int64(time.Second)))
			require.NoError(t, k.b.Delay(k.me, int64(c.behind)))
			gate.Open()
			k.nops(k.c) // a call, at which the stream comes to the wait
			require.NoError(t, k.b.Delay(k.me, int64(c.until)))
			require.NoError(t, k.b.Record(k.me, e))
			done, err := k.a.Synchronize(k.me, limitNS)
			require.True(t, done)
			if c.passed {
				require.ErrorIs(t, err, hal.ErrTimeout)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
