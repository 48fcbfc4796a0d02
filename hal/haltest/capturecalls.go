package haltest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// capturer adds functions to captures as a caller does that has a list for them.
type capturer struct {
	k      *Kit
	list   hal.CapturedCalls
	site   uint32   // of the latest function
	tokens []uint64 // of all
}

// capture gives a function to the runtime, and returns the number of the stream.
func (c *capturer) capture(s *hal.Stream, f func()) (lane int, fresh bool) {
	c.k.T.Helper()
	c.site++
	token := c.k.served.put(calling(f))
	lane, fresh, captured, err := s.CaptureFunc(c.k.Me, token, c.site, &c.list)
	require.NoError(c.k, err)
	require.True(c.k, captured)
	c.tokens = append(c.tokens, token)
	return lane, fresh
}

// add adds a function without a call of the runtime, and reports whether the list took it.
func (c *capturer) add(lane int, f func()) bool {
	token := c.k.served.put(calling(f))
	if !c.list.Add(hal.CapturedCall{Token: token, Site: c.site + 1, Lane: uint32(lane)}) {
		c.k.served.take(token, true)
		return false
	}
	c.site++
	c.tokens = append(c.tokens, token)
	c.k.served.keep(token)
	return true
}

func calling(f func()) func(*hal.Thread) error { return func(*hal.Thread) error { f(); return nil } }

