package vendor

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

var errRefused = driver.Errorf(driver.Unknown, "synchronize", "refused")

func TestE3_an_event_of_the_library_is_used_again_when_nothing_refers_to_it(t *testing.T) {
	d := newDevice(t)
	e := d.newEvent(t)
	require.EqualValues(t, 3, e.Kind())
	require.True(t, e.Hold())
	e.Release()
	require.NotSame(t, e, d.newEvent(t), "something refers to it")
	e.Release()
	require.False(t, e.Hold(), "it may belong to another event of the program by now")
	require.Equal(t, 1, d.events.Unused())
	require.Same(t, e, d.newEvent(t))
	require.EqualValues(t, 1, e.Count())
}

// What cannot be made has no reference and is in no cache.
func TestE3_an_event_that_the_library_refuses_is_not_kept(t *testing.T) {
	d := newDevice(t)
	e, err := d.events.New(func() (uintptr, error) { return 0, errRefused })
	require.Nil(t, e)
	require.ErrorIs(t, err, errRefused)
	require.Zero(t, d.events.Unused())
}

func TestE9_an_event_that_other_libraries_know_is_not_used_again(t *testing.T) {
	d := newDevice(t)
	known, other := d.newEvent(t), d.newEvent(t)
	known.Export()
	known.Release()
	other.Release()
	require.Equal(t, []*FenceEvent{known}, d.events.Surplus(1))
	require.Same(t, other, d.newEvent(t))
	require.Empty(t, d.events.Surplus(0))
}

// The surplus is for the library to destroy: no thread may get it as an unused one meanwhile.
func TestL2_unused_events_beyond_a_number_are_given_up(t *testing.T) {
	d := newDevice(t)
	var all []*FenceEvent
	for range 5 {
		all = append(all, d.newEvent(t))
	}
	for _, e := range all {
		e.Release()
	}
	require.Equal(t, all[2:], d.events.Surplus(2))
	require.Equal(t, 2, d.events.Unused())
}

func TestS3_a_fence_that_is_reached_makes_what_is_before_it_done(t *testing.T) {
	d := newDevice(t)
	var p, q Progress
	p.Init(&d.Device, nil)
	q.Init(&d.Device, nil)
	p.Count()
	f := NewFence(d.newEvent(t), &p, p.Count())
	done := false
	d.await = func(_ *FenceEvent, limit int64) (bool, *driver.Error) {
		require.Zero(t, limit)
		require.EqualValues(t, 1, d.inside.Load(), "the context may go away")
		return done, nil
	}
	require.False(t, f.Wait(0))
	require.Zero(t, p.Done())
	require.Zero(t, d.events.Unused())
	done = true
	require.True(t, f.Wait(0))
	require.EqualValues(t, 2, p.Done())
	require.Equal(t, 1, d.events.Unused(), "its event is free for others")
	d.await = nil // the library is not asked again
	require.True(t, f.Wait(-1))
	require.Nil(t, f.Hold())
	require.False(t, f.Drop())
	require.True(t, ReachedFence().Wait(0))
	require.Zero(t, d.inside.Load())

	d.await = func(*FenceEvent, int64) (bool, *driver.Error) { return true, nil }
	require.True(t, NewDeviceFence(d.newEvent(t), []Sequence{{&p, 5}, {&q, 7}}).Wait(0))
	require.EqualValues(t, 5, p.Done())
	require.EqualValues(t, 7, q.Done())
}

// The event of a fence is given back once, whichever threads find that it is reached.
func TestE3_the_event_of_a_fence_is_given_back_once(t *testing.T) {
	d := newDevice(t)
	for range 200 {
		f := NewFence(d.newEvent(t), nil, 0)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { assert.True(t, f.Wait(0)) })
		}
		all.Go(func() { f.Drop() })
		all.Wait()
		require.Equal(t, 1, d.events.Unused())
	}
	require.EqualValues(t, 1, d.made, "the same event each time")
}

// A stream drops the fence of its earlier work when it has later work; who waits has one of its own.
func TestS3_a_shared_fence_outlives_the_one_that_it_is_of(t *testing.T) {
	d := newDevice(t)
	f := NewFence(d.newEvent(t), nil, 0)
	shared := f.Share()
	require.True(t, f.Drop())
	require.Zero(t, d.events.Unused())
	require.Same(t, f, f.Share(), "it is reached")
	require.True(t, shared.Wait(0))
	require.Equal(t, 1, d.events.Unused())
}

