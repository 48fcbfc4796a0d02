package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

var blockingCases = []testCase{
	{"V8_a_blocking_copy_orders_what_the_vendor_says", Memory, func(k *Kit) {
		copyOrders(k, k.Device(0).Legacy(), hal.BlockingCopy, map[string]copyOrder{
			"host to host":       {true, true},
			"device to pinned":   {true, true},
			"device to pageable": {true, true},
			"pinned to device":   {true, true},
			"pageable to device": {true, false},
			"device to device":   {false, false},
		})
	}},
	{"V9_an_asynchronous_copy_orders_what_the_vendor_says", Memory, func(k *Kit) {
		copyOrders(k, k.Stream(ordinary), hal.AsyncCopy, map[string]copyOrder{
			"host to host":       {true, true},
			"device to pinned":   {false, false},
			"device to pageable": {false, false},
			"pinned to device":   {false, false},
			"pageable to device": {false, false},
			"device to device":   {false, false},
		})
	}},
	{"V9_a_copy_of_CANN_orders_pageable_memory", Memory, func(k *Kit) {
		copyOrders(k, k.Stream(ordinary), hal.StagedCopy, map[string]copyOrder{
			"device to pinned":   {false, false},
			"device to pageable": {true, true},
			"pinned to device":   {false, false},
			"pageable to device": {true, true},
			"device to device":   {false, false},
		})
		_, err := k.Stream(ordinary).CopyAs(k.Me, hal.CopySpec{}, 200)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
	}},
	{"M5_a_copy_for_another_operation_does_not_wait_between_pinned_blocks", Memory, func(k *Kit) {
		pinned, in := k.Pinned(small)
		other, out := k.Pinned(small)
		copy(in, pattern(small, 5))
		s := k.Stream(ordinary)
		p, err := s.CopyAs(k.Me, hal.CopySpec{Dst: other.Start, Src: pinned.Start, Width: small}, hal.FillingCopy)
		require.NoError(k, err)
		require.Nil(k, p)
		k.Sync(s)
		require.Equal(k, pattern(small, 5), out)
	}},
	{"O1_a_fill_by_a_copy_is_a_fill_to_listeners", Memory, func(k *Kit) {
		pinned, _ := k.Pinned(small)
		other, _ := k.Pinned(small)
		s := k.Stream(ordinary)
		var seen []hal.Operation
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Stream == s {
				seen = append(seen, o)
			}
		})
		_, err := s.CopyAs(k.Me, hal.CopySpec{Dst: other.Start, Src: pinned.Start, Width: small}, hal.FillingCopy)
		stop()
		require.NoError(k, err)
		require.Len(k, seen, 1)
		require.Equal(k, hal.OpFill, seen[0].Kind)
		require.Empty(k, seen[0].Reads)
		require.Len(k, seen[0].Writes, 1)
		k.Sync(s)
	}},
	{"M5_copies_within_host_memory_return_when_they_are_done", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		pinned, in := k.Pinned(small)
		other, out := k.Pinned(small)
		pageable, memory := k.Pageable(small)
		copy(in, pattern(small, 5))
		for name, row := range map[string]struct {
			to, from uint64
			out      []byte
		}{
			"pinned to pinned":   {other.Start, pinned.Start, out},
			"pinned to pageable": {pageable, pinned.Start, memory},
			"pageable to pinned": {other.Start, pageable, out},
		} {
			clear(out)
			copy(memory, pattern(small, 5))
			for _, call := range []hal.CopyCall{hal.EnqueuedCopy, hal.AsyncCopy} {
				p, err := s.CopyAs(k.Me, hal.CopySpec{Dst: row.to, Src: row.from, Width: small}, call)
				require.NoError(k, err, name)
				require.NotNil(k, p, name)
				require.True(k, p.Wait(int64(Limit)), name)
				require.Equal(k, pattern(small, 5), row.out, name)
			}
		}
	}},
	{"V8_a_blocking_fill_waits_where_the_host_can_work_on_the_target", Memory, func(k *Kit) {
		s := k.Device(0).Legacy()
		pinned, _ := k.Pinned(small)
		managed := k.Alloc(0, small)
		k.RT.MarkManaged(managed.Start)
		for name, row := range map[string]struct {
			to   uint64
			wait bool
		}{
			"device":  {k.Alloc(0, small).Start, false},
			"pinned":  {pinned.Start, true},
			"managed": {managed.Start, true},
		} {
			p, err := s.FillBlocking(k.Me, row.to, 1, 1, small)
			require.NoError(k, err, name)
			require.Equal(k, row.wait, p != nil, name)
			require.True(k, p == nil || p.Wait(int64(driver.Forever)), name)
		}
		k.Sync(s)
	}},
}

// copyOrder is what a copy orders for the host: anything, and itself.
type copyOrder struct{ anything, itself bool }

// copyOrders requires that listeners are notified of what a kind of copy orders for the host,
// for small copies and for such as are not staged.
func copyOrders(k *Kit, s *hal.Stream, call hal.CopyCall, rows map[string]copyOrder) {
	for _, size := range []int64{small, staged + 1} {
		x, y := k.Alloc(0, size), k.Alloc(0, size)
		pinned, _ := k.Pinned(size)
		other, _ := k.Pinned(size)
		pageable, _ := k.Pageable(int(size))
		ends := map[string][2]uint64{
			"host to host":       {other.Start, pinned.Start},
			"device to pinned":   {pinned.Start, x.Start},
			"device to pageable": {pageable, x.Start},
			"pinned to device":   {x.Start, pinned.Start},
			"pageable to device": {x.Start, pageable},
			"device to device":   {y.Start, x.Start},
		}
		for name, want := range rows {
			var copied, waited, read uint64
			stop := k.RT.Listen(func(o hal.Operation) {
				switch o.Kind {
				case hal.OpCopy:
					copied = o.Seq
				case hal.OpSynchronizeStream:
					waited = o.Seq
				case hal.OpHostRead:
					read = o.Seq
				}
			})
			p, err := s.CopyAs(k.Me, hal.CopySpec{Dst: ends[name][0], Src: ends[name][1], Width: uint64(size)}, call)
			require.NoError(k, err, name)
			require.True(k, p == nil || p.Wait(int64(Limit)), name)
			stop()
			k.Sync(s)
			require.NotZero(k, copied, name)
			require.Equal(k, want.anything, waited != 0, "%s, %d bytes", name, size)
			require.Equal(k, want.itself, waited > copied, "%s, %d bytes", name, size)
			staged := name == "pageable to device" && call != hal.StagedCopy
			require.Equal(k, staged, read != 0, "the source of %s, %d bytes", name, size)
		}
	}
}
