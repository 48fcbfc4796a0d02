package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// openUnder returns a runtime of its own under a schedule, and its one device.
func openUnder(t *testing.T, schedule string) (*hal.Runtime, *hal.Device, *hal.Thread) {
	t.Helper()
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	d, err := rt.Device(0)
	require.NoError(t, err)
	require.NoError(t, rt.SetSchedule(nil, schedule, driver.Caller{}))
	return rt, d, hal.NewThread()
}

// C code knows records on streams without work, and tells the runtime of them later.
func TestG7_aWaitUnderAScheduleForARecordThatStandsForNoWork(t *testing.T) {
	for _, schedule := range []string{"fifo", "latest"} {
		rt, d, me := openUnder(t, schedule)
		e, err := rt.NewRecordedEvent(me, d, hal.EventOptions{})
		require.NoError(t, err)
		done, err := e.Synchronize(me, 0)
		require.NoError(t, err)
		require.True(t, done)
		rt.Close()
	}
}

// A program that only asks leaves the device no quiet moment, in which it would move by itself.
func TestG7_aLaunchRunsForQueriesOfItsRecordUnderASchedule(t *testing.T) {
	for _, schedule := range []string{"fifo", "latest", "random 3", "starve 1"} {
		rt, d, me := openUnder(t, schedule)
		s, err := d.NewStream(me, hal.StreamOptions{})
		require.NoError(t, err)
		e, err := rt.NewEvent(me, d, hal.EventOptions{})
		require.NoError(t, err)
		require.NoError(t, s.BeginCapture(me, hal.GlobalMode))
		require.NoError(t, s.RecordExternal(me, e))
		g, err := s.EndCapture(me)
		require.NoError(t, err)
		x, err := g.Instantiate(me)
		require.NoError(t, err)
		require.NoError(t, x.Launch(me, s))
		done := false
		for asked := 0; !done && asked < 1000; asked++ {
			done, err = e.Query(me)
			require.NoError(t, err)
		}
		require.True(t, done, schedule)
		require.NoError(t, x.Close(me))
		require.NoError(t, g.Close(me))
		rt.Close()
	}
}
