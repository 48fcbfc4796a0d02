package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// condition returns a condition, which no launch of these tests runs.
func (k *kit) condition() hal.GraphCondition {
	k.t.Helper()
	b, err := k.rt.AllocHost(k.me, 64)
	require.NoError(k.t, err)
	return hal.GraphCondition{Addr: b.Start}
}

// body returns a graph with nodes that write ranges and have no order.
func (k *kit) body(writes ...[]hal.Range) *hal.Graph {
	g := k.graph()
	for _, r := range writes {
		k.node(g, r)
	}
	return g
}

// instantiated returns what is reported when a graph is instantiated, and when it is once more.
func (k *kit) instantiated(g *hal.Graph) []Report {
	k.t.Helper()
	stop := k.rt.Listen(k.c.Handle)
	defer stop()
	_, err := g.Instantiate(k.me)
	require.NoError(k.t, err)
	found := k.c.Take()
	_, err = g.Instantiate(k.me)
	require.NoError(k.t, err)
	k.none()
	return found
}

func TestV43_nodes_of_a_body_are_compared_with_each_other(t *testing.T) {
	k := newKit(t)
	g, body := k.graph(), k.body(is(0, 8), is(4, 12))
	before := k.node(g, is(0, 12))
	_, err := g.AddWhile(k.me, []*hal.Node{before}, k.condition(), body)
	require.NoError(t, err)
	found := k.instantiated(g)
	require.Len(t, found, 1, "one iteration comes after the other, and the node before after none of them")
	require.Equal(t, NoPath, found[0].Reason.Why)
	require.Equal(t, is(4, 8)[0], found[0].Range)
	inside := []InsideNote{{Index: 1, Kind: hal.OpWhile}}
	require.Equal(t, &NodeNote{Index: 0, Kind: hal.OpCall, Inside: inside, Site: found[0].First.Node.Site}, found[0].First.Node)
	require.Equal(t, &NodeNote{Index: 1, Kind: hal.OpCall, Inside: inside, Site: found[0].Second.Node.Site}, found[0].Second.Node)
}

func TestV43_a_path_in_a_body_is_order(t *testing.T) {
	k := newKit(t)
	g, body := k.graph(), k.graph()
	first := k.node(body, is(0, 8))
	between := k.node(body, is(16, 24), first)
	k.node(body, is(0, 8), between)
	n, err := g.AddIf(k.me, nil, k.condition(), body)
	require.NoError(t, err)
	k.node(g, is(0, 24), n)
	require.Empty(t, k.instantiated(g))
}

func TestV43_bodies_that_exclude_each_other_are_not_compared(t *testing.T) {
	for name, add := range map[string]func(*kit, *hal.Graph, []*hal.Graph) (*hal.Node, error){
		"if": func(k *kit, g *hal.Graph, bodies []*hal.Graph) (*hal.Node, error) {
			return g.AddIfElse(k.me, nil, k.condition(), bodies[0], bodies[1])
		},
		"switch": func(k *kit, g *hal.Graph, bodies []*hal.Graph) (*hal.Node, error) {
			return g.AddSwitch(k.me, nil, k.condition(), bodies)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			g := k.graph()
			_, err := add(k, g, []*hal.Graph{k.body(is(0, 8)), k.body(is(0, 8))})
			require.NoError(t, err)
			require.Empty(t, k.instantiated(g))
		})
	}
}

func TestV43_both_bodies_are_compared_with_a_node_beside_theirs(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	k.node(g, is(0, 8))
	_, err := g.AddIfElse(k.me, nil, k.condition(), k.body(is(0, 8)), k.body(is(8, 16), is(0, 8)))
	require.NoError(t, err)
	found := k.instantiated(g)
	var bodies [][]InsideNote
	for _, r := range found {
		bodies = append(bodies, r.Second.Node.Inside)
		require.Empty(t, r.First.Node.Inside)
		require.Equal(t, 0, r.First.Node.Index)
	}
	require.Equal(t, [][]InsideNote{{{1, hal.OpIf, 0}}, {{1, hal.OpIf, 1}}}, bodies, "and not of the node itself")
}

