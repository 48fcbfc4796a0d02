package haltest

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// word is the first 64 bits of pinned memory.
func word(b []byte) *uint64 { return (*uint64)(unsafe.Pointer(unsafe.SliceData(b))) }

// newValue returns the first 64 bits of a block.
func newValue(k *Kit, b *hal.Block) uint64 {
	k.T.Helper()
	return *word(k.Read(b))
}

var valueCases = []testCase{
	{"M19_a_value_is_written_in_the_order_of_the_stream", Memory | Values, func(k *Kit) {
		s := k.Stream(ordinary)
		h, bytes := k.Pinned(16)
		b := k.Alloc(0, 16)
		atomic.StoreUint64(word(bytes), 1)
		k.Fill(s, b, 0)
		hold := Hold(k, s).Started()
		require.NoError(k, s.WriteValue(k.Me, h.Start, 1<<63+5))
		require.NoError(k, s.WriteValue(k.Me, b.Start+8, 1<<62+7))
		require.EqualValues(k, 1, atomic.LoadUint64(word(bytes)), "the stream is held")
		hold.Release()
		k.Sync(s)
		require.EqualValues(k, uint64(1<<63+5), atomic.LoadUint64(word(bytes)))
		got := k.Read(b)
		require.Zero(k, *word(got), "only the 64 bits change")
		require.EqualValues(k, 1<<62+7, *word(got[8:]))
	}},
	{"M19_a_stream_waits_for_a_value_that_another_writes", Memory | Values, func(k *Kit) {
		for _, c := range []struct {
			condition             driver.Condition
			wanted, before, after uint64
		}{
			{driver.AtLeast, 5, 4, 6},
			{driver.AtLeast, 2, 1<<64 - 1, 3}, // a counter that wrapped around
			{driver.Equal, 5, 6, 5},
			{driver.AnyBit, 6, 9, 2},
			{driver.MissingBit, 1, 1<<64 - 2, 1<<64 - 4},
		} {
			for _, b := range []*hal.Block{k.Alloc(0, 8), func() *hal.Block { h, _ := k.Pinned(8); return h }()} {
				writer, waiter := k.Stream(ordinary), k.Stream(ordinary)
				require.NoError(k, writer.WriteValue(k.Me, b.Start, c.before))
				k.Sync(writer)
				require.NoError(k, waiter.WaitValue(k.Me, b.Start, c.wanted, c.condition))
				k.Pending(waiter, c.condition.String())
				require.NoError(k, writer.WriteValue(k.Me, b.Start, c.after))
				k.Sync(waiter, writer)
				require.Equal(k, c.after, newValue(k, b))
				require.NoError(k, waiter.WaitValue(k.Me, b.Start, c.wanted, c.condition))
				k.Sync(waiter)
				k.Close(writer, waiter)
			}
		}
	}},
	{"M19_a_value_is_looked_at_when_the_stream_gets_there", Memory | Values, func(k *Kit) {
		writer, waiter := k.Stream(ordinary), k.Stream(ordinary)
		b := k.Alloc(0, 8)
		require.NoError(k, writer.WriteValue(k.Me, b.Start, 1))
		k.Sync(writer)
		hold := Hold(k, waiter).Started()
		require.NoError(k, waiter.WaitValue(k.Me, b.Start, 1, driver.Equal))
		require.NoError(k, writer.WriteValue(k.Me, b.Start, 2))
		k.Sync(writer)
		hold.Release()
		k.Pending(waiter, "the value had changed before the stream reached the wait")
		require.NoError(k, writer.WriteValue(k.Me, b.Start, 1))
		k.Sync(waiter, writer)
	}},
	{"M19_what_the_program_writes_is_noticed", Memory | Values, func(k *Kit) {
		s := k.Stream(ordinary)
		h, bytes := k.Pinned(8)
		atomic.StoreUint64(word(bytes), 0)
		require.NoError(k, s.WaitValue(k.Me, h.Start, 3, driver.Equal))
		k.Pending(s, "nobody has written it")
		atomic.StoreUint64(word(bytes), 3)
		k.Sync(s)
	}},
	{"M19_copies_fills_and_functions_change_values", Memory | Values, func(k *Kit) {
		other, s := k.Stream(ordinary), k.Stream(ordinary)
		h, bytes := k.Pinned(8)
		source, _ := k.Pinned(8)
		for i, write := range []func(){
			func() { k.Fill(other, h, 0xff) },
			func() { k.Copy(other, h.Start, source.Start, 8) },
			func() { k.Call(other, func() { atomic.StoreUint64(word(bytes), 1<<64-1) }) },
		} {
			k.Fill(other, h, 0)
			k.Fill(other, source, 0xff)
			k.Sync(other)
			require.NoError(k, s.WaitValue(k.Me, h.Start, 1<<64-1, driver.Equal))
			k.Pending(s, "it is 0")
			write()
			k.Sync(s, other)
			require.EqualValues(k, uint64(1<<64-1), atomic.LoadUint64(word(bytes)), "way %d", i)
		}
	}},
	{"M19_a_ping_pong_of_values_ends", Memory | Values, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		cell := k.Alloc(0, 16)
		k.Fill(a, cell, 0)
		k.Sync(a)
		rounds := uint64(200)
		if testing.Short() {
			rounds = 20
		}
		for i := uint64(1); i <= rounds; i++ {
			require.NoError(k, b.WaitValue(k.Me, cell.Start, i, driver.AtLeast))
			require.NoError(k, b.WriteValue(k.Me, cell.Start+8, i))
			require.NoError(k, a.WriteValue(k.Me, cell.Start, i))
			require.NoError(k, a.WaitValue(k.Me, cell.Start+8, i, driver.AtLeast))
		}
		k.Sync(a, b)
		require.Equal(k, rounds, *word(k.Read(cell)[8:]))
	}},
	{"M19_a_value_lies_in_device_or_pinned_memory", Memory | Values, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, 20)
		foreign, _ := k.Pageable(64)
		for addr, why := range map[uint64]string{
			b.Start + 4:        "is not a multiple of the value's 8 bytes",
			b.Start + 16:       "ends 4 bytes behind its block",
			(foreign + 7) &^ 7: "is pageable host memory",
		} {
			err := s.WriteValue(k.Me, addr, 1)
			require.ErrorIs(k, err, hal.ErrInvalidValue)
			require.ErrorContains(k, err, why)
			require.ErrorIs(k, s.WaitValue(k.Me, addr, 1, driver.Equal), hal.ErrInvalidValue)
		}
		require.ErrorIs(k, s.WaitValue(k.Me, b.Start, 1, driver.Conditions), hal.ErrInvalidValue)
		require.NoError(k, k.RT.Free(k.Me, b.Start))
		require.ErrorIs(k, s.WaitValue(k.Me, b.Start, 1, driver.Equal), hal.ErrInvalidValue)
	}},
	{"M19_a_value_lies_on_the_device_of_the_stream", Memory | Values | Pair, func(k *Kit) {
		b := k.Alloc(1, 8)
		require.ErrorIs(k, k.Stream(ordinary).WriteValue(k.Me, b.Start, 1), hal.ErrWrongDevice)
		require.ErrorIs(k, k.Stream(ordinary).WaitValue(k.Me, b.Start, 1, driver.Equal), hal.ErrWrongDevice)
	}},
	{"M19_the_memory_of_a_wait_stays_until_it_ends", Memory | Values, func(k *Kit) {
		writer, waiter := k.Stream(ordinary), k.Stream(ordinary)
		h, bytes := k.Pinned(8)
		atomic.StoreUint64(word(bytes), 0)
		require.NoError(k, waiter.WaitValue(k.Me, h.Start, 1, driver.Equal))
		require.ErrorIs(k, k.RT.FreeHost(k.Me, h.Start, false), hal.ErrNotReady)
		require.NoError(k, waiter.Close(k.Me))
		require.NoError(k, writer.WriteValue(k.Me, h.Start, 1))
		k.Sync(writer)
		done, err := k.Device(0).Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.True(k, done, "a closed stream's wait ends, too")
	}},
	{"A8_abort_drops_a_wait_for_a_value", Memory | Values | Aborts, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, 8)
		k.Fill(s, b, 0)
		k.Sync(s)
		require.NoError(k, s.WaitValue(k.Me, b.Start, 1, driver.Equal))
		require.NoError(k, s.Nop(k.Me))
		k.Pending(s, "nobody has written it")
		n, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 2, n)
		k.Sync(s)
		require.NoError(k, s.WriteValue(k.Me, b.Start, 1))
		require.NoError(k, s.WaitValue(k.Me, b.Start, 1, driver.Equal))
		k.Sync(s)
	}},
	{"O2_a_stream_says_which_value_it_waits_for", Memory | Values | Explains, func(k *Kit) {
		s := k.Stream(ordinary)
		h, bytes := k.Pinned(8)
		atomic.StoreUint64(word(bytes), 7)
		require.NoError(k, s.WaitValue(k.Me, h.Start, 9, driver.AtLeast))
		k.Pending(s, "it is 7")
		require.Contains(k, s.Describe(), "which is 7, to be at least 9")
		atomic.StoreUint64(word(bytes), 9)
		k.Sync(s)
	}},
	{"M11_listeners_see_what_is_written_and_waited_for", Memory | Values, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, 8)
		var seen []hal.Operation
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Value != nil {
				seen = append(seen, o)
			}
		})
		require.NoError(k, s.WriteValue(k.Me, b.Start, 4))
		require.NoError(k, s.WaitValue(k.Me, b.Start, 3, driver.AtLeast))
		stop()
		k.Sync(s)
		access := []hal.Range{{Start: b.Start, Size: 8}}
		require.Len(k, seen, 2)
		require.Equal(k, hal.OpWriteValue, seen[0].Kind)
		require.Equal(k, access, seen[0].Writes)
		require.Equal(k, hal.ValueAccess{Addr: b.Start, Value: 4}, *seen[0].Value)
		require.Equal(k, hal.OpWaitValue, seen[1].Kind)
		require.Equal(k, access, seen[1].Reads)
		require.Equal(k, hal.ValueAccess{Addr: b.Start, Value: 3, Condition: driver.AtLeast}, *seen[1].Value)
	}},
}
