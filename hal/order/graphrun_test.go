package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// node adds a node that writes to a range, through a function that declares that.
func (k *kit) node(g *hal.Graph, r []hal.Range, after ...*hal.Node) *hal.Node {
	k.t.Helper()
	n, err := g.Add(k.me, k.device(0), after, func(s *hal.Stream) error {
		return s.HostFuncOn(k.me, 1, hal.Accesses{Writes: r})
	})
	require.NoError(k.t, err)
	return n
}

func (k *kit) graph() *hal.Graph {
	g, err := k.rt.NewGraph(k.me)
	require.NoError(k.t, err)
	return g
}

// run enqueues a launch with the nodes of a graph, whose numbers follow its own.
func (k *kit) run(s *hal.Stream, g *hal.Graph, versions ...hal.NodeVersion) uint32 {
	nodes := g.NodeList()
	id := k.do(hal.Operation{Kind: hal.OpLaunchGraph, Stream: s, Nodes: nodes, NodeVersions: versions})
	k.id += uint32(nodes.All())
	return id
}

func TestV43_nodes_without_a_path_are_reported_when_an_executable_is_made(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	first := k.node(g, is(0, 8))
	k.node(g, is(8, 16))
	child := k.graph()
	k.node(child, is(4, 12), nil...)
	_, err := g.AddChild(k.me, []*hal.Node{first}, child)
	require.NoError(t, err)
	stop := k.rt.Listen(k.c.Handle)
	defer stop()
	x, err := g.Instantiate(k.me)
	require.NoError(t, err)
	found := k.c.Take()
	require.Len(t, found, 1, "the graph in it comes after the first node, and not after the second")
	require.Equal(t, NoPath, found[0].Reason.Why)
	require.Equal(t, is(8, 12)[0], found[0].Range)
	require.Equal(t, 1, found[0].First.Node.Index)
	require.Equal(t, 0, found[0].Second.Node.Index)
	require.NoError(t, x.Update(k.me, g))
	k.none()
}

func TestV43_an_executable_from_before_the_check_is_compared_at_its_first_launch(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	k.node(g, is(0, 8))
	k.node(g, is(0, 8))
	x, err := g.Instantiate(k.me)
	require.NoError(t, err)
	nodes := g.NodeList()
	for launch, reports := range []int{1, 0} {
		k.do(hal.Operation{Kind: hal.OpLaunchGraph, Stream: k.free(), Exec: x, Nodes: nodes})
		require.Len(t, k.c.Take(), reports, "launch %d", launch)
	}
}

func TestV44_a_report_names_the_node_and_the_launch(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	k.node(g, is(0, 8))
	k.node(g, is(8, 16))
	launch := k.run(k.free(), g)
	k.none()
	second := k.write(k.free(), is(10, 12))
	r := k.one(Race, launch+2, second)
	require.Equal(t, hal.OpLaunchGraph, r.First.Kind)
	require.Equal(t, &NodeNote{Index: 1, Kind: hal.OpCall}, r.First.Node)
	require.Equal(t, NeverWaited, r.Reason.Why)
}

func TestV44_what_comes_behind_a_launch_comes_after_all_of_its_nodes(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	k.node(g, is(0, 8))
	k.node(g, is(8, 16))
	a, b := k.free(), k.free()
	k.run(a, g)
	k.waitStream(b, a)
	k.write(b, is(0, 16))
	k.none()
}

func TestV44_an_observed_write_is_compared_with_the_other_nodes_of_its_launch(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	one := k.node(g, is(0, 8))
	k.node(g, is(8, 16))
	k.node(g, is(16, 24), one)
	launch := k.run(k.free(), g)
	k.c.Observed(launch+3, is(0, 4))
	k.none() // it comes after that node
	k.c.Observed(launch+3, is(8, 9))
	r := k.one(Race, launch+2, launch+3)
	require.Equal(t, NoPath, r.Reason.Why)
}

func TestV44_two_nodes_of_a_launch_are_reported_in_the_order_of_the_graph(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	k.node(g, is(0, 8))
	k.node(g, is(8, 16))
	launch := k.run(k.free(), g)
	k.c.Observed(launch+1, is(8, 9)) // seen when the other one is known already
	r := k.one(Race, launch+1, launch+2)
	require.True(t, r.First.Seen)
	require.False(t, r.First.Node.Captured)
}

