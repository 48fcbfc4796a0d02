package haltest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// small is a size that many blocks of fit into the smallest limit.
const small = 1000

var memoryCases = []testCase{
	{"M1_blocks_are_aligned_and_apart", Memory, func(k *Kit) {
		var blocks []*hal.Block
		for _, size := range []int64{1, 255, 256, 257, 4096, 100_001} {
			for ordinal := range k.Far() + 1 {
				b := k.Alloc(ordinal, size)
				require.Zero(k, b.Start%256, "%v", b)
				require.Equal(k, uint64(size), b.Size)
				for _, o := range blocks {
					require.True(k, b.Start+b.Size <= o.Start || o.Start+o.Size <= b.Start, "%v and %v", b, o)
				}
				for _, addr := range []uint64{b.Start, b.Start + b.Size - 1} {
					kind, start, n, where := k.RT.Lookup(addr)
					require.Equal(k, []any{hal.DeviceMemory, b.Start, b.Size, ordinal}, []any{kind, start, n, where})
				}
				blocks = append(blocks, b)
			}
		}
		h, _ := k.Pinned(small)
		kind, start, size, ordinal := k.RT.Lookup(h.Start + 1)
		require.Equal(k, []any{hal.Pinned, h.Start, h.Size, -1}, []any{kind, start, size, ordinal})
		addr, _ := k.Pageable(small)
		kind, _, _, _ = k.RT.Lookup(addr)
		require.Equal(k, hal.Pageable, kind)
	}},
	{"M1_sizes_are_positive", Memory, func(k *Kit) {
		d, s := k.Device(0), k.Stream(ordinary)
		for _, size := range []int64{0, -1, -1 << 63} {
			_, err := d.Alloc(k.Me, size)
			require.ErrorIs(k, err, hal.ErrInvalidValue)
			_, err = s.AllocAsync(k.Me, size)
			require.ErrorIs(k, err, hal.ErrInvalidValue)
			_, err = k.RT.AllocHost(k.Me, size)
			require.ErrorIs(k, err, hal.ErrInvalidValue)
		}
	}},
	{"M1_running_out_names_the_bytes_asked_for_and_free", Memory, func(k *Kit) {
		d := k.Device(k.Far())
		d.TrimPool(0)
		k.Alloc(k.Far(), small)
		free, total, err := d.MemoryInfo()
		require.NoError(k, err)
		require.Less(k, free, total)
		sizes := []int64{int64(total) + 1, 1<<63 - 1}
		if k.Has(Exact) {
			sizes = append(sizes, int64(free)+1)
		}
		for _, size := range sizes {
			_, err = d.Alloc(k.Me, size)
			require.ErrorIs(k, err, hal.ErrOutOfMemory)
			require.ErrorContains(k, err, fmt.Sprintf("%d bytes", size))
			if k.Has(Exact) {
				require.ErrorContains(k, err, fmt.Sprintf("%d of %d free", free, total))
			} else {
				require.ErrorContains(k, err, fmt.Sprintf("of %d free", total))
			}
		}
		_, err = k.RT.AllocHost(k.Me, 1<<62)
		require.ErrorIs(k, err, hal.ErrOutOfMemory)
		k.Alloc(k.Far(), small)
	}},
	{"M1_what_is_free_counts", Memory | Exact, func(k *Kit) {
		d := k.Device(0)
		before, total, err := d.MemoryInfo()
		require.NoError(k, err)
		b, err := d.Alloc(k.Me, 4096)
		require.NoError(k, err)
		during, same, err := d.MemoryInfo()
		require.NoError(k, err)
		require.Equal(k, total, same)
		require.Equal(k, before-4096, during)
		require.NoError(k, k.RT.Free(k.Me, b.Start))
		after, _, err := d.MemoryInfo()
		require.NoError(k, err)
		require.Equal(k, before, after)
	}},
	{"M2_freed_memory_cannot_be_named", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		b, err := k.Device(0).Alloc(k.Me, small)
		require.NoError(k, err)
		other := k.Alloc(0, small)
		live := k.RT.Blocks()
		require.NoError(k, k.RT.Free(k.Me, b.Start))
		require.Equal(k, live-1, k.RT.Blocks())
		err = k.RT.Free(k.Me, b.Start)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "freed already")
		_, err = s.Copy(k.Me, hal.CopySpec{Dst: other.Start, Src: b.Start, Width: 4})
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		_, err = s.Copy(k.Me, hal.CopySpec{Dst: b.Start, Src: other.Start, Width: 4})
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorIs(k, s.Fill(k.Me, b.Start, 0, 1, 4), hal.ErrInvalidValue)
		k.Fill(s, other, 1)
		k.Sync(s)
	}},
	{"M2_only_the_start_of_a_block_is_freed", Memory, func(k *Kit) {
		b := k.Alloc(0, small)
		h, _ := k.Pinned(small)
		foreign, _ := k.Pageable(small)
		for addr, why := range map[uint64]string{
			b.Start + 256: "lies 256 bytes inside a block",
			h.Start:       "is pinned host memory, not device memory",
			foreign:       "is not memory of this runtime",
			0:             "is not memory of this runtime",
		} {
			err := k.RT.Free(k.Me, addr)
			require.ErrorIs(k, err, hal.ErrInvalidValue)
			require.ErrorContains(k, err, why)
		}
		require.ErrorIs(k, k.RT.FreeHost(k.Me, b.Start, false), hal.ErrInvalidValue)
		require.ErrorIs(k, k.RT.FreeHost(k.Me, h.Start+256, true), hal.ErrInvalidValue)
		require.ErrorIs(k, k.RT.UnregisterHost(k.Me, h.Start), hal.ErrInvalidValue)
	}},
	{"M2_pending_work_completes_before_memory_is_used_again", Memory | Grows, func(k *Kit) {
		s, d := k.Stream(ordinary), k.Device(0)
		before, _, err := d.MemoryInfo()
		require.NoError(k, err)
		b, err := d.Alloc(k.Me, small)
		require.NoError(k, err)
		h, got := k.Pinned(small)
		hold := Hold(k, s).Started()
		k.Fill(s, b, 7)
		k.Copy(s, h.Start, b.Start, small)
		require.NoError(k, k.RT.Free(k.Me, b.Start))
		during, _, err := d.MemoryInfo()
		require.NoError(k, err)
		if k.Has(Exact) {
			require.Less(k, during, before, "it was given back under pending work")
		}
		for range 64 {
			o := k.Alloc(0, small)
			require.NotEqual(k, b.Start, o.Start, "it was given out again under pending work")
			require.NoError(k, k.RT.Free(k.Me, o.Start))
		}
		hold.Release()
		k.Sync(s)
		for _, v := range got {
			require.Equal(k, byte(7), v)
		}
		after, _, err := d.MemoryInfo()
		require.NoError(k, err)
		if k.Has(Exact) {
			require.Equal(k, before, after)
		}
	}},
	{"M26_memory_is_shared_once_nothing_works_on_its_pages", Memory | Grows, func(k *Kit) {
		s, b, beside := k.Stream(ordinary), k.Alloc(0, small), k.Alloc(0, small)
		host, _ := k.Pinned(small)
		hold := Hold(k, s).Started()
		k.Fill(s, b, 7)
		point, err := k.RT.SharePoint(k.Me, b.Start+1)
		if k.RT.Name() != "host" || runtime.GOOS != "linux" {
			require.ErrorIs(k, err, hal.ErrNotSupported)
			hold.Release()
			return
		}
		require.NoError(k, err)
		require.False(k, point.Wait(0))
		_, err = k.RT.ShareMemory(k.Me, b.Start)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "pending work uses the memory")
		hold.Release()
		k.Reached(point)
		handle, err := k.RT.ShareMemory(k.Me, b.Start)
		require.NoError(k, err)
		again, err := k.RT.ShareMemory(k.Me, b.Start+small/2)
		require.NoError(k, err)
		require.Equal(k, handle, again)
		require.Equal(k, byte(7), k.Read(b)[small-1])
		k.Fill(s, b, 8)
		k.Fill(s, beside, 9)
		k.Sync(s)
		require.Equal(k, byte(8), k.Read(b)[0])
		require.Equal(k, byte(9), k.Read(beside)[0])
		_, err = k.RT.ShareMemory(k.Me, host.Start)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
	}},
	{"M26_a_process_opens_no_memory_of_its_own_and_no_broken_handle", Memory | Grows, func(k *Kit) {
		if k.RT.Name() != "host" || runtime.GOOS != "linux" {
			_, err := k.RT.ShareMemory(k.Me, k.Alloc(0, small).Start)
			require.ErrorIs(k, err, hal.ErrNotSupported)
			return
		}
		own, err := k.RT.ShareMemory(k.Me, k.Alloc(0, small).Start)
		require.NoError(k, err)
		_, err = k.RT.OpenMemory(k.Me, own)
		require.ErrorIs(k, err, hal.ErrWrongContext)
		_, err = k.RT.OpenMemory(k.Me, hal.ShareHandle{})
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		for i := 8; i < len(own); i++ { // whatever is damaged behind the mark
			bad := own
			bad[i] ^= 0xff
			_, err = k.RT.OpenMemory(k.Me, bad)
			require.Error(k, err)
		}
		_, err = k.RT.CloseMemory(k.Me, k.Alloc(0, small).Start)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "not memory of another process")
	}},
	{"P2_a_free_does_not_stop_its_caller_while_a_stream_is_held", Memory | Grows, func(k *Kit) {
		s, unused := k.Stream(ordinary), k.Alloc(0, small)
		hold := Hold(k, s).Started() // and only this thread releases it
		require.NoError(k, k.RT.Free(k.Me, unused.Start))
		hold.Release()
		k.Sync(s)
	}},
	{"M2_running_out_says_what_pending_work_keeps", Memory | Grows, func(k *Kit) {
		s, d := k.StreamOn(k.Far(), ordinary), k.Device(k.Far())
		d.TrimPool(0)
		free, _, err := d.MemoryInfo()
		require.NoError(k, err)
		b, err := d.Alloc(k.Me, int64(free/2))
		require.NoError(k, err)
		hold := Hold(k, s).Started()
		require.NoError(k, s.Fill(k.Me, b.Start, 0, 1, 16))
		require.NoError(k, k.RT.Free(k.Me, b.Start))
		_, err = d.Alloc(k.Me, int64(free/4*3))
		require.ErrorIs(k, err, hal.ErrOutOfMemory)
		require.ErrorContains(k, err, fmt.Sprintf("%d bytes that were freed are still in use", free/2))
		hold.Release()
		k.Sync(s)
		k.Alloc(k.Far(), int64(free/4*3))
	}},
	{"M2_many_frees_under_pending_work_all_come_back", Memory | Exact, func(k *Kit) {
		s, d := k.Stream(ordinary), k.Device(0)
		before, _, err := d.MemoryInfo()
		require.NoError(k, err)
		hold := Hold(k, s).Started()
		for range 500 {
			b, err := d.Alloc(k.Me, 256)
			require.NoError(k, err)
			k.Fill(s, b, 1)
			require.NoError(k, k.RT.Free(k.Me, b.Start))
		}
		hold.Release()
		k.Sync(s)
		after, _, err := d.MemoryInfo()
		require.NoError(k, err)
		require.Equal(k, before, after)
	}},
	{"M2_free_against_copies_of_other_threads", Memory, func(k *Kit) {
		rounds := 300
		if testing.Short() {
			rounds = 50
		}
		var group sync.WaitGroup
		for worker := range 8 {
			ordinal := worker % (k.Far() + 1)
			s := k.StreamOn(ordinal, ordinary)
			group.Go(func() {
				me := hal.NewThread()
				d, err := k.RT.Device(ordinal)
				assert.NoError(k, err)
				for i := range rounds {
					a, err := d.Alloc(me, 2048)
					if !assert.NoError(k, err) {
						return
					}
					b, err := s.AllocAsync(me, 2048)
					if !assert.NoError(k, err) {
						return
					}
					assert.NoError(k, s.Fill(me, a.Start, uint32(worker), 1, 2048))
					_, err = s.Copy(me, hal.CopySpec{Dst: b.Start, Src: a.Start, Width: 2048})
					assert.NoError(k, err)
					assert.NoError(k, k.RT.Free(me, a.Start))
					var value [1]byte
					if i%16 == 0 {
						h, err := k.RT.AllocHost(me, 256)
						if !assert.NoError(k, err) {
							return
						}
						_, err = s.Copy(me, hal.CopySpec{Dst: h.Start, Src: b.Start + 2047, Width: 1})
						assert.NoError(k, err)
						_, err = s.Synchronize(me, int64(Limit))
						assert.NoError(k, err)
						value[0] = at(h.Start, 1)[0]
						assert.Equal(k, byte(worker), value[0], "memory was given out while a copy worked on it")
						assert.NoError(k, k.RT.FreeHost(me, h.Start, false))
					}
					assert.NoError(k, s.FreeAsync(me, b.Start))
				}
				_, err = s.Synchronize(me, int64(Limit))
				assert.NoError(k, err)
			})
		}
		group.Wait()
	}},
	{"M10_pinned_memory_in_use_cannot_be_freed", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, small)
		h, bytes := k.Pinned(small)
		copy(bytes, pattern(small, 3))
		hold := Hold(k, s).Started()
		k.Copy(s, b.Start, h.Start, small)
		err := k.RT.FreeHost(k.Me, h.Start, false)
		require.ErrorIs(k, err, hal.ErrNotReady)
		require.ErrorContains(k, err, "a copy")
		require.ErrorContains(k, err, fmt.Sprintf("stream %d of device 0", s.Index()))
		hold.Release()
		k.Sync(s)
		require.NoError(k, k.RT.FreeHost(k.Me, h.Start, false))
		require.ErrorIs(k, k.RT.FreeHost(k.Me, h.Start, false), hal.ErrInvalidValue)
		require.Equal(k, pattern(small, 3), k.Read(b))
	}},
	{"M10_a_fill_is_named_and_force_waits", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		h, _ := k.Pinned(small)
		hold := Hold(k, s).Started()
		k.Fill(s, h, 1)
		err := k.RT.FreeHost(k.Me, h.Start, false)
		require.ErrorIs(k, err, hal.ErrNotReady)
		require.ErrorContains(k, err, "a fill")
		require.NoError(k, k.RT.FreeHost(k.Me, h.Start, true))
		other, _ := k.Pinned(small)
		require.NotEqual(k, h.Start, other.Start, "it was given out again under pending work")
		hold.Release()
		k.Sync(s)
	}},
	{"M10_refused_copies_do_not_hold_memory", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		h, _ := k.Pinned(small)
		hold := Hold(k, s).Started()
		_, err := s.Copy(k.Me, hal.CopySpec{Dst: h.Start, Src: 4096, Width: 16})
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.NoError(k, k.RT.FreeHost(k.Me, h.Start, false))
		hold.Release()
	}},
	{"M10_registered_memory_is_pinned", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		addr, bytes := k.Pageable(1 << 17)
		b := k.Alloc(0, 1<<17)
		require.NoError(k, k.RT.RegisterHost(k.Me, addr, 1<<17))
		for _, r := range [][2]uint64{{addr, 1 << 17}, {addr + 16, 16}, {addr + 1<<17 - 1, 2}} {
			require.ErrorIs(k, k.RT.RegisterHost(k.Me, r[0], int64(r[1])), hal.ErrInvalidValue, "twice")
		}
		hold := Hold(k, s).Started()
		k.Copy(s, b.Start, addr, 1<<17)
		err := k.RT.UnregisterHost(k.Me, addr)
		require.ErrorIs(k, err, hal.ErrNotReady)
		require.ErrorContains(k, err, "a copy")
		require.ErrorIs(k, k.RT.FreeHost(k.Me, addr, false), hal.ErrInvalidValue, "it is the program's")
		copy(bytes, pattern(1<<17, 5))
		hold.Release()
		k.Sync(s)
		require.Equal(k, pattern(1<<17, 5), k.Read(b), "it is read when the stream gets there")
		require.NoError(k, k.RT.UnregisterHost(k.Me, addr))
		require.ErrorIs(k, k.RT.UnregisterHost(k.Me, addr), hal.ErrInvalidValue)
		kind, _, _, _ := k.RT.Lookup(addr)
		require.Equal(k, hal.Pageable, kind)
	}},
	{"M10_what_cannot_be_registered", Memory, func(k *Kit) {
		b := k.Alloc(0, small)
		h, _ := k.Pinned(small)
		addr, _ := k.Pageable(small)
		for _, r := range []struct {
			addr uint64
			size int64
		}{{0, 16}, {4096, 16}, {addr, 0}, {addr, -1}, {addr, 1<<63 - 1}, {b.Start, 16}, {b.Start + 4096, 16}, {h.Start, small}} {
			require.ErrorIs(k, k.RT.RegisterHost(k.Me, r.addr, r.size), hal.ErrInvalidValue, "%#x %d", r.addr, r.size)
		}
	}},
}
