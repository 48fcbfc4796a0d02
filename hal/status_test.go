package hal_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
	"halstream/hal/status"
)

func openStatus(t *testing.T) (*hal.Runtime, *hal.Device) {
	t.Helper()
	drv, err := host.Open(host.Options{Devices: 1})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	d, err := rt.Device(0)
	require.NoError(t, err)
	return rt, d
}

func newStream(t *testing.T, d *hal.Device, o hal.StreamOptions) *hal.Stream {
	t.Helper()
	s, err := d.NewStream(nil, o)
	require.NoError(t, err)
	return s
}

func finish(t *testing.T, s *hal.Stream) {
	t.Helper()
	done, err := s.Synchronize(nil, int64(10*time.Second))
	require.NoError(t, err)
	require.True(t, done)
}

func TestS3_words_of_a_stream_say_how_far_it_is(t *testing.T) {
	_, d := openStatus(t)
	s := newStream(t, d, hal.StreamOptions{})
	w := s.Status()
	require.Zero(t, w.Special.Load())
	require.Equal(t, w.Submitted.Load(), w.Completed.Load())
	g, err := s.Gate(nil)
	require.NoError(t, err)
	require.NoError(t, s.Nop(nil))
	require.EqualValues(t, 2, w.Submitted.Load()-w.Completed.Load())
	g.Open()
	finish(t, s)
	require.Equal(t, w.Submitted.Load(), w.Completed.Load())
	require.NoError(t, s.Close(nil))
	require.EqualValues(t, status.Closed, w.Special.Load())
}

func TestS4_an_error_is_in_the_words_before_the_work_counts_as_done(t *testing.T) {
	rt, d := openStatus(t)
	s := newStream(t, d, hal.StreamOptions{})
	w := s.Status()
	thread := hal.NewThread()
	rt.Funcs.Start()
	for range 200 {
		require.NoError(t, s.HostFunc(nil, 1))
		task, err := rt.Funcs.Next(thread, int64(10*time.Second))
		require.NoError(t, err)
		require.NotZero(t, task.Token)
		seen := make(chan uint32)
		last := w.Submitted.Load()
		go func() {
			for !w.Reached(last) {
				runtime.Gosched()
			}
			seen <- w.Special.Load()
		}()
		rt.Funcs.Done(thread, true, &hal.Error{Kind: driver.HostFunction, Text: "it failed"})
		require.EqualValues(t, status.Failed, <-seen)
		require.Error(t, s.Failure())
		require.Zero(t, w.Special.Load())
	}
}

func TestS5_the_order_word_says_whether_the_default_stream_comes_first(t *testing.T) {
	_, d := openStatus(t)
	ordered, free := newStream(t, d, hal.StreamOptions{}), newStream(t, d, hal.StreamOptions{NonBlocking: true})
	require.Nil(t, free.Status().Order)
	order := ordered.Status().Order
	require.Zero(t, order.Load())
	g, err := ordered.Gate(nil)
	require.NoError(t, err)
	require.Zero(t, order.Load(), "work of ordered streams holds none of them up")
	require.NoError(t, d.Legacy().Nop(nil))
	require.NotZero(t, order.Load())
	require.NoError(t, ordered.Nop(nil))
	require.NotZero(t, order.Load())
	g.Open()
	finish(t, ordered)
	finish(t, d.Legacy())
	require.Zero(t, order.Load())
}

func TestE3_an_event_recorded_without_a_call_is_done(t *testing.T) {
	rt, d := openStatus(t)
	e, err := rt.NewRecordedEvent(nil, d, hal.EventOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, e.Version())
	done, err := e.Query(nil)
	require.NoError(t, err)
	require.True(t, done)
	s := newStream(t, d, hal.StreamOptions{})
	require.NoError(t, s.Wait(nil, e))
	require.Zero(t, rt.Pending())
	g, err := s.Gate(nil)
	require.NoError(t, err)
	require.NoError(t, s.Record(nil, e))
	w, place := e.Place()
	require.Same(t, s.Status(), w)
	require.False(t, w.Reached(place))
	done, err = e.Query(nil)
	require.NoError(t, err)
	require.False(t, done)
	g.Open()
	finish(t, s)
	require.True(t, w.Reached(place))
}

