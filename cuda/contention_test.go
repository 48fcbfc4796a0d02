package cuda_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/cuda/fakectl"
	"halstream/hal/driver"
	"halstream/hal/park"
)

// contended returns the look-alike driver with settings, one device of it, and a thread
// of another library.
func contended(t *testing.T, settings map[string]string) (*fakectl.Fake, driver.Device, *fakectl.Foreign) {
	t.Helper()
	for name, value := range settings {
		t.Setenv("FAKECUDA_"+name, value)
	}
	f := fake(t)
	dev := openDevices(t, f.Path)[0]
	other, err := f.NewForeign(0)
	require.NoError(t, err)
	t.Cleanup(other.End)
	return f, dev, other
}

func newStream(t *testing.T, dev driver.Device, id uint64) driver.Stream {
	t.Helper()
	s, err := dev.NewStream(driver.StreamOptions{ID: id})
	require.NoError(t, err)
	return s
}

// sink counts the functions that streams have reached, and completes each at once on
// another thread.
type sink struct{ ran atomic.Int64 }

func (k *sink) Ready(_ uint64, _ uint8, c driver.Completer) *park.Parker {
	k.ran.Add(1)
	go c.Complete(nil)
	return nil
}

func (k *sink) Drop(uint64) *park.Parker { return nil }

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, 10*time.Second, time.Millisecond, what)
}

// foreignFree begins a free of another library, which holds the context's lock until the
// device is idle, and returns when it has begun.
func foreignFree(t *testing.T, f *fakectl.Fake, other *fakectl.Foreign, memory uint64) <-chan int {
	t.Helper()
	freed := other.Begin("cuMemFree_v2", memory)
	eventually(t, func() bool { return f.Count("cuMemFree_v2") == 1 }, "the free")
	return freed
}

func ends(t *testing.T, freed <-chan int) {
	t.Helper()
	select {
	case code := <-freed:
		require.Zero(t, code)
	case <-time.After(10 * time.Second):
		require.Fail(t, "the free of another library never returns")
	}
}

// The free waits for a stream that waits for a function, and has the lock that every call
// about the context needs. The thread that lets functions run must not need it.
func TestH1_functions_run_while_another_library_frees_memory(t *testing.T) {
	f, dev, other := contended(t, map[string]string{"CONTEXT_LOCK": "1"})
	memory, code := other.Made("cuMemAlloc_v2", 64)
	require.Zero(t, code)
	s := newStream(t, dev, 1)
	var k sink
	busy := newStream(t, dev, 2)
	gate, err := busy.Gate(1, 0)
	require.NoError(t, err)
	require.NoError(t, s.WaitStream(busy, 0))
	for i := range uint64(5) {
		require.NoError(t, s.HostFunc(driver.HostFunc{Token: i, Sink: &k}))
	}
	before := f.Count("cuStreamQuery")
	freed := foreignFree(t, f, other, memory)
	eventually(t, func() bool { return f.Count("cuStreamQuery") > before }, "a look whether the device is lost")
	gate.Open()
	eventually(t, func() bool { return k.ran.Load() == 5 }, "the functions do not run")
	ends(t, freed)
}

// The same for a wait with a limit, during which the stream is held.
func TestS8_a_wait_with_a_limit_ends_while_another_library_frees_memory(t *testing.T) {
	f, dev, other := contended(t, map[string]string{"CONTEXT_LOCK": "1"})
	memory, code := other.Made("cuMemAlloc_v2", 64)
	require.Zero(t, code)
	s, recorded := newStream(t, dev, 1), newStream(t, dev, 2)
	e, err := dev.NewEvent(driver.EventOptions{ID: 1})
	require.NoError(t, err)
	var k sink
	first, err := s.Gate(1, 0)
	require.NoError(t, err)
	second, err := recorded.Gate(2, 0)
	require.NoError(t, err)
	require.NoError(t, recorded.Record(e, 0))
	require.NoError(t, s.Wait(e, int64(20*time.Millisecond), 0))
	require.NoError(t, s.HostFunc(driver.HostFunc{Token: 1, Sink: &k}))
	freed := foreignFree(t, f, other, memory)
	first.Open()
	eventually(t, func() bool { return k.ran.Load() == 1 }, "the stream stays held behind the limit")
	second.Open()
	ends(t, freed)
}

