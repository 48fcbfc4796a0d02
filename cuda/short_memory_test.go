package cuda

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda/fakectl"
	"halstream/hal/driver"
)

const mostMemory = 6 << 20 // of 8 MiB: it fits once

// smallDevice returns a device with little memory, and a stream of it.
func smallDevice(t *testing.T, settings map[string]string) (*fakectl.Fake, *Device, driver.Stream) {
	t.Helper()
	before := stallMost
	stallMost = int64(patientLimit)
	t.Cleanup(func() { stallMost = before })
	t.Setenv("FAKECUDA_MEMORY", "8388608")
	for name, value := range settings {
		t.Setenv("FAKECUDA_"+name, value)
	}
	return fakeDevice(t)
}

// begin begins an allocation on another thread.
func begin(dev *Device) <-chan error {
	done := make(chan error, 1)
	go func() {
		addr, err := dev.Alloc(mostMemory)
		if err == nil {
			dev.Free(addr)
		}
		done <- err
	}()
	return done
}

func endsWell(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(patientLimit):
		require.Fail(t, "the allocation does not return")
	}
}

// The stream on which the pool allocates does not go on for a while. What it has allocated is most of
// the memory, so that there is no other.
func TestM16_memory_of_the_pool_is_waited_for_where_it_is_the_only_one(t *testing.T) {
	f, dev, s := smallDevice(t, map[string]string{"CONNECTIONS": "1", "PRIORITY_QUEUES": "0"})
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	done := begin(dev)
	require.Eventually(t, func() bool { return f.Count("cuMemAlloc_v2") == 1 }, patientLimit, time.Millisecond)
	gate.Open()
	endsWell(t, done)
}

// The same for memory whose free is pending on that stream.
func TestM16_a_free_that_is_enqueued_is_waited_for(t *testing.T) {
	f, dev, s := smallDevice(t, map[string]string{"CONNECTIONS": "1", "PRIORITY_QUEUES": "0"})
	addr, err := dev.Alloc(mostMemory)
	require.NoError(t, err)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	dev.Free(addr)
	dev.state().blocked.Store(true) // as after an allocation that has waited for the stream in vain
	before := f.Count("cuStreamQuery")
	done := begin(dev)
	waits := func() bool { return len(done) == 1 || f.Count("cuStreamQuery") > before+20 }
	require.Eventually(t, waits, patientLimit, time.Millisecond)
	gate.Open()
	endsWell(t, done)
}

// And for memory whose free another thread makes, which has not come that far.
func TestM16_a_free_that_another_thread_makes_is_waited_for(t *testing.T) {
	f, dev, s := smallDevice(t, nil)
	addr, err := dev.Alloc(mostMemory)
	require.NoError(t, err)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	require.NoError(t, f.Control("slow cuMemFreeAsync %d", 10*asideLimit/1000))
	dev.Free(addr)
	require.EqualValues(t, 1, dev.apartCalls.Load(), "the free is over too soon for this test")
	endsWell(t, begin(dev))
}

// Work that waits for the caller never lets that stream go on: the call fails, and the next one at once.
func TestM16_a_stream_that_waits_for_the_caller_is_not_waited_for_long(t *testing.T) {
	_, dev, s := smallDevice(t, map[string]string{"CONNECTIONS": "1", "PRIORITY_QUEUES": "0"})
	stallMost = int64(time.Millisecond)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	_, err = dev.Alloc(mostMemory)
	require.ErrorContains(t, err, "OUT_OF_MEMORY")
	stallMost = int64(time.Hour)
	_, err = dev.Alloc(mostMemory)
	require.ErrorContains(t, err, "OUT_OF_MEMORY")
	gate.Open()
	require.Eventually(t, func() bool { return !dev.drv.stalls() }, patientLimit, time.Millisecond)
	endsWell(t, begin(dev))
}
