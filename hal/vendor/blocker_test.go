package vendor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
	"halstream/hal/park"
)

// count returns a function and how often it was called.
func count() (f func(), times func() int) {
	n := make(chan struct{}, 16)
	return func() { n <- struct{}{} }, func() int { return len(n) }
}

func TestH1_a_stream_goes_on_after_the_work_of_a_task(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t)
		drop, dropped := count()
		resume, resumed := count()
		release := make(chan struct{})
		b := NewTask(&d.Device, "a task", func() { <-release }, drop, resume)
		require.Equal(t, "a task", b.Title)
		b.Run() // which does not block
		synctest.Wait()
		require.Zero(t, resumed())
		require.False(t, d.AwaitTasks(0))
		close(release)
		synctest.Wait()
		require.Equal(t, 1, resumed())
		require.True(t, d.AwaitTasks(0))
		require.Zero(t, dropped())
	})
}

// A wait for the work may have ended with the loss already, and its memory may be free.
func TestD6_the_work_of_a_task_does_not_begin_on_a_device_that_was_lost(t *testing.T) {
	d := newDevice(t)
	drop, dropped := count()
	resume, resumed := count()
	work, worked := count()
	_ = d.Lose(errRefused)
	NewTask(&d.Device, "a task", work, drop, resume).Run()
	require.True(t, d.AwaitTasks(0))
	require.Equal(t, []int{0, 1, 1}, []int{worked(), dropped(), resumed()})
}

// sink is who runs the functions of a program.
type sink struct {
	ready, dropped []uint64
	level          uint8
	c              driver.Completer
	parker         *park.Parker
}

func (s *sink) Ready(token uint64, level uint8, c driver.Completer) *park.Parker {
	s.ready, s.level, s.c = append(s.ready, token), level, c
	return s.parker
}

func (s *sink) Drop(token uint64) *park.Parker {
	s.dropped = append(s.dropped, token)
	return s.parker
}

func TestH1_a_function_is_handed_over_with_what_completes_it_and_its_thread_is_woken(t *testing.T) {
	s := &sink{parker: park.Get()}
	defer park.Put(s.parker)
	c := NewCompleter(nil, nil)
	b := NewFunction(driver.HostFunc{Token: 7, Sink: s}, 3, func() driver.Completer { return c })
	require.Equal(t, "function 7", b.Title)
	b.Run()
	require.Equal(t, []uint64{7}, s.ready)
	require.EqualValues(t, 3, s.level)
	require.Same(t, c, s.c)
	require.True(t, s.parker.Park(0, 0), "the thread is not woken")
	b.Drop()
	require.Equal(t, []uint64{7}, s.dropped)
	require.True(t, s.parker.Park(0, 0), "the thread is not woken")
}

// What a completion gives back, as the words in memory through which the stream waits, belongs to another operation then.
func TestH1_a_function_is_completed_once(t *testing.T) {
	var p Progress
	p.Init(&newDevice(t).Device, nil)
	resume, resumed := count()
	c := NewCompleter(&p, resume)
	require.True(t, c.Complete(errRefused))
	require.False(t, c.Complete(errRefused))
	require.Equal(t, 1, resumed())
	require.Same(t, errRefused, p.Failure())
	require.Nil(t, p.Failure())
	again := NewCompleter(&p, func() { require.NotNil(t, p.Failure(), "the stream goes on before it has the error") })
	require.True(t, again.Complete(errRefused))
}

func TestS8_a_wait_with_a_limit_lets_the_stream_go_on_with_an_error(t *testing.T) {
	for _, reached := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var p Progress
			p.Init(&newDevice(t).Device, nil)
			resume, resumed := count()
			drop, dropped := count()
			b := NewTimedWait(&p, 5, int64(time.Second), func() bool { time.Sleep(time.Second); return reached }, drop, resume)
			require.Equal(t, "wait for event 5 with a limit", b.Title)
			b.Run()
			synctest.Wait()
			require.Zero(t, resumed())
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, 1, resumed())
			require.Zero(t, dropped())
			if err := p.Failure(); reached {
				require.Nil(t, err)
			} else {
				require.ErrorContains(t, err, "wait for event 5 passed its limit of 1s")
				require.Equal(t, driver.Timeout, err.Kind)
			}
		})
	}
}

// nativeCall is a native function with a title of its own.
type nativeCall struct {
	err  *driver.Error
	drop func()
}

func (c nativeCall) Run() *driver.Error { return c.err }
func (c nativeCall) Title() string      { return "a call" }
func (c nativeCall) Drop()              { c.drop() }

func TestH1_a_native_function_runs_between_what_looks_at_its_memory(t *testing.T) {
	var p Progress
	p.Init(&newDevice(t).Device, nil)
	var order []any
	n := driver.Native{Fn: 1, Arg: 2, Before: func() { order = append(order, "before") }, After: func() { order = append(order, "after") }}
	call := func(fn, arg uint64) { order = append(order, fn, arg) }
	title, work, drop := NativeWork(&p, n, call)
	require.Equal(t, "a native function", title)
	work()
	drop()
	require.Equal(t, []any{"before", uint64(1), uint64(2), "after"}, order)
	require.Nil(t, p.Failure())

	give, given := count()
	n.Call = nativeCall{errRefused, give}
	title, work, drop = NativeWork(&p, n, call)
	require.Equal(t, "a call", title)
	work()
	require.Same(t, errRefused, p.Failure())
	drop()
	require.Equal(t, 1, given())
}
