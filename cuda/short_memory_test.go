package cuda

import (
	"errors"
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
	stallMost = int64(callLimit)
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
	case <-time.After(callLimit):
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
	require.Eventually(t, func() bool { return f.Count("cuMemAlloc_v2") == 1 }, callLimit, time.Millisecond)
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
	require.Eventually(t, waits, callLimit, time.Millisecond)
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
	require.NoError(t, f.Control("slow cuMemFreeAsync %d", 10*giveBackLimit/1000))
	dev.Free(addr)
	require.EqualValues(t, 1, dev.callsElsewhere.Load(), "the free is over too soon for this test")
	endsWell(t, begin(dev))
}

// Work that waits for the caller never lets that stream go on: the call fails, and the next one at once.
func TestM16_a_stream_that_waits_for_the_caller_is_not_waited_for_long(t *testing.T) {
	_, dev, s := smallDevice(t, map[string]string{"CONNECTIONS": "1", "PRIORITY_QUEUES": "0"})
	stallMost = int64(100 * time.Millisecond) // as long as a call of the driver may take
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	_, err = dev.Alloc(mostMemory)
	require.ErrorContains(t, err, "OUT_OF_MEMORY")
	stallMost = int64(time.Hour)
	_, err = dev.Alloc(mostMemory)
	require.ErrorContains(t, err, "OUT_OF_MEMORY")
	gate.Open()
	require.Eventually(t, func() bool { return !dev.drv.stalls() }, callLimit, time.Millisecond)
	endsWell(t, begin(dev))
}

// shortLimits makes the limits of calls that need memory short.
func shortLimits(t *testing.T) {
	t.Helper()
	before := stallMost
	stallMost = int64(200 * time.Millisecond)
	t.Cleanup(func() { stallMost = before })
}

// fails allocates more than there is on another thread, and returns the error, which has to come while the device
// is held.
func fails(t *testing.T, dev *Device, size uint64) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := dev.Alloc(size)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(callLimit):
		require.Fail(t, "the allocation does not return")
	}
	return nil
}

// A driver that has something to give back waits there for what is held, and that waits for the caller.
func TestM16_running_out_ends_while_the_driver_gives_memory_back(t *testing.T) {
	f, dev, s := smallDevice(t, nil)
	shortLimits(t)
	addr, err := dev.Alloc(3 << 20)
	require.NoError(t, err)
	dev.Free(addr) // the pool keeps it
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	require.NoError(t, f.Control("drain cuMemPoolTrimTo 1"))
	trims := f.Count("cuMemPoolTrimTo")
	for range 3 {
		var e *driver.Error
		require.True(t, errors.As(fails(t, dev, 16<<20), &e))
		require.Equal(t, driver.OutOfMemory, e.Kind)
	}
	require.Greater(t, f.Count("cuMemPoolTrimTo"), trims)
	gate.Open()
	require.Eventually(t, func() bool { return dev.callsElsewhere.Load() == 0 }, callLimit, time.Millisecond)
	require.NoError(t, f.Control("drain cuMemPoolTrimTo 0"))
	endsWell(t, begin(dev))
}

// So does one that looks for memory to give back within the allocation.
func TestM16_running_out_ends_while_the_driver_allocates(t *testing.T) {
	for function, size := range map[string]uint64{"cuMemAllocFromPoolAsync": 16 << 20, "cuMemAlloc_v2": 8} {
		t.Run(function, func(t *testing.T) {
			f, dev, s := smallDevice(t, nil)
			shortLimits(t)
			gate, err := s.Gate(1, 0)
			require.NoError(t, err)
			t.Cleanup(gate.Open)
			require.NoError(t, f.Control("drain %s 1", function))
			require.NoError(t, f.Control("drain cuMemAllocFromPoolAsync 1")) // where no slab is to be had
			alive := f.Count("live.memory")
			err = fails(t, dev, size)
			var e *driver.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.Equal(t, driver.OutOfMemory, e.Kind)
			require.ErrorContains(t, err, "work waits for the host")
			gate.Open()
			given := func() bool { return dev.callsElsewhere.Load() == 0 && f.Count("live.memory") == alive }
			require.Eventually(t, given, callLimit, time.Millisecond, "what the call has made is given back")
		})
	}
}

// What a call has made that was left at the moment of its return is freed by another thread: cuMemFree waits, too.
func TestP2_what_a_call_made_is_given_back_by_another_thread(t *testing.T) {
	f, dev, s := fakeDevice(t)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	addr, status, err := dev.allocate(dev.state(), slabSize, false, "test")
	require.NoError(t, err)
	require.Zero(t, status)
	require.NoError(t, f.Control("drain cuMemFree_v2 1"))
	freed := f.Count("cuMemFree_v2")
	w := dev.callOnOtherThread("test", func() bool { return true }, func() { _ = dev.free(uint64(addr)) })
	dev.plain.Store(uint64(addr), true)
	require.Eventually(t, func() bool { return w.state.Load() == callReturned }, callLimit, time.Millisecond)
	left := make(chan struct{})
	go func() {
		w.leave(dev)
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(callLimit):
		require.Fail(t, "the thread waits in the driver")
	}
	require.Eventually(t, func() bool { return f.Count("cuMemFree_v2") == freed+1 }, callLimit, time.Millisecond)
	gate.Open()
	require.Eventually(t, func() bool { return dev.callsElsewhere.Load() == 0 }, callLimit, time.Millisecond)
}

// Pinned memory that is kept is freed before a request fails; so that it ends while the driver waits there.
func TestM16_running_out_of_pinned_memory_ends_while_the_driver_frees_some(t *testing.T) {
	f, dev, s := fakeDevice(t)
	shortLimits(t)
	addr, err := dev.drv.AllocHost(8 << 20)
	require.NoError(t, err)
	dev.drv.FreeHost(addr)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	require.NoError(t, f.Control("drain cuMemFreeHost 1"))
	require.NoError(t, f.Control("fault cuMemHostAlloc +1 2"))
	done := make(chan error, 1)
	go func() {
		_, err := dev.drv.AllocHost(16 << 20)
		done <- err
	}()
	select {
	case err := <-done:
		require.ErrorContains(t, err, "cannot be pinned")
	case <-time.After(callLimit):
		require.Fail(t, "the allocation does not return")
	}
	gate.Open()
	require.Eventually(t, func() bool { return dev.callsElsewhere.Load() == 0 }, callLimit, time.Millisecond)
}
