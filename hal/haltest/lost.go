package haltest

import (
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// failingFunction returns a function with whose error its device is lost.
func failingFunction(k *Kit, name string, fails int) (*hal.NativeFunc, calls) {
	c := newCalls(k, fails)
	f := c.function(name)
	f.LosesDevice = true
	return f, c
}

// loses makes a device lost: by the backend's own way, or by a function.
func loses(k *Kit, ordinal int) {
	k.T.Helper()
	if k.lose != nil {
		require.NoError(k, k.lose(ordinal))
		return
	}
	f, c := failingFunction(k, "assert", 7)
	s := k.StreamOn(ordinal, hal.StreamOptions{NonBlocking: true})
	require.NoError(k, s.NativeFunc(k.Me, f))
	_, err := s.Synchronize(k.Me, int64(Limit))
	require.ErrorIs(k, err, hal.ErrDeviceLost)
	require.EqualValues(k, 1, c.released(k))
}

// recovers makes a lost device work again at the end of a case, if that can be done.
func recovers(k *Kit, ordinals ...int) {
	for _, i := range ordinals {
		if k.Has(Recovers) {
			_, err := k.Device(i).Recover(k.Me)
			require.NoError(k, err)
		}
	}
}

// lostCases come last: where a device cannot recover it stays lost.
var lostCases = []testCase{
	{"D7_a_function_that_loses_its_device_fails_every_later_call", Memory | Gates | Recovers, func(k *Kit) {
		defer recovers(k, 0)
		side, s := k.Stream(hal.StreamOptions{NonBlocking: true}), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{Timing: true})
		k.Record(s, e)
		k.Sync(s)
		g, err := side.Gate(k.Me)
		require.NoError(k, err)
		first, _ := failingFunction(k, "embedding", 5)
		second, later := failingFunction(k, "add", 6)
		require.NoError(k, side.NativeFunc(k.Me, first))
		require.NoError(k, s.WaitStream(k.Me, side))
		require.NoError(k, s.NativeFunc(k.Me, second))
		g.Open()
		calls := []func() error{
			func() error { _, err := s.Synchronize(k.Me, int64(Limit)); return err },
			func() error { _, err := side.Synchronize(k.Me, int64(Limit)); return err },
			func() error { _, err := k.Device(0).Synchronize(k.Me, int64(Limit)); return err },
			func() error { _, err := e.Synchronize(k.Me, int64(Limit)); return err },
			func() error { _, err := s.Query(k.Me); return err },
			func() error { _, err := e.Query(k.Me); return err },
			func() error { _, err := e.Elapsed(k.Me, e); return err },
			func() error { _, err := s.DrainPoint(k.Me); return err },
			func() error { return s.Nop(k.Me) },
			func() error { return s.Wait(k.Me, e) },
			func() error { return s.NativeFunc(k.Me, second) },
			func() error { _, err := s.AllocAsync(k.Me, 256); return err },
			func() error { _, err := k.Device(0).NewStream(k.Me, ordinary); return err },
			s.Failure, e.Failure, k.Device(0).Failure,
		}
		for range 2 {
			for i, call := range calls {
				err := call()
				require.ErrorIs(k, err, hal.ErrDeviceLost, "call %d", i)
				require.ErrorContains(k, err, "embedding: reason 5", "call %d", i)
			}
		}
		require.EqualValues(k, 1, later.released(k))
		require.Zero(k, later.runs(), "work behind the function ran")
	}},
	{"D7_an_error_that_the_program_was_not_told_of_is_listed", Memory | Recovers, func(k *Kit) {
		defer recovers(k, 0)
		s, d := k.Stream(ordinary), k.Device(0)
		require.Nil(k, d.UnreportedLoss())
		f, _ := failingFunction(k, "add", 3)
		f.Site = 12
		require.NoError(k, s.NativeFunc(k.Me, f))
		k.Eventually(func() bool { s.Idle(); return d.UnreportedLoss() != nil }, "the device is not lost")
		require.ErrorContains(k, d.UnreportedLoss(), "add: reason 3")
		require.EqualValues(k, 12, d.UnreportedLoss().Site)
		_, err := s.Query(k.Me)
		require.ErrorIs(k, err, hal.ErrDeviceLost)
		k.RT.NoteLossesReported()
		require.Nil(k, d.UnreportedLoss())
	}},
	{"D7_listeners_see_what_does_not_run_on_a_lost_device", Memory | Recovers, func(k *Kit) {
		s, side, e := k.Stream(ordinary), k.Stream(ordinary), k.Event(hal.EventOptions{})
		k.Record(s, e)
		loses(k, 0)
		defer recovers(k, 0)
		var seen []string
		stop := k.RT.Listen(func(o hal.Operation) { seen = append(seen, o.Kind.String()) })
		defer stop()
		f, c := failingFunction(k, "add", 0)
		require.NoError(k, s.NativeFunc(k.Me, f))
		k.Record(s, e)
		k.Wait(side, e)
		require.NoError(k, side.WaitStream(k.Me, s))
		for _, err := range []error{s.Nop(k.Me), s.Failure(), e.Failure()} {
			require.ErrorIs(k, err, hal.ErrDeviceLost)
		}
		_, err := side.Synchronize(k.Me, int64(Limit))
		require.ErrorIs(k, err, hal.ErrDeviceLost)
		require.EqualValues(k, 1, c.released(k))
		require.Zero(k, c.runs())
		require.Subset(k, seen, []string{"native", "record", "wait", "wait stream"})
	}},
	{"K3_a_kernel_that_leaves_its_memory_loses_the_device", Memory | Kernels | Recovers, func(k *Kit) {
		defer recovers(k, 0)
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32")
		b := k.Alloc(0, 64)
		require.NoError(k, s.Launch(k.Me, f, line(17, b.Start, 3, 17), nil, whole(b)))
		_, err := s.Synchronize(k.Me, int64(Limit))
		require.ErrorIs(k, err, hal.ErrDeviceLost)
		require.ErrorContains(k, err, "write of size 4 bytes")
		require.ErrorContains(k, err, "by thread (16,0,0) in block (0,0,0)")
		require.Equal(k, 700, err.(*hal.Error).Code)
	}},
	{"D7_a_device_that_waits_for_a_lost_one_is_lost", Memory | Gates | Pair | Recovers, func(k *Kit) {
		defer recovers(k, 0, 1)
		side, far, other := k.Stream(ordinary), k.StreamOn(1, ordinary), k.StreamOn(1, ordinary)
		g, err := side.Gate(k.Me)
		require.NoError(k, err)
		f, _ := failingFunction(k, "copy", 2)
		second, later := failingFunction(k, "add", 6)
		require.NoError(k, side.NativeFunc(k.Me, f))
		require.NoError(k, far.WaitStream(k.Me, side))
		require.NoError(k, far.NativeFunc(k.Me, second))
		k.Sync(other)
		g.Open()
		_, err = far.Synchronize(k.Me, int64(Limit))
		require.ErrorIs(k, err, hal.ErrDeviceLost)
		require.ErrorContains(k, err, "copy: reason 2")
		require.EqualValues(k, 1, later.released(k)) // its memory is another case's next
		require.Zero(k, later.runs(), "work that waited for a lost device ran")
		require.ErrorContains(k, other.Nop(k.Me), "copy: reason 2")
	}},
	{"D7_other_devices_work_and_may_not_begin_to_wait_for_a_lost_one", Memory | Pair | Recovers, func(k *Kit) {
		defer recovers(k, 0)
		s, far, e := k.Stream(ordinary), k.StreamOn(1, ordinary), k.Event(hal.EventOptions{})
		k.Record(s, e)
		loses(k, 0)
		require.ErrorIs(k, far.Wait(k.Me, e), hal.ErrDeviceLost)
		require.ErrorIs(k, far.WaitStream(k.Me, s), hal.ErrDeviceLost)
		k.Call(far, func() {})
		k.Sync(far)
	}},
	{"D7_a_node_of_a_graph_loses_the_device_of_the_launch", Memory | Graphs | Recovers, func(k *Kit) {
		defer recovers(k, 0)
		s := k.Stream(ordinary)
		k.Capture(s)
		f, bad := failingFunction(k, "index", 4)
		second, later := failingFunction(k, "add", 6)
		require.NoError(k, s.NativeFunc(k.Me, f))
		require.NoError(k, s.NativeFunc(k.Me, second))
		g := k.EndCapture(s)
		x := k.Executable(g)
		require.NoError(k, x.Launch(k.Me, s))
		_, err := s.Synchronize(k.Me, int64(Limit))
		require.ErrorIs(k, err, hal.ErrDeviceLost)
		require.ErrorContains(k, err, "index: reason 4")
		require.EqualValues(k, 1, bad.runs())
		require.Zero(k, later.runs(), "nodes behind the function ran")
		require.ErrorIs(k, x.Launch(k.Me, s), hal.ErrDeviceLost)
		require.NoError(k, x.Close(k.Me))
		require.NoError(k, g.Close(k.Me))
		require.EqualValues(k, 1, bad.released(k))
		require.EqualValues(k, 1, later.released(k))
	}},
	{"D8_a_device_that_recovers_has_its_streams_events_and_memory", Memory | Recovers, func(k *Kit) {
		s, e, d := k.Stream(ordinary), k.Event(hal.EventOptions{}), k.Device(0)
		b := k.Alloc(0, 64)
		k.Write(b, []byte{1, 2, 3})
		f, _ := failingFunction(k, "add", 3)
		require.NoError(k, s.NativeFunc(k.Me, f))
		k.Eventually(func() bool { s.Idle(); return d.UnreportedLoss() != nil }, "the device is not lost")
		unreported, err := d.Recover(k.Me)
		require.NoError(k, err)
		require.ErrorContains(k, unreported, "add: reason 3")
		k.Record(s, e)
		k.Sync(s)
		k.EventDone(e, true, "a device that has recovered")
		require.Equal(k, []byte{1, 2, 3}, k.Read(b)[:3])
		loses(k, 0)
		k.RT.NoteLossesReported()
		unreported, err = d.Recover(k.Me)
		require.NoError(k, err)
		require.Nil(k, unreported, "the program was told")
		unreported, err = d.Recover(k.Me)
		require.NoError(k, err)
		require.Nil(k, unreported, "it works")
		k.Sync(s)
	}},
	{"D6_a_lost_device_holds_nobody_up", Loses | Gates | Pair, func(k *Kit) {
		const lost = 1
		near, far := k.Stream(ordinary), k.StreamOn(lost, ordinary)
		e := k.Event(hal.EventOptions{})
		g, err := far.Gate(k.Me)
		require.NoError(k, err)
		var ran atomic.Int32
		before := k.served.left()
		for range 3 {
			k.Call(far, func() { ran.Add(1) })
		}
		k.Record(far, e)
		waits := []func(t *hal.Thread) (bool, error){
			func(t *hal.Thread) (bool, error) { return far.Synchronize(t, int64(Limit)) },
			func(t *hal.Thread) (bool, error) { return e.Synchronize(t, int64(Limit)) },
			func(t *hal.Thread) (bool, error) { return k.Device(lost).Synchronize(t, int64(Limit)) },
		}
		ended := make(chan error, len(waits))
		for _, wait := range waits {
			go func() {
				t := hal.NewThread()
				defer t.Retire()
				_, err := wait(t)
				ended <- err
			}()
		}
		loses(k, lost)
		defer recovers(k, lost)
		for range waits {
			require.ErrorIs(k, Receive(k, ended, "a wait for a lost device"), hal.ErrDeviceLost)
		}
		for end := time.Now().Add(Limit); k.served.left() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				k.stuck("functions on a lost device are neither run nor dropped")
			}
		}
		require.Zero(k, ran.Load(), "a function ran on a lost device")

		first := k.Device(lost).Lost()
		require.ErrorIs(k, first, hal.ErrDeviceLost)
		_, err = k.Device(lost).NewStream(k.Me, ordinary)
		for _, err := range []error{err, far.Record(k.Me, e), far.Nop(k.Me), k.TryCall(far, func() {})} {
			require.ErrorIs(k, err, hal.ErrDeviceLost)
			require.ErrorContains(k, err, first.(*hal.Error).Text, "the first cause is told")
		}
		_, err = far.Query(k.Me)
		require.ErrorIs(k, err, hal.ErrDeviceLost)
		g.Open()

		k.Call(near, func() {})
		k.Sync(near)
	}},
}
