package haltest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// counter counts calls of functions on streams.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() { c.mu.Lock(); c.n++; c.mu.Unlock() }

func (c *counter) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// sequence is what functions on streams note, in the order in which they run.
type sequence struct {
	mu    sync.Mutex
	notes []string
}

func (q *sequence) note(text string) func() {
	return func() {
		q.mu.Lock()
		q.notes = append(q.notes, text)
		q.mu.Unlock()
	}
}

func (q *sequence) take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	notes := q.notes
	q.notes = nil
	return notes
}

// addCall adds a node of a function to a graph.
func addCall(k *Kit, g *hal.Graph, f func(), after ...*hal.Node) *hal.Node {
	k.T.Helper()
	n, err := g.Add(k.Me, k.Device(0), after, func(s *hal.Stream) error { return k.TryCall(s, f) })
	require.NoError(k, err)
	return n
}

// addNative adds a native function that ends when the door is opened.
func addNative(k *Kit, g *hal.Graph, d Door, after ...*hal.Node) *hal.Node {
	k.T.Helper()
	n, err := g.Add(k.Me, k.Device(0), after, func(s *hal.Stream) error {
		return s.Native(k.Me, nativeBlock, d.address(), hal.Accesses{})
	})
	require.NoError(k, err)
	return n
}

func newGraph(k *Kit) *hal.Graph {
	k.T.Helper()
	g, err := k.RT.NewGraph(k.Me)
	require.NoError(k, err)
	k.T.Cleanup(func() { _ = g.Close(nil) })
	return g
}

