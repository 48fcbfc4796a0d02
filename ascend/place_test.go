package ascend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// What is enqueued while another thread looks how far a stream is does not count as done with what was before:
// the library has answered the look already, and its thread goes on later.
func TestO3_a_look_at_a_stream_does_not_take_in_later_work(t *testing.T) {
	const limit = 10 * time.Second
	f, drv, d := fakeDevice(t)
	s, err := d.NewStream(driver.StreamOptions{Level: 3})
	require.NoError(t, err)
	require.NoError(t, s.Nop(0))
	require.Eventually(t, func() bool { return f.Count("pending") == 0 }, limit, time.Millisecond)
	require.False(t, s.Reached(s.Last()), "a look has nothing to find out")

	require.NoError(t, f.Control("stop aclrtStreamQuery 1"))
	t.Cleanup(func() { _ = f.Control("stop aclrtStreamQuery 0") })
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		drv.Refresh()
	}()
	require.Eventually(t, func() bool { return f.Count("stopped") == 1 }, limit, time.Millisecond, "there is no look")
	g, err := s.Gate(1, 0)
	require.NoError(t, err)
	defer g.Open()
	place := s.Last()
	require.NoError(t, f.Control("stop aclrtStreamQuery 0"))
	select {
	case <-looked:
	case <-time.After(limit):
		require.Fail(t, "the look has no end")
	}
	require.False(t, s.Reached(place), "a gate that is closed counts as passed")
}
