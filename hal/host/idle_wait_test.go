package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// C code knows records on streams without work, and tells the runtime of them later.
func TestG7_aWaitUnderAScheduleForARecordThatStandsForNoWork(t *testing.T) {
	for _, schedule := range []string{"fifo", "latest"} {
		rt, err := hal.OpenBackend("host", 1)
		require.NoError(t, err)
		d, err := rt.Device(0)
		require.NoError(t, err)
		require.NoError(t, rt.SetSchedule(nil, schedule, driver.Caller{}))
		me := hal.NewThread()
		e, err := rt.NewRecordedEvent(me, d, hal.EventOptions{})
		require.NoError(t, err)
		done, err := e.Synchronize(me, 0)
		require.NoError(t, err)
		require.True(t, done)
		rt.Close()
	}
}