func TestE3_the_event_of_a_fence_that_nobody_refers_to_is_given_back(t *testing.T) {
	d := newDevice(t)
	d.await = func(*FenceEvent, int64) (bool, *driver.Error) { return false, nil }
	NewFence(d.newEvent(t), nil, 0).Wait(0)
	require.Eventually(t, func() bool {
		runtime.GC()
		return d.events.Unused() == 1
	}, 10*time.Second, time.Millisecond)
}

func TestD6_a_fence_of_a_device_that_answers_no_more_is_reached_when_no_task_runs(t *testing.T) {
	for name, end := range map[string]func(d *fakeDevice){
		"lost":   func(d *fakeDevice) { _ = d.Lose(errRefused) },
		"ended":  func(d *fakeDevice) { d.End() },
		"closed": func(d *fakeDevice) { d.closed.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice(t)
				d.await = nil // a device that is not there any more is not asked
				f := NewFence(d.newEvent(t), nil, 0)
				require.True(t, d.BeginTask())
				end(d)
				require.False(t, f.Wait(0))
				d.EndTask()
				require.True(t, f.Wait(0))
				require.Equal(t, 1, d.events.Unused())
			})
		})
	}
}

// A query that fails does not say that the work is done.
func TestM4_a_query_that_fails_is_made_again_and_fails_the_stream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t)
		var p Progress
		p.Init(&d.Device, nil)
		f := NewFence(d.newEvent(t), &p, p.Count())
		queries := 0
		d.await = func(*FenceEvent, int64) (bool, *driver.Error) {
			if queries++; queries < 3 {
				return false, errRefused
			}
			return true, nil
		}
		require.False(t, f.Wait(0), "a look does not last")
		require.Zero(t, p.Done())
		require.True(t, f.Wait(int64(time.Second)))
		require.Equal(t, 3, queries)
		require.Equal(t, errRefused, p.Failure())
		require.False(t, d.IsLost())
	})
}

// One query that fails after a long wait says nothing about the next.
func TestD6_a_device_that_refuses_every_query_for_long_is_lost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t)
		queries := 0
		d.await = func(_ *FenceEvent, limit int64) (bool, *driver.Error) {
			if queries++; queries == 1 {
				time.Sleep(2 * refusedMost) // the wait itself
				return false, nil
			}
			return queries == 3, map[bool]*driver.Error{false: errRefused}[queries == 3]
		}
		require.True(t, NewFence(d.newEvent(t), nil, 0).Wait(-1))
		require.False(t, d.IsLost(), "one refused query")
		d.await = func(*FenceEvent, int64) (bool, *driver.Error) { return false, errRefused }
		clock := Stopwatch()
		require.True(t, NewFence(d.newEvent(t), nil, 0).Wait(-1))
		require.True(t, d.IsLost())
		require.GreaterOrEqual(t, clock(), int64(refusedMost))
		require.Equal(t, driver.DeviceLost, d.Lost().Kind)
	})
}

// The limit of a wait is one for all of its queries, and a signal between two of them ends it.
func TestP2_a_wait_whose_queries_fail_keeps_its_limit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t)
		d.await = func(*FenceEvent, int64) (bool, *driver.Error) { return false, errRefused }
		clock := Stopwatch()
		require.False(t, NewFence(d.newEvent(t), nil, 0).Wait(int64(time.Second)))
		require.InDelta(t, int64(time.Second), clock(), float64(10*time.Millisecond))
		d.pause = func() bool { return true }
		clock = Stopwatch()
		require.False(t, NewFence(d.newEvent(t), nil, 0).Wait(int64(time.Second)))
		require.Zero(t, clock(), "a signal does not end it")
	})
}

func TestE1_an_event_stands_for_its_latest_record(t *testing.T) {
	d := newDevice(t)
	var r Record
	require.Nil(t, r.Latest())
	require.True(t, r.Is(nil))
	first, second := d.newEvent(t), d.newEvent(t)
	r.Replace(first)
	require.Same(t, first, r.Latest())
	r.Replace(second)
	require.Zero(t, d.events.Unused(), "a wait still refers to the first record")
	first.Release()
	require.Equal(t, 1, d.events.Unused())
	r.Replace(nil)
	require.Equal(t, 2, d.events.Unused())
}

func TestA6_waits_are_counted_until_they_are_done(t *testing.T) {
	d := newDevice(t)
	var w Waits
	for range 3 {
		w.Add(NewFence(d.newEvent(t), nil, 0))
	}
	d.await = func(e *FenceEvent, _ int64) (bool, *driver.Error) { return e.Event == 2, nil }
	require.Equal(t, 2, w.Pending())
	require.Equal(t, 2, w.Pending())
	d.await = func(*FenceEvent, int64) (bool, *driver.Error) { return true, nil }
	require.Zero(t, w.Pending())
}
