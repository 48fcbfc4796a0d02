package vendor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// sleeps returns the pause of a test, during which the clock of its bubble goes on. All together have a limit.
func sleeps(t *testing.T) func() bool {
	t.Helper()
	clock := Stopwatch()
	return func() bool {
		time.Sleep(time.Millisecond)
		require.Less(t, clock(), int64(time.Minute), "a wait has no end")
		return false
	}
}

// Each holder has the lock for less than the limit of a wait for one of them, and all of them together for longer.
func TestO1_a_thread_waits_for_one_holder_of_an_enqueue_lock_after_another(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const holders = 5
		q := NewSequencer(sleeps(t))
		var lock EnqueueLock
		require.True(t, lock.TryLock())
		go func() {
			for range holders {
				time.Sleep(holderLimit * 3 / 10)
				lock.Unlock()
				lock.TryLock()
			}
			lock.Unlock()
		}()
		e := q.Enqueue(1, &lock, nil)
		require.True(t, e.locked, "it goes on without the lock")
		require.False(t, lock.TryLock())
		e.End(nil)
		require.True(t, lock.TryLock())
	})
}

// A holder that does not go on may wait for the program, and so for who waits for the lock.
func TestO1_a_thread_does_not_wait_for_a_holder_that_does_not_go_on(t *testing.T) {
	for name, of := range map[string]func(lock *EnqueueLock) (first, second *EnqueueLock){
		"of a stream":                         func(lock *EnqueueLock) (_, _ *EnqueueLock) { return lock, nil },
		"of a stream, where an event is free": func(lock *EnqueueLock) (_, _ *EnqueueLock) { return lock, &EnqueueLock{} },
		"of an event, where a stream is free": func(lock *EnqueueLock) (_, _ *EnqueueLock) { return &EnqueueLock{}, lock },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := NewSequencer(sleeps(t))
				var lock EnqueueLock
				require.True(t, lock.TryLock())
				first, second := of(&lock)
				e := q.Enqueue(1, first, second)
				require.False(t, e.locked)
				for _, l := range []*EnqueueLock{first, second} {
					require.True(t, l == nil || l == &lock || l.TryLock(), "the lock that was free is not given back")
				}
				e.End(nil)
				require.False(t, lock.TryLock(), "the lock of another thread is given back")
			})
		})
	}
}

// A tag of 0 says that no listener follows an operation.
func TestO1_listeners_are_told_of_what_was_enqueued_while_its_lock_is_taken(t *testing.T) {
	q := NewSequencer(sleeps(t))
	var lock EnqueueLock
	var told []driver.Tag
	q.OnSequence(func(tag driver.Tag) {
		told = append(told, tag)
		require.False(t, lock.TryLock(), "the next operation may be told of first")
	})
	for tag, err := range map[driver.Tag]error{0: nil, 7: nil, 8: errors.New("refused")} {
		e := q.Enqueue(tag, &lock, nil)
		require.Equal(t, tag != 0, e.locked)
		e.End(err)
		require.True(t, lock.TryLock())
		lock.Unlock()
	}
	require.Equal(t, []driver.Tag{7}, told)
}
