package haltest

import (
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
}

// name is how texts name a stream.
func (k *Kit) name(s *hal.Stream) string {
	return driver.Errorf(driver.Unknown, "", "stream %d of device %d", s.Index(), s.Device().Ordinal()).Text
}
