package cuda

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

func TestM1_small_blocks_are_aligned_and_apart(t *testing.T) {
	var p slabs
	next, calls := uint64(1<<40), 0
	rnd := rand.New(rand.NewPCG(1, 2))
	sizes := map[uint64]uint64{} // of the blocks in use
	var given []uint64           // slabs that were given back
	drop := func(addr uint64) {
		ours, unused := p.give(addr)
		require.True(t, ours)
		delete(sizes, addr)
		if unused != 0 {
			given = append(given, unused)
		}
	}
	for step := range 40_000 {
		if step < 20_000 || rnd.IntN(3) == 0 {
			size := 1 + rnd.Uint64N(smallMost)
			addr := p.take(size)
			if addr == 0 {
				calls++
				addr = p.add(next, size)
				next += slabSize + 3*smallLeast // slabs need not be aligned to more
			}
			require.Zero(t, addr%smallLeast)
			require.True(t, p.has(addr) && p.has(addr+size-1))
			require.Zero(t, sizes[addr], "the block is in use")
			sizes[addr] = size
			continue
		}
		for addr := range sizes {
			drop(addr)
			break
		}
	}
	starts := make([]uint64, 0, len(sizes))
	for addr := range sizes {
		starts = append(starts, addr)
	}
	slices.Sort(starts)
	used := uint64(0)
	for _, size := range sizes {
		used += smallLeast << classOf(size)
	}
	require.Equal(t, uint64(len(p.all))*slabSize-used, p.unused())
	for i := 1; i < len(starts); i++ {
		require.LessOrEqual(t, starts[i-1]+sizes[starts[i-1]], starts[i], "two blocks share a byte")
	}
	for _, addr := range starts {
		drop(addr)
	}
	require.Len(t, given, calls-1, "all slabs but one are given back")
	require.EqualValues(t, slabSize, p.unused())
	require.False(t, p.has(given[0]))
	ours, _ := p.give(given[0])
	require.False(t, ours)
	require.NotZero(t, p.reclaim())
	require.Zero(t, p.unused())
	require.Zero(t, p.reclaim())
	require.Empty(t, p.all)
	require.Empty(t, p.room)
}

func TestM1_small_blocks_of_each_size_fill_their_slab(t *testing.T) {
	for size := uint64(smallLeast); size <= smallMost; size *= 2 {
		var p slabs
		p.add(1<<40, size)
		n := uint64(1)
		for p.take(size) != 0 {
			n++
		}
		require.EqualValues(t, slabSize/size, n, "blocks of %d bytes", size)
		require.Zero(t, p.unused())
	}
}

// Streams write values into small blocks: they come from cuMemAlloc, which is called once for many of them.
func TestM19_small_blocks_are_of_no_pool(t *testing.T) {
	f, dev, s := fakeDevice(t)
	pooled, plain := f.Count("cuMemAllocFromPoolAsync"), f.Count("cuMemAlloc_v2")
	var addrs []uint64
	for range 100 {
		addr, err := dev.Alloc(8)
		require.NoError(t, err)
		require.NoError(t, s.WriteValue(driver.Value{Addr: addr, Value: 7, On: driver.OnDevice}))
		require.NoError(t, s.WaitValue(driver.Value{Addr: addr, Value: 7, Condition: driver.Equal, On: driver.OnDevice}))
		addrs = append(addrs, addr)
	}
	require.True(t, s.Point().Wait(int64(callLimit)))
	require.Equal(t, pooled, f.Count("cuMemAllocFromPoolAsync"))
	require.Equal(t, plain+1, f.Count("cuMemAlloc_v2"))
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	freed := f.Count("cuMemFree_v2")
	for _, addr := range addrs {
		dev.Free(addr)
		require.True(t, dev.Owns(addr))
		_, _, _, _, known := dev.drv.Probe(addr)
		require.False(t, known, "memory that was freed can be named")
	}
	require.Equal(t, freed, f.Count("cuMemFree_v2"), "a free of a small block calls no driver")
	gate.Open()
}

