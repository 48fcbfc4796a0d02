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
func TestO1_a_thread_waits_for_one_holder_of_the_enqueue_lock_of_an_event_after_another(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const holders = 5
		q := NewSequencer(sleeps(t))
		var stream, event EnqueueLock
		require.True(t, event.TryLock())
		go func() {
			for range holders {
				time.Sleep(holderLimit * 3 / 10)
				event.Unlock()
				event.TryLock()
			}
			event.Unlock()
		}()
		e := q.Enqueue(1, &stream, &event)
		require.NotNil(t, e.also, "it goes on without the lock")
		require.False(t, event.TryLock())
		e.End(nil)
		require.True(t, event.TryLock())
		require.True(t, stream.TryLock())
	})
}

// On a busy machine a holder may get no processor for any time. A thread that enqueued on the same stream meanwhile would
// have listeners told of the two in an order that may be the wrong one.
func TestO1_a_thread_waits_for_the_holder_of_the_enqueue_lock_of_its_stream_for_any_time(t *testing.T) {
	for name, event := range map[string]*EnqueueLock{"alone": nil, "and an event": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := NewSequencer(sleeps(t))
				var stream EnqueueLock
				require.True(t, stream.TryLock())
				var over bool
				go func() {
					time.Sleep(holderLimit * 20)
					over = true
					stream.Unlock()
				}()
				e := q.Enqueue(1, &stream, event)
				require.True(t, over, "it goes on beside the holder")
				e.End(nil)
				require.True(t, stream.TryLock())
			})
		})
	}
}

// A holder that does not go on may wait for the program, and so for who waits for the lock.
func TestO1_a_thread_does_not_wait_for_a_holder_of_an_events_lock_that_does_not_go_on(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewSequencer(sleeps(t))
		var stream, event EnqueueLock
		require.True(t, event.TryLock())
		e := q.Enqueue(1, &stream, &event)
		require.Nil(t, e.also)
		require.False(t, stream.TryLock(), "another thread may enqueue on the stream meanwhile")
		e.End(nil)
		require.True(t, stream.TryLock())
		require.False(t, event.TryLock(), "the lock of another thread is given back")
	})
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
		require.Equal(t, tag != 0, e.stream != nil)
		e.End(err)
		require.True(t, lock.TryLock())
		lock.Unlock()
	}
	require.Equal(t, []driver.Tag{7}, told)
}
