package host_test

import (
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
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

func TestX6_a_schedule_begins_with_no_work_pending(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	k.nops(k.a)
	err := k.rt.SetSchedule(k.me, "fifo", driver.Caller{})
	require.ErrorIs(t, err, hal.ErrNotReady)
	require.ErrorContains(t, err, "stream 1 of device 0 has 1 operation(s) pending")
	require.Equal(t, "latest", k.rt.Schedule())
	k.sync(k.a)
	require.NoError(t, k.rt.SetSchedule(k.me, "parallel", driver.Caller{}))
	require.Empty(t, k.rt.Run().Steps)
}

func TestX6_a_text_that_is_no_schedule_is_refused(t *testing.T) {
	k := under(t, "parallel", driver.Caller{})
	for text, why := range map[string]string{
		"":              "choose parallel",
		"lifo":          "choose parallel",
		"fifo 1":        "fifo takes 0",
		"random":        "random takes 1",
		"random x":      "x is not a whole number",
		"pct 1 0 5":     "the depth is 1 to 64",
		"pct 1 65 5":    "the depth is 1 to 64",
		"starve 0":      "numbered from 1",
		"holds 1.1":     "is not of the form",
		"holds 1.1>h0":  "is not of the form",
		"holds 0.1>1.1": "is not of the form",
	} {
		err := k.rt.SetSchedule(k.me, text, driver.Caller{})
		require.ErrorIs(t, err, hal.ErrInvalidValue, text)
		require.ErrorContains(t, err, why, text)
	}
	t.Setenv("HALSTREAM_STALL_S", "soon")
	require.ErrorContains(t, k.rt.SetSchedule(k.me, "fifo", driver.Caller{}), "HALSTREAM_STALL_S")
}

func TestX6_other_threads_may_call_while_the_schedule_changes(t *testing.T) {
	rt, dev := opened(t)
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

func TestX7_a_schedule_begins_with_an_empty_pool(t *testing.T) {
	rt, dev := opened(t)
	me := hal.NewThread()
	for run := range 3 {
		require.NoError(t, rt.SetSchedule(me, "latest", driver.Caller{}))
		s, err := dev.NewStream(me, hal.StreamOptions{NonBlocking: true})
		require.NoError(t, err)
		g, err := s.Gate(me)
		require.NoError(t, err)
		// Behind the gate nothing of this run has written yet.
		b, err := s.AllocAsync(me, 8)
		require.NoError(t, err)
		addr := b.Start
		value := **(**uint64)(unsafe.Pointer(&addr)) // the memory is not Go's, so its address may be a number
		assert.Equal(t, uint64(1<<64-1), value, "run %d reads what an earlier one left", run)
		require.NoError(t, s.Fill(me, b.Start, 7, 4, 2))
		require.NoError(t, s.FreeAsync(me, b.Start))
		g.Open()
		_, err = s.Synchronize(me, driver.Forever)
		require.NoError(t, err)
		require.NoError(t, s.Close(me))
		require.NoError(t, rt.SetSchedule(me, "parallel", driver.Caller{}))
	}
}