// TestE1_a_place_can_be_waited_for_after_its_stream_was_closed waits for a place of a
// stream that is open, of one that was closed with work pending, and of one that ended.
func TestE1_a_place_can_be_waited_for_after_its_stream_was_closed(t *testing.T) {
	rt, d := openStatus(t)
	for _, closed := range []bool{false, true} {
		a, b := newStream(t, d, hal.StreamOptions{}), newStream(t, d, hal.StreamOptions{})
		w, of := a.Status(), a
		g, err := a.Gate(nil)
		require.NoError(t, err)
		place := w.Submitted.Load()
		if closed {
			require.NoError(t, a.Close(nil))
			of = nil
		}
		require.NoError(t, b.WaitPlace(nil, d, of, w, place))
		require.Contains(t, b.Describe(), "a wait for event recorded after operation 1 of stream")
		e, err := rt.NewPlacedEvent(nil, d, hal.EventOptions{}, of, w, place)
		require.NoError(t, err)
		require.EqualValues(t, 1, e.Version())
		done, err := e.Query(nil)
		require.NoError(t, err)
		require.False(t, done)
		g.Open()
		finish(t, b)
		done, err = e.Synchronize(nil, int64(10*time.Second))
		require.NoError(t, err)
		require.True(t, done)
		require.NoError(t, b.WaitPlace(nil, d, of, w, place))
		require.Zero(t, rt.Pending())
	}
}

// TestE1_listeners_see_a_wait_for_a_place_as_one_for_an_event begins to listen after the
// record was made.
func TestE1_listeners_see_a_wait_for_a_place_as_one_for_an_event(t *testing.T) {
	rt, d := openStatus(t)
	a, b := newStream(t, d, hal.StreamOptions{}), newStream(t, d, hal.StreamOptions{})
	g, err := a.Gate(nil)
	require.NoError(t, err)
	place := a.Status().Submitted.Load()
	var seen []string
	stop := rt.Listen(func(o hal.Operation) { seen = append(seen, o.Kind.String()) })
	defer stop()
	require.NoError(t, b.WaitPlace(nil, d, a, a.Status(), place))
	require.Equal(t, []string{"new event", "wait", "close event"}, seen)
	g.Open()
	finish(t, b)
}

func TestO1_the_word_of_a_runtime_says_who_wants_to_see_calls(t *testing.T) {
	rt, _ := openStatus(t)
	word := rt.Status()
	require.Zero(t, word.Load())
	first, second := rt.Listen(func(hal.Operation) {}), rt.Listen(func(hal.Operation) {})
	require.EqualValues(t, status.Listened, word.Load())
	first()
	require.EqualValues(t, status.Listened, word.Load())
	second()
	require.Zero(t, word.Load())
	require.NoError(t, rt.SetSchedule(nil, "fifo", driver.Caller{}))
	require.EqualValues(t, status.Stepped, word.Load())
	require.Error(t, rt.SetSchedule(nil, "none", driver.Caller{}))
	require.EqualValues(t, status.Stepped, word.Load())
	require.NoError(t, rt.SetSchedule(nil, "parallel", driver.Caller{}))
	require.Zero(t, word.Load())
	rt.Close()
	require.EqualValues(t, status.Ended, word.Load())
}

// changedBeside is a host backend that calls functions before and after its schedule
// changes to a deterministic one.
type changedBeside struct {
	*host.Driver
	before, after func()
}

func (d *changedBeside) SetSchedule(text string, c driver.Caller) error {
	if text == "parallel" {
		return d.Driver.SetSchedule(text, c)
	}
	d.before()
	err := d.Driver.SetSchedule(text, c)
	d.after()
	return err
}

func TestX6_no_call_is_missed_where_two_threads_change_the_schedule(t *testing.T) {
	built, err := host.Open(host.Options{Devices: 1})
	require.NoError(t, err)
	drv := &changedBeside{Driver: built}
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	defer rt.Close()
	drv.before = func() { require.NoError(t, rt.SetSchedule(nil, "parallel", driver.Caller{})) }
	seen := uint32(0)
	drv.after = func() { seen = rt.Status().Load() }
	require.NoError(t, rt.SetSchedule(nil, "fifo", driver.Caller{}))
	require.EqualValues(t, status.Stepped, seen, "the schedule is in force, and C code answers calls")
	require.EqualValues(t, status.Stepped, rt.Status().Load())
	require.NoError(t, rt.SetSchedule(nil, "parallel", driver.Caller{}))
	require.Zero(t, rt.Status().Load())
}

func TestL3_words_of_a_stream_with_work_go_to_no_other_one(t *testing.T) {
	rt, d := openStatus(t)
	s := newStream(t, d, hal.StreamOptions{})
	w := s.Status()
	g, err := s.Gate(nil)
	require.NoError(t, err)
	require.NoError(t, s.Close(nil))
	s = nil
	for range 3 {
		runtime.GC()
		for range 100 {
			require.NotSame(t, w, newStream(t, d, hal.StreamOptions{}).Status())
		}
	}
	require.NotEqual(t, w.Submitted.Load(), w.Completed.Load())
	g.Open()
	require.Eventually(t, func() bool { return rt.Pending() == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, w.Submitted.Load(), w.Completed.Load())
	_ = s
}
