package haltest

import (
	"runtime"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// rows returns the ranges of three rows of 10 bytes.
func rows(addr, pitch uint64) []hal.Range {
	return []hal.Range{{Start: addr, Size: 10}, {Start: addr + pitch, Size: 10}, {Start: addr + 2*pitch, Size: 10}}
}

var workCases = []testCase{
	{"M11_listeners_see_what_is_read_and_written", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		a, b := k.Alloc(0, small), k.Alloc(0, small)
		h, _ := k.Pinned(small) // a native function of the host cannot reach a device's memory
		type seen struct {
			kind          string
			reads, writes []hal.Range
		}
		var got []seen
		stop := k.RT.Listen(func(o hal.Operation) {
			if !o.Host {
				got = append(got, seen{o.Kind.String(), o.Reads, o.Writes})
			}
		})
		defer stop()
		k.Copy(s, b.Start+16, a.Start, 100)
		_, err := s.Copy(k.Me, hal.CopySpec{Dst: b.Start, DstPitch: 100, Src: a.Start, SrcPitch: 50, Width: 10, Height: 3})
		require.NoError(k, err)
		require.NoError(k, s.Fill(k.Me, a.Start, 1, 4, 25))
		c := takeFromPool(k, s, small)
		require.NoError(k, s.FreeAsync(k.Me, c.Start))
		r, w := []hal.Range{{Start: a.Start, Size: 8}}, []hal.Range{{Start: b.Start, Size: 4}}
		require.NoError(k, s.Native(k.Me, nativeCount, h.Start, hal.Accesses{Reads: r, Writes: w}))
		token := k.served.put(func(*hal.Thread) error { return nil })
		require.NoError(k, s.HostFuncOn(k.Me, token, hal.Accesses{Reads: r, Writes: w}))
		_, err = s.Copy(k.Me, hal.CopySpec{Dst: b.Start, Src: a.Start, Width: small + 1})
		require.Error(k, err, "refused, so not seen")
		k.Sync(s)
		require.Equal(k, []seen{
			{"copy", []hal.Range{{Start: a.Start, Size: 100}}, []hal.Range{{Start: b.Start + 16, Size: 100}}},
			{"copy", rows(a.Start, 50), rows(b.Start, 100)},
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
		require.NoError(k, s.HostFuncOn(k.Me, token, hal.Accesses{Writes: []hal.Range{{Start: h.Start + 8, Size: 4}}}))
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
				require.NoError(k, s.Native(k.Me, nativeOdd, h.Start, hal.Accesses{}))
				want = 2*want + 1
			} else {
				require.NoError(k, s.Native(k.Me, nativeCount, h.Start, hal.Accesses{}))
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
		require.NoError(k, s.Native(k.Me, nativeCount, h.Start, hal.Accesses{}))
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
		require.ErrorIs(k, s.Native(k.Me, 0, 1, hal.Accesses{}), hal.ErrInvalidValue)
		k.Sync(s)
	}},
	{"A8_abort_drops_work_that_waits_for_an_engine", Memory | RealTime | Aborts, func(k *Kit) {
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
	{"A8_abort_of_a_device_reaches_all_its_streams", Memory | Aborts | Pair, func(k *Kit) {
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
			require.NoError(k, s.Native(k.Me, nativeCount, h.Start, hal.Accesses{}))
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
// once on a device: more than there are processors for, and one more than a launch of a graph begins with.
var Engines = runtime.NumCPU() + 2
