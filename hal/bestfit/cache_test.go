package bestfit_test

import (
	"math/rand/v2"
	"testing"

	"halstream/hal"
	"halstream/hal/bestfit"

	"github.com/stretchr/testify/require"
)

func TestM18_a_cache_divides_merges_and_bounds(t *testing.T) {
	p := bestfit.NewCache(false)
	require.Nil(t, p.Take(0, 1, 512), "it is empty")
	require.NoError(t, p.Reserve(0, 4096))
	a := p.Add(0, 1, 0x10000, 4096, 7)
	a.Free()
	require.Nil(t, p.Take(0, 2, 512), "it belongs to another key")
	require.Nil(t, p.Take(1, 1, 512), "and another device")
	first, second := p.Take(0, 1, 1024), p.Take(0, 1, 3072)
	require.Equal(t, []uint64{0x10000, 0x10400}, []uint64{first.Address(), second.Address()})
	require.Nil(t, p.Take(0, 1, 512), "all is in use")
	first.Free()
	require.Empty(t, p.FreeAll(0, 0, true), "a part is in use")
	require.Equal(t, bestfit.Stats{Total: 4096, Free: 1024, FreeBlocks: 1}, p.Stats(0))
	second.Free()
	require.Equal(t, bestfit.Stats{Total: 4096, Free: 4096, FreeBlocks: 1}, p.Stats(0))
	p.SetLimit(0, 5000)
	require.ErrorIs(t, p.Reserve(0, 1024), hal.ErrOutOfMemory)
	require.Empty(t, p.FreeAll(0, 2, false))
	require.Equal(t, []int64{7}, p.FreeAll(0, 1, false))
	require.NoError(t, p.Reserve(0, 5000))
	p.Unreserve(0, 5000)
	require.Equal(t, bestfit.Stats{Limit: 5000}, p.Stats(0))
}

func TestM18_an_exact_cache_gives_each_block_for_its_own_size(t *testing.T) {
	p := bestfit.NewCache(true)
	p.Add(-1, 0, 0x10000, 1024, 1).Free()
	require.Nil(t, p.Take(-1, 0, 512))
	require.NotNil(t, p.Take(-1, 0, 1024))
}

func TestM18_blocks_of_a_cache_share_no_byte(t *testing.T) {
	p := bestfit.NewCache(false)
	random := rand.New(rand.NewPCG(3, 4))
	type given struct {
		block       *bestfit.Block
		start, size uint64
	}
	var live []given
	next := uint64(0x100000)
	for i := range 5000 {
		if len(live) > 0 && random.IntN(2) == 0 {
			n := random.IntN(len(live))
			live[n].block.Free()
			live[n] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		size := 512 * (1 + random.Uint64N(16))
		b := p.Take(0, 0, size)
		if b == nil {
			require.NoError(t, p.Reserve(0, size))
			b = p.Add(0, 0, next, size, int64(i))
			next += size // segments that touch are not merged
		}
		for _, o := range live {
			require.True(t, b.Address()+size <= o.start || o.start+o.size <= b.Address())
		}
		live = append(live, given{b, b.Address(), size})
	}
	for _, g := range live {
		g.block.Free()
	}
	stats := p.Stats(0)
	require.Equal(t, stats.Total, stats.Free)
	p.FreeAll(0, 0, true)
	require.Zero(t, p.Stats(0).Total)
}
