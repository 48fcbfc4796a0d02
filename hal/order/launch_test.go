package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// TestV27_launches_of_one_executable_follow_each_other launches on streams that nothing orders.
func TestV27_launches_of_one_executable_follow_each_other(t *testing.T) {
	k := newKit(t)
	g, err := k.rt.NewGraph(k.me)
	require.NoError(t, err)
	instance := func() *hal.GraphExec {
		x, err := g.Instantiate(k.me)
		require.NoError(t, err)
		return x
	}
	x, other := instance(), instance()
	a, b, c := k.free(), k.free(), k.free()
	k.launch(a, x)
	k.launch(b, x)
	k.none()
	require.NoError(t, x.Close(k.me))
	k.c.tidy()
	require.Empty(t, k.c.launches)
	k.sync(b) // and so with the first one
	k.none()
	first := k.launch(a, other)
	second := k.write(c, is(0, 8))
	k.one(Race, first, second)
}

// launch enqueues a run of a graph that writes 8 bytes.
func (k *kit) launch(s *hal.Stream, x *hal.GraphExec) uint32 {
	return k.do(hal.Operation{Kind: hal.OpLaunchGraph, Stream: s, Exec: x, Writes: is(0, 8)})
}
