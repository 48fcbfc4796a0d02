package haltest

import (
	"slices"
	"sync"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// Capture begins a capture in relaxed mode.
func (k *Kit) Capture(s *hal.Stream) {
	k.T.Helper()
	require.NoError(k, s.BeginCapture(k.Me, hal.RelaxedMode))
}

// EndCapture ends a capture and returns its graph.
func (k *Kit) EndCapture(s *hal.Stream) *hal.Graph {
	k.T.Helper()
	g, err := s.EndCapture(k.Me)
	require.NoError(k, err)
	k.T.Cleanup(func() { _ = g.Close(nil) })
	return g
}

// Executable instantiates a graph.
func (k *Kit) Executable(g *hal.Graph) *hal.GraphExec {
	k.T.Helper()
	x, err := g.Instantiate(k.Me)
	require.NoError(k, err)
	k.T.Cleanup(func() { _ = x.Close(nil) })
	return x
}

// Launch enqueues launches.
func (k *Kit) Launch(x *hal.GraphExec, streams ...*hal.Stream) {
	k.T.Helper()
	for _, s := range streams {
		require.NoError(k, x.Launch(k.Me, s))
	}
}

// CaptureFails asserts that an error is of a capture, and of a rule by CUDA's number.
func (k *Kit) CaptureFails(err error, rule int) {
	k.T.Helper()
	require.ErrorIs(k, err, hal.ErrCapture)
	require.Equal(k, rule, err.(*hal.Error).Code, "%v", err)
}

func (k *Kit) state(s *hal.Stream, want hal.CaptureState) {
	k.T.Helper()
	got, err := s.IsCapturing(k.Me)
	require.NoError(k, err)
	require.Equal(k, want, got)
}

// invalidated asserts that the capture of s was invalidated because of cause, and that s
// is usable once it was ended.
func (k *Kit) invalidated(s *hal.Stream, cause string) {
	k.T.Helper()
	k.state(s, hal.Invalidated)
	err := s.Nop(k.Me)
	k.CaptureFails(err, 901)
	require.ErrorContains(k, err, cause)
	_, err = s.EndCapture(k.Me)
	k.CaptureFails(err, 901)
	require.ErrorContains(k, err, cause)
	k.state(s, hal.NotCapturing)
	ran := make(chan struct{})
	k.Call(s, func() { close(ran) })
	k.Sync(s)
	Receive(k, ran, "the stream is not usable after the capture")
}

// comesAfter asserts of each node of a graph which nodes it comes after, in any order.
func (k *Kit) comesAfter(g *hal.Graph, want [][]int) {
	k.T.Helper()
	nodes := g.Nodes()
	require.Len(k, nodes, len(want))
	for i, n := range nodes {
		before := []int{}
		for _, m := range n.After() {
			before = append(before, m.Index())
		}
		require.ElementsMatch(k, want[i], before, "node %d", i)
	}
}

var captureCases = []testCase{
	{"G1_captured_work_becomes_nodes_and_does_not_run", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		var runs counter
		k.state(s, hal.NotCapturing)
		require.Zero(k, s.CaptureID())
		k.Capture(s)
		k.state(s, hal.Capturing)
		require.NotZero(k, s.CaptureID())
		k.Call(s, runs.add)
		require.NoError(k, s.Nop(k.Me))
		g := k.EndCapture(s)
		k.state(s, hal.NotCapturing)
		k.Done(s, "nothing was enqueued")
		require.Zero(k, runs.get())
		nodes := g.Nodes()
		require.Len(k, nodes, 2)
		require.Equal(k, []string{"call", "empty"}, []string{nodes[0].Kind().String(), nodes[1].Kind().String()})
		require.Empty(k, nodes[0].After())
		require.Equal(k, nodes[:1], nodes[1].After())
		k.Call(s, runs.add)
		k.Sync(s)
		require.Equal(k, 1, runs.get(), "the stream runs its work again")
	}},
	{"G1_a_capture_begins_and_ends_once", Graphs, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		_, err := s.EndCapture(k.Me)
		k.CaptureFails(err, 401)
		k.CaptureFails(k.Device(0).DefaultStream().BeginCapture(k.Me, hal.RelaxedMode), 900)
		require.ErrorIs(k, s.BeginCapture(k.Me, 3), hal.ErrInvalidValue)
		k.Capture(s)
		k.CaptureFails(s.BeginCapture(k.Me, hal.RelaxedMode), 401)
		e := k.Event(hal.EventOptions{})
		k.Record(s, e)
		k.Wait(o, e)
		_, err = o.EndCapture(k.Me)
		k.CaptureFails(err, 903)
		k.invalidated(s, "ends there")
		k.state(o, hal.NotCapturing)
	}},
	{"G1_the_nodes_of_each_stream_are_in_the_order_of_the_calls", Graphs, func(k *Kit) {
		first := k.Stream(ordinary)
		k.Capture(first)
		streams := []*hal.Stream{first}
		for range 10 {
			s := k.Stream(ordinary)
			require.NoError(k, s.WaitStream(k.Me, first))
			streams = append(streams, s)
		}
		n := len(streams)
		want := make([][]int, 3*n)
		for i := range n {
			k.Call(streams[i], func() {})
			want[i], want[n+i], want[3*n-1-i] = []int{}, []int{i}, []int{n + i}
		}
		for _, s := range streams {
			k.Call(s, func() {})
		}
		for _, s := range slices.Backward(streams) {
			k.Call(s, func() {})
		}
		for _, s := range streams[1:] {
			require.NoError(k, first.WaitStream(k.Me, s))
		}
		g := k.EndCapture(first)
		k.comesAfter(g, want)
		for i, m := range g.Nodes()[:n] {
			require.Same(k, streams[i], m.Stream())
		}
	}},
	{"G1_the_nodes_of_a_stream_are_in_order_while_another_thread_records_there", Graphs, func(k *Kit) {
		s, e := k.Stream(ordinary), k.Event(hal.EventOptions{})
		k.Capture(s)
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
			k.Call(s, func() {})
		}
		group.Wait()
		nodes := k.EndCapture(s).Nodes()
		require.Len(k, nodes, added)
		for i, n := range nodes[1:] {
			require.Equal(k, nodes[i:i+1], n.After())
		}
	}},
	{"G1_a_captured_fill_has_its_value_and_its_elements", Graphs | Memory, func(k *Kit) {
		s, b := k.Stream(ordinary), k.Alloc(0, small)
		k.Capture(s)
		require.NoError(k, s.Fill(k.Me, b.Start, 0, 1, b.Size))
		require.NoError(k, s.Fill(k.Me, b.Start+8, 0x04030201, 4, 2))
		require.NoError(k, s.Fill(k.Me, b.Start+2, 0x0605, 2, 1))
		require.NoError(k, s.Fill(k.Me, b.Start+7, 9, 1, 1))
		g := k.EndCapture(s)
		reads, writes := g.Nodes()[1].Accesses()
		require.Empty(k, reads)
		require.Equal(k, []hal.Range{{Start: b.Start + 8, Size: 8}}, writes)
		k.Launch(k.Executable(g), s)
		k.Sync(s)
		require.Equal(k, []byte{0, 0, 5, 6, 0, 0, 0, 9, 1, 2, 3, 4, 1, 2, 3, 4, 0}, k.Read(b)[:17])
	}},
	{"G2_unsafe_calls_are_refused_by_mode", Graphs | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		other := hal.NewThread()
		defer other.Retire()
		for _, c := range []struct {
			mode          hal.CaptureMode
			mine, theirs  bool
			relaxedThread bool
		}{
			{hal.GlobalMode, false, false, false},
			{hal.ThreadLocalMode, false, true, false},
			{hal.RelaxedMode, true, true, false},
			{hal.GlobalMode, true, true, true},
		} {
			for _, mine := range []bool{true, false} {
				t, allowed := k.Me, c.mine
				if !mine {
					t, allowed = other, c.theirs
				}
				if c.relaxedThread {
					before, err := t.ExchangeCaptureMode(hal.RelaxedMode)
					require.NoError(k, err)
					require.Equal(k, hal.GlobalMode, before)
				}
				require.NoError(k, s.BeginCapture(k.Me, c.mode))
				b, err := k.Device(0).Alloc(t, 64)
				if allowed {
					require.NoError(k, err)
					require.NoError(k, b.Release(k.Me))
					k.EndCapture(s)
				} else {
					k.CaptureFails(err, 900)
					k.invalidated(s, "unsafe")
				}
				_, err = t.ExchangeCaptureMode(hal.GlobalMode)
				require.NoError(k, err)
			}
		}
	}},
	{"G2_a_copy_and_a_fill_for_which_the_host_may_wait_are_unsafe", Graphs | Memory, func(k *Kit) {
		s, legacy := k.Stream(hal.StreamOptions{NonBlocking: true}), k.Device(0).Legacy()
		from, to := k.Alloc(0, 64), k.Alloc(0, 64)
		calls := map[string]func() error{
			"copy": func() error {
				_, err := legacy.CopyAs(k.Me, hal.CopySpec{Dst: to.Start, Src: from.Start, Width: 64, Height: 1}, hal.BlockingCopy)
				return err
			},
			"fill": func() error {
				_, err := legacy.FillBlocking(k.Me, to.Start, 1, 1, 64)
				return err
			},
		}
		for name, call := range calls {
			require.NoError(k, s.BeginCapture(k.Me, hal.GlobalMode))
			k.CaptureFails(call(), 900)
			k.invalidated(s, name+": this call is unsafe")
			require.NoError(k, s.BeginCapture(k.Me, hal.RelaxedMode))
			require.NoError(k, call(), name)
			k.EndCapture(s)
		}
		k.Sync(legacy)
	}},
	{"G2_the_thread_that_began_a_capture_ends_it", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		other := hal.NewThread()
		defer other.Retire()
		for _, mode := range []hal.CaptureMode{hal.GlobalMode, hal.ThreadLocalMode} {
			require.NoError(k, s.BeginCapture(k.Me, mode))
			_, err := s.EndCapture(other)
			k.CaptureFails(err, 908)
			k.EndCapture(s)
		}
		k.Capture(s)
		g, err := s.EndCapture(other)
		require.NoError(k, err)
		require.NoError(k, g.Close(k.Me))
	}},
	{"G3_a_stream_that_waits_takes_part_and_comes_after", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(hal.StreamOptions{NonBlocking: true})
		e := k.Event(hal.EventOptions{})
		k.Capture(a)
		require.NoError(k, a.Nop(k.Me)) // 0
		k.Record(a, e)
		require.NoError(k, a.Nop(k.Me)) // 1
		k.Wait(b, e)
		k.state(b, hal.Capturing)
		require.Equal(k, a.CaptureID(), b.CaptureID())
		require.NoError(k, b.Nop(k.Me)) // 2
		require.NoError(k, a.WaitStream(k.Me, b))
		require.NoError(k, a.Nop(k.Me)) // 3
		g := k.EndCapture(a)
		k.state(b, hal.NotCapturing)
		n := g.Nodes()
		require.Len(k, n, 4)
		require.Equal(k, []*hal.Node{n[0]}, n[1].After())
		require.Equal(k, []*hal.Node{n[0]}, n[2].After(), "after the record, not after what came later")
		require.Equal(k, []*hal.Node{n[1], n[2]}, n[3].After())
	}},
	{"G3_a_stream_that_is_not_joined_fails_the_end", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		k.Capture(a)
		require.NoError(k, b.WaitStream(k.Me, a))
		require.NoError(k, b.Nop(k.Me))
		require.NoError(k, a.Nop(k.Me))
		_, err := a.EndCapture(k.Me)
		k.CaptureFails(err, 904)
		require.ErrorContains(k, err, k.name(b)+" was pulled in")
		for _, s := range []*hal.Stream{a, b} {
			k.state(s, hal.NotCapturing)
			require.NoError(k, s.Nop(k.Me))
		}
		k.Sync(a, b)
	}},
	{"G3_a_record_stands_for_what_was_captured_before_it", Graphs, func(k *Kit) {
		a, b, late := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		record := func(s *hal.Stream) *hal.Event {
			e := k.Event(hal.EventOptions{})
			k.Record(s, e)
			return e
		}
		k.Capture(a)
		begin := record(a)   // before the first node
		k.Call(a, func() {}) // 0
		first := record(a)   // after 0
		k.Call(a, func() {}) // 1
		second := record(a)  // after 1
		k.Call(a, func() {}) // 2
		k.Wait(b, first)     // pulls b in
		k.Call(b, func() {}) // 3
		k.Wait(b, second)
		k.Wait(b, second)    // again
		k.Call(b, func() {}) // 4
		k.Wait(late, begin)
		k.Call(late, func() {}) // 5
		k.Wait(b, record(late))
		require.NoError(k, a.WaitStream(k.Me, b))
		k.Call(a, func() {}) // 6
		g := k.EndCapture(a)
		k.comesAfter(g, [][]int{{}, {0}, {1}, {0}, {3, 1}, {}, {2, 4, 5}})
		k.Launch(k.Executable(g), a)
		k.Sync(a)
	}},
	{"G3_a_stream_with_a_node_behind_its_join_is_not_joined", Graphs, func(k *Kit) {
		a, b, e := k.Stream(ordinary), k.Stream(ordinary), k.Event(hal.EventOptions{})
		k.Capture(a)
		require.NoError(k, b.WaitStream(k.Me, a))
		k.Call(b, func() {})
		k.Record(b, e)
		k.Wait(a, e)
		k.Call(b, func() {})
		_, err := a.EndCapture(k.Me)
		k.CaptureFails(err, 904)
		require.ErrorContains(k, err, k.name(b)+" was pulled in")
	}},
	{"G4_a_forbidden_call_invalidates_the_capture", Graphs | Gates, func(k *Kit) {
		s, o := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		before, inside := k.Event(hal.EventOptions{}), k.Event(hal.EventOptions{})
		k.Record(o, before)
		legacy := k.Device(0).DefaultStream()
		for _, c := range []struct {
			rule  int
			cause string
			call  func() error
		}{
			{900, "query", func() error { _, err := s.Query(k.Me); return err }},
			{900, "synchronize", func() error { _, err := s.Synchronize(k.Me, 0); return err }},
			{900, "synchronize device", func() error { _, err := k.Device(0).Synchronize(k.Me, 0); return err }},
			{900, "gate", func() error { _, err := s.Gate(k.Me); return err }},
			{907, "query event", func() error { _, err := inside.Query(k.Me); return err }},
			{907, "synchronize event", func() error { _, err := inside.Synchronize(k.Me, 0); return err }},
			{905, "outside of the capture", func() error { return s.Wait(k.Me, before) }},
			{905, "does not take part", func() error { return s.WaitStream(k.Me, o) }},
			{906, "legacy default stream", func() error { return legacy.Nop(k.Me) }},
			{906, "legacy default stream", func() error { return legacy.Wait(k.Me, inside) }},
		} {
			k.Capture(s)
			k.Record(s, inside)
			k.CaptureFails(c.call(), c.rule)
			k.invalidated(s, c.cause)
		}
		require.NoError(k, legacy.Nop(k.Me))
		k.Sync(legacy)
	}},
	{"G4_two_captures_do_not_mix", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		k.Capture(a)
		k.Capture(b)
		k.CaptureFails(a.WaitStream(k.Me, b), 902)
		k.invalidated(a, "two captures")
		k.invalidated(b, "two captures")
	}},
	{"G4_an_event_of_a_capture_that_ended_is_recorded_again", Graphs, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		k.Capture(s)
		k.Record(s, e)
		k.EndCapture(s)
		k.CaptureFails(o.Wait(k.Me, e), 905)
		_, err := e.Query(k.Me)
		k.CaptureFails(err, 907)
		k.Record(s, e)
		k.Wait(o, e)
		k.Sync(o)
		k.EventDone(e, true, "recorded outside of a capture")
	}},
	{"G4_an_event_of_one_capture_is_none_of_another", Graphs, func(k *Kit) {
		a, b, e := k.Stream(ordinary), k.Stream(ordinary), k.Event(hal.EventOptions{})
		k.Capture(a)
		k.Capture(b)
		k.Record(a, e)
		k.CaptureFails(b.Wait(k.Me, e), 902)
		k.invalidated(a, "wait event")
		k.invalidated(b, "wait event")
	}},
	{"G4_an_event_of_a_capture_that_ended_cannot_join_the_next_one", Graphs, func(k *Kit) {
		a, b, e := k.Stream(ordinary), k.Stream(ordinary), k.Event(hal.EventOptions{})
		k.Capture(a)
		k.Record(a, e)
		k.EndCapture(a)
		for _, s := range []*hal.Stream{b, a} {
			k.Capture(s)
			k.CaptureFails(s.Wait(k.Me, e), 905)
			k.invalidated(s, "wait event")
		}
	}},
	{"G4_an_event_has_the_same_handle_in_a_capture", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		require.False(k, e.WasRecorded())
		k.Record(s, e)
		k.Sync(s)
		before, err := e.Handle(k.Me)
		require.NoError(k, err)
		k.Capture(s)
		k.Record(s, e)
		inside, err := e.Handle(k.Me)
		require.NoError(k, err)
		require.Equal(k, before, inside)
		require.True(k, e.WasRecorded())
		fresh := k.Event(hal.EventOptions{})
		k.Record(s, fresh)
		require.True(k, fresh.WasRecorded())
		_, err = fresh.Handle(k.Me)
		require.NoError(k, err)
		require.NoError(k, k.EndCapture(s).Close(k.Me)) // it was not invalidated
		after, err := e.Handle(k.Me)
		require.NoError(k, err)
		require.Equal(k, before, after)
	}},
	{"G4_a_device_says_whether_a_wait_for_it_would_invalidate_a_capture", Graphs, func(k *Kit) {
		s := k.Stream(ordinary)
		require.False(k, s.Device().Captures())
		k.Capture(s)
		require.True(k, s.Device().Captures())
		require.NoError(k, k.EndCapture(s).Close(k.Me))
		require.False(k, s.Device().Captures())
	}},
	{"G4_the_end_of_a_program_waits_beside_a_capture", Graphs | Gates, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		k.Capture(s)
		require.NoError(k, s.Nop(k.Me))
		h := Hold(k, o).Started()
		p := k.Device(0).EnqueuedPoint()
		require.False(k, p.Wait(0), "a function runs")
		h.Release()
		require.True(k, p.Wait(int64(Limit)))
		require.Len(k, k.EndCapture(s).Nodes(), 1, "the capture was not disturbed")
	}},
	{"G4_closing_a_stream_ends_its_part_in_a_capture", Graphs, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		k.Capture(a)
		require.NoError(k, b.WaitStream(k.Me, a))
		require.NoError(k, b.Close(k.Me))
		k.invalidated(a, "was closed")
		k.Capture(a)
		require.NoError(k, a.Close(k.Me))
		require.NoError(k, k.Device(0).DefaultStream().Nop(k.Me), "no stream captures any more")
		k.Sync(k.Device(0).DefaultStream())
	}},
	{"G4_a_stream_that_nobody_refers_to_leaves_its_capture", Graphs, func(k *Kit) {
		a, b, legacy := k.Stream(ordinary), k.Stream(ordinary), k.Device(0).DefaultStream()
		k.Capture(a)
		k.Call(a, func() { k.T.Error("a part of a graph that is lost runs") })
		require.NoError(k, b.WaitStream(k.Me, a))
		a.LeaveCapture() // the origin
		require.NoError(k, legacy.Nop(k.Me), "no stream captures any more")
		k.Sync(legacy)
		k.Sync(b)
		a.LeaveCapture()
		k.Capture(a)
		require.NoError(k, b.WaitStream(k.Me, a))
		require.NoError(k, b.Nop(k.Me))
		require.NoError(k, a.WaitStream(k.Me, b))
		b.LeaveCapture()
		require.NoError(k, b.Close(k.Me))
		require.Len(k, k.EndCapture(a).Nodes(), 1, "the other stream was joined")
		c := k.Stream(ordinary)
		k.Capture(a)
		require.NoError(k, c.WaitStream(k.Me, a))
		require.NoError(k, c.Nop(k.Me))
		c.LeaveCapture()
		_, err := a.EndCapture(k.Me)
		k.CaptureFails(err, 904)
		legacy.LeaveCapture()
		k.Sync(a, c, legacy)
	}},
	{"G7_an_external_record_takes_the_place_of_an_earlier_one_in_the_capture", Graphs, func(k *Kit) {
		s, o := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		k.Capture(s)
		require.False(k, e.WasRecorded())
		k.Record(s, e)
		require.NoError(k, s.Nop(k.Me))
		require.NoError(k, s.RecordExternal(k.Me, e))
		require.True(k, e.WasRecorded())
		require.NoError(k, o.WaitStream(k.Me, s))
		k.CaptureFails(o.Wait(k.Me, e), 905)
		k.invalidated(s, "wait event")
	}},
	{"G10_a_fill_of_freed_memory_is_refused_in_a_capture_too", Graphs | Memory, func(k *Kit) {
		s, a, b := k.Stream(ordinary), k.Alloc(0, small), k.Alloc(0, small)
		k.Capture(s)
		require.NoError(k, s.Fill(k.Me, a.Start, 1, 1, a.Size))
		require.NoError(k, k.RT.Free(k.Me, a.Start))
		require.ErrorIs(k, s.Fill(k.Me, a.Start, 2, 1, a.Size), hal.ErrInvalidValue)
		require.NoError(k, s.Fill(k.Me, b.Start, 3, 1, b.Size))
		g := k.EndCapture(s)
		require.Len(k, g.Nodes(), 2)
		_, err := g.Instantiate(k.Me)
		require.ErrorIs(k, err, hal.ErrInvalidValue, "node 0 works on what was freed since")
	}},
}

// name is how texts name a stream.
func (k *Kit) name(s *hal.Stream) string {
	return driver.Errorf(driver.Unknown, "", "stream %d of device %d", s.Index(), s.Device().Ordinal()).Text
}
