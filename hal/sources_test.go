package hal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// TestV42_sources_are_compared_when_the_host_begins_to_wait changes pinned memory after a
// copy of it has run.
func TestV42_sources_are_compared_when_the_host_begins_to_wait(t *testing.T) {
	rt, me, s, _ := inspected(t)
	defer rt.Listen(func(hal.Operation) {})()
	inUse, reports := true, []hal.Range(nil)
	rt.SetInspector(&hal.Inspector{
		Refilled:    func(uint32, hal.Range) {},
		InUse:       func(uint32) bool { return inUse },
		Overwritten: func(_ uint32, r hal.Range) { reports = append(reports, r) },
	})
	dev, err := rt.Device(0)
	require.NoError(t, err)
	target, err := dev.Alloc(me, 64)
	require.NoError(t, err)
	wait := func() {
		t.Helper()
		done, err := s.Synchronize(me, driver.Forever)
		require.NoError(t, err)
		require.True(t, done)
	}
	copied := func() *hal.Block {
		t.Helper()
		pinned, err := rt.AllocHost(me, 64)
		require.NoError(t, err)
		_, err = s.Copy(me, hal.CopySpec{Dst: target.Start, Src: pinned.Start, Width: 64})
		require.NoError(t, err)
		wait()
		require.Empty(t, reports, "nothing has changed")
		bytesAt(pinned.Start, 64)[63]++
		return pinned
	}

	pinned := copied()
	wait()
	require.Equal(t, []hal.Range{{Start: pinned.Start, Size: 64}}, reports)
	wait()
	require.Len(t, reports, 1, "once for each copy")

	reports = nil
	copied()
	inUse = false
	wait()
	inUse = true
	wait()
	require.Empty(t, reports, "the host had waited")

	require.NoError(t, copied().Free(me))
	wait()
	require.Empty(t, reports, "the memory was freed")

	copied()
	rt.SetInspector(nil)
	require.Len(t, reports, 1, "the end of a check compares, too")
}
