package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
	"halstream/hal/host/sched"
)

// TestM12_work_goes_to_an_engine_that_is_about_to_look_for_it enqueues work while the only engine
// has run out of slices of a copy that a waiting thread has ended.
func TestM12_work_goes_to_an_engine_that_is_about_to_look_for_it(t *testing.T) {
	drv, err := Open(Options{Devices: 1, Engines: 4})
	require.NoError(t, err)
	defer drv.Close()
	opened, err := drv.Open(0)
	require.NoError(t, err)
	d, e := opened.(*Device), drv.eng
	made, err := d.NewStream(driver.StreamOptions{})
	require.NoError(t, err)
	s := made.(*Stream)

	e.Lock()
	d.busy, d.leaving = 1, 1
	e.Unlock()
	require.NoError(t, s.Delay(1, 0))
	require.Eventually(t, func() bool {
		e.Lock()
		defer e.Unlock()
		return s.state == sched.Running
	}, 10*time.Second, time.Millisecond)
	e.Lock()
	require.Equal(t, 1, d.busy, "engines")
	require.Len(t, d.next, 1, "the work waits for that engine")
	e.Unlock()

	ended := &copyWork{Copy: driver.Copy{Width: shareLeast, Height: 1}}
	ended.share.taken.Store(shareLeast)
	go e.work(d, nil, ended)
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	e.Lock()
	require.Zero(t, d.leaving)
	e.Unlock()
}

func TestAnEngineLooksForWorkAsLongAsItsLastWorkLetsExpect(t *testing.T) {
	for took, want := range map[int64]int64{0: lookNS, 10_000: lookNS, 60_000: 120_000, 5_000_000: lookMostNS} {
		require.Equal(t, want, lookFor(took), "after %d ns", took)
	}
}