var graphCases = []testCase{
	{"G6_what_nodes_use_is_released_once_after_the_last_use", FourQueues | Graphs | Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		var runs counter
		token := k.served.put(func(*hal.Thread) error { runs.add(); return nil })
		k.Capture(s)
		require.NoError(k, s.HostFunc(k.Me, token))
		g := k.EndCapture(s)
		x := k.Executable(g)
		clone, err := g.Clone(k.Me)
		require.NoError(k, err)
		require.NoError(k, g.Close(k.Me))
		require.NoError(k, g.Close(k.Me), "closing again does nothing")
		_, err = g.Instantiate(k.Me)
		require.ErrorIs(k, err, hal.ErrClosed)
		gate, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, s)
		require.NoError(k, x.Close(k.Me))
		require.ErrorIs(k, x.Launch(k.Me, s), hal.ErrClosed)
		require.NoError(k, clone.Close(k.Me))
		require.True(k, k.served.has(token), "the launch in flight keeps the function")
		gate.Open()
		k.Sync(s)
		require.Equal(k, 1, runs.get())
		k.Eventually(func() bool { return !k.served.has(token) }, "the function is never released")
	}},
	{"G6_who_waits_for_the_end_of_an_executable_is_called_once_after_its_launches", FourQueues | Graphs | Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		k.Capture(s)
		require.NoError(k, s.Nop(k.Me))
		g := k.EndCapture(s)
		var ended counter
		x, err := g.InstantiateWith(k.Me, hal.ExecOptions{Ended: ended.add})
		require.NoError(k, err)
		gate, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, s)
		require.NoError(k, x.Update(k.Me, g), "later launches are not those that were enqueued")
		require.NoError(k, x.Close(k.Me))
		require.Zero(k, ended.get(), "the launch in flight is before it")
		gate.Open()
		k.Sync(s)
		k.Eventually(func() bool { return ended.get() > 0 }, "nobody is told")
		require.Equal(k, 1, ended.get())
	}},
	{"G6_functions_of_graphs_that_were_collected_are_dropped_by_who_collects_the_last_user", FourQueues | Graphs | Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		capture := func() (g *hal.Graph, tokens []uint64) {
			k.Capture(s)
			for range 2 {
				tokens = append(tokens, k.served.put(func(*hal.Thread) error { return nil }))
				require.NoError(k, s.HostFunc(k.Me, tokens[len(tokens)-1]))
			}
			return k.EndCapture(s), tokens
		}
		child, inner := capture()
		g, outer := capture()
		_, err := g.AddChild(k.Me, nil, child)
		require.NoError(k, err)
		x := k.Executable(g)
		require.Empty(k, child.Collect(), "the node uses them")
		require.Empty(k, g.Collect(), "the executable uses them")
		require.Empty(k, g.Collect(), "collecting again does nothing")
		all := append(outer, inner...)
		require.ElementsMatch(k, all, x.Collect())
		require.Empty(k, x.Collect(), "collecting again does nothing")
		for _, token := range all {
			require.True(k, k.served.has(token), "it was left to the caller")
			k.served.take(token, true)
		}

		g, tokens := capture()
		x = k.Executable(g)
		gate, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, s)
		require.Empty(k, g.Collect())
		require.Empty(k, x.Collect(), "the launch uses them")
		require.ErrorIs(k, x.Launch(k.Me, s), hal.ErrClosed)
		gate.Open()
		k.Sync(s)
		for _, token := range tokens {
			k.Eventually(func() bool { return !k.served.has(token) }, "the function is never released")
		}
	}},
	{"G6_a_capture_that_fails_releases_what_it_kept", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		token := k.served.put(func(*hal.Thread) error { return nil })
		k.Capture(s)
		require.NoError(k, s.HostFunc(k.Me, token))
		_, err := s.Query(k.Me)
		require.Error(k, err)
		_, err = s.EndCapture(k.Me)
		require.Error(k, err)
		k.Eventually(func() bool { return !k.served.has(token) }, "the function is never released")
	}},
	{"G6_the_argument_of_a_native_function_is_released_once", FourQueues | Graphs | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		c := newCalls(k, 0)
		k.Capture(s)
		require.NoError(k, s.NativeFunc(k.Me, c.function("add")))
		g := k.EndCapture(s)
		x := k.Executable(g)
		k.Launch(x, s, s, s)
		k.Sync(s)
		require.EqualValues(k, 3, c.runs())
		require.Zero(k, atomic.LoadInt32((*int32)(&c.p.releases)))
		require.NoError(k, g.Close(k.Me))
		require.NoError(k, x.Close(k.Me))
		require.EqualValues(k, 1, c.released(k))
	}},
	{"G6_memory_whose_owner_was_collected_is_freed_after_the_last_use", FourQueues | Graphs | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		a, b := k.Alloc(0, small), k.Alloc(0, small)
		k.Capture(s)
		k.Fill(s, b, 1) // a is not the first memory that the graph works on
		k.Copy(s, b.Start, a.Start, small)
		g := k.EndCapture(s)
		x := k.Executable(g)
		require.NoError(k, a.Collect())
		k.Fill(s, a, 9)
		k.Launch(x, s)
		k.Sync(s)
		require.EqualValues(k, 9, k.Read(b)[0])
		require.NoError(k, g.Close(k.Me))
		require.False(k, a.Freed(), "the executable needs it")
		require.NoError(k, x.Close(k.Me))
		k.Eventually(a.Freed, "the memory is never freed")
		require.False(k, b.Freed(), "its owner was not collected")
	}},
	{"G8_nodes_run_after_those_that_they_come_after", FourQueues | Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		var seq sequence
		k.Capture(a)
		k.Call(a, seq.note("first"))
		require.NoError(k, b.WaitStream(k.Me, a))
		k.Call(b, seq.note("b1"))
		k.Call(a, seq.note("a1"))
		k.Call(b, seq.note("b2"))
		require.NoError(k, a.WaitStream(k.Me, b))
		k.Call(a, seq.note("last"))
		x := k.Executable(k.EndCapture(a))
		for range 3 {
			k.Launch(x, b)
			k.Call(b, seq.note("behind"))
			k.Sync(b)
			got := seq.take()
			require.Len(k, got, 6)
			require.Equal(k, "first", got[0])
			require.Equal(k, []string{"last", "behind"}, got[4:])
			require.ElementsMatch(k, []string{"a1", "b1", "b2"}, got[1:4])
			var bs []string
			for _, text := range got {
				if text[0] == 'b' && text != "behind" {
					bs = append(bs, text)
				}
			}
			require.Equal(k, []string{"b1", "b2"}, bs)
		}
	}},
	{"G8_a_branch_that_is_held_holds_no_other", Graphs | FourQueues, func(k *Kit) {
		s := k.Stream(ordinary)
		g := newGraph(k)
		entered, release, other := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)
		addCall(k, g, func() { entered <- struct{}{}; <-release })
		addCall(k, g, func() { other <- struct{}{} })
		k.Launch(k.Executable(g), s)
		defer func() {
			select {
			case <-release:
			default:
				close(release)
			}
		}()
		go func() { _, _ = s.Synchronize(hal.NewThread(), int64(Limit)) }() // lets the device move under schedules
		Receive(k, entered, "the first branch")
		Receive(k, other, "the second branch waits for the first one")
		k.Pending(s, "a branch has not ended")
		close(release)
		k.Sync(s)
	}},
	{"G8_native_functions_of_branches_run_at_the_same_time", Graphs | Memory | RealTime | Aborts, branchesAtOnce},
	{"G8_native_functions_of_branches_run_at_the_same_time_after_many_short_ones", Graphs | Memory | RealTime | Aborts, func(k *Kit) {
		s, g := k.Stream(ordinary), newGraph(k)
		short := newDoor()
		short.Open()
		k.T.Cleanup(func() { k.Sync(s); short.free() })
		for range Engines {
			addNative(k, g, short)
		}
		x := k.Executable(g)
		for range 2000 {
			k.Launch(x, s)
			k.Sync(s)
		}
		branchesAtOnce(k)
	}},
	{"G8_launches_of_one_executable_run_one_at_a_time_in_order", FourQueues | Graphs | Gates, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		var runs counter
		k.Capture(a)
		k.Call(a, runs.add)
		x := k.Executable(k.EndCapture(a))
		gate, err := a.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, a, b)
		k.Pending(b, "its launch comes behind the one on the other stream")
		require.Zero(k, runs.get())
		gate.Open()
		k.Sync(b)
		require.Equal(k, 2, runs.get())
		k.Sync(a)
	}},
	{"G8_an_error_of_a_node_is_that_of_the_stream", FourQueues | Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		k.Capture(a)
		require.NoError(k, k.served.call(k.Me, a, func(*hal.Thread) error { return errors.New("the node failed") }))
		x := k.Executable(k.EndCapture(a))
		var runs counter
		k.Launch(x, b)
		k.Call(b, runs.add)
		_, err := b.Synchronize(k.Me, int64(Limit))
		require.ErrorIs(k, err, hal.ErrHostFunction)
		require.EqualValues(k, 1, b.Failures())
		k.Sync(a, b)
		require.Equal(k, 1, runs.get(), "later work runs")
	}},
	{"G9_an_update_is_for_later_launches_and_for_the_same_topology", FourQueues | Graphs | Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		var seq sequence
		graphOf := func(names ...string) *hal.Graph {
			k.Capture(s)
			for _, name := range names {
				k.Call(s, seq.note(name))
			}
			return k.EndCapture(s)
		}
		x := k.Executable(graphOf("old"))
		gate, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, s)
		require.NoError(k, x.Update(k.Me, graphOf("new")))
		k.Launch(x, s)
		err = x.Update(k.Me, graphOf("a", "b"))
		k.CaptureFails(err, 910)
		require.ErrorContains(k, err, "the number of nodes is 2, and was 1")
		g := newGraph(k)
		_, err = g.AddEmpty(k.Me, nil)
		require.NoError(k, err)
		err = x.Update(k.Me, g)
		k.CaptureFails(err, 910)
		require.ErrorContains(k, err, "from call to empty")
		gate.Open()
		k.Sync(s)
		k.Launch(x, s)
		k.Sync(s)
		require.Equal(k, []string{"old", "new", "new"}, seq.take())
	}},
	{"G10_freed_memory_fails_a_launch_before_a_node_runs", FourQueues | Graphs | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		var runs counter
		a, b := k.Alloc(0, small), k.Alloc(0, small)
		k.Capture(s)
		k.Call(s, runs.add)
		k.Copy(s, b.Start, a.Start, small)
		x := k.Executable(k.EndCapture(s))
		k.Launch(x, s)
		k.Sync(s)
		require.NoError(k, a.Release(k.Me))
		err := x.Launch(k.Me, s)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "node 1 (copy")
		k.Sync(s)
		require.Equal(k, 1, runs.get())
	}},
	{"G10_freed_memory_fails_an_instantiation_and_an_update", FourQueues | Graphs | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		a := k.Alloc(0, small)
		of := func(b *hal.Block) *hal.Graph {
			k.Capture(s)
			k.Fill(s, b, 7)
			return k.EndCapture(s)
		}
		b := k.Alloc(0, small)
		x, g := k.Executable(of(a)), of(b)
		require.NoError(k, b.Release(k.Me))
		_, err := g.Instantiate(k.Me)
		for _, err := range []error{err, x.Update(k.Me, g)} {
			require.ErrorIs(k, err, hal.ErrInvalidValue)
			require.ErrorContains(k, err, "node 0 (fill")
			require.ErrorContains(k, err, "were freed; keep memory until the last launch")
		}
		k.Launch(x, s)
		k.Sync(s)
		require.EqualValues(k, 7, k.Read(a)[0], "an update that failed changes nothing")
	}},
}