// A query that the driver refuses says nothing about the work: memory that a copy reads
// is not used again.
func TestM4_a_refused_query_does_not_release_the_memory_of_a_copy(t *testing.T) {
	for _, code := range []int{900, 999} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			f, dev, _ := contended(t, nil)
			s := newStream(t, dev, 1)
			to, err := dev.Alloc(64)
			require.NoError(t, err)
			vendor := dev.(driver.VendorDevice)
			stage, err := vendor.Stage(64)
			require.NoError(t, err)
			gate, err := s.Gate(1, 0)
			require.NoError(t, err)
			_, err = s.Copy(driver.Copy{Dst: to, Src: stage, Width: 64, Height: 1, DstPitch: 64, SrcPitch: 64,
				To: driver.OnDevice, From: driver.Pinned, Release: stage})
			require.NoError(t, err)
			require.NoError(t, f.Control("fault cuEventQuery +1 %d", code))
			before := f.Count("cuEventQuery")
			again, err := vendor.Stage(64)
			require.NoError(t, err)
			require.Greater(t, f.Count("cuEventQuery"), before, "the copy was not asked about")
			require.NotEqual(t, stage, again, "the memory is in use")
			gate.Open()
			require.True(t, s.Point().Wait(int64(10*time.Second)))
		})
	}
}

// Nor does it end a wait: neither for an event nor for a stream, nor does a record that the
// driver refuses.
func TestS4_a_refused_query_does_not_end_a_wait(t *testing.T) {
	for _, function := range []string{"cuEventQuery", "cuEventRecord"} {
		t.Run(function, func(t *testing.T) {
			f, dev, _ := contended(t, nil)
			s := newStream(t, dev, 1)
			gate, err := s.Gate(1, 0)
			require.NoError(t, err)
			require.NoError(t, f.Control("fault %s +1 999", function))
			at := s.Point()
			require.False(t, at.Wait(int64(time.Millisecond)), "the stream is held")
			require.NotNil(t, s.Failure(), "the refusal is reported")
			require.NoError(t, f.Control("faults off"))
			gate.Open()
			require.True(t, at.Wait(int64(10*time.Second)))
		})
	}
}

// Work whose end the driver never reports does not hang the program.
func TestD6_a_device_that_refuses_every_query_is_lost(t *testing.T) {
	f, dev, _ := contended(t, nil)
	s := newStream(t, dev, 1)
	require.NoError(t, s.Nop(0))
	at := s.Point()
	require.NoError(t, f.Control("fault cuEventQuery 0 999"))
	done := make(chan bool, 1)
	go func() { done <- at.Wait(driver.Forever) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		require.Fail(t, "the wait never ends")
	}
	require.NoError(t, f.Control("faults off"))
	require.ErrorContains(t, dev.(driver.VendorDevice).Lost(), "999")
}

// What the backend asks the driver on any thread does not break a capture of another
// library, and changes nothing on the thread.
func TestS3_no_call_breaks_a_capture_of_another_library(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, dev, other := contended(t, nil)
	captured, code := other.Made("cuStreamCreate", 1)
	require.Zero(t, code)
	s := newStream(t, dev, 1)
	e, err := dev.NewEvent(driver.EventOptions{ID: 1})
	require.NoError(t, err)
	require.Zero(t, other.Call("cuStreamBeginCapture_v2", captured, 0))
	var k sink
	require.NoError(t, s.HostFunc(driver.HostFunc{Token: 1, Sink: &k}))
	require.NoError(t, s.Record(e, 0))
	require.True(t, e.Point().Wait(int64(10*time.Second)))
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	_, err = s.Query()
	require.NoError(t, err)
	_, err = e.Query()
	require.NoError(t, err)
	memory, err := dev.Alloc(64)
	require.NoError(t, err)
	_, err = dev.(driver.VendorDevice).Stage(1 << 20)
	require.NoError(t, err)
	require.NoError(t, s.Delay(1000, 0)) // it loads a program at its first use
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	dev.Free(memory)
	require.NotZero(t, f.Count("cuEventQuery"))
	graph, code := other.Ended("cuStreamEndCapture", captured)
	require.Zero(t, code, "the capture is invalid")
	require.NotZero(t, graph)
	require.Zero(t, f.CaptureMode(), "the mode of the calling thread has changed")
}

