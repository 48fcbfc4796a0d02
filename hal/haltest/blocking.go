package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

var blockingCases = []testCase{
	{"V8_a_blocking_copy_orders_what_the_vendor_says", Memory, func(k *Kit) {
		s := k.Device(0).Legacy()
		x, y := k.Alloc(0, small), k.Alloc(0, small)
		pinned, _ := k.Pinned(small)
		other, _ := k.Pinned(small)
		pageable, _ := k.Pageable(small)
		for name, row := range map[string]struct {
			to, from uint64
			waited   bool // for anything
			itself   bool // for the copy
		}{
			"host to host":       {other.Start, pinned.Start, true, true},
			"device to pinned":   {pinned.Start, x.Start, true, true},
			"device to pageable": {pageable, x.Start, true, true},
			"pinned to device":   {x.Start, pinned.Start, true, true},
			"pageable to device": {x.Start, pageable, true, false},
			"device to device":   {y.Start, x.Start, false, false},
		} {
			var copied, waited uint64
			stop := k.RT.Listen(func(o hal.Operation) {
				switch o.Kind {
				case "copy":
					copied = o.Seq
				case "synchronize stream":
					waited = o.Seq
				}
			})
			p, err := s.CopyBlocking(k.Me, hal.CopySpec{Dst: row.to, Src: row.from, Width: small})
			require.NoError(k, err, name)
			require.True(k, p == nil || p.Wait(int64(Limit)), name)
			stop()
			require.NotZero(k, copied, name)
			require.Equal(k, row.waited, waited != 0, name)
			require.Equal(k, row.itself, waited > copied, name)
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
