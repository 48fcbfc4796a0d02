package haltest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// takeFromPool allocates in stream order.
func takeFromPool(k *Kit, s *hal.Stream, size int64) *hal.Block {
	k.T.Helper()
	b, err := s.AllocAsync(k.Me, size)
	require.NoError(k, err)
	return b
}

// emptyPool gives back what earlier cases left in a device's pool.
func emptyPool(k *Kit, ordinal int) *hal.Device {
	d := k.Device(ordinal)
	if p := d.DeferredPoint(); p != nil {
		require.True(k, p.Wait(int64(Limit)), "a free point of an earlier case is not reached")
	}
	_, _, err := d.MemoryInfo() // frees what is only waiting for it
	require.NoError(k, err)
	d.TrimPool(0)
	d.SetPoolThreshold(1 << 40)
	d.ResetPoolPeaks(true, true)
	return d
}

var poolCases = []testCase{
	{"M7_a_free_does_not_wait_for_what_a_listener_enqueues", Memory | Gates, func(k *Kit) {
		s, d := k.Stream(ordinary), k.Device(0)
		b, err := s.AllocAsync(k.Me, small)
		require.NoError(k, err)
		k.Sync(s)
		var gate driver.Gate
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Kind == hal.OpFree && gate == nil {
				gate, err = s.Gate(k.Me)
			}
		})
		freed := s.FreeAsync(k.Me, b.Start)
		stop()
		require.NoError(k, freed)
		require.NoError(k, err)
		require.NotNil(k, gate)
		defer gate.Open()
		if p := d.DeferredPoint(); p != nil {
			require.True(k, p.Wait(int64(Limit)), "the free is behind the gate")
		}
	}},
	{"M7_a_stream_gets_back_at_once_what_was_freed_on_it", Memory | Grows, func(k *Kit) {
		s := k.Stream(ordinary)
		hold := Hold(k, s).Started()
		a := takeFromPool(k, s, small)
		k.Fill(s, a, 1)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		b := takeFromPool(k, s, small)
		require.Equal(k, a.Start, b.Start, "its work comes after the free")
		k.Fill(s, b, 2)
		h, got := k.Pinned(small)
		k.Copy(s, h.Start, b.Start, small)
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		hold.Release()
		k.Sync(s)
		require.Equal(k, []byte{2, 2}, got[small-2:])
	}},
	{"M7_other_streams_get_it_when_the_free_is_reached", Memory | Grows, func(k *Kit) {
		emptyPool(k, 0)
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		hold := Hold(k, s).Started()
		a := takeFromPool(k, s, small)
		k.Fill(s, a, 1)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		b := takeFromPool(k, other, small)
		require.NotEqual(k, a.Start, b.Start, "the free was not reached")
		k.Device(0).TrimPool(0)
		c, err := k.Device(0).Alloc(k.Me, small)
		require.NoError(k, err)
		require.NotEqual(k, a.Start, c.Start, "a trim gave it back under pending work")
		require.NoError(k, k.RT.Free(k.Me, c.Start))
		hold.Release()
		k.Sync(s)
		d := takeFromPool(k, other, small)
		require.Equal(k, a.Start, d.Start, "the free was reached")
		require.NoError(k, other.FreeAsync(k.Me, b.Start))
		require.NoError(k, other.FreeAsync(k.Me, d.Start))
	}},
	{"M7_it_counts_on_the_stream_that_frees", Memory | Grows, func(k *Kit) {
		maker, s := k.Stream(ordinary), k.Stream(ordinary)
		a := takeFromPool(k, maker, small)
		hold := Hold(k, s).Started()
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		b := takeFromPool(k, maker, small)
		require.NotEqual(k, a.Start, b.Start)
		c := takeFromPool(k, s, small)
		require.Equal(k, a.Start, c.Start)
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		require.NoError(k, s.FreeAsync(k.Me, c.Start))
		hold.Release()
		k.Sync(s)
	}},
	{"M7_a_free_on_the_default_stream_waits_for_ordered_streams", Memory | Grows, func(k *Kit) {
		d := emptyPool(k, 0)
		ordered, free := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		legacy := d.DefaultStream()
		a := takeFromPool(k, ordered, small)
		hold := Hold(k, ordered).Started()
		k.Fill(ordered, a, 1)
		require.NoError(k, legacy.FreeAsync(k.Me, a.Start))
		b := takeFromPool(k, free, small)
		require.NotEqual(k, a.Start, b.Start, "the default stream has not reached the free")
		hold.Release()
		k.Sync(legacy)
		c := takeFromPool(k, free, small)
		require.Equal(k, a.Start, c.Start)
		require.NoError(k, free.FreeAsync(k.Me, b.Start))
		require.NoError(k, free.FreeAsync(k.Me, c.Start))
	}},
	{"M7_a_free_on_an_ordered_stream_waits_for_the_default_stream", Memory | Grows, func(k *Kit) {
		d := emptyPool(k, 0)
		ordered, free := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		legacy := d.DefaultStream()
		a := takeFromPool(k, legacy, small)
		hold := Hold(k, legacy).Started()
		k.Fill(legacy, a, 1)
		require.NoError(k, ordered.FreeAsync(k.Me, a.Start))
		b := takeFromPool(k, free, small)
		require.NotEqual(k, a.Start, b.Start, "the ordered stream has not reached the free")
		hold.Release()
		k.Sync(ordered)
		c := takeFromPool(k, free, small)
		require.Equal(k, a.Start, c.Start)
		require.NoError(k, free.FreeAsync(k.Me, b.Start))
		require.NoError(k, free.FreeAsync(k.Me, c.Start))
	}},
	{"M7_the_pool_counts_what_it_holds", Memory | RealTime, func(k *Kit) {
		d, s := emptyPool(k, k.Far()), k.StreamOn(k.Far(), ordinary)
		before := d.PoolStats()
		require.Zero(k, before.Used)
		require.Zero(k, before.Reserved)
		a, b := takeFromPool(k, s, 512), takeFromPool(k, s, 1024)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		k.Sync(s)
		got := d.PoolStats()
		require.Equal(k, []uint64{1024, 1536, 1536, 1536}, []uint64{got.Used, got.Reserved, got.UsedPeak, got.ReservedPeak})
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		k.Sync(s) // on a device even an idle stream takes a moment to come to the free
		d.ResetPoolPeaks(true, true)
		d.TrimPool(1024)
		got = d.PoolStats()
		require.Equal(k, []uint64{0, 0, 1536}, []uint64{got.Used, got.UsedPeak, got.ReservedPeak})
		require.LessOrEqual(k, got.Reserved, uint64(1024))
		d.TrimPool(0)
		require.Zero(k, d.PoolStats().Reserved)
	}},
	{"M7_a_threshold_bounds_what_is_kept", Memory | RealTime, func(k *Kit) {
		d, s := emptyPool(k, k.Far()), k.StreamOn(k.Far(), ordinary)
		d.SetPoolThreshold(0)
		require.Zero(k, d.PoolStats().Threshold)
		a := takeFromPool(k, s, 4096)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		k.Sync(s)
		require.Zero(k, d.PoolStats().Reserved, "nothing may be kept")
		a = takeFromPool(k, s, 4096)
		hold := Hold(k, s).Started()
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		require.Equal(k, uint64(4096), d.PoolStats().Reserved, "the stream has not come to the free")
		hold.Release()
		k.Sync(s)
		require.Zero(k, d.PoolStats().Reserved, "the place of the free is reached")
		d.SetPoolThreshold(4096)
		a, b := takeFromPool(k, s, 4096), takeFromPool(k, s, 4096)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		k.Sync(s)
		require.Equal(k, uint64(4096), d.PoolStats().Reserved)
		d.SetPoolThreshold(1 << 40)
	}},
	{"M7_running_out_leaves_the_counts_alone_and_empties_the_pool", Memory | RealTime, func(k *Kit) {
		d, s := emptyPool(k, k.Far()), k.StreamOn(k.Far(), ordinary)
		_, err := s.AllocAsync(k.Me, 1<<40)
		require.ErrorIs(k, err, hal.ErrOutOfMemory)
		require.Zero(k, d.PoolStats().Reserved)
		free, _, err := d.MemoryInfo()
		require.NoError(k, err)
		a := takeFromPool(k, s, int64(free/4*3))
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		k.Sync(s)
		require.NotZero(k, d.PoolStats().Reserved)
		b, err := d.Alloc(k.Me, int64(free/2))
		require.NoError(k, err, "what the pool keeps is in the way")
		require.NoError(k, k.RT.Free(k.Me, b.Start))
		require.Zero(k, d.PoolStats().Reserved)
	}},
	{"M2_memory_that_the_pool_keeps_cannot_be_freed_again", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		first, err := s.AllocAsync(k.Me, small)
		require.NoError(k, err)
		other, err := s.AllocAsync(k.Me, small) // keeps the pool from giving their memory back to the device
		require.NoError(k, err)
		require.NoError(k, s.FreeAsync(k.Me, first.Start))
		k.Sync(s)
		require.ErrorContains(k, s.FreeAsync(k.Me, first.Start), "freed already")
		require.NoError(k, s.FreeAsync(k.Me, other.Start))
	}},
	{"M7_what_cannot_be_freed_in_stream_order", Memory | Pair, func(k *Kit) {
		s, far := k.Stream(ordinary), k.StreamOn(1, ordinary)
		plain, pooled := k.Alloc(0, small), takeFromPool(k, s, small)
		h, _ := k.Pinned(small)
		for _, addr := range []uint64{plain.Start, h.Start, pooled.Start + 256, 0} {
			require.ErrorIs(k, s.FreeAsync(k.Me, addr), hal.ErrInvalidValue)
		}
		require.ErrorIs(k, far.FreeAsync(k.Me, pooled.Start), hal.ErrInvalidValue, "it is of another device")
		require.NoError(k, s.FreeAsync(k.Me, pooled.Start))
		require.ErrorIs(k, s.FreeAsync(k.Me, pooled.Start), hal.ErrInvalidValue)
		require.ErrorIs(k, s.Fill(k.Me, pooled.Start, 0, 1, 1), hal.ErrInvalidValue)
		k.Sync(s)
	}},
	{"M7_freed_without_a_stream_it_waits_for_what_works_on_it", Memory | Grows, func(k *Kit) {
		d, s := emptyPool(k, 0), k.Stream(ordinary)
		a := takeFromPool(k, s, small)
		hold := Hold(k, s).Started()
		k.Fill(s, a, 1)
		require.NoError(k, k.RT.Free(k.Me, a.Start))
		b := takeFromPool(k, s, small)
		require.NotEqual(k, a.Start, b.Start)
		hold.Release()
		k.Sync(s)
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		_, _, err := d.MemoryInfo()
		require.NoError(k, err)
		require.Zero(k, d.PoolStats().Used)
	}},
	{"M15_a_freed_block_is_active_while_work_uses_it", Memory | RealTime, func(k *Kit) {
		d, s := emptyPool(k, k.Far()), k.StreamOn(k.Far(), ordinary)
		before := d.MemoryStats()
		pooled := takeFromPool(k, s, 1000)
		plain, err := d.Alloc(k.Me, 300)
		require.NoError(k, err)
		got := d.MemoryStats()
		require.Equal(k, []uint64{1536, 1536, 1536}, []uint64{got.Allocated - before.Allocated,
			got.Active - before.Active, got.Reserved - before.Reserved})
		hold := Hold(k, s).Started()
		k.Fill(s, pooled, 1)
		k.Fill(s, plain, 1)
		require.NoError(k, k.RT.Free(k.Me, pooled.Start))
		require.NoError(k, k.RT.Free(k.Me, plain.Start))
		got = d.MemoryStats()
		require.Equal(k, []uint64{0, 1536, 1536}, []uint64{got.Allocated - before.Allocated,
			got.Active - before.Active, got.Reserved - before.Reserved})
		hold.Release()
		k.Sync(s)
		d.Reclaim()
		got = d.MemoryStats()
		require.Equal(k, []uint64{0, 0, 1024}, []uint64{got.Allocated - before.Allocated,
			got.Active - before.Active, got.Reserved - before.Reserved}, "the pool keeps its part")
		d.TrimPool(0)
		require.Equal(k, before.Reserved, d.MemoryStats().Reserved)
	}},
	{"M15_a_block_that_its_owner_drops_counts_until_then_and_stays_until_release", Memory, func(k *Kit) {
		d, s := emptyPool(k, k.Far()), k.StreamOn(k.Far(), ordinary)
		before := d.MemoryStats()
		pooled := takeFromPool(k, s, 1000)
		plain, err := d.Alloc(k.Me, 300)
		require.NoError(k, err)
		for _, b := range []*hal.Block{pooled, plain} {
			b.Disown()
			b.Disown()
		}
		got := d.MemoryStats()
		require.Equal(k, []uint64{0, 1536, 1536}, []uint64{got.Allocated - before.Allocated,
			got.Active - before.Active, got.Reserved - before.Reserved})
		k.Fill(s, pooled, 1)
		k.Fill(s, plain, 1)
		require.NoError(k, pooled.Release(k.Me))
		require.NoError(k, plain.Release(k.Me))
		k.Sync(s)
		d.Reclaim()
		got = d.MemoryStats()
		require.Equal(k, []uint64{0, 0, 1024}, []uint64{got.Allocated - before.Allocated,
			got.Active - before.Active, got.Reserved - before.Reserved}, "the pool keeps its part")
	}},
	{"M16_running_out_waits_for_what_was_freed", Memory | RealTime | Grows, func(k *Kit) {
		d, s := emptyPool(k, k.Far()), k.StreamOn(k.Far(), ordinary)
		free, _, err := d.MemoryInfo()
		require.NoError(k, err)
		size := int64(free / 4 * 3)
		a, err := d.Alloc(k.Me, size)
		require.NoError(k, err)
		hold := Hold(k, s).Started()
		require.NoError(k, s.Fill(k.Me, a.Start, 1, 1, small))
		require.NoError(k, k.RT.Free(k.Me, a.Start))
		_, err = d.Alloc(k.Me, size)
		require.ErrorIs(k, err, hal.ErrOutOfMemory)
		require.ErrorContains(k, err, "out of memory. Tried to allocate")
		before := d.MemoryStats()
		b, err := d.AllocWait(k.Me, size, func(p driver.Point) bool {
			hold.Release()
			return p.Wait(int64(Limit))
		})
		require.NoError(k, err)
		got := d.MemoryStats()
		require.Equal(k, []uint64{1, 0}, []uint64{got.Retries - before.Retries, got.OutOfMemory - before.OutOfMemory})
		require.NoError(k, k.RT.Free(k.Me, b.Start))
	}},
	// Only then does an allocation wait with a limit.
	{"M16_waits_for_the_host_are_found", Memory | Values | Unbounded | Grows, func(k *Kit) {
		s, h := k.Stream(ordinary), k.Alloc(0, 8)
		require.NoError(k, s.WriteValue(k.Me, h.Start, 1))
		k.Sync(s)
		require.False(k, k.RT.AwaitsHost(), "nothing is pending")
		require.NoError(k, s.WaitValue(k.Me, h.Start, 1, driver.Equal))
		hold := Hold(k, s).Started()
		require.False(k, k.RT.AwaitsHost(), "the wait has ended, a function runs behind it")
		require.NoError(k, s.WaitValue(k.Me, h.Start, 2, driver.Equal))
		hold.Release()
		require.Eventually(k, k.RT.AwaitsHost, Limit, time.Millisecond, "the value is 1")
		k.Fill(s, k.Alloc(0, small), 1)
		other := k.Stream(ordinary)
		require.NoError(k, other.WriteValue(k.Me, h.Start, 2))
		k.Sync(other, s)
		require.False(k, k.RT.AwaitsHost())
		if k.Has(Gates) {
			g, err := s.Gate(k.Me)
			require.NoError(k, err)
			require.Eventually(k, k.RT.AwaitsHost, Limit, time.Millisecond, "the gate is closed")
			g.Open()
			k.Sync(s)
			require.False(k, k.RT.AwaitsHost())
		}
	}},
	{"M16_waits_for_a_later_record_are_found", Memory | Contexts | Unbounded, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(future)
		require.NoError(k, s.Wait(k.Me, e))
		require.Eventually(k, k.RT.AwaitsHost, Limit, time.Millisecond, "the event is not recorded")
		require.NoError(k, other.Record(k.Me, e))
		k.Sync(s, other)
		require.False(k, k.RT.AwaitsHost())
	}},
	{"M17_a_recorded_stream_is_waited_for_also_when_it_was_closed", Memory | Grows, func(k *Kit) {
		d := emptyPool(k, 0)
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		a := takeFromPool(k, s, small)
		a.RecordStream(other)
		hold := Hold(k, other).Started()
		require.NoError(k, other.Close(k.Me))
		require.NoError(k, a.Release(k.Me))
		require.True(k, a.Freed())
		b := takeFromPool(k, s, small)
		require.NotEqual(k, a.Start, b.Start, "the other stream may use it still")
		hold.Release()
		require.True(k, d.DeferredPoint() == nil || d.DeferredPoint().Wait(int64(Limit)))
		d.Reclaim()
		c := takeFromPool(k, s, small)
		require.Equal(k, a.Start, c.Start)
		require.NoError(k, a.Release(k.Me), "again does nothing")
		require.NoError(k, b.Release(k.Me))
		require.NoError(k, c.Release(k.Me))
	}},
	{"M18_sizes_that_grow_reserve_what_is_in_use_at_one_time", Memory | RealTime, func(k *Kit) {
		d, s := emptyPool(k, k.Far()), k.StreamOn(k.Far(), ordinary)
		for size := int64(512); size <= 1<<20; size += 512 {
			require.NoError(k, s.FreeAsync(k.Me, takeFromPool(k, s, size).Start))
			k.Sync(s)
		}
		require.LessOrEqual(k, d.PoolStats().ReservedPeak, uint64(2<<20))
		d.TrimPool(0)
	}},
	{"M18_sizes_that_grow_while_work_is_pending_reserve_a_few_times_the_largest", Memory | Grows, func(k *Kit) {
		d, s := emptyPool(k, 0), k.Stream(ordinary)
		before := d.PoolStats().Reserved
		hold := Hold(k, s).Started()
		for size := int64(16 << 10); size <= 1<<20; size += 16 << 10 {
			require.NoError(k, s.FreeAsync(k.Me, takeFromPool(k, s, size).Start))
		}
		require.LessOrEqual(k, d.PoolStats().ReservedPeak-before, uint64(4<<20))
		hold.Release()
		k.Sync(s)
		d.TrimPool(0)
	}},
	{"M18_live_blocks_share_no_byte", Memory, func(k *Kit) {
		emptyPool(k, 0)
		streams := []*hal.Stream{k.Stream(ordinary), k.Stream(ordinary)}
		random := rand.New(rand.NewPCG(1, 2))
		var live []*hal.Block
		for range 2000 {
			s := streams[random.IntN(len(streams))]
			if len(live) > 0 && random.IntN(2) == 0 {
				i := random.IntN(len(live))
				require.NoError(k, s.FreeAsync(k.Me, live[i].Start))
				live = slices.Delete(live, i, i+1)
				continue
			}
			b := takeFromPool(k, s, 1+random.Int64N(4096))
			for _, o := range live {
				require.True(k, b.Start+b.Size <= o.Start || o.Start+o.Size <= b.Start, "%v and %v", b, o)
			}
			live = append(live, b)
		}
		for _, b := range live {
			require.NoError(k, b.Release(k.Me))
		}
	}},
}
