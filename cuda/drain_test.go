package cuda

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// textBuffer is a buffer that goroutines share.
type textBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *textBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *textBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// No signal ends a call in which the driver waits for the device, and a held stream may
// wait for the caller: a report names the call and the stream.
func TestS2_a_call_that_waits_for_a_held_stream_is_reported(t *testing.T) {
	t.Setenv("FAKECUDA_DRAIN", "cuMemAllocFromPoolAsync")
	f := NewFake(t)
	limit, reports, most := drainLimit, drainReports, stallMost
	var text textBuffer
	drainLimit, drainReports, stallMost = time.Millisecond, &text, int64(time.Hour)
	drv, err := Open(f.Path)
	require.NoError(t, err)
	defer func() {
		drv.Close()
		drainLimit, drainReports, stallMost = limit, reports, most
	}()
	dev, err := drv.Open(0)
	require.NoError(t, err)
	memory, err := dev.Alloc(pooledSize) // nothing is held
	require.NoError(t, err)
	dev.Free(memory)
	s, err := dev.NewStream(driver.StreamOptions{ID: 7})
	require.NoError(t, err)
	gate, err := s.Gate(3, 0)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := dev.Alloc(pooledSize)
		done <- err
	}()
	require.Eventually(t, func() bool { return text.String() != "" }, 10*time.Second, time.Millisecond)
	require.Contains(t, text.String(), "cuMemAllocFromPoolAsync has not returned for 1ms")
	require.Contains(t, text.String(), "stream 7 for gate 3")
	select {
	case <-done:
		require.Fail(t, "the call did not wait")
	default:
	}
	gate.Open()
	require.NoError(t, <-done)
}
