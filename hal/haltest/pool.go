package haltest

import (
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// take allocates in stream order.
func (k *Kit) take(s *hal.Stream, size int64) *hal.Block {
	k.T.Helper()
	b, err := s.AllocAsync(k.Me, size)
	require.NoError(k, err)
	return b
}

// emptyPool gives back what earlier cases left in a device's pool.
func (k *Kit) emptyPool(ordinal int) *hal.Device {
	d := k.Device(ordinal)
	_, _, err := d.MemoryInfo() // frees what is only waiting for it
	require.NoError(k, err)
	d.TrimPool(0)
	d.SetPoolThreshold(1 << 40)
	d.ResetPoolPeaks()
	return d
}

var poolCases = []testCase{
	{"M7_a_stream_gets_back_at_once_what_was_freed_on_it", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		hold := Hold(k, s).Started()
		a := k.take(s, small)
		k.Fill(s, a, 1)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		b := k.take(s, small)
		require.Equal(k, a.Start, b.Start, "its work comes after the free")
		k.Fill(s, b, 2)
		h, got := k.Pinned(small)
		k.Copy(s, h.Start, b.Start, small)
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		hold.Release()
		k.Sync(s)
		require.Equal(k, []byte{2, 2}, got[small-2:])
	}},
	{"M7_other_streams_get_it_when_the_free_is_reached", Memory, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		hold := Hold(k, s).Started()
		a := k.take(s, small)
		k.Fill(s, a, 1)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		b := k.take(other, small)
		require.NotEqual(k, a.Start, b.Start, "the free was not reached")
		k.Device(0).TrimPool(0)
		c, err := k.Device(0).Alloc(k.Me, small)
		require.NoError(k, err)
		require.NotEqual(k, a.Start, c.Start, "a trim gave it back under pending work")
		require.NoError(k, k.RT.Free(k.Me, c.Start))
		hold.Release()
		k.Sync(s)
		d := k.take(other, small)
		require.Equal(k, a.Start, d.Start, "the free was reached")
		require.NoError(k, other.FreeAsync(k.Me, b.Start))
		require.NoError(k, other.FreeAsync(k.Me, d.Start))
	}},
	{"M7_it_counts_on_the_stream_that_frees", Memory, func(k *Kit) {
		maker, s := k.Stream(ordinary), k.Stream(ordinary)
		a := k.take(maker, small)
		hold := Hold(k, s).Started()
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		b := k.take(maker, small)
		require.NotEqual(k, a.Start, b.Start)
		c := k.take(s, small)
		require.Equal(k, a.Start, c.Start)
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		require.NoError(k, s.FreeAsync(k.Me, c.Start))
		hold.Release()
	}},
	{"M7_a_free_on_the_default_stream_waits_for_ordered_streams", Memory, func(k *Kit) {
		d := k.emptyPool(0)
		ordered, free := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		legacy := d.DefaultStream()
		a := k.take(ordered, small)
		hold := Hold(k, ordered).Started()
		k.Fill(ordered, a, 1)
		require.NoError(k, legacy.FreeAsync(k.Me, a.Start))
		b := k.take(free, small)
		require.NotEqual(k, a.Start, b.Start, "the default stream has not reached the free")
		hold.Release()
		k.Sync(legacy)
		c := k.take(free, small)
		require.Equal(k, a.Start, c.Start)
		require.NoError(k, free.FreeAsync(k.Me, b.Start))
		require.NoError(k, free.FreeAsync(k.Me, c.Start))
	}},
	{"M7_a_free_on_an_ordered_stream_waits_for_the_default_stream", Memory, func(k *Kit) {
		d := k.emptyPool(0)
		ordered, free := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		legacy := d.DefaultStream()
		a := k.take(legacy, small)
		hold := Hold(k, legacy).Started()
		k.Fill(legacy, a, 1)
		require.NoError(k, ordered.FreeAsync(k.Me, a.Start))
		b := k.take(free, small)
		require.NotEqual(k, a.Start, b.Start, "the ordered stream has not reached the free")
		hold.Release()
		k.Sync(ordered)
		c := k.take(free, small)
		require.Equal(k, a.Start, c.Start)
		require.NoError(k, free.FreeAsync(k.Me, b.Start))
		require.NoError(k, free.FreeAsync(k.Me, c.Start))
	}},
	{"M7_the_pool_counts_what_it_holds", Memory, func(k *Kit) {
		d, s := k.emptyPool(1), k.StreamOn(1, ordinary)
		before := d.PoolStats()
		require.Zero(k, before.Used)
		require.Zero(k, before.Reserved)
		a, b := k.take(s, 512), k.take(s, 1024)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		got := d.PoolStats()
		require.Equal(k, []uint64{1024, 1536, 1536, 1536}, []uint64{got.Used, got.Reserved, got.UsedPeak, got.ReservedPeak})
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		d.ResetPoolPeaks()
		d.TrimPool(1024)
		got = d.PoolStats()
		require.Equal(k, []uint64{0, 0, 1536}, []uint64{got.Used, got.UsedPeak, got.ReservedPeak})
		require.LessOrEqual(k, got.Reserved, uint64(1024))
		d.TrimPool(0)
		require.Zero(k, d.PoolStats().Reserved)
	}},
	{"M7_a_threshold_bounds_what_is_kept", Memory, func(k *Kit) {
		d, s := k.emptyPool(1), k.StreamOn(1, ordinary)
		d.SetPoolThreshold(0)
		require.Zero(k, d.PoolStats().Threshold)
		a := k.take(s, 4096)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		require.Zero(k, d.PoolStats().Reserved, "nothing may be kept")
		d.SetPoolThreshold(4096)
		a, b := k.take(s, 4096), k.take(s, 4096)
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		require.Equal(k, uint64(4096), d.PoolStats().Reserved)
		d.SetPoolThreshold(1 << 40)
	}},
	{"M7_running_out_leaves_the_counts_alone_and_empties_the_pool", Memory, func(k *Kit) {
		d, s := k.emptyPool(1), k.StreamOn(1, ordinary)
		_, err := s.AllocAsync(k.Me, 1<<40)
		require.ErrorIs(k, err, hal.ErrOutOfMemory)
		require.Zero(k, d.PoolStats().Reserved)
		free, _, err := d.MemoryInfo()
		require.NoError(k, err)
		a := k.take(s, int64(free/4*3))
		require.NoError(k, s.FreeAsync(k.Me, a.Start))
		require.NotZero(k, d.PoolStats().Reserved)
		b, err := d.Alloc(k.Me, int64(free/2))
		require.NoError(k, err, "what the pool keeps is in the way")
		require.NoError(k, k.RT.Free(k.Me, b.Start))
		require.Zero(k, d.PoolStats().Reserved)
	}},
	{"M7_what_cannot_be_freed_in_stream_order", Memory, func(k *Kit) {
		s, far := k.Stream(ordinary), k.StreamOn(1, ordinary)
		plain, pooled := k.Alloc(0, small), k.take(s, small)
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
	{"M7_freed_without_a_stream_it_waits_for_what_works_on_it", Memory, func(k *Kit) {
		d, s := k.emptyPool(0), k.Stream(ordinary)
		a := k.take(s, small)
		hold := Hold(k, s).Started()
		k.Fill(s, a, 1)
		require.NoError(k, k.RT.Free(k.Me, a.Start))
		used := d.PoolStats().Used
		require.NotZero(k, used)
		b := k.take(s, small)
		require.NotEqual(k, a.Start, b.Start)
		hold.Release()
		k.Sync(s)
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		_, _, err := d.MemoryInfo()
		require.NoError(k, err)
		require.Zero(k, d.PoolStats().Used)
	}},
}

var workCases = []testCase{
	{"M11_listeners_see_what_is_read_and_written", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		a, b := k.Alloc(0, small), k.Alloc(0, small)
		type seen struct {
			kind          string
			reads, writes []hal.Range
		}
		var got []seen
		stop := k.RT.Listen(func(o hal.Operation) { got = append(got, seen{o.Kind, o.Reads, o.Writes}) })
		defer stop()
		k.Copy(s, b.Start+16, a.Start, 100)
		_, err := s.Copy(k.Me, hal.CopySpec{Dst: b.Start, DstPitch: 100, Src: a.Start, SrcPitch: 50, Width: 10, Height: 3})
		require.NoError(k, err)
		require.NoError(k, s.Fill(k.Me, a.Start, 1, 4, 25))
		c := k.take(s, small)
		require.NoError(k, s.FreeAsync(k.Me, c.Start))
		r, w := []hal.Range{{Start: a.Start, Size: 8}}, []hal.Range{{Start: b.Start, Size: 4}}
		require.NoError(k, s.Native(k.Me, nativeCount, b.Start, r, w))
		token := k.served.put(func(*hal.Thread) error { return nil })
		require.NoError(k, s.HostFuncOn(k.Me, token, r, w))
		_, err = s.Copy(k.Me, hal.CopySpec{Dst: b.Start, Src: a.Start, Width: small + 1})
		require.Error(k, err, "refused, so not seen")
		k.Sync(s)
		require.Equal(k, []seen{
			{"copy", []hal.Range{{Start: a.Start, Size: 100}}, []hal.Range{{Start: b.Start + 16, Size: 100}}},
			{"copy", []hal.Range{{Start: a.Start, Size: 110}}, []hal.Range{{Start: b.Start, Size: 210}}},
			{"fill", nil, []hal.Range{{Start: a.Start, Size: 100}}},
			{"allocate", nil, []hal.Range{{Start: c.Start, Size: small}}},
			{"free", nil, []hal.Range{{Start: c.Start, Size: small}}},
			{"native", r, w},
			{"call", r, w},
		}, got)
	}},
	{"M11_what_a_function_works_on_is_not_given_back", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		h, _ := k.Pinned(small)
		hold := Hold(k, s).Started()
		token := k.served.put(func(*hal.Thread) error { return nil })
		require.NoError(k, s.HostFuncOn(k.Me, token, nil, []hal.Range{{Start: h.Start + 8, Size: 4}}))
		err := k.RT.FreeHost(k.Me, h.Start, false)
		require.ErrorIs(k, err, hal.ErrNotReady)
		require.ErrorContains(k, err, "a function")
		hold.Release()
		k.Sync(s)
		require.NoError(k, k.RT.FreeHost(k.Me, h.Start, false))
	}},
	{"M12_native_functions_run_in_order_and_once", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		h, bytes := k.Pinned(256)
		clear(bytes)
		want := int32(0)
		for i := range 20 {
			if i%3 == 0 {
				require.NoError(k, s.Native(k.Me, nativeOdd, h.Start, nil, nil))
				want = 2*want + 1
			} else {
				require.NoError(k, s.Native(k.Me, nativeCount, h.Start, nil, nil))
				want++
			}
		}
		k.Sync(s)
		got := int32(bytes[0]) | int32(bytes[1])<<8 | int32(bytes[2])<<16 | int32(bytes[3])<<24
		require.Equal(k, want, got)
	}},
	{"M12_a_native_function_holds_its_stream_only", Memory, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		h, bytes := k.Pinned(256)
		clear(bytes)
		door := k.Block(s)
		k.Entered(door)
		require.NoError(k, s.Native(k.Me, nativeCount, h.Start, nil, nil))
		done, err := s.Synchronize(k.Me, int64(20*time.Millisecond))
		require.NoError(k, err)
		require.False(k, done, "it runs, on another thread than the caller's")
		k.Fill(other, h, 5)
		k.Sync(other)
		require.Equal(k, byte(5), bytes[0])
		door.Open()
		k.Sync(s)
		require.Equal(k, byte(6), bytes[0])
	}},
	{"M12_a_function_needs_an_address", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		require.ErrorIs(k, s.Native(k.Me, 0, 1, nil, nil), hal.ErrInvalidValue)
		k.Sync(s)
	}},
	{"A8_abort_drops_work_that_waits_for_an_engine", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		h, bytes := k.Pinned(1 << 16)
		clear(bytes)
		// As many as there may be engines, at the most, and one to wait behind them.
		var doors []Door
		for range Engines {
			b := k.Stream(ordinary)
			doors = append(doors, k.Block(b))
			k.Entered(doors[len(doors)-1])
		}
		k.Fill(s, h, 1)
		k.Fill(s, h, 2)
		k.Pending(s, "all engines are taken")
		n, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 2, n)
		k.Sync(s)
		k.Fill(s, h, 3)
		for _, d := range doors {
			d.Open()
		}
		k.Sync(s)
		require.Equal(k, byte(3), bytes[0])
	}},
	{"A8_abort_of_a_device_reaches_all_its_streams", Memory, func(k *Kit) {
		d := k.Device(1)
		h, bytes := k.Pinned(256)
		clear(bytes)
		var streams []*hal.Stream
		held := k.StreamOn(1, ordinary)
		hold := Hold(k, held).Started()
		e := k.Event(hal.EventOptions{})
		k.Record(held, e)
		for range 20 {
			s := k.StreamOn(1, ordinary)
			k.Wait(s, e)
			require.NoError(k, s.Native(k.Me, nativeCount, h.Start, nil, nil))
			streams = append(streams, s)
		}
		n, err := d.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 41, n, "a wait and a function each, and the record")
		for _, s := range streams {
			_, err := s.Synchronize(k.Me, int64(Limit))
			require.NoError(k, err)
		}
		hold.Release()
		k.Sync(held)
		require.Zero(k, bytes[0], "a function that was dropped ran")
	}},
}

// Engines is how many operations that take time a backend under test may run at
// once on a device.
const Engines = 3
