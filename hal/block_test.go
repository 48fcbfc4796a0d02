package hal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// oneDevice returns a runtime with one host device, which is closed with the test, a thread, and the device.
func oneDevice(t *testing.T) (*hal.Runtime, *hal.Thread, *hal.Device) {
	t.Helper()
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	dev, err := rt.Device(0)
	require.NoError(t, err)
	return rt, hal.NewThread(), dev
}

// TestWorkPendingOnMemoryCanBeWaitedFor is about the waits for one block: by
// the host up to its last use, and by another stream.
func TestWorkPendingOnMemoryCanBeWaitedFor(t *testing.T) {
	rt, thread, dev := oneDevice(t)
	newStream := func() *hal.Stream {
		s, err := dev.NewStream(thread, hal.StreamOptions{NonBlocking: true})
		require.NoError(t, err)
		return s
	}
	s, other := newStream(), newStream()
	b, err := dev.Alloc(thread, 64)
	require.NoError(t, err)

	p, err := rt.MemoryPoint(thread, b.Start)
	require.NoError(t, err)
	require.Nil(t, p, "nothing is pending")
	require.Empty(t, rt.MemoryUsers(1), "unknown memory has no users")

	before, err := s.Gate(thread)
	require.NoError(t, err)
	require.NoError(t, s.Fill(thread, b.Start, 1, 4, 16))
	after, err := s.Gate(thread)
	require.NoError(t, err)
	require.Equal(t, []*hal.Stream{s}, rt.MemoryUsers(b.Start+8))
	p, err = rt.MemoryPoint(thread, b.Start)
	require.NoError(t, err)
	require.False(t, p.Wait(0))
	require.False(t, p.Wait(1000))

	require.NoError(t, s.WaitMemory(thread, b.Start), "a stream does not wait for itself")
	require.NoError(t, other.WaitMemory(thread, b.Start))
	done, err := other.Query(thread)
	require.NoError(t, err)
	require.False(t, done)

	before.Open()
	require.True(t, p.Wait(driver.Forever), "work behind the use does not count")
	require.Empty(t, rt.MemoryUsers(b.Start))
	after.Open()
	for _, x := range []*hal.Stream{s, other} {
		done, err := x.Synchronize(thread, driver.Forever)
		require.NoError(t, err)
		require.True(t, done)
		require.NoError(t, x.Close(thread))
	}
	require.NoError(t, rt.Free(thread, b.Start))
}

// Checks see the owners of memory in their order.
func TestO5_listeners_learn_of_a_free_before_its_memory_is_given_out_again(t *testing.T) {
	rt, thread, dev := oneDevice(t)
	b, err := dev.Alloc(thread, 1<<20)
	require.NoError(t, err)
	before, _, err := dev.MemoryInfo()
	require.NoError(t, err)
	var during []uint64
	defer rt.Listen(func(o hal.Operation) {
		if o.Kind == hal.OpFreeMemory {
			left, _, err := dev.MemoryInfo()
			require.NoError(t, err)
			during = append(during, left)
		}
	})()
	require.NoError(t, rt.FreeNoWait(thread, b.Start))
	require.Equal(t, []uint64{before}, during)
	after, _, err := dev.MemoryInfo()
	require.NoError(t, err)
	require.Greater(t, after, before)
}

// Launches are given a list of all memory, which is made again only when memory has changed.
func TestK3_the_list_of_memory_stays_until_memory_changes(t *testing.T) {
	rt, me, dev := oneDevice(t)
	first, err := dev.Alloc(me, 100)
	require.NoError(t, err)
	list := rt.Extents()
	require.Contains(t, list, driver.Extent{Start: first.Start, End: first.Start + first.Size})
	require.Same(t, &list[0], &rt.Extents()[0])
	second, err := dev.Alloc(me, 100)
	require.NoError(t, err)
	require.Len(t, rt.Extents(), len(list)+1)
	require.NoError(t, rt.Free(me, second.Start))
	require.Equal(t, list, rt.Extents())
}
