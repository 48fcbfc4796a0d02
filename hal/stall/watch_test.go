package stall_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/stall"
)

// ticks returns what so many ticks say.
func ticks(w *stall.Watch, n int) []bool {
	said := make([]bool, n)
	for i := range said {
		said[i] = w.Tick()
	}
	return said
}

func TestW3_a_watch_looks_when_pending_work_has_not_moved_for_some_ticks(t *testing.T) {
	p := newProgram(t)
	w := stall.NewWatch(p.rt)
	require.NotContains(t, ticks(w, 10), true, "nothing is pending")
	s := p.stream()
	gate := p.hold(s)
	require.Equal(t, []bool{false, false, false, true, true}, ticks(w, 5))
	require.NoError(t, s.Nop(p.me))
	require.Equal(t, []bool{false, false, false, true}, ticks(w, 4), "more is pending than before")
	gate.Open()
	require.True(t, p.point(s).Wait(int64(10*time.Second)))
	require.NotContains(t, ticks(w, 10), true)
}

func TestW3_a_watch_looks_less_often_after_each_answer_that_the_program_can_go_on(t *testing.T) {
	p := newProgram(t)
	p.hold(p.stream())
	w := stall.NewWatch(p.rt)
	ticks(w, 4)
	w.Answered(true)
	require.True(t, w.Tick(), "a suspicion is looked at again at once")
	pauses := []int{}
	for range 7 {
		w.Answered(false)
		n := 0
		for !w.Tick() {
			n++
		}
		pauses = append(pauses, n)
	}
	require.Equal(t, []int{4, 8, 16, 32, 64, 64, 64}, pauses)
	w.Answered(false)
	p.hold(p.stream())
	require.Equal(t, []bool{false, false, false, true}, ticks(w, 4), "other work is pending")
}

func TestW5_a_watch_sleeps_until_something_is_pending(t *testing.T) {
	p := newProgram(t)
	w := stall.NewWatch(p.rt)
	stop, returned := make(chan struct{}), make(chan bool)
	wait := func() { returned <- w.Wait(stop) }
	answer := func() bool {
		select {
		case again := <-returned:
			return again
		case <-time.After(10 * time.Second):
			require.Fail(t, "the watch sleeps on")
			return false
		}
	}
	for range 2 {
		require.False(t, w.Tick())
		pending := p.rt.WorkPending()
		go wait()
		select {
		case <-returned:
			require.Fail(t, "nothing is pending")
		case <-pending:
			require.Fail(t, "nothing is pending")
		case <-time.After(300 * time.Millisecond): // longer than between ticks; a slow machine finds less
		}
		s := p.stream()
		gate := p.hold(s)
		require.True(t, answer())
		<-pending
		<-p.rt.WorkPending()
		require.False(t, w.Tick())
		go wait()
		require.True(t, answer(), "work is pending: the next tick comes by itself")
		gate.Open()
		require.True(t, p.point(s).Wait(int64(10*time.Second)))
	}
	require.False(t, w.Tick())
	go wait()
	close(stop)
	require.False(t, answer())
}
