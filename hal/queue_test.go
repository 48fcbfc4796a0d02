package hal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// sleeps waits until n threads wait for a function of q.
func sleeps(t *testing.T, q *Queue, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.idle) == n
	}, 10*time.Second, time.Millisecond, "the thread waits")
}

// A thread that was woken for a function and does not run it yet will: a look at who waits for
// whom meanwhile must not take the function for one that no thread runs.
func TestW2_a_thread_that_has_not_taken_its_function_yet_is_about_to_go_on(t *testing.T) {
	q, me := newQueue(1), NewThread()
	defer me.Retire()
	q.Start()
	task, err := q.Next(me, 0)
	require.NoError(t, err)
	require.Equal(t, Task{}, task)
	ended := make(chan bool)
	go func() { ended <- q.Await(me, driver.Forever) }()
	sleeps(t, q, 1)
	require.True(t, q.settled(), "nothing waits for the thread")
	p := q.push(0, readyFunc{token: 2, stream: &Stream{}})
	require.NotNil(t, p, "the thread is woken")
	require.False(t, q.settled(), "the thread was chosen and sleeps still")
	p.Unpark()
	require.False(t, <-ended)
	require.False(t, q.settled(), "the thread has not taken the function")
	require.Nil(t, q.Runner(2))
	task, err = q.Next(me, 0)
	require.NoError(t, err)
	require.EqualValues(t, 2, task.Token)
	require.Same(t, me, q.Runner(2))
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
	sleeps(t, q, 1)
	p := q.push(0, readyFunc{token: 2, stream: &Stream{}})
	require.Equal(t, before+1, waking.Load(), "the thread was chosen and does not run yet")
	p.Unpark()
	require.EqualValues(t, 2, (<-done).Token)
	require.Equal(t, before, waking.Load())
}

// Where there are enough threads one that has waited in vain ends; the last one stays.
func TestH5_a_spare_thread_ends_after_a_wait_in_vain(t *testing.T) {
	q, me, other := newQueue(2), NewThread(), NewThread()
	defer me.Retire()
	defer other.Retire()
	q.Start()
	require.False(t, q.Await(me, 1), "it is the only one that waits")
	q.Start()
	ended := make(chan bool)
	go func() { ended <- q.Await(other, driver.Forever) }()
	sleeps(t, q, 1)
	require.True(t, q.Await(me, 1))
	q.Close()
	require.False(t, <-ended)
	task, err := q.Next(other, 0)
	require.NoError(t, err)
	require.True(t, task.End, "the queue is closed")
}
