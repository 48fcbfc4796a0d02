package hal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A thread that was given a function and gets no processor yet will run it: a look at who waits for
// whom meanwhile must not take the function for one that no thread runs.
func TestW2_a_thread_that_does_not_know_of_its_function_yet_is_about_to_go_on(t *testing.T) {
	q, me := newQueue(1), NewThread()
	defer me.Retire()
	var given Given
	seat := NewSeat(&given)
	defer seat.Free()
	q.Start()
	task, err := q.NextOrSit(me, seat)
	require.NoError(t, err)
	require.True(t, task.Sit)
	require.True(t, q.settled(), "nothing waits for the thread in its seat")
	p := q.push(0, readyFunc{token: 2, stream: &Stream{}})
	require.NotNil(t, p, "the thread is woken")
	require.EqualValues(t, 2, given.Token)
	require.False(t, q.settled(), "the thread has not looked")
	given.Taken = 1
	require.True(t, q.settled(), "the function runs")
}

func TestW2_a_thread_that_was_woken_in_next_is_about_to_go_on(t *testing.T) {
	q, me := newQueue(2), NewThread()
	defer me.Retire()
	before := waking.Load()
	done := make(chan Task)
	go func() {
		task, _ := q.Next(me, int64(10*time.Second))
		done <- task
	}()
	require.Eventually(t, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.idle) == 1
	}, 10*time.Second, time.Millisecond, "the thread waits")
	p := q.push(0, readyFunc{token: 2, stream: &Stream{}})
	require.Equal(t, before+1, waking.Load(), "the thread was chosen and does not run yet")
	p.Unpark()
	require.EqualValues(t, 2, (<-done).Token)
	require.Equal(t, before, waking.Load())
}