func TestV44_two_reads_of_one_launch_are_both_kept(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	reads := func(after ...*hal.Node) *hal.Node {
		n, err := g.Add(k.me, k.device(0), after, func(s *hal.Stream) error {
			return s.HostFuncOn(k.me, 1, hal.Accesses{Reads: is(0, 8)})
		})
		require.NoError(t, err)
		return n
	}
	reads()
	second := reads()
	k.node(g, is(16, 24), second)
	launch := k.run(k.free(), g)
	k.c.Observed(launch+3, is(0, 8))
	r := k.one(Race, launch+1, launch+3)
	require.False(t, r.First.Write)
}

func TestV44_an_event_of_a_node_orders_the_nodes_before_its_record_only(t *testing.T) {
	k := newKit(t)
	e := k.event(hal.Standard)
	g := k.graph()
	beside := k.node(g, is(8, 16))
	before := k.node(g, is(0, 8))
	record, err := g.Add(k.me, k.device(0), []*hal.Node{before}, func(s *hal.Stream) error { return s.RecordExternal(k.me, e) })
	require.NoError(t, err)
	a, b := k.free(), k.free()
	launch := k.run(a, g, hal.NodeVersion{Node: record.Index(), Version: 1})
	k.wait(b, e, 1)
	k.write(b, is(0, 8))
	k.none()
	second := k.write(b, is(8, 16))
	k.one(Race, launch+1+uint32(beside.Index()), second)
}

func TestV44_a_node_that_waits_for_an_event_comes_after_its_record(t *testing.T) {
	k := newKit(t)
	e := k.event(hal.Standard)
	g := k.graph()
	wait, err := g.Add(k.me, k.device(0), nil, func(s *hal.Stream) error { return s.WaitExternal(k.me, e) })
	require.NoError(t, err)
	k.node(g, is(0, 8), wait)
	beside := k.node(g, is(8, 16))
	a, b := k.free(), k.free()
	first := k.write(b, is(0, 16))
	k.record(b, e, 1)
	launch := k.run(a, g, hal.NodeVersion{Node: wait.Index(), Version: 1})
	k.one(Race, first, launch+1+uint32(beside.Index()))
}

func TestV44_a_node_that_waited_too_early_is_named_as_the_wait_that_missed(t *testing.T) {
	for _, of := range []struct {
		name     string
		version  uint64
		recorded func(k *kit, e *hal.Event, a, b *hal.Stream)
		why      Why
	}{
		{"an older record", 1, func(k *kit, e *hal.Event, _, b *hal.Stream) { k.record(b, e, 1) }, OlderRecord},
		{"no record", 0, func(*kit, *hal.Event, *hal.Stream, *hal.Stream) {}, NoRecord},
		{"its own record", 1, func(k *kit, e *hal.Event, a, _ *hal.Stream) { k.record(a, e, 1) }, OwnRecord},
	} {
		t.Run(of.name, func(t *testing.T) {
			k := newKit(t)
			e := k.event(hal.Standard)
			g := k.graph()
			wait, err := g.Add(k.me, k.device(0), nil, func(s *hal.Stream) error { return s.WaitExternal(k.me, e) })
			require.NoError(t, err)
			node := k.node(g, is(0, 8), wait)
			a, b := k.free(), k.free()
			of.recorded(k, e, a, b)
			first := k.write(b, is(0, 8))
			launch := k.run(a, g, hal.NodeVersion{Node: wait.Index(), Version: of.version})
			r := k.one(Race, first, launch+1+uint32(node.Index()))
			require.Equal(t, of.why, r.Reason.Why)
			require.Equal(t, e.ID(), r.Reason.Wait.Event)
		})
	}
}

func TestV44_a_record_of_a_node_is_named_as_the_one_to_wait_for(t *testing.T) {
	k := newKit(t)
	e := k.event(hal.Standard)
	g := k.graph()
	node := k.node(g, is(0, 8))
	record, err := g.Add(k.me, k.device(0), []*hal.Node{node}, func(s *hal.Stream) error { return s.RecordExternal(k.me, e) })
	require.NoError(t, err)
	a, b := k.free(), k.free()
	launch := k.run(a, g, hal.NodeVersion{Node: record.Index(), Version: 1})
	r := k.one(Race, launch+1+uint32(node.Index()), k.write(b, is(0, 8)))
	require.Equal(t, e.ID(), r.Reason.Record.Event)
}

func TestV43_a_path_over_other_nodes_is_order(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	first := k.node(g, is(0, 8))
	between := k.node(g, is(8, 16), first)
	k.node(g, is(0, 8), between)
	stop := k.rt.Listen(k.c.Handle)
	defer stop()
	_, err := g.Instantiate(k.me)
	require.NoError(t, err)
	k.none()
}
