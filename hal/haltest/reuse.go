package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var reuseCases = []testCase{
	{"M22_dropped_memory_goes_back_at_once_where_the_program_is_checked", Memory | Grows, func(k *Kit) {
		d := emptyPool(k, 0)
		own, side := k.Stream(ordinary), k.Stream(ordinary)
		h, _ := k.Pinned(small)
		reused := func(checked bool) bool {
			k.RT.SetStrictReuse(checked)
			defer k.RT.SetStrictReuse(false)
			a, err := own.AllocReusable(k.Me, small, nil)
			require.NoError(k, err)
			k.Sync(own)
			hold := Hold(k, side).Started()
			k.Copy(side, h.Start, a.Start, small)
			start := a.Start
			require.NoError(k, a.Release(k.Me))
			b, err := own.AllocReusable(k.Me, small, nil)
			require.NoError(k, err)
			hold.Release()
			k.Sync(side)
			require.NoError(k, b.Release(k.Me))
			require.True(k, d.DeferredPoint() == nil || d.DeferredPoint().Wait(int64(Limit)))
			d.Reclaim()
			return b.Start == start
		}
		require.True(k, reused(true))
		require.Equal(k, k.RT.Deterministic(), reused(false), "the copy may read it still")
	}},
	{"M25_memory_of_a_caching_allocator_stays_with_its_stream", Memory, func(k *Kit) {
		d := emptyPool(k, 0)
		own, other := k.Stream(ordinary), k.Stream(ordinary)
		take := func(s *hal.Stream) *hal.Block {
			b, err := s.AllocCached(k.Me, small, nil)
			require.NoError(k, err)
			return b
		}
		a := take(own)
		start := a.Start
		require.NoError(k, a.Release(k.Me))
		k.Sync(own)
		d.Reclaim()
		b := take(other)
		require.NotEqual(k, start, b.Start, "the other stream is not ordered behind the free")
		c := take(own)
		require.Equal(k, start, c.Start)
		require.NoError(k, b.Release(k.Me))
		require.NoError(k, c.Release(k.Me))
		k.Sync(own)
		k.Sync(other)
		d.TrimPool(0)
		require.Zero(k, d.PoolStats().Reserved)
		a, b = take(own), take(own)
		start = a.Start
		require.NoError(k, a.Release(k.Me))
		k.Sync(own)
		require.NoError(k, own.Close(k.Me))
		d.Reclaim()
		c = take(other)
		require.NotEqual(k, start, c.Start, "a segment has parts of one stream only")
		require.NoError(k, b.Release(k.Me))
		require.NoError(k, c.Release(k.Me))
		k.Sync(other)
		d.TrimPool(0)
		require.Zero(k, d.PoolStats().Reserved)
	}},
	{"M25_a_segment_of_a_closed_stream_is_another_stream_s_as_a_whole", Memory, func(k *Kit) {
		d := emptyPool(k, 0)
		own, other := k.Stream(ordinary), k.Stream(ordinary)
		take := func(s *hal.Stream) *hal.Block {
			b, err := s.AllocCached(k.Me, small, nil)
			require.NoError(k, err)
			return b
		}
		h, _ := k.Pinned(small)
		for range 3 { // places of the closed stream are not those of the other
			a := take(own)
			k.Copy(own, a.Start, h.Start, small)
			require.NoError(k, a.Release(k.Me))
		}
		k.Sync(own)
		require.NoError(k, own.Close(k.Me))
		d.Reclaim()
		before := d.PoolStats().Reserved
		b := take(other)
		require.Equal(k, before, d.PoolStats().Reserved, "what a closed stream has left is for all")
		require.NoError(k, b.Release(k.Me))
		k.Sync(other)
		d.TrimPool(0)
		require.Zero(k, d.PoolStats().Reserved, "the parts of the segment have merged")
		emptyPool(k, 0) // waits for the places of all frees
	}},
	{"M23_a_caching_allocator_takes_segments_of_fixed_sizes", Memory, func(k *Kit) {
		const mib = 1 << 20
		d := emptyPool(k, 0)
		k.Cleanup(func() { d.TrimPool(0) }) // the last one: other cases count on addresses without memory
		s := k.Stream(ordinary)
		reserved := func(size int64) uint64 {
			b, err := s.AllocCached(k.Me, size, nil)
			require.NoError(k, err)
			k.Cleanup(func() { require.NoError(k, b.Release(k.Me)) })
			return d.PoolStats().Reserved / mib
		}
		require.Equal(k, uint64(2), reserved(1))
		require.Equal(k, uint64(2), reserved(mib), "it fits behind the first")
		require.Equal(k, uint64(4), reserved(mib))
		require.Equal(k, uint64(24), reserved(mib+1), "small segments are not for it")
		require.Equal(k, uint64(24), reserved(9*mib))
		require.Equal(k, uint64(24), reserved(9*mib-512))
		for _, c := range d.PoolChunks() {
			require.True(k, c.Used || c.Segment.Size == 2*mib, "what is left of a large segment takes no large block: %v", c)
		}
		require.Equal(k, uint64(24), reserved(mib), "it fits in the second small segment")
		require.Equal(k, uint64(26), reserved(mib), "a large segment is not for it")
		require.Equal(k, uint64(36), reserved(10*mib))
		require.Equal(k, uint64(48), reserved(10*mib+1))
		require.Equal(k, uint64(68), reserved(2*mib), "the rest of the last segment is too small")
		b := takeFromPool(k, s, 8192)
		require.Equal(k, uint64(68*mib+8192), d.PoolStats().Reserved, "other blocks have segments of their own size")
		require.NoError(k, b.Release(k.Me))
	}},
	{"M15_segments_and_free_parts_of_those_in_use_are_counted", Memory, func(k *Kit) {
		const mib = 1 << 20
		d, s := emptyPool(k, k.Far()), k.StreamOn(k.Far(), ordinary)
		d.ResetMemoryPeaks(true, true)
		before := d.MemoryStats().Pools
		grown := func(kind int) []uint64 {
			now, was := d.MemoryStats().Pools[kind], before[kind]
			return []uint64{now.Segments.Current - was.Segments.Current, now.Bytes.Current - was.Bytes.Current,
				now.Split.Current - was.Split.Current, now.SplitBytes.Current - was.SplitBytes.Current}
		}
		cached := func(size int64) *hal.Block {
			b, err := s.AllocCached(k.Me, size, nil)
			require.NoError(k, err)
			return b
		}
		first, second, third := cached(mib), cached(512), cached(3*mib)
		require.Equal(k, []uint64{1, 2 * mib, 1, mib - 512}, grown(hal.SmallSegments))
		require.Equal(k, []uint64{1, 20 * mib, 1, 17 * mib}, grown(hal.LargeSegments))
		require.Equal(k, []uint64{2, 22 * mib, 2, 18*mib - 512}, grown(hal.AllSegments))
		require.NoError(k, first.Release(k.Me))
		require.Equal(k, []uint64{1, 2 * mib, 2, 2*mib - 512}, grown(hal.SmallSegments), "the parts have a block between them")
		require.NoError(k, second.Release(k.Me))
		require.Equal(k, []uint64{1, 2 * mib, 0, 0}, grown(hal.SmallSegments), "the segment is free as a whole")
		require.NoError(k, third.Release(k.Me))
		k.Sync(s)
		d.TrimPool(0)
		require.Equal(k, []uint64{0, 0, 0, 0}, grown(hal.AllSegments))
		now, was := d.MemoryStats().Pools[hal.AllSegments], before[hal.AllSegments]
		require.Equal(k, []uint64{2, 22 * mib, 3}, []uint64{now.Segments.Added - was.Segments.Added,
			now.Bytes.Added - was.Bytes.Added, now.Split.Peak - was.Split.Current})
		d.ResetMemoryPeaks(true, true)
		now = d.MemoryStats().Pools[hal.AllSegments]
		require.Equal(k, []uint64{now.Segments.Current, now.Split.Current}, []uint64{now.Segments.Peak, now.Split.Peak})
	}},
}
