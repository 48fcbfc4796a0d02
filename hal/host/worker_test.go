package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// TestM12_the_work_of_one_stream_needs_one_worker has work of the stream wait for the worker that runs the work before it.
func TestM12_the_work_of_one_stream_needs_one_worker(t *testing.T) {
	drv, err := Open(Options{Devices: 1, Engines: 4})
	require.NoError(t, err)
	defer drv.Close()
	opened, err := drv.Open(0)
	require.NoError(t, err)
	d, e := opened.(*Device), drv.eng
	s, err := d.NewStream(driver.StreamOptions{})
	require.NoError(t, err)
	for range 2 {
		for range 100 {
			require.NoError(t, s.Delay(1, 0))
		}
		require.True(t, s.Point().Wait(int64(10*time.Second)))
	}
	e.Lock()
	defer e.Unlock()
	require.LessOrEqual(t, d.busy+len(d.idle), 1, "workers")
}
