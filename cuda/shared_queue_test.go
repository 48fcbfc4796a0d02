package cuda_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/park"
)

// within fails the test if f does not return, after release lets it go on.
func within(t *testing.T, what string, release func(), f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		release()
		<-done
		require.Fail(t, what+" waits for the stream that is held")
	}
}

// Streams and events that were made early or closed before are used again, and small
// requests share the pinned memory that was reserved: no call that waits for the device.
func TestL5_streams_events_and_pinned_memory_are_used_again(t *testing.T) {
	f, dev, _ := contended(t, map[string]string{
		"DRAIN": "cuStreamCreateWithPriority,cuStreamDestroy_v2,cuEventCreate,cuEventDestroy_v2,cuMemHostAlloc,cuMemFreeHost",
	})
	vendor := dev.(driver.VendorDevice)
	held := newStream(t, dev, 1)
	gate, err := held.Gate(1, 0)
	require.NoError(t, err)
	defer gate.Open()
	made := f.Count("cuStreamCreateWithPriority")
	ordinary := uint8(vendor.Priorities() - 1)
	within(t, "a call", gate.Open, func() {
		for id := range uint64(20) {
			s, err := dev.NewStream(driver.StreamOptions{ID: 2 + id, Level: ordinary})
			if err != nil || s.Nop(0) != nil || !s.Point().Wait(int64(10*time.Second)) {
				t.Error("a stream cannot be used", err)
				return
			}
			s.Close()
		}
		for _, sizes := range [][]uint64{{3 << 20, 100, 1 << 19}, {2 << 20, 5000, 1 << 20}, {4 << 20}} {
			var staged []uint64
			for _, size := range sizes {
				memory, err := vendor.Stage(size)
				if err != nil {
					t.Error(err)
					return
				}
				staged = append(staged, memory)
			}
			for _, memory := range staged { // each part joins the one before
				vendor.Unstage(memory)
			}
		}
	})
	require.Equal(t, made, f.Count("cuStreamCreateWithPriority"))
}

// Eight streams of each kind in use and the events of their work are ready, and no surplus stream
// is destroyed while a stream is held, also while its function runs already.
func TestL5_nothing_is_made_or_destroyed_while_a_stream_is_held(t *testing.T) {
	f, dev, _ := contended(t, map[string]string{
		"DRAIN": "cuStreamCreateWithPriority,cuStreamDestroy_v2,cuEventCreate,cuEventDestroy_v2",
	})
	ordinary := uint8(dev.(driver.VendorDevice).Priorities() - 1)
	open := func(first uint64, n int, level uint8) (list []driver.Stream) {
		for id := range uint64(n) {
			s, err := dev.NewStream(driver.StreamOptions{ID: first + id, Level: level})
			require.NoError(t, err)
			list = append(list, s)
		}
		return list
	}
	early := open(100, 80, ordinary) // more than are kept
	open(200, 1, 0)[0].Close()       // of another kind
	held := newStream(t, dev, 1)
	var k holder
	require.NoError(t, held.HostFunc(driver.HostFunc{Token: 5, Sink: &k}))
	eventually(t, func() bool { return k.running.Load() != nil }, "the function")
	release := func() { (*k.running.Load()).Complete(nil) }
	made, destroyed := f.Count("cuStreamCreateWithPriority"), f.Count("cuStreamDestroy_v2")
	within(t, "a call", release, func() {
		for _, s := range early {
			s.Close()
		}
		for _, level := range []uint8{ordinary, 0} {
			for _, s := range open(300, 8, level) {
				if err := s.Nop(0); err != nil {
					t.Error(err)
				}
			}
		}
	})
	require.Equal(t, made, f.Count("cuStreamCreateWithPriority"))
	require.Equal(t, destroyed, f.Count("cuStreamDestroy_v2"))
	release()
	require.True(t, held.Point().Wait(int64(10*time.Second)))
	open(400, 1, ordinary)[0].Close()
	require.Greater(t, f.Count("cuStreamDestroy_v2"), destroyed, "the surplus goes once the device is idle")
}

