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
