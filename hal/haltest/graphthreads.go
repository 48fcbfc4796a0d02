package haltest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// together calls functions at once, each on a thread of its own, and waits for all of them.
func together(calls ...func(me *hal.Thread)) {
	var group sync.WaitGroup
	for _, call := range calls {
		group.Add(1)
		go func() {
			defer group.Done()
			me := hal.NewThread()
			defer me.Retire()
			call(me)
		}()
	}
	group.Wait()
}

// branchesAtOnce launches a graph whose native functions end only once one of each branch runs.
func branchesAtOnce(k *Kit) {
	s := k.Stream(ordinary)
	g := newGraph(k)
	var first, second []Door
	for range Engines {
		outer, inner := newDoor(), newDoor()
		n := addNative(k, g, outer)
		addNative(k, g, inner, n)
		first, second = append(first, outer), append(second, inner)
	}
	doors := append(first, second...)
	k.T.Cleanup(func() {
		for _, door := range doors {
			door.Open()
		}
		k.Sync(s)
		for _, door := range doors {
			door.free()
		}
	})
	k.Launch(k.Executable(g), s)
	for _, level := range [][]Door{first, second} {
		for _, door := range level {
			k.Entered(door) // while the others run
		}
		for _, door := range level {
			door.Open()
		}
	}
}

