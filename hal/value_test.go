package hal_test

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// What a test waits for operations that have to end.
const ends = int64(20 * time.Second)

func TestM19_values_of_32_bits_leave_the_bits_beside_them(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer rt.Close()
	d, err := rt.Device(0)
	require.NoError(t, err)
	me := hal.NewThread()
	b, err := rt.AllocHost(me, 8)
	require.NoError(t, err)
	words := unsafe.Slice((*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&b.Start))), 2)
	atomic.StoreUint32(&words[0], 7)
	s, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, s.WriteValue32(me, b.Start+4, 1<<31))
	done, err := s.Synchronize(me, ends)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, []uint32{7, 1 << 31}, words)
	require.ErrorIs(t, s.WaitValue32(me, b.Start+2, 0, driver.Equal), hal.ErrInvalidValue)
	for _, one := range []struct {
		condition             driver.Condition
		wanted, before, after uint32
	}{
		{driver.AtLeast, 5, 4, 6},
		{driver.AtLeast, 2, 1<<32 - 1, 3}, // a counter that wrapped around
		{driver.Equal, 5, 6, 5},
		{driver.AnyBit, 6, 9, 2},
		{driver.MissingBit, 1, 1<<32 - 2, 1<<32 - 4},
	} {
		atomic.StoreUint32(&words[0], one.before)
		require.NoError(t, s.WaitValue32(me, b.Start, one.wanted, one.condition))
		done, err = s.Synchronize(me, int64(20*time.Millisecond))
		require.NoError(t, err)
		require.False(t, done, one.condition.String())
		atomic.StoreUint32(&words[0], one.after)
		done, err = s.Synchronize(me, ends)
		require.NoError(t, err)
		require.True(t, done, one.condition.String())
	}
}
