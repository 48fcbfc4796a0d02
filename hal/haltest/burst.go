package haltest

import (
	"errors"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// burst is a burst of functions of a test.
type burst struct {
	k     *Kit
	b     hal.Burst
	funcs chan func() error
	grows bool
	ended atomic.Bool
}

// Burst enqueues a burst that begins with f.
func (k *Kit) burst(s *hal.Stream, f func()) *burst {
	k.T.Helper()
	u := &burst{k: k, funcs: make(chan func() error, 100)}
	require.True(k, u.b.Add())
	u.put(f)
	token := k.served.put(u.run)
	var err error
	u.grows, err = s.HostFuncs(k.Me, token, &u.b)
	require.NoError(k, err)
	return u
}

func (u *burst) put(f func()) { u.funcs <- func() error { f(); return nil } }

// add adds f, and reports whether the burst still grows.
func (u *burst) add(f func()) bool {
	if !u.b.Add() {
		return false
	}
	u.put(f)
	return true
}

// run is the function of the burst's token: it does what a thread does for a burst.
func (u *burst) run(t *hal.Thread) error {
	defer u.ended.Store(true)
	for u.b.Begin() {
		if err := (<-u.funcs)(); err != nil {
			u.k.RT.Funcs.Fail(t, &hal.Error{Kind: driver.HostFunction, Op: "call", Text: err.Error()})
		}
	}
	return nil
}

var burstCases = []testCase{
	{"H7_the_rest_of_an_abandoned_burst_is_dropped", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		done, err := s.Device().Synchronize(k.Me, int64(Limit)) // functions that an earlier case has just released
		require.NoError(k, err)
		require.True(k, done)
		begun, release, ran := make(chan int, 1), make(chan struct{}), make(chan int, 1)
		u := k.burst(s, func() { begun <- 1; <-release })
		u.add(func() { ran <- 1 })
		Receive(k, begun, "the function never began")
		require.Equal(k, 1, k.RT.Funcs.Abandon())
		done, err = s.Synchronize(k.Me, int64(Limit))
		require.True(k, done)
		require.ErrorIs(k, err, hal.ErrAborted)
		close(release)
		require.Eventually(k, u.ended.Load, Limit, Limit/10000, "the thread of the burst never got to its end")
		Empty(k, ran, "a function ran that its stream had counted as completed")
	}},
	{"H6_functions_added_to_a_burst_run_once_and_in_order", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		ran := make(chan int, 100)
		u := k.burst(s, func() { ran <- 0 })
		n := 1
		for n < 50 && u.add(func() { ran <- n }) {
			n++
		}
		require.Equal(k, u.grows, n > 1, "a burst that does not grow is sealed")
		Empty(k, ran, "a function ran before its turn")
		h.Release()
		k.Sync(s)
		require.Len(k, ran, n)
		require.False(k, u.add(func() {}), "a burst that ended is sealed")
	}},
	{"H6_what_is_enqueued_on_the_stream_seals_its_burst", 0, func(k *Kit) {
		for name, enqueue := range map[string]func(s *hal.Stream){
			"nop":    func(s *hal.Stream) { require.NoError(k, s.Nop(k.Me)) },
			"record": func(s *hal.Stream) { k.Record(s, k.Event(hal.EventOptions{})) },
			"call":   func(s *hal.Stream) { k.Call(s, func() {}) },
			"wait for the stream": func(s *hal.Stream) {
				require.NoError(k, k.Stream(ordinary).WaitStream(k.Me, s))
			},
			"work of the default stream": func(s *hal.Stream) { require.NoError(k, s.Device().Legacy().Nop(k.Me)) },
			"look for a time": func(s *hal.Stream) {
				_, err := s.Synchronize(k.Me, 0)
				require.NoError(k, err)
			},
			"look for a time at the device": func(s *hal.Stream) {
				_, err := s.Device().Synchronize(k.Me, 0)
				require.NoError(k, err)
			},
			"close": func(s *hal.Stream) { require.NoError(k, s.Close(k.Me)) },
		} {
			s := k.Stream(hal.StreamOptions{}) // ordered with the default stream
			h := Hold(k, s).Started()
			ran := make(chan int, 2)
			u := k.burst(s, func() { ran <- 0 })
			enqueue(s)
			require.False(k, u.add(func() { ran <- 1 }), name)
			h.Release()
			require.Equal(k, 0, Receive(k, ran, name))
		}
	}},
	{"H6_an_event_between_functions_completes_before_the_later_ones", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		e := k.Event(hal.EventOptions{})
		k.burst(s, func() {})
		k.Record(s, e)
		last := Hold(k, s)
		k.EventDone(e, false, "the function before it has not run")
		h.Release()
		done, err := e.Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.True(k, done, "the event waits for a function behind it")
		last.Release()
		k.Sync(s)
	}},
	{"H6_listeners_are_notified_of_functions_enqueued_from_then_on", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		u := k.burst(s, func() {})
		var calls atomic.Int32
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Kind == hal.OpCall && o.Stream == s {
				calls.Add(1)
			}
		})
		defer stop()
		require.False(k, u.add(func() {}), "no listener would see it")
		second := k.burst(s, func() {})
		require.False(k, second.grows)
		h.Release()
		k.Sync(s)
		require.EqualValues(k, 1, calls.Load())
	}},
	{"H6_a_failing_function_is_counted_and_those_after_it_run", RealTime, func(k *Kit) {
		s := k.Stream(ordinary)
		h := Hold(k, s).Started()
		u := k.burst(s, func() {})
		if !u.grows {
			h.Release()
			k.Sync(s)
			return
		}
		require.True(k, u.b.Add())
		u.funcs <- func() error { return errors.New("broken") }
		ran := make(chan int, 1)
		require.True(k, u.add(func() { ran <- 1 }))
		h.Release()
		Receive(k, ran, "a function after the one that failed never ran")
		done, err := s.Synchronize(k.Me, int64(Limit))
		require.True(k, done)
		require.ErrorIs(k, err, hal.ErrHostFunction)
		require.EqualValues(k, 1, s.Failures())
	}},
	{"H6_each_function_of_a_burst_counts_as_pending_and_is_dropped_by_an_abort", RealTime | Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		started, release := make(chan int, 1), make(chan int)
		ran := make(chan int, 100)
		u := k.burst(s, func() { started <- 1; <-release })
		if !u.grows {
			<-started
			close(release)
			k.Sync(s)
			return
		}
		Receive(k, started, "the first function never began")
		for i := range 9 {
			require.True(k, u.add(func() { ran <- i }))
		}
		require.Contains(k, s.Describe(), "10 operation(s) pending")
		require.NoError(k, s.Nop(k.Me))
		require.Contains(k, s.Describe(), "11 operation(s) pending")
		n, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 10, n)
		close(release)
		k.Eventually(u.ended.Load, "the burst ends with the function that runs")
		k.Sync(s)
		Empty(k, ran, "a function ran that was dropped")
	}},
	{"H6_a_burst_gives_way_to_a_more_urgent_stream_where_no_thread_is_free", RealTime | Unbounded, func(k *Kit) {
		var holds []*Held
		for range Threads - 1 {
			holds = append(holds, Hold(k, k.Stream(ordinary)).Started())
		}
		var pressure atomic.Uint32
		k.RT.Funcs.SetPressure(&pressure)
		defer k.RT.Funcs.SetPressure(nil)
		last := Hold(k, k.Stream(ordinary)).Started()
		k.Call(k.Stream(hal.StreamOptions{NonBlocking: true}), func() {})
		k.Eventually(func() bool { return pressure.Load() == 1 }, "a function waits and no thread is free")
		last.Release()
		k.Eventually(func() bool { return pressure.Load() == 0 }, "no function waits any more")
		for _, h := range holds {
			h.Release()
		}
	}},
	{"H6_a_thread_in_its_seat_is_given_the_function", RealTime, func(k *Kit) {
		q := k.RT.Funcs
		t := hal.NewThread()
		q.Start()
		var given hal.Given
		seat := hal.NewSeat(&given)
		task, err := q.NextOrSit(t, seat)
		for err == nil && !task.Sit && !task.End { // work of other cases
			task, err = q.NextOrSit(t, seat)
		}
		require.NoError(k, err)
		ran := make(chan int, 1)
		k.Call(k.Stream(ordinary), func() { ran <- 1 })
		left, end := q.Leave(t, seat)
		if !left {
			// Chosen: the function is in the seat, and the server's threads have not taken it.
			require.NotZero(k, given.Token)
			require.Same(k, t, q.Runner(given.Token))
			f := k.served.take(given.Token, true)
			require.NoError(k, f(t))
			task, _ = q.DoneOrSit(t, false, nil, seat)
			require.True(k, task.Sit)
			left, end = q.Leave(t, seat)
		}
		Receive(k, ran, "the function never ran")
		require.True(k, left)
		if !end {
			q.Stop()
		}
	}},
}