// A stream that cannot go on keeps its places with the events that are there.
func TestM19_places_are_kept_without_a_call_that_waits(t *testing.T) {
	f, dev, _ := contended(t, map[string]string{"DRAIN": "cuEventCreate"})
	held := newStream(t, dev, 1)
	gate, err := held.Gate(1, 0)
	require.NoError(t, err)
	made := f.Count("cuEventCreate")
	within(t, "keeping a place", gate.Open, func() {
		for range 1000 {
			held.(driver.VendorStream).Keep()
		}
		if held.Point().Wait(0) {
			t.Error("the gate is closed")
		}
	})
	require.Equal(t, made, f.Count("cuEventCreate"))
	gate.Open()
	require.True(t, held.Point().Wait(int64(10*time.Second)))
}

// holder keeps its one function running until the test completes it.
type holder struct {
	running atomic.Pointer[driver.Completer]
}

func (k *holder) Ready(_ uint64, _ uint8, c driver.Completer) *park.Parker {
	k.running.Store(&c)
	return nil
}

func (k *holder) Drop(uint64) *park.Parker { return nil }

// As long as there are queues enough, no stream shares one with another, or with the legacy
// default stream, whichever kinds of streams were made and closed before.
func TestL5_streams_are_in_hardware_queues_of_their_own(t *testing.T) {
	_, dev, _ := contended(t, map[string]string{"CONNECTIONS": "8"})
	ordinary := uint8(dev.(driver.VendorDevice).Priorities() - 1)
	id := uint64(0)
	open := func(n int, ordered bool) (list []driver.Stream) {
		for range n {
			id++
			s, err := dev.NewStream(driver.StreamOptions{ID: id, Level: ordinary, Ordered: ordered})
			require.NoError(t, err)
			list = append(list, s)
		}
		return list
	}
	before := append(open(6, false), open(5, true)...)
	for _, s := range before {
		s.Close()
	}
	alone, ordered := open(4, false), open(3, true)
	during := func(held, free []driver.Stream) {
		t.Helper()
		for _, s := range held {
			id++
			g, err := s.Gate(id, 0)
			require.NoError(t, err)
			defer g.Open()
		}
		for _, s := range free {
			require.NoError(t, s.Nop(0))
			require.True(t, s.Point().Wait(int64(10*time.Second)), s.Describe())
		}
	}
	during(alone, append([]driver.Stream{dev.Legacy()}, ordered...))
	during(ordered[:1], append(ordered[1:], alone...))
	during(ordered[2:], append(ordered[:2:2], alone...))
}

// One queue is free, of a stream of another kind that was closed, and the driver deals out others before it.
func TestL5_a_stream_is_in_the_one_hardware_queue_that_is_free(t *testing.T) {
	t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")
	_, dev, _ := contended(t, map[string]string{"CONNECTIONS": "32"})
	ordinary := uint8(dev.(driver.VendorDevice).Priorities() - 1)
	open := func(id uint64, ordered bool) driver.Stream {
		s, err := dev.NewStream(driver.StreamOptions{ID: id, Level: ordinary, Ordered: ordered})
		require.NoError(t, err)
		return s
	}
	var held []driver.Stream
	for id := range uint64(31) { // with the legacy default stream they have all queues
		held = append(held, open(id+1, false))
	}
	held[20].Close()
	held = slices.Delete(held, 20, 21)
	s := open(100, true)
	for i, h := range held {
		g, err := h.Gate(uint64(200+i), 0)
		require.NoError(t, err)
		defer g.Open()
	}
	require.NoError(t, s.Nop(0))
	require.True(t, s.Point().Wait(int64(10*time.Second)), s.Describe())
}

// As long as there are queues enough, no stream of the greatest priority shares one with the stream on which
// memory is allocated.
func TestL5_held_streams_of_the_greatest_priority_leave_memory_its_hardware_queue(t *testing.T) {
	f, dev, _ := contended(t, map[string]string{"CONNECTIONS": "8"})
	newStream(t, dev, 100).Close() // with others of its kind, which use no queue
	for id := range uint64(7) {
		s, err := dev.NewStream(driver.StreamOptions{ID: id + 1, Ordered: true})
		require.NoError(t, err)
		g, err := s.Gate(id+1, 0)
		require.NoError(t, err)
		defer g.Open()
	}
	before := f.Count("cuMemAlloc_v2")
	for range 3 {
		memory, err := dev.Alloc(1 << 20)
		require.NoError(t, err)
		defer dev.Free(memory)
	}
	require.Equal(t, before, f.Count("cuMemAlloc_v2"), "memory comes from the pool")
}

