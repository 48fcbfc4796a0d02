package host

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"halstream/hal/driver"
)

// extent is a range of a region that is free.
type extent struct{ start, size uint64 }

// extents returns the free ranges of a region by address.
func extents(r *region) (list []extent) {
	for c := range r.free.All() {
		list = append(list, extent{c.Start, c.Size})
	}
	slices.SortFunc(list, func(a, b extent) int { return cmp.Compare(a.start, b.start) })
	return list
}

type piece struct{ addr, size, room uint64 }

func outOfMemory(err error) bool {
	e, ok := err.(*driver.Error)
	return ok && e.Kind == driver.OutOfMemory
}

func TestRegionsHandOutRangesThatNeverOverlap(t *testing.T) {
	const limit = 1 << 20
	rapid.Check(t, func(t *rapid.T) {
		r := newRegion("test memory", limit)
		defer r.unmap()
		var live []piece
		var used uint64
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(live) > 0 && rapid.IntRange(0, 2).Draw(t, "free") == 0 {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				r.release(live[i].addr)
				used -= live[i].room
				live = slices.Delete(live, i, i+1)
			} else {
				size := rapid.OneOf(rapid.Uint64Range(1, 2000), rapid.Uint64Range(1, limit)).Draw(t, "size")
				need := (size + align - 1) &^ (align - 1)
				addr, err := r.alloc(size)
				if err != nil {
					require.True(t, outOfMemory(err))
					require.ErrorContains(t, err, fmt.Sprintf("%d bytes", size))
					require.ErrorContains(t, err, fmt.Sprintf("%d of %d free", limit-used, uint64(limit)))
					largest := uint64(0)
					for _, e := range extents(r) {
						largest = max(largest, e.size)
					}
					require.Less(t, largest, need, "there was room")
					continue
				}
				require.Zero(t, addr%align)
				require.True(t, r.owns(addr) && r.owns(addr+size-1))
				for _, p := range live {
					require.True(t, addr+need <= p.addr || p.addr+p.room <= addr, "ranges overlap")
				}
				live = append(live, piece{addr, size, need})
				used += need
			}
			free, total := r.info()
			require.Equal(t, []uint64{limit - used, limit}, []uint64{free, total})
			var sum uint64
			ranges := extents(r)
			for i, e := range ranges {
				sum += e.size
				require.NotZero(t, e.size)
				if i > 0 {
					require.Less(t, ranges[i-1].start+ranges[i-1].size, e.start, "neighbours were not joined")
				}
			}
			if r.bytes != nil {
				require.Equal(t, limit-used, sum)
			}
		}
		for _, p := range live {
			r.release(p.addr)
		}
		if r.bytes != nil {
			require.Equal(t, []extent{{r.base, limit}}, extents(r), "one piece is left")
		}
	})
}

func TestRegionsOfTwoDevicesAreApart(t *testing.T) {
	a, b := newRegion("a", 1<<20), newRegion("b", 1<<20)
	defer a.unmap()
	defer b.unmap()
	x, err := a.alloc(100)
	require.NoError(t, err)
	y, err := b.alloc(100)
	require.NoError(t, err)
	require.True(t, a.owns(x) && !a.owns(y) && b.owns(y) && !b.owns(x))
	require.False(t, a.owns(a.base+a.limit))
	own := 0
	require.False(t, a.owns(uint64(uintptr(unsafe.Pointer(&own)))))
}

func TestFreedPagesGoBackAndComeZeroed(t *testing.T) {
	r := newRegion("test memory", 16<<20)
	defer r.unmap()
	addr, err := r.alloc(4 << 20)
	require.NoError(t, err)
	bytes := r.bytes[addr-r.base:][:4<<20]
	bytes[0], bytes[len(bytes)-1] = 1, 1
	neighbour, err := r.alloc(256)
	require.NoError(t, err)
	r.bytes[neighbour-r.base] = 7
	r.release(addr)
	require.Zero(t, bytes[0])
	require.Zero(t, bytes[len(bytes)-1])
	require.EqualValues(t, 7, r.bytes[neighbour-r.base], "a page of a live block was given back")
}

func TestRegionsServeManyThreads(t *testing.T) {
	r := newRegion("test memory", 64<<20)
	defer r.unmap()
	var group sync.WaitGroup
	wrong := make(chan string, 8)
	for worker := range 8 {
		group.Go(func() {
			mark := byte(worker + 1)
			for i := range 400 {
				size := uint64(256)
				if i%8 == 0 {
					size = backAt // which is given back to the system
				}
				addr, err := r.alloc(size)
				if err != nil {
					wrong <- err.Error()
					return
				}
				mine := r.bytes[addr-r.base:][:size]
				mine[0], mine[size-1] = mark, mark
				if mine[0] != mark || mine[size-1] != mark {
					wrong <- "another thread's block"
					return
				}
				r.release(addr)
			}
		})
	}
	group.Wait()
	close(wrong)
	for text := range wrong {
		t.Error(text)
	}
	require.Equal(t, []extent{{r.base, r.limit}}, extents(r))
}

// hold returns a region of which so many blocks are held, each behind a free one.
func hold(t testing.TB, held int) *region {
	r := newRegion("test memory", 64<<30)
	t.Cleanup(r.unmap)
	var back []uint64
	for i := range held {
		addr, err := r.alloc(align * uint64(1+i%1000))
		require.NoError(t, err)
		back = append(back, addr)
		_, err = r.alloc(align)
		require.NoError(t, err)
	}
	for _, addr := range back {
		r.release(addr)
	}
	return r
}

func TestAllocationLooksAtFewOfManyBlocks(t *testing.T) {
	for _, held := range []int{100, 10_000, 100_000} {
		r := hold(t, held)
		require.Equal(t, held+1, r.free.Len())
		// A tree that is balanced at random is hardly ever deeper than three times
		// the logarithm of what it holds, and never four times in a lifetime.
		most := 4 * bits.Len(uint(held))
		require.LessOrEqual(t, r.free.Depth(), most, "%d blocks", held)
	}
}

func BenchmarkAllocate(b *testing.B) {
	for _, held := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			r := hold(b, held)
			i := uint64(0)
			for b.Loop() {
				i++
				addr, err := r.alloc(align * (1 + i%1000))
				if err != nil {
					b.Fatal(err)
				}
				r.release(addr)
			}
		})
	}
}

func TestTheMemoryLimitIsChecked(t *testing.T) {
	for _, bad := range []string{"0", "-1", "x", "1e9", "65535", "1GB", "99999999999999999999", "70368744177664"} {
		t.Setenv("HALSTREAM_HOST_MEMORY", bad)
		_, err := Open(Options{})
		require.ErrorContains(t, err, "HALSTREAM_HOST_MEMORY", bad)
		require.ErrorContains(t, err, bad)
	}
	t.Setenv("HALSTREAM_HOST_MEMORY", "1000000")
	d, err := Open(Options{})
	require.NoError(t, err)
	defer d.Close()
	dev, err := d.Open(0)
	require.NoError(t, err)
	_, total, err := dev.Info()
	require.NoError(t, err)
	require.EqualValues(t, 1000000&^0xffff, total)
	_, err = dev.Alloc(1 << 20)
	require.ErrorContains(t, err, "HALSTREAM_HOST_MEMORY")
}

func TestAddressSpaceThatTheSystemRefusesIsNamed(t *testing.T) {
	r := newRegion("test memory", 1<<60)
	_, err := r.alloc(1)
	require.True(t, outOfMemory(err))
	require.ErrorContains(t, err, "HALSTREAM_HOST_MEMORY")
	require.False(t, r.owns(1<<20))
}
