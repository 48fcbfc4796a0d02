package hal_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// TestCanUseAcceptsRangesWithinOneBlock tries ranges inside of one block, beyond it,
// and on another device.
func TestCanUseAcceptsRangesWithinOneBlock(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer rt.Close()
	require.Greater(t, rt.Devices(), 1)
	me := hal.NewThread()
	var blocks []*hal.Block
	for ordinal := range 2 {
		dev, err := rt.Device(ordinal)
		require.NoError(t, err)
		b, err := dev.Alloc(me, 64)
		require.NoError(t, err)
		blocks = append(blocks, b)
	}
	near, far := blocks[0], blocks[1]
	pinned, err := rt.AllocHost(me, 64)
	require.NoError(t, err)
	dev, err := rt.Device(0)
	require.NoError(t, err)
	s := dev.DefaultStream()
	for _, c := range []struct {
		start, size uint64
		want        bool
	}{
		{near.Start, 64, true}, {near.Start + 60, 4, true}, {near.Start + 60, 5, false},
		{near.Start + 1, math.MaxUint64, false}, {pinned.Start + 8, 56, true}, {pinned.Start, 65, false},
		{far.Start, 64, false}, {1, 1, false}, {math.MaxUint64, 2, false},
	} {
		require.Equal(t, c.want, s.CanUse(hal.Range{Start: c.start, Size: c.size}), "%d bytes at %#x", c.size, c.start)
	}
	require.NoError(t, rt.Free(me, near.Start))
	require.False(t, s.CanUse(hal.Range{Start: near.Start, Size: 64}), "freed")
	require.NoError(t, rt.Free(me, far.Start))
	require.NoError(t, rt.FreeHost(me, pinned.Start, false))
}
