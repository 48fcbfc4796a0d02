package haltest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// shareMemory shares a range and ends the share with the test.
func shareMemory(k *Kit, addr, size uint64) *hal.Share {
	k.T.Helper()
	s, err := k.RT.ShareHost(k.Me, addr, size)
	require.NoError(k, err)
	require.NotNil(k, s)
	k.T.Cleanup(func() { s.End(k.Me) })
	return s
}

// memoryKind returns the kind of memory at an address.
func memoryKind(k *Kit, addr uint64) hal.MemoryKind {
	kind, _, _, _ := k.RT.Lookup(addr)
	return kind
}

// sharedCases are about host memory that other libraries share with the runtime.
var sharedCases = []testCase{
	{"M21_memory_is_registered_until_its_last_share_ends", Memory, func(k *Kit) {
		addr, _ := k.Pageable(4096)
		whole, part := shareMemory(k, addr, 4096), shareMemory(k, addr+64, 64)
		whole.End(k.Me)
		whole.End(k.Me)
		require.Equal(k, hal.Pinned, memoryKind(k, addr), "one end of a share counted twice")
		part.End(k.Me)
		require.Equal(k, hal.Pageable, memoryKind(k, addr))
		shareMemory(k, addr+64, 64).End(k.Me)
	}},
	{"M21_the_program_unregisters_only_what_it_registered", Memory, func(k *Kit) {
		addr, _ := k.Pageable(4096)
		s := shareMemory(k, addr, 4096)
		err := k.RT.UnregisterHost(k.Me, addr)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "is shared host memory, not memory that the program registered")
		require.ErrorIs(k, k.RT.RegisterHost(k.Me, addr, 64), hal.ErrInvalidValue, "another range")

		require.NoError(k, k.RT.RegisterHost(k.Me, addr, 4096))
		require.ErrorIs(k, k.RT.RegisterHost(k.Me, addr, 4096), hal.ErrInvalidValue, "twice")
		require.NoError(k, k.RT.UnregisterHost(k.Me, addr))
		require.Equal(k, hal.Pinned, memoryKind(k, addr), "the other library's share has not ended")
		require.ErrorIs(k, k.RT.UnregisterHost(k.Me, addr), hal.ErrInvalidValue)
		s.End(k.Me)
		require.Equal(k, hal.Pageable, memoryKind(k, addr))
	}},
	{"M21_what_the_program_registered_outlives_its_shares", Memory, func(k *Kit) {
		addr, _ := k.Pageable(4096)
		require.NoError(k, k.RT.RegisterHost(k.Me, addr, 4096))
		shareMemory(k, addr+64, 64).End(k.Me)
		require.Equal(k, hal.Pinned, memoryKind(k, addr))
		require.NoError(k, k.RT.UnregisterHost(k.Me, addr))
		require.Equal(k, hal.Pageable, memoryKind(k, addr))
	}},
	{"M21_ranges_that_overlap_a_block_are_refused", Memory, func(k *Kit) {
		addr, _ := k.Pageable(4096)
		shareMemory(k, addr+64, 64)
		for _, r := range [][2]uint64{{addr, 65}, {addr + 127, 2}, {addr, 4096}, {addr + 64, 65}} {
			_, err := k.RT.ShareHost(k.Me, r[0], r[1])
			require.ErrorIs(k, err, hal.ErrInvalidValue)
			require.ErrorContains(k, err, "overlap shared host memory, 64 bytes at")
		}
		for _, r := range [][2]uint64{{addr, 0}, {0, 16}, {4096, 16}, {addr, -addr + 1}, {addr + 64, 1<<64 - 1}} {
			_, err := k.RT.ShareHost(k.Me, r[0], r[1])
			require.ErrorIs(k, err, hal.ErrInvalidValue, "%#x %d", r[0], r[1])
		}
	}},
	{"M21_memory_of_the_runtime_needs_no_share", Memory, func(k *Kit) {
		h, _ := k.Pinned(small)
		for _, b := range []*hal.Block{k.Alloc(0, small), h} {
			s, err := k.RT.ShareHost(k.Me, b.Start+16, 16)
			require.NoError(k, err)
			require.Nil(k, s)
		}
	}},
	{"M21_pending_work_completes_before_shared_memory_is_unregistered", Memory, func(k *Kit) {
		st := k.Stream(ordinary)
		b := k.Alloc(0, 1<<17)
		addr, bytes := k.Pageable(1 << 17)
		s := shareMemory(k, addr, 1<<17)
		hold := Hold(k, st).Started()
		k.Copy(st, b.Start, addr, 1<<17)
		s.End(k.Me)
		copy(bytes, pattern(1<<17, 5))
		hold.Release()
		k.Sync(st)
		require.Equal(k, pattern(1<<17, 5), k.Read(b))
	}},
	{"M21_threads_share_the_same_memory", Memory | Exact, func(k *Kit) {
		addr, _ := k.Pageable(4096)
		inThreads(4, func(thread int) {
			me := hal.NewThread()
			for range 200 {
				s, err := k.RT.ShareHost(me, addr, 4096)
				if !assert.NoError(k, err) {
					return
				}
				assert.Equal(k, hal.Pinned, memoryKind(k, addr))
				s.End(me)
			}
		})
		require.Equal(k, hal.Pageable, memoryKind(k, addr))
	}},
}
