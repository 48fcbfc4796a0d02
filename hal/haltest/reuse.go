package haltest

import "github.com/stretchr/testify/require"

var reuseCases = []testCase{
	{"M22_dropped_memory_goes_back_at_once_where_the_program_is_checked", Memory, func(k *Kit) {
		d := k.emptyPool(0)
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
}
