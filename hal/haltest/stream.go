package haltest

import (
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var ordinary = hal.StreamOptions{NonBlocking: true}

var streamCases = []testCase{
	{"S1_work_runs_in_order", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		var got []int
		for i := range 1000 {
			k.Call(s, func() { got = append(got, i) })
			if i%7 == 0 {
				require.NoError(k, s.Nop(k.Me))
			}
		}
		k.Sync(s)
		require.Len(k, got, 1000)
		for i, v := range got {
			require.Equal(k, i, v)
		}
	}},
	{"S1_a_held_function_holds_what_comes_after", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		after := make(chan int, 1)
		k.Call(s, func() { after <- 1 })
		e := k.Event(hal.EventOptions{})
		k.Record(s, e)
		k.EventDone(e, false, "recorded behind a function that runs")
		Empty(k, after, "a function ran before the one in front of it had ended")
		h.Release()
		k.Sync(s)
		Receive(k, after, "the second function never ran")
		k.EventDone(e, true, "the stream is done")
	}},
	{"S2_a_held_stream_holds_no_other", FourQueues, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		Hold(k, a).Started()
		ran := make(chan int, 1)
		k.Call(b, func() { ran <- 1 })
		k.Sync(b)
		Receive(k, ran, "the other stream's function never ran")
		k.Pending(a, "its function is still held")
	}},
	{"S2_closed_gates_starve_nobody", Gates | Unbounded, func(k *Kit) {
		for range 100 {
			s := k.Stream(ordinary)
			g, err := s.Gate(k.Me)
			require.NoError(k, err)
			k.T.Cleanup(g.Open)
		}
		b := k.Stream(ordinary)
		ran := make(chan int, 1)
		k.Call(b, func() { ran <- 1 })
		k.Sync(b)
		Receive(k, ran, "a function never ran beside a hundred closed gates")
	}},
	{"S3_query_is_false_while_work_is_pending", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		k.Done(s, "nothing was enqueued")
		h := Hold(k, s)
		k.Pending(s, "a function is pending or runs")
		h.Started()
		k.Pending(s, "a function runs")
		h.Release()
		k.Sync(s)
		k.Done(s, "all work ended")
	}},
	{"S3_query_is_false_while_an_engine_works", Delays | RealTime, func(k *Kit) {
		// Probe A: 300 ms of work, asked about at once; more where this thread did not come to ask in that time.
		s := k.Stream(ordinary)
		for work := 300 * time.Millisecond; ; work *= 4 {
			require.NoError(k, s.Delay(k.Me, int64(work)))
			done, err := s.Query(k.Me)
			require.NoError(k, err)
			if !done {
				break
			}
			require.Less(k, work, 4*time.Second, "the delay has just begun")
		}
		k.Sync(s)
		k.Done(s, "the delay is over")
	}},
	{"S4_synchronize_waits_for_the_work_before_it", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		first := Hold(k, s).Started()
		p, err := s.Point(k.Me)
		require.NoError(k, err)
		second := Hold(k, s)
		first.Release()
		require.True(k, p.Wait(int64(Limit)), "work enqueued later holds up a synchronize")
		k.Pending(s, "the second function is held")
		second.Release()
		k.Sync(s)
	}},
	{"S4_the_first_error_is_reported_once", 0, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		for _, text := range []string{"first", "second"} {
			require.NoError(k, k.served.call(k.Me, s, func(*hal.Thread) error { return errors.New(text) }))
		}
		k.Sync(other)
		done, err := s.Synchronize(k.Me, int64(Limit))
		require.True(k, done)
		require.ErrorIs(k, err, hal.ErrHostFunction)
		require.ErrorContains(k, err, "first")
		k.Sync(s)
		require.NoError(k, k.served.call(k.Me, s, func(*hal.Thread) error { return errors.New("third") }))
		p, err := s.Point(k.Me)
		require.NoError(k, err)
		require.True(k, p.Wait(int64(Limit)))
		_, err = s.Query(k.Me)
		require.ErrorContains(k, err, "third")
		k.Done(s, "the error was reported")
	}},
	{"S5_default_stream_waits_for_ordered_streams", FourQueues, func(k *Kit) {
		d := k.Device(0)
		ordered, free := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		legacy := d.DefaultStream()
		hOrdered, hFree := Hold(k, ordered).Started(), Hold(k, free).Started()
		ran := make(chan int, 1)
		k.Call(legacy, func() { ran <- 1 })
		k.Pending(legacy, "an ordered stream has earlier work")
		Empty(k, ran, "the default stream did not wait for an ordered stream")
		hOrdered.Release()
		k.Sync(legacy)
		Receive(k, ran, "the default stream's function never ran")
		k.Pending(free, "a non-blocking stream takes no part")
		hFree.Release()
	}},
	{"S5_ordered_streams_wait_for_the_default_stream", Pair | EightQueues, func(k *Kit) {
		d := k.Device(0)
		ordered, free, far := k.Stream(hal.StreamOptions{}), k.Stream(ordinary), k.StreamOn(1, hal.StreamOptions{})
		own, err := d.PerThreadStream(k.Me)
		require.NoError(k, err)
		before := make(chan int, 1)
		k.Call(ordered, func() { before <- 1 })
		k.Sync(ordered)
		h := Hold(k, d.DefaultStream()).Started()
		ran := make(chan string, 4)
		for name, s := range map[string]*hal.Stream{"ordered": ordered, "own": own, "free": free, "far": far} {
			k.Call(s, func() { ran <- name })
		}
		k.Sync(free, far)
		got := []string{Receive(k, ran, "free"), Receive(k, ran, "far")}
		require.ElementsMatch(k, []string{"free", "far"}, got)
		k.Pending(ordered, "the default stream has earlier work")
		k.Pending(own, "the default stream has earlier work")
		Empty(k, ran, "an ordered stream did not wait for the default stream")
		h.Release()
		k.Sync(ordered, own)
		require.ElementsMatch(k, []string{"ordered", "own"}, []string{Receive(k, ran, "ordered"), Receive(k, ran, "own")})
	}},
	{"S5_an_idle_ordered_stream_records_behind_the_default_stream", 0, func(k *Kit) {
		s := k.Stream(hal.StreamOptions{})
		h := Hold(k, k.Device(0).DefaultStream()).Started()
		e := k.Event(hal.EventOptions{})
		k.Record(s, e)
		k.EventDone(e, false, "the default stream has earlier work")
		h.Release()
		k.Sync(s)
		k.EventDone(e, true, "all is done")
	}},
	{"S5_an_event_that_is_recorded_again_on_an_idle_ordered_stream_waits_for_the_default_stream", FourQueues, func(k *Kit) {
		first, second := k.Stream(hal.StreamOptions{}), k.Stream(hal.StreamOptions{})
		e, other := k.Event(hal.EventOptions{}), k.Event(hal.EventOptions{})
		k.Record(first, e)
		k.Record(first, other) // so that nothing but e refers to its record
		k.Sync(first)
		h := Hold(k, k.Device(0).DefaultStream()).Started()
		k.Record(second, e)
		k.Pending(second, "the default stream has earlier work")
		h.Release()
		k.Sync(second)
		k.EventDone(e, true, "all is done")
	}},
	{"S5_synchronizing_the_default_stream_waits_for_ordered_streams", FourQueues, func(k *Kit) {
		s := k.Stream(hal.StreamOptions{})
		legacy := k.Device(0).DefaultStream()
		h := Hold(k, s).Started()
		k.Pending(legacy, "an ordered stream has work")
		done, err := legacy.Synchronize(k.Me, int64(20*time.Millisecond))
		require.NoError(k, err)
		require.False(k, done, "it did not wait for the ordered stream")
		h.Release()
		k.Sync(legacy)
		k.Done(s, "the default stream waited for it")
	}},
	{"S5_earlier_ordered_work_does_not_wait_for_later_default_work", 0, func(k *Kit) {
		a, b := k.Stream(hal.StreamOptions{}), k.Stream(hal.StreamOptions{})
		legacy := k.Device(0).DefaultStream()
		hb := Hold(k, b).Started()
		ha := Hold(k, a).Started()
		k.Call(legacy, func() {})
		ha.Release()
		k.Sync(a)
		k.Pending(legacy, "the other ordered stream is held")
		hb.Release()
		k.Sync(legacy, b)
	}},
	{"S5_a_wait_on_the_default_stream_is_work_of_it", EightQueues, func(k *Kit) {
		legacy := k.Device(0).DefaultStream()
		free := k.Stream(ordinary)
		e, own := k.Event(hal.EventOptions{}), k.Event(hal.EventOptions{})
		k.Record(free, e)
		k.Sync(free)
		k.Record(legacy, own)
		k.Sync(legacy)
		for name, wait := range map[string]func() error{
			"for a completed event":        func() error { return legacy.Wait(k.Me, e) },
			"for a record of its own":      func() error { return legacy.Wait(k.Me, own) },
			"for a stream without work":    func() error { return legacy.WaitStream(k.Me, free) },
			"with a limit that is to come": func() error { return legacy.WaitLimited(k.Me, e, int64(Limit)) },
		} {
			a, b := k.Stream(hal.StreamOptions{}), k.Stream(hal.StreamOptions{})
			h := Hold(k, a).Started()
			require.NoError(k, wait(), name)
			ran := make(chan int, 1)
			k.Call(b, func() { ran <- 1 })
			k.Call(free, func() {})
			k.Sync(free)
			k.Pending(b, "work enqueued on another ordered stream before the wait is pending: "+name)
			Empty(k, ran, "the wait on the default stream did not order later work: "+name)
			h.Release()
			k.Sync(a, b, legacy)
			Receive(k, ran, name)
			k.Close(a, b)
		}
	}},
	{"S5_a_wait_for_no_record_on_the_default_stream_is_no_work", 0, func(k *Kit) {
		legacy := k.Device(0).DefaultStream()
		a, b := k.Stream(hal.StreamOptions{}), k.Stream(hal.StreamOptions{})
		h := Hold(k, a).Started()
		require.NoError(k, legacy.Wait(k.Me, k.Event(hal.EventOptions{})))
		require.NoError(k, legacy.WaitStream(k.Me, legacy))
		k.Call(b, func() {})
		k.Sync(b)
		h.Release()
	}},
	{"S5_each_thread_has_its_own_default_stream", 0, func(k *Kit) {
		d := k.Device(0)
		other := hal.NewThread()
		mine, err := d.PerThreadStream(k.Me)
		require.NoError(k, err)
		again, err := d.PerThreadStream(k.Me)
		require.NoError(k, err)
		theirs, err := d.PerThreadStream(other)
		require.NoError(k, err)
		require.Same(k, mine, again)
		require.NotSame(k, mine, theirs)
		h := Hold(k, theirs).Started()
		k.Call(mine, func() {})
		k.Sync(mine)
		other.Retire()
		require.True(k, theirs.Closed(), "a thread's stream ends with it")
		h.Release()
	}},
	{"S6_a_wait_for_an_idle_ordered_stream_waits_for_the_default_stream", FourQueues, func(k *Kit) {
		ordered, waiter := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		h := Hold(k, k.Device(0).DefaultStream()).Started()
		require.NoError(k, waiter.WaitStream(k.Me, ordered))
		k.Pending(waiter, "an event recorded on the ordered stream would wait for the default stream")
		h.Release()
		k.Sync(waiter)
	}},
	{"S6_a_wait_for_a_stream_that_is_not_ordered_does_not_wait_for_the_default_stream", FourQueues, func(k *Kit) {
		free, waiter := k.Stream(ordinary), k.Stream(ordinary)
		h := Hold(k, k.Device(0).DefaultStream()).Started()
		require.NoError(k, waiter.WaitStream(k.Me, free))
		k.Sync(waiter)
		h.Release()
	}},
	{"S6_a_stream_waits_for_another_ones_work_so_far", FourQueues, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		first := Hold(k, a).Started()
		require.NoError(k, b.WaitStream(k.Me, a))
		k.Pending(b, "a wait is work")
		second := Hold(k, a)
		ran := make(chan int, 1)
		k.Call(b, func() { ran <- 1 })
		k.Pending(b, "the other stream is held")
		Empty(k, ran, "it did not wait")
		first.Release()
		k.Sync(b)
		Receive(k, ran, "it waited for later work, too")
		require.NoError(k, a.WaitStream(k.Me, a))
		second.Release()
		k.Sync(a)
	}},
	{"S7_priorities_are_clamped", 0, func(k *Kit) {
		greatest := k.Device(0).GreatestPriority()
		require.LessOrEqual(k, greatest, 0)
		for given, want := range map[int]int{5: 0, 0: 0, greatest: greatest, greatest - 3: greatest} {
			require.Equal(k, want, k.Stream(hal.StreamOptions{Priority: given}).Options().Priority)
		}
	}},
	{"S7_the_most_urgent_stream_gets_the_next_engine", Delays | RealTime | Ranked, func(k *Kit) {
		first, start := k.Stream(ordinary), k.Event(hal.EventOptions{})
		h := Hold(k, first).Started()
		k.Record(first, start)
		busy := func(s *hal.Stream) *hal.Event {
			e := k.Event(timed)
			k.Wait(s, start) // none begins before all are there
			require.NoError(k, s.Delay(k.Me, int64(2*time.Millisecond)))
			k.Record(s, e)
			return e
		}
		var ends []*hal.Event
		for range 100 {
			ends = append(ends, busy(k.Stream(ordinary)))
		}
		urgent := busy(k.Stream(hal.StreamOptions{NonBlocking: true, Priority: hal.GreatestPriority}))
		h.Release()
		done, err := k.Device(0).Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.True(k, done)
		// The clock of the device tells, however late this thread looks.
		gap, err := urgent.Elapsed(k.Me, ends[len(ends)/2])
		require.NoError(k, err)
		require.Positive(k, gap, "it was served behind streams that are less urgent")
	}},
	{"S7_a_more_urgent_stream_gets_the_engine_after_the_function_that_runs", Memory | RealTime | Ranked | Aborts | Graphs, func(k *Kit) {
		var doors []Door
		for range Engines {
			doors = append(doors, k.Block(k.Stream(ordinary)))
			k.Entered(doors[len(doors)-1])
		}
		s, g := k.Stream(ordinary), newGraph(k)
		short, running, next := newDoor(), newDoor(), newDoor()
		short.Open() // a short function: the engine goes on with this branch
		k.T.Cleanup(func() {
			running.Open()
			next.Open()
			k.Sync(s)
			for _, door := range []Door{short, running, next} {
				door.free()
			}
		})
		addNative(k, g, next, addNative(k, g, running, addNative(k, g, short)))
		k.Launch(k.Executable(g), s)
		doors[0].Open()
		k.Entered(running)
		urgent := k.Block(k.Stream(hal.StreamOptions{NonBlocking: true, Priority: hal.GreatestPriority}))
		running.Open()
		k.Entered(urgent)
		require.False(k, next.entered(), "it runs beside more functions than there are engines")
	}},
	{"S8_a_wait_ends_by_its_limit_and_work_goes_on", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		e := k.Event(hal.EventOptions{})
		k.Record(s, e)
		for _, limit := range []int64{0, int64(time.Millisecond)} {
			done, err := s.Synchronize(k.Me, limit)
			require.NoError(k, err)
			require.False(k, done)
			done, err = e.Synchronize(k.Me, limit)
			require.NoError(k, err)
			require.False(k, done)
			done, err = k.Device(0).Synchronize(k.Me, limit)
			require.NoError(k, err)
			require.False(k, done)
		}
		h.Release()
		k.Sync(s)
		k.EventDone(e, true, "the work went on")
	}},
	{"S9_a_host_blocking_stream_returns_when_the_work_is_done", FourQueues, func(k *Kit) {
		s := k.Stream(hal.StreamOptions{BlockHost: true})
		ran := false
		k.Call(s, func() { ran = true })
		require.True(k, ran, "the call returned before the function had run")
		h := Hold(k, k.Device(0).DefaultStream()).Started()
		var group sync.WaitGroup
		group.Add(1)
		returned := make(chan error, 1)
		go func() {
			defer group.Done()
			returned <- s.Nop(hal.NewThread())
		}()
		k.Eventually(func() bool { return !s.Idle() }, "the enqueue of an empty operation")
		other := k.Stream(hal.StreamOptions{NonBlocking: true})
		for range 20 { // gives a call that does not wait every chance to return
			k.Call(other, func() {})
			k.Sync(other)
		}
		Empty(k, returned, "it did not wait for the default stream")
		h.Release()
		require.NoError(k, Receive(k, returned, "the enqueue never returned"))
		group.Wait()
	}},
}