// A stream of the driver is used again when its work is done, and not before.
func TestL5_a_closed_stream_is_used_again_when_its_work_is_done(t *testing.T) {
	_, dev, _ := contended(t, nil)
	s := newStream(t, dev, 1)
	handle := s.(driver.VendorStream).Handle()
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	s.Close()
	_, err = dev.(driver.VendorDevice).External(handle)
	require.ErrorIs(t, err, hal.ErrInvalidHandle, "its user has closed it")
	other := newStream(t, dev, 2)
	require.NotEqual(t, handle, other.(driver.VendorStream).Handle(), "it is held")
	gate.Open()
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.Equal(t, handle, newStream(t, dev, 3).(driver.VendorStream).Handle())
}

// What the driver has still to do for the runtime itself is no work of the program.
func TestS3_closing_an_idle_stream_leaves_no_pending_work(t *testing.T) {
	_, dev, _ := contended(t, map[string]string{"CONNECTIONS": "1"})
	held, s := newStream(t, dev, 1), newStream(t, dev, 2)
	require.NoError(t, s.Nop(0))
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	gate, err := held.Gate(1, 0)
	require.NoError(t, err)
	defer gate.Open()
	before := dev.Pending()
	require.Positive(t, before, "the gate")
	s.Close()
	require.Equal(t, before, dev.Pending())
	require.True(t, s.Point().Wait(0))
}

// A stream that is pending with nothing of its own to wait for says what else may hold it up.
func TestS2_a_stream_that_may_share_the_queue_of_a_held_one_says_so(t *testing.T) {
	_, dev, _ := contended(t, map[string]string{"CONNECTIONS": "1"})
	held, s := newStream(t, dev, 1), newStream(t, dev, 2)
	gate, err := held.Gate(1, 0)
	require.NoError(t, err)
	require.NoError(t, s.Nop(0))
	at := s.Point()
	require.False(t, at.Wait(int64(time.Millisecond)), "there is one hardware queue")
	require.Contains(t, s.Describe(), "hardware queue")
	require.Contains(t, s.Describe(), "CUDA_DEVICE_MAX_CONNECTIONS")
	require.NotContains(t, held.Describe(), "hardware queue", "it is held by its own gate")
	gate.Open()
	require.True(t, at.Wait(int64(10*time.Second)))
}

// Some systems have stream memory operations that do nothing: streams are held nevertheless.
func TestS2_streams_are_held_where_memory_operations_do_nothing(t *testing.T) {
	_, dev, _ := contended(t, map[string]string{"MEMOPS": "2"})
	s := newStream(t, dev, 1)
	fact, err := dev.(driver.VendorDevice).Fact("memops")
	require.NoError(t, err)
	require.Equal(t, "0", fact)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	require.NoError(t, s.Nop(0))
	at := s.Point()
	require.False(t, at.Wait(int64(10*time.Millisecond)), "the gate is closed")
	gate.Open()
	require.True(t, at.Wait(int64(10*time.Second)))
}

// Each of these codes says that no later call can succeed.
func TestD6_a_device_is_lost_by_each_code_that_lasts(t *testing.T) {
	f := fake(t)
	for _, code := range []int{214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911} {
		require.NoError(t, f.Control("reset"))
		dev := openDevices(t, f.Path)[0]
		s := newStream(t, dev, 1)
		require.NoError(t, f.Control("fault cuEventRecord +1 %d", code))
		require.ErrorIs(t, s.Nop(0), hal.ErrDeviceLost, "%d", code)
		require.ErrorIs(t, s.Nop(0), hal.ErrDeviceLost, "%d: later calls", code)
	}
}

// Closing ends though a stream waits for a value that nothing writes: the memory that the
// stream reads stays, and freeing it would wait for the stream.
func TestL2_closing_ends_though_a_stream_waits_for_ever(t *testing.T) {
	t.Setenv("FAKECUDA_PROFILE", "silicon")
	f := fake(t)
	drv, err := cuda.Open(f.Path)
	require.NoError(t, err)
	dev, err := drv.Open(0)
	require.NoError(t, err)
	s := newStream(t, dev, 1)
	word, err := drv.AllocHost(8)
	require.NoError(t, err)
	at := (*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&word)))
	*at = 0
	require.NoError(t, s.WaitValue(driver.Value{Addr: word, Value: 1, On: driver.Pinned, Condition: driver.Equal}))
	within(t, "closing", func() { *at = 1 }, drv.Close)
	*at = 1 // the memory is still there
	require.Zero(t, f.Count("cuMemFreeHost"))
}
