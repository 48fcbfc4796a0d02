package haltest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var graphBuildCases = []testCase{
	{"G5_graphs_are_built_cloned_and_read", Graphs | Memory, func(k *Kit) {
		g := newGraph(k)
		var seq sequence
		b := k.Alloc(0, small)
		a := addCall(k, g, seq.note("a"))
		fill, err := g.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error { return s.Fill(k.Me, b.Start, 7, 1, small) })
		require.NoError(k, err)
		end, err := g.AddEmpty(k.Me, []*hal.Node{a})
		require.NoError(k, err)
		require.NoError(k, g.AddEdge(k.Me, fill, end))
		require.ErrorIs(k, g.AddEdge(k.Me, fill, end), hal.ErrInvalidValue, "it exists")
		require.ErrorContains(k, g.AddEdge(k.Me, end, a), "cycle")
		clone, err := g.Clone(k.Me)
		require.NoError(k, err)
		defer func() { _ = clone.Close(k.Me) }()
		other, err := g.Clone(k.Me)
		require.NoError(k, err)
		defer func() { _ = other.Close(k.Me) }()
		for n := range 3 {
			_, err = other.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error {
				for range n {
					require.NoError(k, s.Nop(k.Me))
				}
				return nil
			})
			require.Equal(k, n == 1, err == nil, "a node is one operation")
		}
		require.ErrorIs(k, g.AddEdge(k.Me, clone.Nodes()[0], end), hal.ErrInvalidValue, "a node of another graph")
		last, err := clone.AddEmpty(k.Me, nil)
		require.NoError(k, err)
		require.Equal(k, 3, last.Index())
		require.Len(k, g.Nodes(), 3, "the clone is another graph")
		require.Equal(k, []*hal.Node{clone.Nodes()[0], clone.Nodes()[1]}, clone.Nodes()[2].After())
		_, writes := fill.Accesses()
		require.Equal(k, []hal.Range{{Start: b.Start, Size: small}}, writes)
		for _, want := range []string{"n0 -> n2;", "n1 -> n2;", `n1 [label="fill"]`, "digraph"} {
			require.Contains(k, g.DOT(nil, false), want)
		}
		require.Contains(k, g.DOT(nil, true), fmt.Sprintf(`writes %d bytes at %#x"];`, small, b.Start))
		s := k.Stream(ordinary)
		k.Launch(k.Executable(clone), s)
		k.Sync(s)
		require.Equal(k, []string{"a"}, seq.take())
		require.EqualValues(k, 7, k.Read(b)[small-1])
	}},
	{"G5_a_graph_is_a_node_of_another", FourQueues | Graphs, func(k *Kit) {
		var seq sequence
		child, g := newGraph(k), newGraph(k)
		addCall(k, child, seq.note("c2"), addCall(k, child, seq.note("c1")))
		release := make(chan struct{})
		first := addCall(k, g, func() { <-release; seq.note("first")() })
		n, err := g.AddChild(k.Me, []*hal.Node{first}, child)
		require.NoError(k, err)
		require.Equal(k, hal.OpGraph, n.Kind())
		require.Len(k, n.Child().Nodes(), 2)
		addCall(k, g, seq.note("last"), n)
		addCall(k, child, seq.note("later")) // the node is the graph as it was
		s := k.Stream(ordinary)
		x := k.Executable(g)
		k.Launch(x, s)
		for range 8 { // each round lets what is ready move on
			k.Pending(s, "the first node has not ended")
		}
		require.Empty(k, seq.take(), "the graph comes after the first node")
		close(release)
		k.Sync(s)
		require.Equal(k, []string{"first", "c1", "c2", "last"}, seq.take())
		k.Capture(s)
		k.Launch(x, s)
		outer := k.EndCapture(s)
		require.Equal(k, hal.OpGraph, outer.Nodes()[0].Kind())
		k.Sync(s)
		require.Empty(k, seq.take(), "a launch that is captured does not run")
		k.Launch(k.Executable(outer), s)
		k.Sync(s)
		require.Equal(k, []string{"first", "c1", "c2", "last"}, seq.take())
	}},
	{"G5_a_node_that_cannot_be_added_leaves_the_graph_as_it_was", FourQueues | Graphs | Memory, func(k *Kit) {
		g, s := newGraph(k), k.Stream(ordinary)
		var seq sequence
		first := addCall(k, g, seq.note("first"))
		var tokens []uint64
		call := func(s *hal.Stream) {
			token := k.served.put(func(*hal.Thread) error { seq.note("dropped")(); return nil })
			tokens = append(tokens, token)
			require.NoError(k, s.HostFunc(k.Me, token))
		}
		own := errors.New("an error of the caller")
		var kept *hal.Stream
		for name, enqueue := range map[string]func(*hal.Stream) error{
			"two operations":                  func(s *hal.Stream) error { call(s); call(s); return nil },
			"an error after an operation":     func(s *hal.Stream) error { call(s); kept = s; return own },
			"an illegal call after one":       func(s *hal.Stream) error { call(s); _, err := s.Synchronize(k.Me, 0); return err },
			"an illegal call that is ignored": func(s *hal.Stream) error { call(s); _, _ = s.Query(k.Me); return nil },
		} {
			_, err := g.Add(k.Me, k.Device(0), []*hal.Node{first}, enqueue)
			require.Error(k, err, name)
			require.Len(k, g.Nodes(), 1, name)
		}
		require.Error(k, kept.Nop(k.Me), "the stream is given up")
		for _, token := range tokens {
			k.Eventually(func() bool { return !k.served.has(token) }, "a function of a dropped node is never released")
		}
		last := addCall(k, g, seq.note("last"), first)
		require.Equal(k, 1, last.Index())
		k.Launch(k.Executable(g), s)
		k.Sync(s)
		require.Equal(k, []string{"first", "last"}, seq.take())
	}},
	{"G5_memory_of_a_node_that_cannot_be_added_is_free_for_another", FourQueues | Graphs | Memory, func(k *Kit) {
		s, g := k.Stream(ordinary), newGraph(k)
		k.Capture(s)
		b := allocAsync(k, s)
		k.Fill(s, b, 3)
		first := k.EndCapture(s)
		_, err := g.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error {
			require.NoError(k, s.FreeAsync(k.Me, b.Start))
			return errors.New("an error of the caller")
		})
		require.Error(k, err)
		require.Empty(k, g.Nodes())
		_, err = g.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error { return s.FreeAsync(k.Me, b.Start) })
		require.NoError(k, err, "the node that was dropped does not free it")
		k.Launch(k.Executable(first), s)
		k.Launch(k.Executable(g), s)
		k.Sync(s)
	}},
	{"G9_an_edge_that_is_added_after_an_instantiation_is_none_of_the_executable", FourQueues | Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		g := newGraph(k)
		first, second := addCall(k, g, func() {}), addCall(k, g, func() {})
		before, err := g.Clone(k.Me)
		require.NoError(k, err)
		defer func() { require.NoError(k, before.Close(k.Me)) }()
		x := k.Executable(g)
		require.NoError(k, g.AddEdge(k.Me, first, second))
		addCall(k, g, func() {})
		k.Capture(s)
		k.Launch(x, s)
		around := k.EndCapture(s)
		k.comesAfter(around.Nodes()[0].Child(), [][]int{{}, {}})
		require.NoError(k, x.Update(k.Me, before))
		x = k.Executable(before)
		require.NoError(k, before.AddEdge(k.Me, before.Nodes()[0], before.Nodes()[1]))
		builder, err := x.NodeBuilder(k.Me, 1)
		require.NoError(k, err)
		require.NoError(k, k.TryCall(builder, func() {}))
		require.NoError(k, x.BuiltUpdate(builder, 1))
		k.CaptureFails(x.Update(k.Me, before), 910)
		k.Launch(x, s)
		k.Sync(s)
	}},
	{"G9_edges_are_added_to_a_graph_while_its_executable_is_updated", FourQueues | Graphs, func(k *Kit) {
		g := newGraph(k)
		nodes := make([]*hal.Node, 20)
		for i := range nodes {
			nodes[i] = addCall(k, g, func() {})
		}
		executables := make([]*hal.GraphExec, len(nodes))
		for i := range executables {
			executables[i] = k.Executable(g)
		}
		var group sync.WaitGroup
		group.Go(func() {
			other := hal.NewThread()
			defer other.Retire()
			for i := range nodes[1:] {
				require.NoError(k, g.AddEdge(other, nodes[i], nodes[i+1]))
			}
		})
		for i, x := range executables {
			builder, err := x.NodeBuilder(k.Me, i)
			require.NoError(k, err)
			require.NoError(k, k.TryCall(builder, func() {}))
			require.NoError(k, x.BuiltUpdate(builder, i))
		}
		group.Wait()
		s := k.Stream(ordinary)
		k.Capture(s)
		k.Launch(executables[len(nodes)-1], s)
		for _, n := range k.EndCapture(s).Nodes()[0].Child().Nodes() {
			require.Empty(k, n.After())
		}
	}},
	{"G9_a_refused_update_names_the_node_in_its_graph", FourQueues | Graphs, func(k *Kit) {
		around := func(empty bool, after bool) *hal.Graph {
			child, g := newGraph(k), newGraph(k)
			if empty {
				_, err := child.AddEmpty(k.Me, nil)
				require.NoError(k, err)
			} else {
				addCall(k, child, func() {})
			}
			first, err := g.AddEmpty(k.Me, nil)
			require.NoError(k, err)
			n, err := g.AddChild(k.Me, []*hal.Node{first}, child)
			require.NoError(k, err)
			last := []*hal.Node{first, n}
			if after {
				last = last[1:]
			}
			addCall(k, g, func() {}, last...)
			return g
		}
		x := k.Executable(around(false, false))
		for text, g := range map[string]*hal.Graph{
			"the type of node 0 (call) in the graph of node 1 (graph) changed from call to empty": around(true, false),
			"the topology changed: node 2 (call) comes after other nodes":                         around(false, true),
		} {
			err := x.Update(k.Me, g)
			k.CaptureFails(err, 910)
			require.ErrorContains(k, err, text)
		}
		require.NoError(k, x.Update(k.Me, around(false, false)))
	}},
}