var capturedCallCases = []testCase{
	{"G15_functions_added_to_a_capture_are_nodes_in_the_order_of_the_calls", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		c, e := &capturer{k: k}, k.Event(hal.EventOptions{})
		var ran []uint32
		var mu sync.Mutex
		note := func() func() {
			n := c.site + 1
			return func() { mu.Lock(); ran = append(ran, n); mu.Unlock() }
		}
		require.False(k, c.add(0, func() {}), "the list belongs to no capture")
		k.Capture(a)
		lane, fresh := c.capture(a, note()) // 0
		require.True(k, fresh)
		require.True(k, c.add(lane, note()))      // 1
		require.NoError(k, a.Nop(k.Me))           // 2
		require.True(k, c.add(lane, note()))      // 3
		require.NoError(k, b.WaitStream(k.Me, a)) // b comes after 3
		require.True(k, c.add(lane, note()))      // 4
		other, fresh := c.capture(b, note())      // 5
		require.False(k, fresh, "the number of a is still valid")
		require.NotEqual(k, lane, other)
		require.True(k, c.add(other, note())) // 6
		require.True(k, c.add(lane, note()))  // 7
		k.Record(a, e)
		require.True(k, c.add(other, note())) // 8
		k.Wait(b, e)                          // after 7
		require.True(k, c.add(other, note())) // 9
		require.True(k, c.add(lane, note()))  // 10
		require.NoError(k, a.WaitStream(k.Me, b))
		require.True(k, c.add(lane, note())) // 11
		g := k.EndCapture(a)
		require.False(k, c.add(lane, func() {}), "the capture has ended")

		nodes := g.Nodes()
		after := [][]int{{}, {0}, {1}, {2}, {3}, {3}, {5}, {4}, {6}, {8, 7}, {7}, {10, 9}}
		sites := []uint32{1, 2, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		on := []*hal.Stream{a, a, a, a, a, b, b, a, b, b, a, a}
		require.Len(k, nodes, len(after))
		for i, n := range nodes {
			before := []int{}
			for _, m := range n.After() {
				before = append(before, m.Index())
			}
			require.Equal(k, after[i], before, "node %d", i)
			require.Same(k, on[i], n.Stream(), "node %d", i)
			if i != 2 {
				require.Equal(k, sites[i], n.Site(), "node %d", i)
				require.Equal(k, hal.OpCall, n.Kind(), "node %d", i)
			}
		}
		k.Launch(k.Executable(g), a, a)
		k.Sync(a)
		require.Len(k, ran, 2*11)
		require.Equal(k, []uint32{1, 2, 3}, ran[:3])
		require.Equal(k, uint32(11), ran[10])
	}},
	{"G15_functions_added_on_many_streams_come_after_those_of_their_streams", Graphs, func(k *Kit) {
		c, first := &capturer{k: k}, k.Stream(ordinary)
		k.Capture(first)
		streams, lanes := []*hal.Stream{first}, []int{}
		for range 10 {
			s := k.Stream(ordinary)
			require.NoError(k, s.WaitStream(k.Me, first))
			streams = append(streams, s)
		}
		for _, s := range streams {
			lane, _ := c.capture(s, func() {})
			lanes = append(lanes, lane)
		}
		for _, lane := range lanes {
			require.True(k, c.add(lane, func() {}))
		}
		for i := len(lanes) - 1; i >= 0; i-- {
			require.True(k, c.add(lanes[i], func() {}))
		}
		for _, s := range streams[1:] {
			require.NoError(k, first.WaitStream(k.Me, s))
		}
		n := len(streams)
		want := make([][]int, 3*n)
		for i := range n {
			want[i], want[n+i], want[3*n-1-i] = []int{}, []int{i}, []int{n + i}
		}
		g := k.EndCapture(first)
		k.comesAfter(g, want)
		require.NoError(k, g.Close(k.Me))
	}},
	{"G15_what_was_added_stays_with_its_graph_when_the_list_is_lent_to_the_next_capture", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		c := &capturer{k: k}
		var graphs []*hal.Graph
		for range 3 {
			k.Capture(s)
			lane, fresh := c.capture(s, func() {})
			require.True(k, fresh, "the numbers of an earlier capture are not valid")
			require.True(k, c.add(lane, func() {}))
			require.NoError(k, s.Nop(k.Me)) // takes these two from the list
			require.True(k, c.add(lane, func() {}))
			graphs = append(graphs, k.EndCapture(s))
		}
		for i, g := range graphs {
			nodes := g.Nodes()
			require.Len(k, nodes, 4)
			for j, n := range []*hal.Node{nodes[0], nodes[1], nodes[3]} {
				require.EqualValues(k, 3*i+j+1, n.Site())
			}
			tokens := c.tokens[3*i : 3*i+3]
			require.ElementsMatch(k, tokens, g.Collect(), "each is released once")
			for _, token := range tokens {
				k.served.take(token, true)
			}
		}
	}},
	{"G15_a_stream_whose_last_function_was_added_after_its_join_is_not_joined", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		c := &capturer{k: k}
		k.Capture(a)
		require.NoError(k, b.WaitStream(k.Me, a))
		lane, _ := c.capture(b, func() {})
		require.NoError(k, a.WaitStream(k.Me, b))
		require.True(k, c.add(lane, func() {}))
		_, err := a.EndCapture(k.Me)
		k.CaptureFails(err, 904)
		require.ErrorContains(k, err, fmt.Sprintf("stream %d of device 0 was pulled in", b.Index()))
	}},
	{"G15_a_full_list_is_used_again", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		c := &capturer{k: k}
		var runs counter
		k.Capture(s)
		lane, _ := c.capture(s, runs.add)
		added := 1
		for ; c.add(lane, runs.add); added++ {
			require.LessOrEqual(k, added, hal.CapturedCallsMost)
		}
		again, fresh := c.capture(s, runs.add)
		require.Equal(k, lane, again)
		require.False(k, fresh)
		require.True(k, c.add(lane, runs.add))
		g := k.EndCapture(s)
		require.Len(k, g.Nodes(), added+2)
		k.Launch(k.Executable(g), s)
		k.Sync(s)
		require.Equal(k, added+2, runs.get())
	}},
	{"G15_nothing_is_added_to_a_capture_that_was_invalidated", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		c := &capturer{k: k}
		k.Capture(s)
		lane, _ := c.capture(s, func() {})
		require.True(k, c.add(lane, func() {}))
		_, err := s.Query(k.Me)
		k.CaptureFails(err, 900)
		require.False(k, c.add(lane, func() {}))
		token := k.served.put(calling(func() {}))
		_, _, _, err = s.CaptureFunc(k.Me, token, 1, &c.list)
		k.CaptureFails(err, 901)
		k.served.take(token, true)
		k.invalidated(s, "query")
	}},
	{"G15_a_list_is_of_one_capture", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		c := &capturer{k: k}
		var first, second counter
		k.Capture(a)
		k.Capture(b)
		lane, _ := c.capture(a, first.add)
		require.True(k, c.add(lane, first.add))
		lane, fresh := c.capture(b, second.add)
		require.True(k, fresh, "the number of a is not valid any more")
		require.True(k, c.add(lane, second.add))
		lane, fresh = c.capture(a, first.add)
		require.True(k, fresh)
		require.True(k, c.add(lane, first.add))
		one, two := k.EndCapture(a), k.EndCapture(b)
		require.Len(k, one.Nodes(), 4)
		require.Len(k, two.Nodes(), 2)
		k.Launch(k.Executable(one), a)
		k.Launch(k.Executable(two), b)
		k.Sync(a, b)
		require.Equal(k, []int{4, 2}, []int{first.get(), second.get()})
	}},
	{"G15_the_runtime_takes_functions_while_others_are_added", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		c := &capturer{k: k}
		e := k.Event(hal.EventOptions{})
		k.Capture(s)
		lane, _ := c.capture(s, func() {})
		const added = 500
		var group sync.WaitGroup
		group.Go(func() {
			other := hal.NewThread()
			defer other.Retire()
			for range 50 {
				_ = s.Record(other, e)
				_, _ = s.IsCapturing(other)
			}
		})
		for range added {
			require.True(k, c.add(lane, func() {}))
		}
		group.Wait()
		g := k.EndCapture(s)
		nodes := g.Nodes()
		require.Len(k, nodes, 1+added)
		for i, n := range nodes[1:] {
			require.Equal(k, nodes[i:i+1], n.After())
		}
		require.NoError(k, g.Close(k.Me))
	}},
	{"G15_functions_are_kept_by_a_graph_whose_nodes_nobody_has_asked_for", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		c := &capturer{k: k}
		k.Capture(s)
		lane, _ := c.capture(s, func() {})
		require.True(k, c.add(lane, func() {}))
		g := k.EndCapture(s)
		require.True(k, k.served.has(c.tokens[0]))
		require.True(k, k.served.has(c.tokens[1]))
		require.NoError(k, g.Close(k.Me))
		k.Eventually(func() bool { return !k.served.has(c.tokens[0]) && !k.served.has(c.tokens[1]) }, "the functions are never released")
	}},
}