func TestM19_memory_of_the_pool_is_refused_with_what_to_do(t *testing.T) {
	f, dev, s := fakeDevice(t)
	addr, err := dev.Alloc(smallMost + 1)
	require.NoError(t, err)
	calls := f.Count("cuStreamBatchMemOp_v2")
	for _, at := range []uint64{addr, addr + smallMost - 8} {
		v := driver.Value{Addr: at, On: driver.OnDevice}
		for _, err := range []error{s.WriteValue(v), s.WaitValue(v)} {
			var e *driver.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.Equal(t, driver.InvalidValue, e.Kind)
			require.ErrorContains(t, err, "is memory of a pool")
			require.ErrorContains(t, err, "at most 4096 bytes")
			require.ErrorContains(t, err, "pinned memory")
		}
	}
	require.Equal(t, calls, f.Count("cuStreamBatchMemOp_v2"), "the driver was asked")
	dev.Free(addr)
	require.True(t, s.Point().Wait(int64(callLimit)))
}

// Which memory of other libraries can hold values the driver says.
func TestM19_what_the_driver_refuses_is_explained(t *testing.T) {
	f, dev, s := fakeDevice(t)
	addr, err := dev.Alloc(8)
	require.NoError(t, err)
	require.NoError(t, f.Control("fault cuStreamBatchMemOp_v2 +1 1"))
	err = s.WriteValue(driver.Value{Addr: addr, On: driver.OnDevice})
	require.ErrorContains(t, err, "cuStreamBatchMemOp_v2 failed with CUDA_ERROR_INVALID_VALUE")
	require.ErrorContains(t, err, "use an array of at most 4096 bytes")
	dev.Free(addr)
}

// Slabs that nothing uses go back to the driver, but for one, when no work is pending: cuMemFree waits for it.
func TestM2_unused_slabs_go_back_when_nothing_waits(t *testing.T) {
	f, dev, s := fakeDevice(t)
	slab := func() (addrs []uint64) {
		for range slabPages {
			addr, err := dev.Alloc(smallMost)
			require.NoError(t, err)
			addrs = append(addrs, addr)
		}
		return addrs
	}
	first, second := slab(), slab()
	require.NoError(t, f.Control("drain cuMemFree_v2 1"))
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	freed := f.Count("cuMemFree_v2")
	for _, addr := range append(first, second...) {
		dev.Free(addr)
	}
	require.Equal(t, freed, f.Count("cuMemFree_v2"))
	gate.Open()
	require.Eventually(t, func() bool { return dev.Pending() == 0 }, callLimit, time.Millisecond)
	dev.retryFrees(false)
	require.Equal(t, freed+1, f.Count("cuMemFree_v2"))
	require.EqualValues(t, slabSize, dev.slabs.unused())
}

// The slab that is kept is memory that a large block can have.
func TestM16_an_unused_slab_is_given_back_where_memory_is_short(t *testing.T) {
	f, dev, _ := smallDevice(t, nil)
	addr, err := dev.Alloc(8)
	require.NoError(t, err)
	dev.Free(addr)
	require.EqualValues(t, slabSize, dev.slabs.unused())
	free, _, err := dev.Info()
	require.NoError(t, err)
	freed := f.Count("cuMemFree_v2")
	addr, err = dev.Alloc(free)
	require.NoError(t, err)
	require.Equal(t, freed+1, f.Count("cuMemFree_v2"))
	// There is no room for another slab now, and the pool has none either.
	_, err = dev.Alloc(8)
	require.ErrorContains(t, err, "OUT_OF_MEMORY")
	dev.Free(addr)
}

// Where there is no room for a slab, a small block is one of the pool.
func TestM1_a_small_block_comes_from_the_pool_where_a_slab_does_not_fit(t *testing.T) {
	f, dev, _ := smallDevice(t, nil)
	free, _, err := dev.Info()
	require.NoError(t, err)
	large, err := dev.Alloc(free - slabSize/2)
	require.NoError(t, err)
	pooled := f.Count("cuMemAllocFromPoolAsync")
	addr, err := dev.Alloc(8)
	require.NoError(t, err)
	require.Equal(t, pooled+1, f.Count("cuMemAllocFromPoolAsync"))
	require.True(t, dev.pooled.Has(addr))
	dev.Free(addr)
	dev.Free(large)
	require.False(t, dev.pooled.Has(addr))
}

// The end of the backend frees the slabs, those in use too.
func TestM2_closing_frees_the_slabs(t *testing.T) {
	f := NewFake(t)
	drv, err := Open(f.Path)
	require.NoError(t, err)
	dev, err := drv.Open(0)
	require.NoError(t, err)
	_, err = dev.Alloc(8)
	require.NoError(t, err)
	freed := f.Count("cuMemFree_v2")
	drv.Close()
	require.Equal(t, freed+1, f.Count("cuMemFree_v2"))
	require.Zero(t, f.Count("live.memory"))
}
