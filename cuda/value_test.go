package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"halstream/hal"
	"halstream/hal/driver"
)

func TestM19_a_driver_without_memory_operations_says_so(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Setenv("FAKECUDA_MEMOPS", "0")
	rt, err := open(fake(t).Path)()
	require.NoError(t, err)
	defer rt.Close()
	me := hal.NewThread()
	defer me.Retire()
	d, err := rt.Device(0)
	require.NoError(t, err)
	b, err := d.Alloc(me, 8)
	require.NoError(t, err)
	s, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	for _, err := range []error{
		s.WriteValue(me, b.Start, 1), s.WaitValue(me, b.Start, 1, driver.Equal), s.WaitValue(me, b.Start, 1, driver.MissingBit),
	} {
		require.ErrorIs(t, err, hal.ErrNotSupported)
	}
	done, err := s.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
}
