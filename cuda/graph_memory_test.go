package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// A driver takes a condition from a kernel only: the backend says so before anything runs.
func TestG13_nodes_with_conditions_are_refused(t *testing.T) {
	f := fake(t)
	rt, err := open(f.Path)()
	require.NoError(t, err)
	defer rt.Close()
	me := hal.NewThread()
	word, err := rt.AllocHost(me, 4)
	require.NoError(t, err)
	body, err := rt.NewGraph(me)
	require.NoError(t, err)
	d, err := rt.Device(0)
	require.NoError(t, err)
	block, err := d.Alloc(me, 64)
	require.NoError(t, err)
	_, err = body.Add(me, d, nil, func(s *hal.Stream) error { return s.Fill(me, block.Start, 1, 1, 64) })
	require.NoError(t, err)
	c := hal.GraphCondition{Addr: word.Start, Initial: 1, Resets: true}
	for _, add := range []func(g *hal.Graph) (*hal.Node, error){
		func(g *hal.Graph) (*hal.Node, error) { return g.AddWhile(me, nil, c, body) },
		func(g *hal.Graph) (*hal.Node, error) { return g.AddIfElse(me, nil, c, body, body) },
		func(g *hal.Graph) (*hal.Node, error) { return g.AddSwitch(me, nil, c, []*hal.Graph{body}) },
	} {
		g, err := rt.NewGraph(me)
		require.NoError(t, err)
		_, err = add(g)
		require.NoError(t, err)
		_, err = g.Instantiate(me)
		require.ErrorIs(t, err, hal.ErrNotSupported)
		require.ErrorContains(t, err, "between two launches")
		require.NoError(t, g.Close(me))
	}
	require.NoError(t, body.Close(me))
}