func TestV43_a_node_of_a_nested_body_is_compared_with_those_beside_what_it_is_in(t *testing.T) {
	for name, test := range map[string]struct {
		edge  bool
		found int
	}{"without an edge": {false, 1}, "with an edge": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			// A graph as a node, in which a loop has a body that is a graph with a switch.
			c := k.condition()
			chosen, loop, outer, g := k.graph(), k.graph(), k.graph(), k.graph()
			_, err := chosen.AddSwitch(k.me, nil, c, []*hal.Graph{k.body(is(32, 40)), k.body(is(0, 8))})
			require.NoError(t, err)
			_, err = loop.AddChild(k.me, nil, chosen)
			require.NoError(t, err)
			_, err = outer.AddWhile(k.me, nil, c, loop)
			require.NoError(t, err)
			child, err := g.AddChild(k.me, nil, outer)
			require.NoError(t, err)
			var after []*hal.Node
			if test.edge {
				after = append(after, child)
			}
			k.node(g, is(4, 6), after...)
			found := k.instantiated(g)
			require.Len(t, found, test.found)
			if test.found > 0 {
				require.Equal(t, []InsideNote{{0, hal.OpGraph, 0}, {0, hal.OpWhile, 0}, {0, hal.OpGraph, 0}, {0, hal.OpSwitch, 1}},
					found[0].First.Node.Inside)
			}
		})
	}
}

func TestV43_a_node_that_writes_a_condition_is_compared_with_the_look_at_it(t *testing.T) {
	for name, beside := range map[string]bool{"beside": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			c, g := k.condition(), k.graph()
			word := []hal.Range{{Start: c.Addr, Size: 4}}
			writer := k.node(g, word)
			after := []*hal.Node{writer}
			if beside {
				after = nil
			}
			_, err := g.AddWhile(k.me, after, c, k.body(word)) // its own body comes between its looks
			require.NoError(t, err)
			found := k.instantiated(g)
			if !beside {
				require.Empty(t, found)
				return
			}
			var kinds []string
			for _, r := range found {
				kinds = append(kinds, r.Second.Node.Kind.String())
			}
			require.Equal(t, []string{"while", "call"}, kinds)
		})
	}
}

func TestV43_a_pair_of_a_captured_graph_is_not_reported_again_where_that_is_a_body(t *testing.T) {
	k := newKit(t)
	stop := k.rt.Listen(k.c.Handle)
	defer stop()
	main, side := k.free(), k.free()
	b, err := k.device(0).Alloc(k.me, 64)
	require.NoError(t, err)
	require.NoError(t, main.BeginCapture(k.me, hal.RelaxedMode))
	require.NoError(t, side.WaitStream(k.me, main))
	require.NoError(t, main.Fill(k.me, b.Start, 1, 1, 64))
	require.NoError(t, side.Fill(k.me, b.Start, 2, 1, 64))
	require.NoError(t, main.WaitStream(k.me, side))
	body, err := main.EndCapture(k.me)
	require.NoError(t, err)
	require.Len(t, k.c.Take(), 1)
	g := k.graph()
	_, err = g.AddIf(k.me, nil, k.condition(), body)
	require.NoError(t, err)
	require.NoError(t, g.AddEdge(k.me, k.node(g, is(0, 8)), g.Nodes()[0]))
	_, err = g.Instantiate(k.me)
	require.NoError(t, err)
	k.none()
}

func TestV44_a_node_of_a_body_is_reported_with_other_work(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	first := k.node(g, is(0, 8))
	_, err := g.AddIf(k.me, []*hal.Node{first}, k.condition(), k.body(is(8, 16), is(16, 24)))
	require.NoError(t, err)
	launch := k.run(k.free(), g)
	k.none()
	second := k.write(k.free(), is(18, 20))
	r := k.one(Race, launch+4, second)
	require.Equal(t, hal.OpLaunchGraph, r.First.Kind)
	require.Equal(t, 1, r.First.Node.Index)
	require.Equal(t, []InsideNote{{1, hal.OpIf, 0}}, r.First.Node.Inside)
	require.Equal(t, NeverWaited, r.Reason.Why)
}

func TestV44_nodes_of_bodies_have_numbers_of_their_own(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	_, err := g.AddIf(k.me, nil, k.condition(), k.body(is(0, 8), is(8, 16)))
	require.NoError(t, err)
	x, err := g.Instantiate(k.me)
	require.NoError(t, err)
	var heard []hal.Operation
	stop := k.rt.Listen(func(o hal.Operation) { heard = append(heard, o) })
	s := k.free()
	require.NoError(t, x.Launch(k.me, s))
	require.NoError(t, s.Nop(k.me))
	stop()
	var launch, after uint32
	for i := range heard {
		switch o := &heard[i]; o.Kind {
		case hal.OpLaunchGraph:
			launch = o.NodeID(o.Nodes.All() - 1)
			require.Equal(t, o.ID+3, launch)
		case hal.OpNop:
			after = o.ID
		}
	}
	require.Greater(t, after, launch)
}

func TestV44_what_comes_behind_a_launch_comes_after_its_bodies(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	_, err := g.AddIf(k.me, nil, k.condition(), k.body(is(0, 8)))
	require.NoError(t, err)
	a, b := k.free(), k.free()
	k.write(a, is(0, 8))
	k.run(a, g)
	k.waitStream(b, a)
	k.write(b, is(0, 8))
	k.none()
}
