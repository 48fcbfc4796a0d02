package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// allocAsync allocates on a stream that captures; the graph owns the memory.
func allocAsync(k *Kit, s *hal.Stream) *hal.Block {
	k.T.Helper()
	b, err := s.AllocAsync(k.Me, small)
	require.NoError(k, err)
	return b
}

var graphMemoryCases = []testCase{
	{"G11_a_node_of_an_executable_is_updated_by_itself", FourQueues | Graphs | Memory | Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		var seq sequence
		b := k.Alloc(0, small)
		k.Capture(s)
		token := k.served.put(func(*hal.Thread) error { seq.note("old")(); return nil })
		require.NoError(k, s.HostFunc(k.Me, token))
		k.Fill(s, b, 1)
		g := k.EndCapture(s)
		x := k.Executable(g)
		update := func(index int, enqueue func(*hal.Stream) error) error {
			builder, err := x.NodeBuilder(k.Me, index)
			require.NoError(k, err)
			require.NoError(k, enqueue(builder))
			return x.BuiltUpdate(builder, index)
		}
		gate, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, s)
		twice := k.served.put(func(*hal.Thread) error { return nil })
		require.NoError(k, update(0, func(s *hal.Stream) error { return s.HostFunc(k.Me, twice) }))
		require.NoError(k, update(0, func(s *hal.Stream) error { return k.TryCall(s, seq.note("new")) }))
		k.Eventually(func() bool { return !k.served.has(twice) }, "a node that was replaced twice keeps its function")
		require.NoError(k, update(1, func(s *hal.Stream) error { return s.Fill(k.Me, b.Start, 9, 1, small) }))
		gate.Open()
		k.Sync(s)
		require.EqualValues(k, 1, k.Read(b)[0], "launches before keep what they do")
		k.Launch(x, s)
		k.Sync(s)
		require.Equal(k, []string{"old", "new"}, seq.take())
		require.EqualValues(k, 9, k.Read(b)[0])
		err = update(1, func(s *hal.Stream) error { return s.Nop(k.Me) })
		k.CaptureFails(err, 910)
		require.ErrorContains(k, err, "node 1 (fill")
		_, err = x.NodeBuilder(k.Me, 2)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		builder, err := x.NodeBuilder(k.Me, 0)
		require.NoError(k, err)
		require.ErrorIs(k, x.BuiltUpdate(builder, 0), hal.ErrInvalidValue, "nothing was enqueued")
		require.NoError(k, g.Close(k.Me))
		require.True(k, k.served.has(token), "an update of the whole may need it")
		require.NoError(k, x.Close(k.Me))
		k.Eventually(func() bool { return !k.served.has(token) }, "what was replaced is never released")
	}},
	{"G11_an_upload_runs_nothing", FourQueues | Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		var runs counter
		k.Capture(s)
		k.Call(s, runs.add)
		x := k.Executable(k.EndCapture(s))
		require.NoError(k, x.Upload(k.Me, s))
		k.Sync(s)
		require.Zero(k, runs.get())
		k.Launch(x, s)
		k.Sync(s)
		require.Equal(k, 1, runs.get())
		k.Capture(s)
		k.CaptureFails(x.Upload(k.Me, s), 900)
		k.invalidated(s, "upload")
		require.NoError(k, x.Close(k.Me))
		require.ErrorIs(k, x.Upload(k.Me, s), hal.ErrClosed)
	}},
	{"G12_memory_that_a_graph_allocates_and_frees_is_valid_between_the_nodes", FourQueues | Graphs | Memory | Grows, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		out := k.Alloc(0, small)
		k.Capture(s)
		b := allocAsync(k, s)
		k.Fill(s, b, 5)
		k.Copy(s, out.Start, b.Start, small)
		require.NoError(k, s.FreeBlockAsync(k.Me, b))
		require.ErrorIs(k, s.FreeBlockAsync(k.Me, b), hal.ErrInvalidValue, "it is freed twice")
		require.ErrorContains(k, s.Fill(k.Me, b.Start, 1, 1, small), "freed by node 3 (free", "a node behind the free uses it")
		g := k.EndCapture(s)
		kinds := []string{}
		for _, n := range g.Nodes() {
			kinds = append(kinds, n.Kind().String())
		}
		require.Equal(k, []string{"allocate", "fill", "copy", "free"}, kinds)
		x := k.Executable(g)
		for range 3 {
			k.Fill(o, out, 0)
			k.Sync(o)
			k.Launch(x, s)
			k.Sync(s)
			require.EqualValues(k, 5, k.Read(out)[small-1])
		}
		require.Error(k, o.Fill(k.Me, b.Start, 1, 1, small), "it is memory of the graph's nodes only")
		require.False(k, b.Freed())
		require.NoError(k, b.Collect())
		require.NoError(k, g.Close(k.Me))
		require.NoError(k, x.Close(k.Me))
		k.Eventually(b.Freed, "the memory is never freed")
	}},
	{"G12_memory_of_a_graph_outlives_its_owner_whatever_pool_was_asked", Graphs | Memory | Grows, func(k *Kit) {
		k.RT.SetStrictReuse(true) // as a sanitizer and a schedule do
		defer k.RT.SetStrictReuse(false)
		s := k.Stream(ordinary)
		for name, alloc := range map[string]func() (*hal.Block, error){
			"of a stream":           func() (*hal.Block, error) { return s.AllocAsync(k.Me, small) },
			"reusable":              func() (*hal.Block, error) { return s.AllocReusable(k.Me, small, nil) },
			"of a caching pool":     func() (*hal.Block, error) { return s.AllocCached(k.Me, small, nil) },
			"released in its order": func() (*hal.Block, error) { return released(s.AllocAsync(k.Me, small)) },
		} {
			k.Capture(s)
			b, err := alloc()
			require.NoError(k, err, name)
			k.Fill(s, b, 5)
			g := k.EndCapture(s)
			require.NoError(k, b.Collect(), name) // the owner has gone
			x := k.Executable(g)
			k.Launch(x, s)
			k.Sync(s)
			require.False(k, b.Freed(), name)
			require.NoError(k, x.Close(k.Me))
			require.NoError(k, g.Close(k.Me))
			k.Eventually(b.Freed, name+": the memory is never freed")
		}
	}},
	{"G12_memory_that_no_node_frees_is_freed_before_the_next_launch", FourQueues | Graphs | Memory | Grows, func(k *Kit) {
		s := k.Stream(ordinary)
		k.Capture(s)
		b := allocAsync(k, s)
		k.Fill(s, b, 6)
		g := k.EndCapture(s)
		require.ErrorContains(k, s.Fill(k.Me, b.Start, 1, 1, small), "no launch has allocated")
		require.ErrorContains(k, s.FreeAsync(k.Me, b.Start), "no launch has allocated")
		x := k.Executable(g)
		k.Launch(x, s)
		k.Sync(s)
		require.EqualValues(k, 6, k.Read(b)[small-1])
		err := x.Launch(k.Me, s)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "earlier launch")
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		require.ErrorIs(k, s.FreeAsync(k.Me, b.Start), hal.ErrInvalidValue, "it is freed twice")
		k.Launch(x, s)
		k.Sync(s)
		require.EqualValues(k, 6, k.Read(b)[0], "it is there again, at its address")
		require.NoError(k, x.Close(k.Me))
		auto, err := g.InstantiateWith(k.Me, hal.ExecOptions{AutoFree: true})
		require.NoError(k, err)
		k.Launch(auto, s, s)
		require.NoError(k, auto.Close(k.Me))
		require.NoError(k, g.Close(k.Me))
		k.Fill(s, b, 7)
		k.Sync(s)
		require.EqualValues(k, 7, k.Read(b)[0], "what is allocated outlives the graph")
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		k.Eventually(b.Freed, "the memory is never freed")
	}},
	{"G12_a_graph_frees_what_another_one_has_allocated", FourQueues | Graphs | Memory | Grows, func(k *Kit) {
		s := k.Stream(ordinary)
		k.Capture(s)
		b := allocAsync(k, s)
		first := k.Executable(k.EndCapture(s))
		k.Capture(s)
		k.Fill(s, b, 8)
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		second := k.Executable(k.EndCapture(s))
		err := second.Launch(k.Me, s)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "another graph")
		k.Launch(first, s)
		k.Launch(second, s)
		require.Error(k, second.Launch(k.Me, s), "it is freed twice")
		k.Launch(first, s)
		k.Sync(s)
	}},
	{"G12_memory_that_no_node_frees_is_freed_after_each_launch", FourQueues | Graphs | Memory | Grows, func(k *Kit) {
		s := k.Stream(ordinary)
		k.Capture(s)
		b := allocAsync(k, s)
		k.Fill(s, b, 5)
		x := k.Executable(k.EndCapture(s))
		for range 3 {
			k.Launch(x, s)
			k.Sync(s)
			require.Equal(k, byte(5), k.Read(b)[0])
			require.ErrorContains(k, x.Launch(k.Me, s), "earlier launch")
			require.NoError(k, s.FreeBlockAsync(k.Me, b))
			require.ErrorContains(k, s.FreeBlockAsync(k.Me, b), "freed since")
		}
		k.Launch(x, s)
		k.Capture(s)
		require.NoError(k, s.FreeBlockAsync(k.Me, b))
		free := k.Executable(k.EndCapture(s))
		k.Launch(free, s)
		k.Launch(x, s)
		require.ErrorContains(k, x.Launch(k.Me, s), "earlier launch", "its owner is there")
		k.Launch(free, s)
		k.Sync(s)
	}},
	{"G12_a_graph_with_memory_is_one", FourQueues | Graphs | Memory | Grows, func(k *Kit) {
		s := k.Stream(ordinary)
		other := k.Alloc(0, small)
		k.Capture(s)
		b := allocAsync(k, s)
		require.NoError(k, s.FreeBlockAsync(k.Me, b))
		g := k.EndCapture(s)
		x := k.Executable(g)
		_, err := g.Instantiate(k.Me)
		require.ErrorIs(k, err, hal.ErrNotSupported)
		require.ErrorContains(k, err, "has an executable already")
		_, err = g.Clone(k.Me)
		require.ErrorIs(k, err, hal.ErrNotSupported)
		_, err = newGraph(k).AddChild(k.Me, nil, g)
		require.ErrorIs(k, err, hal.ErrNotSupported)
		k.CaptureFails(x.Update(k.Me, newGraph(k)), 910)
		k.Capture(s)
		k.CaptureFails(x.Launch(k.Me, s), 900)
		k.invalidated(s, "launch it by itself")
		k.Capture(s)
		k.CaptureFails(s.FreeAsync(k.Me, other.Start), 900)
		k.invalidated(s, "only memory that a graph has allocated")
		require.NoError(k, x.Close(k.Me))
		k.Executable(g)
	}},
	{"G12_a_capture_that_fails_returns_its_memory", Graphs | Memory | Grows, func(k *Kit) {
		s := k.Stream(ordinary)
		k.Capture(s)
		b := allocAsync(k, s)
		_, err := s.Query(k.Me)
		require.Error(k, err)
		_, err = s.AllocAsync(k.Me, small)
		k.CaptureFails(err, 901)
		_, err = s.EndCapture(k.Me)
		require.Error(k, err)
		k.Eventually(b.Freed, "the memory is never freed")
	}},
}

// released makes a block one whose Release frees it in the order of its stream.
func released(b *hal.Block, err error) (*hal.Block, error) {
	if err == nil {
		b.ReleaseInOrder()
	}
	return b, err
}
