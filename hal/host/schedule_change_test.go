package host_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
	"halstream/hal/park"
)

// switchSchedules changes the schedule until done is closed. A refusal because
// another thread has work pending is part of the game.
func switchSchedules(rt *hal.Runtime, done <-chan struct{}) (changed int, err error) {
	t := hal.NewThread()
	for {
		for _, schedule := range []string{"fifo", "parallel", "latest", "random 1"} {
			select {
			case <-done:
				return changed, nil
			default:
			}
			if err := rt.SetSchedule(t, schedule, driver.Caller{}); err == nil {
				changed++
			} else if !errors.Is(err, hal.ErrNotReady) {
				return changed, err
			}
		}
	}
}

func TestX6_other_threads_may_call_while_the_schedule_changes(t *testing.T) {
	drv, err := host.Open(host.Options{Devices: 1})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 4)
	require.NoError(t, err)
	defer rt.Close()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	done := make(chan struct{})
	var callers sync.WaitGroup
	for range 2 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			me := hal.NewThread()
			s, err := dev.NewStream(me, hal.StreamOptions{NonBlocking: true})
			if !assert.NoError(t, err) {
				return
			}
			for range rounds {
				if _, err := s.Query(me); !assert.NoError(t, err) {
					return
				}
				if !assert.NoError(t, s.Nop(me)) {
					return
				}
				ended, err := s.Synchronize(me, limitNS)
				if !assert.NoError(t, err) || !assert.True(t, ended, "the stream stopped: %s", s.Describe()) {
					return
				}
			}
		}()
	}
	go func() { callers.Wait(); close(done) }()
	changed, err := switchSchedules(rt, done)
	require.NoError(t, err)
	require.Positive(t, changed, "the schedule was never changed while the other threads called")
}

func TestX6_a_change_of_the_schedule_leaves_no_parker_behind(t *testing.T) {
	k := under(t, "parallel", driver.Caller{})
	k.nops(k.a)
	k.sync(k.a)
	before := park.Made()
	const changes = 100
	for range changes {
		for _, schedule := range []string{"fifo", "parallel"} {
			require.NoError(t, k.rt.SetSchedule(k.me, schedule, driver.Caller{}))
			k.nops(k.a)
			k.sync(k.a)
		}
	}
	require.Less(t, park.Made()-before, uint64(changes/2), "each change of the schedule keeps a parker")
}