// What was pending when a capture of another library began stays pending when the stream is closed.
func TestL3_a_stream_that_another_library_captures_is_closed_with_its_pending_work(t *testing.T) {
	_, dev, other := contended(t, nil)
	s := newStream(t, dev, 1)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	t.Cleanup(gate.Open)
	handle := s.(driver.VendorStream).Handle()
	require.Zero(t, other.Call("cuStreamBeginCapture_v2", handle, 2))
	s.Close()
	require.False(t, s.Reached(s.Last()), "what is pending counts as done")
	_, code := other.Ended("cuStreamEndCapture", handle)
	require.Zero(t, code)
	require.False(t, s.Point().Wait(0), "what is pending counts as done")
	gate.Open()
	require.True(t, s.Point().Wait(int64(10*time.Second)))
}

// With fewer hardware queues than streams that are held memory can still be allocated.
func TestM1_memory_is_allocated_while_every_queue_is_blocked(t *testing.T) {
	for _, drop := range []bool{false, true} {
		t.Run(fmt.Sprint(drop), func(t *testing.T) {
			f, dev, _ := contended(t, map[string]string{"CONNECTIONS": "1", "PRIORITY_QUEUES": "0"})
			s := newStream(t, dev, 1)
			first, err := dev.Alloc(64 << 10)
			require.NoError(t, err)
			gate, err := s.Gate(1, 0)
			require.NoError(t, err)
			var list []uint64
			for range 3 {
				memory, err := dev.Alloc(64 << 10)
				require.NoError(t, err)
				list = append(list, memory)
			}
			if drop {
				dev.Free(list[0])
				dev.Free(first)
			}
			require.Zero(t, f.Count("cuMemFree_v2"), "it would wait for the gate")
			_, _, err = dev.Info()
			require.NoError(t, err)
			gate.Open()
			require.True(t, s.Point().Wait(int64(10*time.Second)))
			for _, memory := range list[1:] {
				dev.Free(memory)
			}
			require.NotZero(t, f.Count("cuMemAlloc_v2"))
		})
	}
}

const fillPTX = `.version 6.0
.target sm_50
.address_size 64
.visible .entry fill_u32(.param .u64 x, .param .u32 v, .param .u32 n) { ret; }
`

// A kernel that was loaded before a stream is held starts at once, and small pinned memory
// and the words of held operations are there.
func TestK1_nothing_that_a_stream_needs_waits_for_an_idle_device(t *testing.T) {
	f, dev, _ := contended(t, map[string]string{"DRAIN": "first_launch,cuMemHostAlloc"})
	vendor := dev.(driver.VendorDevice)
	s, held := newStream(t, dev, 1), newStream(t, dev, 2)
	memory, err := dev.Alloc(64)
	require.NoError(t, err)
	program, err := vendor.Load([]byte(fillPTX))
	require.NoError(t, err)
	kernel, err := program.Function("fill_u32")
	require.NoError(t, err)
	gate, err := held.Gate(1, 0)
	require.NoError(t, err)
	var k sink
	args := make([]byte, 3*driver.Cell)
	for i := range 8 {
		args[i] = byte(memory >> (8 * i))
	}
	one := [3]uint32{1, 1, 1}
	done := make(chan error, 1)
	go func() {
		if err := s.(driver.VendorStream).Launch(driver.Launch{Function: kernel, Grid: one, Block: one, Args: args}); err != nil {
			done <- err
			return
		}
		if _, err := vendor.Stage(1 << 16); err != nil {
			done <- err
			return
		}
		done <- s.HostFunc(driver.HostFunc{Token: 1, Sink: &k})
	}()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "a call waits for the stream that is held")
	}
	gate.Open()
	eventually(t, func() bool { return k.ran.Load() == 1 }, "the function")
	require.NotZero(t, f.Count("cuLaunchKernelEx"))
}

// Delays can be enqueued while a stream is held: their kernel is loaded before the first gate.
func TestS3_a_delay_does_not_wait_for_a_gate(t *testing.T) {
	f, dev, _ := contended(t, map[string]string{"DRAIN": "first_launch,cuModuleLoadData,cuModuleLoadDataEx"})
	s, held := newStream(t, dev, 1), newStream(t, dev, 2)
	gate, err := held.Gate(1, 0)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Delay(1000, 0) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "a delay waits for the stream that is held")
	}
	gate.Open()
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.NotZero(t, f.Count("cuLaunchKernelEx"))
}