var graphThreadCases = []testCase{
	{"G9_threads_that_update_and_launch_at_once_run_whole_graphs", FourQueues | Graphs, func(k *Kit) {
		rounds := 200
		if testing.Short() {
			rounds = 50
		}
		streams := []*hal.Stream{k.Stream(ordinary), k.Stream(ordinary)}
		builder := make([]*hal.Stream, 3)
		for i := range builder {
			builder[i] = k.Stream(ordinary)
		}
		var mu sync.Mutex
		var ran []int // the versions of the nodes that ran; a launch runs two nodes of one version
		version := func(me *hal.Thread, s *hal.Stream, number int) *hal.Graph {
			assert.NoError(k, s.BeginCapture(me, hal.RelaxedMode))
			for range 2 {
				assert.NoError(k, k.served.call(me, s, func(*hal.Thread) error {
					mu.Lock()
					defer mu.Unlock()
					ran = append(ran, number)
					return nil
				}))
			}
			g, err := s.EndCapture(me)
			assert.NoError(k, err)
			return g
		}
		first := version(k.Me, builder[0], 0)
		x := k.Executable(first)
		require.NoError(k, first.Close(k.Me))
		update := func(of int) func(*hal.Thread) {
			return func(me *hal.Thread) {
				for i := range rounds {
					g := version(me, builder[of], 1+of*rounds+i)
					assert.NoError(k, x.Update(me, g))
					assert.NoError(k, g.Close(me))
				}
			}
		}
		launch := func(s *hal.Stream) func(*hal.Thread) {
			return func(me *hal.Thread) {
				for range rounds {
					assert.NoError(k, x.Launch(me, s))
				}
			}
		}
		together(update(0), update(1), update(2), launch(streams[0]), launch(streams[1]))
		k.Sync(streams...)
		require.Zero(k, k.served.unknown.Load(), "a launch ran a function that was released")
		require.Len(k, ran, 2*2*rounds)
		for i := 0; i < len(ran); i += 2 {
			require.Equal(k, ran[i], ran[i+1], "a launch ran nodes of two graphs")
		}
		require.NoError(k, x.Close(k.Me))
		k.Eventually(func() bool { return k.served.left() == 0 }, "functions of earlier graphs are never released")
	}},
	{"G11_threads_that_update_nodes_at_once_lose_no_update", FourQueues | Graphs, func(k *Kit) {
		const rounds = 100
		s := k.Stream(ordinary)
		k.Capture(s)
		for range 4 {
			k.Call(s, func() {})
		}
		x := k.Executable(k.EndCapture(s))
		var mu sync.Mutex
		var ran [4]int
		update := func(node int) func(*hal.Thread) {
			return func(me *hal.Thread) {
				for i := range rounds {
					b, err := x.NodeBuilder(me, node)
					assert.NoError(k, err)
					assert.NoError(k, k.served.call(me, b, func(*hal.Thread) error {
						mu.Lock()
						defer mu.Unlock()
						ran[node] = i
						return nil
					}))
					assert.NoError(k, x.BuiltUpdate(b, node))
				}
			}
		}
		together(update(0), update(1), update(2), update(3))
		k.Launch(x, s)
		k.Sync(s)
		const last = rounds - 1
		mu.Lock() // the words of streams, in memory that is not Go's, are not known to the race detector
		defer mu.Unlock()
		require.Equal(k, [4]int{last, last, last, last}, ran)
	}},
	{"G12_of_two_captures_at_once_one_frees_memory_of_a_graph", FourQueues | Graphs | Memory | Grows, func(k *Kit) {
		s, a, b := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		for range 100 {
			k.Capture(s)
			m := allocAsync(k, s)
			g := k.EndCapture(s)
			k.Capture(a)
			k.Capture(b)
			var errs [2]error
			together(func(me *hal.Thread) { errs[0] = a.FreeAsync(me, m.Start) }, func(me *hal.Thread) { errs[1] = b.FreeAsync(me, m.Start) })
			freed := []*hal.Graph{k.EndCapture(a), k.EndCapture(b)}
			won := 0
			if errs[0] != nil {
				won = 1
			}
			require.NoError(k, errs[won])
			require.ErrorContains(k, errs[1-won], "was freed already")
			require.Len(k, freed[won].Nodes(), 1)
			require.Empty(k, freed[1-won].Nodes())
			require.NoError(k, freed[won].Close(k.Me))
			require.NoError(k, m.Collect())
			require.NoError(k, g.Close(k.Me))
		}
	}},
	{"G12_memory_is_freed_by_another_node_when_no_graph_has_the_first_one", FourQueues | Graphs | Memory | Grows, func(k *Kit) {
		s := k.Stream(ordinary)
		k.Capture(s)
		b := allocAsync(k, s)
		x := k.Executable(k.EndCapture(s))
		k.Launch(x, s)
		k.Capture(s)
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		given := k.EndCapture(s)
		tryFree := func() error {
			k.Capture(s)
			err := s.FreeAsync(k.Me, b.Start)
			k.Launch(k.Executable(k.EndCapture(s)), s)
			return err
		}
		require.ErrorContains(k, tryFree(), "was freed already")
		require.NoError(k, given.Close(k.Me))
		k.Eventually(func() bool { return tryFree() == nil }, "memory stays freed by a node that nothing can launch")
		k.Sync(s)
		k.Launch(x, s)
		k.Sync(s)
	}},
	{"G12_memory_of_a_launch_that_was_aborted_is_freed_as_that_of_any_other", Graphs | Memory | Grows | Gates | Aborts, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		k.Capture(s)
		b := allocAsync(k, s)
		token := k.served.put(func(*hal.Thread) error { return nil })
		require.NoError(k, s.HostFunc(k.Me, token))
		g := k.EndCapture(s)
		x := k.Executable(g)
		gate, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, s)
		_, err = s.Abort(k.Me)
		require.NoError(k, err)
		gate.Open()
		k.Sync(s)
		require.ErrorContains(k, x.Launch(k.Me, s), "allocated since an earlier launch")
		require.NoError(k, o.FreeAsync(k.Me, b.Start))
		k.Launch(x, o)
		k.Sync(o)
		require.NoError(k, o.FreeAsync(k.Me, b.Start))
		require.NoError(k, g.Close(k.Me))
		require.NoError(k, x.Close(k.Me))
		k.Eventually(func() bool { return !k.served.has(token) }, "the launch that was aborted keeps its function")
	}},
	{"G5_a_stream_that_waits_for_one_that_adds_a_node_is_refused_and_usable", FourQueues | Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		_, err := newGraph(k).Add(k.Me, k.Device(0), nil, func(b *hal.Stream) error {
			require.NoError(k, b.Nop(k.Me))
			return s.WaitStream(k.Me, b)
		})
		k.CaptureFails(err, 900)
		require.ErrorContains(k, err, "makes one node")
		k.state(s, hal.NotCapturing)
		k.Sync(s)
	}},
	{"G6_an_executable_that_is_closed_while_it_is_launched_refuses_later_launches", FourQueues | Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		for range 50 {
			var runs counter
			k.Capture(s)
			k.Call(s, runs.add)
			x := k.Executable(k.EndCapture(s))
			launched := 0
			together(func(me *hal.Thread) {
				for range 5 {
					if err := x.Launch(me, s); err != nil {
						assert.ErrorIs(k, err, hal.ErrClosed)
						return
					}
					launched++
				}
			}, func(me *hal.Thread) { assert.NoError(k, x.Close(me)) })
			k.Sync(s)
			require.Equal(k, launched, runs.get())
		}
	}},
}
