package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

// Each value that a stream writes is seen, also one that is overwritten at once,
// and no timer is needed for it.
func TestM19_every_value_that_a_stream_writes_is_seen(t *testing.T) {
	for _, schedule := range []string{"parallel", "fifo", "latest", "random 1"} {
		t.Run(schedule, func(t *testing.T) {
			drv, err := host.Open(host.Options{Devices: 1, Clock: &frozen{}})
			require.NoError(t, err)
			rt, err := hal.Open(drv, 1)
			require.NoError(t, err)
			defer rt.Close()
			require.NoError(t, rt.SetSchedule(nil, schedule, driver.Caller{}))
			me := hal.NewThread()
			defer me.Retire()
			d, err := rt.Device(0)
			require.NoError(t, err)
			cell, err := d.Alloc(me, 8)
			require.NoError(t, err)
			writer, err := d.NewStream(me, hal.StreamOptions{})
			require.NoError(t, err)
			require.NoError(t, writer.WriteValue(me, cell.Start, 0))
			var waiters []*hal.Stream
			for wanted := range uint64(5) {
				s, err := d.NewStream(me, hal.StreamOptions{})
				require.NoError(t, err)
				done, err := writer.Synchronize(me, driver.Forever)
				require.NoError(t, err)
				require.True(t, done)
				require.NoError(t, s.WaitValue(me, cell.Start, wanted+1, driver.Equal))
				waiters = append(waiters, s)
			}
			for value := range uint64(7) {
				require.NoError(t, writer.WriteValue(me, cell.Start, value))
			}
			for _, s := range append(waiters, writer) {
				done, err := s.Synchronize(me, 10_000_000_000)
				require.NoError(t, err)
				require.True(t, done, s.Describe())
			}
		})
	}
}
