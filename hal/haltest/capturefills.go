package haltest

import (
	"bytes"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// filler adds fills of whole blocks, with elements of one byte, to captures.
type filler struct{ *capturer }

// newFiller returns one in a runtime without memory. What graphs of earlier cases keep is freed on threads of their own,
// and behind the free of any memory no fill is added.
func newFiller(k *Kit) *filler {
	k.T.Helper()
	require.Eventually(k, func() bool { return k.RT.Blocks() == 0 }, Limit, time.Millisecond)
	return &filler{&capturer{k: k}}
}

// fill gives a fill to the runtime, and returns which ones can be added.
func (f *filler) fill(s *hal.Stream, b *hal.Block, value byte) hal.CapturedFills {
	f.k.T.Helper()
	on, err := s.CaptureFill(f.k.Me, b.Start, uint32(value), 1, b.Size, &f.list)
	require.NoError(f.k, err)
	return on
}

// add adds a fill of the block without a call of the runtime, and reports whether the list took it.
func (f *filler) add(on hal.CapturedFills, value byte) bool {
	if !f.list.AddFill(on, f.site+1, on.Start, uint32(value), 1, on.Size) {
		return false
	}
	f.site++
	return true
}

// mayAdd asserts which block fills of it can be added to.
func (f *filler) mayAdd(on hal.CapturedFills, b *hal.Block, fresh bool) {
	f.k.T.Helper()
	require.Equal(f.k, []any{b.Start, b.Size, fresh}, []any{on.Start, on.Size, on.FreshBlocks})
	require.GreaterOrEqual(f.k, on.Lane, 0)
}

// freesOf are the ways to free memory that a stream does not use.
var freesOf = map[string]func(*Kit) (free func() error){
	"free": func(k *Kit) func() error {
		b := k.Alloc(0, small)
		return func() error { return k.RT.Free(k.Me, b.Start) }
	},
	"free of pinned memory": func(k *Kit) func() error {
		b, _ := k.Pinned(small)
		return func() error { return k.RT.FreeHost(k.Me, b.Start, false) }
	},
	"release of a block": func(k *Kit) func() error {
		b := k.Alloc(0, small)
		return func() error { return b.Release(k.Me) }
	},
	"free in stream order": func(k *Kit) func() error {
		s := k.Stream(hal.StreamOptions{NonBlocking: true})
		b := k.allocAsync(s)
		return func() error { return s.FreeAsync(k.Me, b.Start) }
	},
}

var capturedFillCases = []testCase{
	{"G15_fills_added_to_a_capture_are_nodes_in_the_order_of_the_calls", Graphs | Memory, func(k *Kit) {
		f := newFiller(k)
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		a, b := k.Alloc(0, small), k.Alloc(0, small)
		var runs counter
		k.Capture(s)
		onA := f.fill(s, a, 1) // 0
		f.mayAdd(onA, a, true)
		require.True(k, onA.Fresh)
		require.True(k, f.add(onA, 2))                                        // 1
		require.True(k, f.capturer.add(onA.Lane, runs.add))                   // 2
		onB := f.fill(s, b, 3)                                                // 3
		f.mayAdd(onB, b, false)                                               // the number of a is still valid
		require.True(k, f.add(onB, 4))                                        // 4
		require.True(k, f.add(onA, 5))                                        // 5
		require.True(k, f.list.AddFill(onB, 99, b.Start+8, 0x04030201, 4, 2)) // 6
		require.NoError(k, other.WaitStream(k.Me, s))
		onOther := f.fill(other, b, 6) // 7
		require.NotEqual(k, onB.Lane, onOther.Lane)
		require.True(k, f.add(onA, 7)) // 8
		onOther.Start += 4
		onOther.Size = 2
		require.True(k, f.add(onOther, 8)) // 9
		require.NoError(k, s.WaitStream(k.Me, other))
		g := k.EndCapture(s)
		require.False(k, f.add(onA, 9), "the capture has ended")
		k.comesAfter(g, [][]int{{}, {0}, {1}, {2}, {3}, {4}, {5}, {6}, {6}, {7}})
		whole := func(b *hal.Block) hal.Range { return hal.Range{Start: b.Start, Size: b.Size} }
		writes := []hal.Range{whole(a), whole(a), {}, whole(b), whole(b), whole(a), {Start: b.Start + 8, Size: 8}, whole(b), whole(a),
			{Start: b.Start + 4, Size: 2}}
		sites := []uint32{0, 1, 2, 0, 3, 4, 99, 0, 5, 6}
		for i, n := range g.Nodes() {
			require.Equal(k, sites[i], n.Site(), "node %d", i)
			pulledIn := i == 7 || i == 9
			require.Equal(k, pulledIn, n.Stream() == other, "node %d", i)
			if i == 2 {
				require.Equal(k, hal.OpCall, n.Kind())
				continue
			}
			require.Equal(k, hal.OpFill, n.Kind(), "node %d", i)
			reads, written := n.Accesses()
			require.Empty(k, reads)
			require.Equal(k, writes[i:i+1], written, "node %d", i)
		}
		k.Launch(k.Executable(g), s)
		k.Sync(s)
		require.Equal(k, 1, runs.get())
		require.Equal(k, bytes.Repeat([]byte{7}, small), k.Read(a))
		require.Equal(k, append([]byte{6, 6, 6, 6, 8, 8}, bytes.Repeat([]byte{6}, small-6)...), k.Read(b))
	}},
	{"G15_a_fill_that_was_added_has_its_value_and_its_elements", Graphs | Memory, func(k *Kit) {
		f := newFiller(k)
		s, b := k.Stream(ordinary), k.Alloc(0, small)
		k.Capture(s)
		on := f.fill(s, b, 0)
		require.True(k, f.list.AddFill(on, 1, b.Start+8, 0x04030201, 4, 2))
		require.True(k, f.list.AddFill(on, 1, b.Start+2, 0x0605, 2, 1))
		require.True(k, f.list.AddFill(on, 1, b.Start+7, 9, 1, 1))
		k.Launch(k.Executable(k.EndCapture(s)), s)
		k.Sync(s)
		require.Equal(k, []byte{0, 0, 5, 6, 0, 0, 0, 9, 1, 2, 3, 4, 1, 2, 3, 4, 0}, k.Read(b)[:17])
	}},
	{"G15_no_fill_is_added_behind_a_free", Graphs | Memory, func(k *Kit) {
		newFiller(k)
		for name, prepare := range freesOf {
			k.T.Logf("after a %s", name)
			s, a, b := k.Stream(ordinary), k.Alloc(0, small), k.Alloc(0, small)
			f := &filler{&capturer{k: k}}
			free := prepare(k)
			k.Capture(s)
			onA := f.fill(s, a, 1)
			f.fill(s, b, 2)
			require.True(k, f.add(onA, 3))
			require.NoError(k, free())
			require.False(k, f.add(onA, 4), "it might be the memory that was freed")
			require.True(k, f.capturer.add(onA.Lane, func() {}), "a function needs no memory")
			onB := f.fill(s, b, 5)
			f.mayAdd(onB, b, true)
			require.True(k, f.add(onB, 6))
			require.Len(k, k.EndCapture(s).Nodes(), 6)
		}
	}},
	{"G15_a_fill_of_memory_that_was_freed_is_refused_by_its_call", Graphs | Memory, func(k *Kit) {
		f := newFiller(k)
		s, a, b := k.Stream(ordinary), k.Alloc(0, small), k.Alloc(0, small)
		k.Capture(s)
		onA := f.fill(s, a, 1)
		require.True(k, f.add(onA, 2))
		require.NoError(k, k.RT.Free(k.Me, a.Start))
		require.False(k, f.add(onA, 3))
		_, err := s.CaptureFill(k.Me, a.Start, 4, 1, a.Size, &f.list)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		f.mayAdd(f.fill(s, b, 5), b, true)
		g := k.EndCapture(s)
		require.Len(k, g.Nodes(), 3)
		_, err = g.Instantiate(k.Me)
		require.ErrorIs(k, err, hal.ErrInvalidValue, "node 0 works on what was freed since")
	}},
	{"G15_no_fill_is_added_of_memory_that_a_graph_allocates", Graphs | Memory, func(k *Kit) {
		f := newFiller(k)
		s := k.Stream(ordinary)
		k.Capture(s)
		b := k.allocAsync(s)
		require.Zero(k, f.fill(s, b, 1).Size, "a node of the graph may free it")
		require.NoError(k, s.FreeAsync(k.Me, b.Start))
		_, err := s.CaptureFill(k.Me, b.Start, 2, 1, b.Size, &f.list)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.Len(k, k.EndCapture(s).Nodes(), 3)
	}},
	{"G15_no_fill_is_added_to_a_capture_that_was_invalidated", Graphs | Memory, func(k *Kit) {
		f := newFiller(k)
		s, b := k.Stream(ordinary), k.Alloc(0, small)
		k.Capture(s)
		on := f.fill(s, b, 1)
		require.True(k, f.add(on, 2))
		_, err := s.Query(k.Me)
		require.ErrorIs(k, err, hal.ErrCapture)
		require.False(k, f.add(on, 3))
		_, err = s.CaptureFill(k.Me, b.Start, 3, 1, b.Size, &f.list)
		require.ErrorIs(k, err, hal.ErrCapture)
		k.invalidated(s, "query")
		require.Negative(k, f.fill(s, b, 4).Lane, "the stream does not capture any more")
		k.Sync(s)
		require.Equal(k, bytes.Repeat([]byte{4}, small), k.Read(b), "the fill was not enqueued")
	}},
	{"G15_a_list_that_is_full_of_fills_is_used_again", Graphs | Memory, func(k *Kit) {
		f := newFiller(k)
		s, b := k.Stream(ordinary), k.Alloc(0, small)
		k.Capture(s)
		added := 0
		for range 3 {
			on := f.fill(s, b, 1)
			f.mayAdd(on, b, true)
			require.True(k, f.capturer.add(on.Lane, func() {})) // so that one place is left over
			for added += 2; f.add(on, 2); added++ {
			}
		}
		require.Equal(k, 3*(2+(hal.CapturedCallsMost-1)/2), added)
		nodes := k.EndCapture(s).Nodes()
		require.Len(k, nodes, added)
		for i, n := range nodes[1:] {
			require.Equal(k, nodes[i:i+1], n.After())
		}
	}},
	{"G15_a_list_takes_fills_of_one_capture", Graphs | Memory, func(k *Kit) {
		f := newFiller(k)
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		x, y := k.Alloc(0, small), k.Alloc(0, small)
		k.Capture(a)
		k.Capture(b)
		require.True(k, f.add(f.fill(a, x, 1), 2))
		on := f.fill(b, y, 3)
		require.True(k, on.Fresh)
		f.mayAdd(on, y, true)
		require.True(k, f.add(on, 4))
		on = f.fill(a, y, 5)
		require.True(k, on.Fresh)
		f.mayAdd(on, y, true)
		require.Len(k, k.EndCapture(a).Nodes(), 3)
		require.Len(k, k.EndCapture(b).Nodes(), 2)
	}},
	{"G15_of_two_lists_only_the_latest_one_takes_fills", Graphs | Memory, func(k *Kit) {
		f, g := newFiller(k), &filler{&capturer{k: k}}
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		x := k.Alloc(0, small)
		k.Capture(a)
		k.Capture(b)
		first := f.fill(a, x, 1)
		second := g.fill(b, x, 2)
		require.False(k, f.add(first, 3), "a free would not be heeded")
		require.True(k, g.add(second, 3))
		k.EndCapture(a)
		k.EndCapture(b)
	}},
	{"G15_memory_is_freed_while_fills_are_added", Graphs | Memory, func(k *Kit) {
		f := newFiller(k)
		s, b := k.Stream(ordinary), k.Alloc(0, small)
		var mu sync.Mutex
		freed := false // the memory, with mu held
		k.Capture(s)
		on := f.fill(s, b, 1)
		var group sync.WaitGroup
		group.Go(func() {
			other := hal.NewThread()
			defer other.Retire()
			for range 50 {
				one, err := k.Device(0).Alloc(other, small)
				require.NoError(k, err)
				require.NoError(k, k.RT.Free(other, one.Start))
			}
			require.NoError(k, k.RT.Free(other, b.Start))
			mu.Lock()
			freed = true
			mu.Unlock()
		})
		for taken := true; taken; {
			mu.Lock()
			before := freed
			mu.Unlock()
			added := f.add(on, 2)
			require.False(k, before && added, "the list took a fill of memory that was freed")
			if !added {
				var err error
				on, err = s.CaptureFill(k.Me, b.Start, 1, 1, b.Size, &f.list)
				taken = err == nil
			}
		}
		group.Wait()
		k.EndCapture(s)
	}},
}
