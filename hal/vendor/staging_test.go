package vendor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestM5_pinned_memory_is_freed_once_when_no_copy_uses_it(t *testing.T) {
	d := newDevice(t)
	reach, queries := numbered(d)
	var p Staged
	for addr := range uint64(6) {
		p.Add(NewFence(d.newEvent(t), nil, 0), addr)
	}
	var freed []uint64
	free := func(addr uint64) { freed = append(freed, addr) }
	p.Collect(math.MaxInt, free)
	require.Empty(t, freed)
	reach(4)
	*queries = 0
	p.Collect(2, free)
	require.Equal(t, 2, *queries)
	require.Equal(t, []uint64{0, 1}, freed)
	reach(6)
	p.Collect(math.MaxInt, free)
	p.Collect(math.MaxInt, free)
	require.Equal(t, []uint64{0, 1, 2, 3, 4, 5}, freed)
}

func TestM1_sizes_of_pinned_memory_are_whole_pages_and_at_most_a_quarter_more(t *testing.T) {
	for _, size := range []uint64{0, 1, leastPinned, leastPinned + 1, 1 << 20, 1<<20 + 1, 1<<30 + 12345} {
		n := PinnedSize(size)
		require.GreaterOrEqual(t, n, size)
		require.Zero(t, n%leastPinned)
		require.LessOrEqual(t, n, max(size+leastPinned, size+size/4))
		require.Equal(t, n, PinnedSize(n), "a freed block is not used again")
	}
}
