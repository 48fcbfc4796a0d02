package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// A driver does not check handles. The look-alike counts those of nothing that is alive.
func TestL2_the_handle_of_a_destroyed_stream_is_not_passed_on(t *testing.T) {
	f, dev, other := contended(t, nil)
	handle, code := other.Made("cuStreamCreate", 1)
	require.Zero(t, code)
	theirs, err := dev.(driver.VendorDevice).External(handle)
	require.NoError(t, err)
	require.NoError(t, theirs.Nop(0))
	require.True(t, theirs.Point().Wait(int64(10*time.Second)))
	require.Zero(t, other.Call("cuStreamDestroy_v2", handle))
	require.Zero(t, f.Count("dead"))
	require.Zero(t, dev.Pending())
	require.Contains(t, dev.Describe(), "no pending work")
	require.True(t, dev.Point().Wait(int64(10*time.Second)))
	require.Contains(t, theirs.Describe(), "is idle")
	theirs.Close()
	s := newStream(t, dev, 1)
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.Zero(t, f.Count("dead"))
}

func TestD4_a_number_that_is_no_address_does_not_reach_the_driver(t *testing.T) {
	f, dev, _ := contended(t, nil)
	newStream(t, dev, 1)
	before := f.Count("cuStreamGetCtx")
	for _, number := range []uint64{3, 12345, 1<<40 + 64, 1 << 62} {
		_, err := dev.(driver.VendorDevice).External(number)
		require.ErrorContains(t, err, "no memory of the process is there")
	}
	require.Equal(t, before, f.Count("cuStreamGetCtx"))
}

func TestE9_an_event_that_other_libraries_know_is_used_for_nothing_else(t *testing.T) {
	f, dev, _ := contended(t, nil)
	s := newStream(t, dev, 1)
	for _, recorded := range []bool{true, false} {
		e, err := dev.NewEvent(driver.EventOptions{ID: 1})
		require.NoError(t, err)
		if recorded {
			require.NoError(t, s.Record(e, 0))
		}
		_, err = e.(driver.VendorEvent).Handle()
		require.NoError(t, err)
		before := f.Count("cuEventDestroy_v2")
		e.Close()
		require.Equal(t, before+1, f.Count("cuEventDestroy_v2"))
	}
}
