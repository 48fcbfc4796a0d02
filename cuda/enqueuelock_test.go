package cuda_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/hal/driver"
)

// While a thread is in a call of the driver, another thread's operation on the same
// stream or event does not get ahead of its own: the driver would not say which of the
// two it took first.
func TestO1_operations_on_one_stream_or_event_take_turns(t *testing.T) {
	for name, c := range map[string]struct {
		slow          string // the driver's function in which the first operation is
		first, second func(s, other driver.Stream, e driver.Event) error
	}{
		"a wait and a record of its event": {"cuStreamWaitEvent",
			func(s, _ driver.Stream, e driver.Event) error { return s.Wait(e, driver.Forever, 1) },
			func(_, other driver.Stream, e driver.Event) error { return other.Record(e, 2) }},
		"a free and a wait on its stream": {"cuEventRecord",
			func(s, _ driver.Stream, _ driver.Event) error { s.Fence(1); return nil },
			func(s, _ driver.Stream, e driver.Event) error { return s.Wait(e, driver.Forever, 2) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := fake(t)
			drv, err := cuda.Open(f.Path)
			require.NoError(t, err)
			defer drv.Close()
			dev, err := drv.Open(0)
			require.NoError(t, err)
			s, err := dev.NewStream(driver.StreamOptions{ID: 1})
			require.NoError(t, err)
			other, err := dev.NewStream(driver.StreamOptions{ID: 2})
			require.NoError(t, err)
			e, err := dev.NewEvent(driver.EventOptions{ID: 1})
			require.NoError(t, err)
			require.NoError(t, other.Record(e, 0))
			var mu sync.Mutex
			var order []driver.Tag
			drv.OnSequence(func(tag driver.Tag) {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, tag)
			})
			require.NoError(t, f.Control("slow %s 200000", c.slow))
			done := make(chan struct{})
			go func() {
				defer close(done)
				assert.NoError(t, c.first(s, other, e))
			}()
			require.Eventually(t, func() bool { return f.Count("sleeping") == 1 }, 10*time.Second, time.Millisecond)
			require.NoError(t, c.second(s, other, e))
			<-done
			require.NoError(t, f.Control("slow %s 0", c.slow))
			require.Equal(t, []driver.Tag{1, 2}, order)
		})
	}
}

// Each of five threads has the enqueue lock for less than the limit of a wait for one holder, and the
// last one waits for longer than that in all.
func TestO1_a_thread_waits_for_one_holder_of_an_enqueue_lock_after_another(t *testing.T) {
	f := fake(t)
	drv, err := cuda.Open(f.Path)
	require.NoError(t, err)
	defer drv.Close()
	dev, err := drv.Open(0)
	require.NoError(t, err)
	s := newStream(t, dev, 1)
	drv.OnSequence(func(driver.Tag) {})
	require.NoError(t, f.Control("slow cuStreamWaitEvent 300000"))
	e, err := dev.NewEvent(driver.EventOptions{ID: 1})
	require.NoError(t, err)
	require.NoError(t, s.Record(e, 0))
	const threads = 5
	var ended atomic.Int32
	for range threads {
		go func() {
			defer ended.Add(1)
			assert.NoError(t, s.Wait(e, driver.Forever, 1))
		}()
	}
	require.Eventually(t, func() bool {
		assert.LessOrEqual(t, f.Count("sleeping"), uint64(1), "two threads are in the driver with one stream")
		return ended.Load() == threads
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, f.Control("slow cuStreamWaitEvent 0"))
}
