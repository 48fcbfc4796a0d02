package vendor

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

func TestO3_what_is_known_to_be_done_only_grows(t *testing.T) {
	var p Progress
	var further atomic.Int64
	p.Init(&newDevice(t).Device, func() { further.Add(1) })
	require.Equal(t, 1, p.AtMost())
	for i := range uint64(5) {
		require.Equal(t, i+1, p.Count())
	}
	require.Equal(t, 5, p.AtMost())
	p.SetReached(3)
	p.SetReached(2)
	p.SetReached(3)
	require.EqualValues(t, 3, p.Done())
	require.EqualValues(t, 1, further.Load(), "only what is new is passed on")
	require.Equal(t, 2, p.AtMost())
	require.True(t, p.Reached(3))
	require.False(t, p.Reached(4))
	var all sync.WaitGroup
	for i := range uint64(8) {
		all.Go(func() { p.SetReached(i) })
	}
	all.Wait()
	require.EqualValues(t, 7, p.Done())
}

func TestO3_everything_on_a_device_that_is_of_no_use_counts_as_reached(t *testing.T) {
	for name, end := range map[string]func(d *fakeDevice){
		"lost":   func(d *fakeDevice) { _ = d.Lose(driver.Errorf(driver.DeviceLost, "copy", "lost")) },
		"closed": func(d *fakeDevice) { d.End() },
	} {
		t.Run(name, func(t *testing.T) {
			var p Progress
			d := newDevice(t)
			p.Init(&d.Device, nil)
			require.False(t, p.Reached(p.Count()))
			end(d)
			require.True(t, p.Reached(p.Last()))
		})
	}
}

// A wait for the host is queried before it counts as one.
func TestP2_a_stream_awaits_the_host_until_a_query_finds_the_wait_done(t *testing.T) {
	var p Progress
	p.Init(&newDevice(t).Device, nil)
	kept, queries := 0, 0
	refresh := func() { queries++ }
	require.False(t, p.AwaitsHost(refresh))
	p.AwaitsHostAt(p.Count(), func() { kept++ })
	p.AwaitsHostAt(1, func() { kept++ })
	require.Equal(t, 1, kept, "an event is recorded for each look at the same wait")
	require.True(t, p.MayAwaitHost())
	require.True(t, p.AwaitsHost(refresh))
	require.False(t, p.AwaitsHost(func() { p.SetReached(1) }))
	require.False(t, p.MayAwaitHost())
	require.Equal(t, 1, queries)
}

func TestS4_a_stream_reports_its_first_error_once(t *testing.T) {
	var p, branch Progress
	d := newDevice(t)
	for _, one := range []*Progress{&p, &branch} {
		one.Init(&d.Device, nil)
	}
	first := driver.Errorf(driver.Unknown, "copy", "first")
	branch.ReportBy(&p)
	require.True(t, branch.Fail(first))
	require.False(t, p.Fail(driver.Errorf(driver.Unknown, "copy", "second")))
	require.Nil(t, branch.Failure(), "the stream of the launch reports it")
	require.Same(t, first, p.Failure())
	require.Nil(t, p.Failure())
	_ = d.Lose(driver.Errorf(driver.DeviceLost, "fill", "lost"))
	require.ErrorContains(t, p.Failure(), "the device is lost since fill")
}

// numbered lets a fake library reach its events one after the other.
func numbered(d *fakeDevice) (reach func(e uintptr), queries *int) {
	now := uintptr(0)
	queries = new(int)
	d.await = func(e *FenceEvent, limit int64) (bool, *driver.Error) {
		*queries++
		return e.Event <= now, nil
	}
	return func(e uintptr) { now = e }, queries
}

func TestM10_cached_fences_say_which_operations_are_done(t *testing.T) {
	d := newDevice(t)
	var p Progress
	p.Init(&d.Device, nil)
	reach, queries := numbered(d)
	for range 3 {
		p.Cache(p.Count(), d.newEvent(t))
	}
	require.Nil(t, p.Cached(4))
	f := p.Cached(2)
	p.QueryCached()
	require.Zero(t, p.Done())
	require.Equal(t, 1, *queries, "what is behind a fence that is not reached is not reached either")
	reach(2)
	p.QueryCached()
	require.EqualValues(t, 2, p.Done())
	require.Equal(t, 1, d.events.Unused(), "the second event is that of a fence, too")
	require.True(t, f.Wait(0))
	require.Equal(t, 2, d.events.Unused())
	p.SetReached(3)
	*queries = 0
	p.QueryCached()
	require.Zero(t, *queries, "it is known already")
	require.Equal(t, 3, d.events.Unused())
	require.Zero(t, d.inside.Load())
}

// A refused query leaves the order as it is, and a device that was lost answers none.
func TestM10_cached_fences_are_given_up_when_the_device_is_lost(t *testing.T) {
	d := newDevice(t)
	var p Progress
	p.Init(&d.Device, nil)
	d.await = func(*FenceEvent, int64) (bool, *driver.Error) { return false, errRefused }
	p.Cache(p.Count(), d.newEvent(t))
	p.QueryCached()
	require.Zero(t, p.Done())
	d.await = func(*FenceEvent, int64) (bool, *driver.Error) {
		_ = d.Lose(errRefused)
		return false, errRefused
	}
	p.QueryCached()
	require.EqualValues(t, 1, p.Done())
	require.Equal(t, 1, d.events.Unused())
	p.Cache(p.Count(), d.newEvent(t))
	p.DropCached()
	require.Equal(t, 1, d.events.Unused())
}

// Each operation of a stream may need an event of the library, of which there are not many.
func TestM19_a_stream_that_caches_many_fences_queries_which_were_reached(t *testing.T) {
	d := newDevice(t)
	var p Progress
	p.Init(&d.Device, nil)
	reach, queries := numbered(d)
	reach(10)
	for range maxCached {
		require.False(t, p.CachesMany())
		p.Cache(p.Count(), d.newEvent(t))
	}
	require.Zero(t, *queries)
	require.True(t, p.CachesMany())
	p.Cache(p.Count(), d.newEvent(t))
	require.EqualValues(t, 10, p.Done())
	require.Equal(t, 10, d.events.Unused())
}

func TestM10_a_refresh_caches_a_fence_only_where_the_answer_needs_one(t *testing.T) {
	d := newDevice(t)
	var p Progress
	p.Init(&d.Device, nil)
	reach, _ := numbered(d)
	looks, idle, kept := 0, false, 0
	look := func() bool { looks++; return idle }
	keep := func() { kept++; p.Cache(p.Last(), d.newEvent(t)) }
	p.Refresh(look, keep)
	require.Zero(t, looks, "nobody has asked")
	require.False(t, p.Reached(p.Count()))
	p.Refresh(look, keep)
	p.Refresh(look, keep)
	require.Equal(t, 2, looks)
	require.Equal(t, 1, kept, "one behind the operation is there")
	require.False(t, p.Reached(p.Count()))
	idle = true
	p.Refresh(look, keep)
	require.Equal(t, 1, kept, "the look has answered")
	idle = false
	reach(1)
	p.Refresh(look, keep)
	require.True(t, p.Reached(1))
	require.Equal(t, 2, kept)
}
