package cuda

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/cuda/fakectl"
	"halstream/hal/driver"
)

// interruptible lets threads of a test be interrupted as Python's are: by the handler of a signal
// that raises once raises is set.
func interruptible(t *testing.T) (raises *atomic.Bool) {
	t.Helper()
	before := pythonLock
	t.Cleanup(func() { pythonLock = before })
	raises = new(atomic.Bool)
	lock := new(int)
	pythonLock.unlock = func() unsafe.Pointer { return unsafe.Pointer(lock) }
	pythonLock.relock = func(unsafe.Pointer) {}
	pythonLock.interrupted = func(*unsafe.Pointer) bool { return raises.Load() }
	return raises
}

// heldDevice returns a device with a gate on a stream, where a function of the driver waits for the device.
func heldDevice(t *testing.T, function string) (*fakectl.Fake, *Device, driver.Gate) {
	t.Helper()
	before := stallMost
	t.Cleanup(func() { stallMost = before }) // no test is to end by the limit, but those of the limit
	stallMost = int64(time.Hour)
	f, dev, s := fakeDevice(t)
	gate, err := s.Gate(3, 0)
	require.NoError(t, err)
	t.Cleanup(func() { gate.Open() })
	require.NoError(t, f.Control("drain %s 1", function))
	return f, dev, gate
}

const callLimit = 10 * time.Second

// pooledSize is the size of a block that is in no slab.
const pooledSize = 64 << 10

// emptyKernel is a program as the driver takes it: text that ends with a zero byte.
const emptyKernel = `.version 6.0
.target sm_50
.address_size 64
.visible .entry empty()
{
	ret;
}
` + "\x00"

func TestP2_a_call_that_waits_for_a_held_device_can_be_interrupted(t *testing.T) {
	for function, call := range map[string]func(*Device) error{
		"cuMemAllocFromPoolAsync": func(d *Device) error { _, err := d.Alloc(pooledSize); return err },
		"cuModuleLoadDataEx":      func(d *Device) error { _, err := d.Load([]byte(emptyKernel)); return err },
	} {
		t.Run(function, func(t *testing.T) {
			raises := interruptible(t)
			_, dev, _ := heldDevice(t, function)
			done := make(chan error, 1)
			go func() { done <- call(dev) }()
			select {
			case err := <-done:
				require.Fail(t, "the call did not wait", "%v", err)
			case <-time.After(2 * signalSlice):
			}
			raises.Store(true)
			select {
			case err := <-done:
				var e *driver.Error
				require.True(t, errors.As(err, &e), "%v", err)
				require.Equal(t, driver.Interrupted, e.Kind)
			case <-time.After(callLimit):
				require.Fail(t, "the call was not interrupted")
			}
		})
	}
}

func TestP2_what_an_interrupted_call_makes_is_given_back(t *testing.T) {
	raises := interruptible(t)
	f, dev, gate := heldDevice(t, "cuMemAllocFromPoolAsync")
	alive, freed := f.Count("live.memory"), f.Count("cuMemFreeAsync")
	raises.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := dev.Alloc(pooledSize)
		done <- err
	}()
	select {
	case err := <-done:
		require.Error(t, err)
	case <-time.After(callLimit):
		require.Fail(t, "the call was not interrupted")
	}
	gate.Open()
	require.Eventually(t, func() bool { return dev.callsElsewhere.Load() == 0 }, callLimit, time.Millisecond)
	require.Equal(t, freed+1, f.Count("cuMemFreeAsync"))
	// The stream on which it is freed is not one that awaitIdle waits for.
	require.Eventually(t, func() bool { return f.Count("live.memory") == alive }, callLimit, time.Millisecond)
}

func TestP2_a_call_that_is_not_interrupted_returns_what_it_makes(t *testing.T) {
	interruptible(t)
	f, dev, gate := heldDevice(t, "cuMemAllocFromPoolAsync")
	entered := f.Count("cuMemAllocFromPoolAsync")
	done := make(chan uint64, 1)
	go func() {
		addr, err := dev.Alloc(pooledSize)
		if err != nil {
			addr = 0
		}
		done <- addr
	}()
	require.Eventually(t, func() bool { return f.Count("cuMemAllocFromPoolAsync") > entered }, callLimit, time.Millisecond)
	gate.Open()
	addr := <-done
	require.NotZero(t, addr)
	dev.Free(addr)
}

func TestP2_a_free_that_waits_for_a_held_device_does_not_stop_the_caller(t *testing.T) {
	f, dev, gate := heldDevice(t, "cuMemFreeAsync")
	addr, err := dev.Alloc(pooledSize)
	require.NoError(t, err)
	alive := f.Count("live.memory")
	freed := make(chan struct{})
	go func() {
		dev.Free(addr)
		close(freed)
	}()
	select { // before the gate is opened
	case <-freed:
	case <-time.After(callLimit):
		require.Fail(t, "the caller waits for the stream that it would release")
	}
	require.Equal(t, alive, f.Count("live.memory"))
	gate.Open()
	require.Eventually(t, func() bool { return f.Count("live.memory") == alive-1 }, callLimit, time.Millisecond)
}

// The driver is called on the caller's own thread, and nothing more is done, while no device waits for the host.
func TestP2_a_call_is_made_by_the_caller_while_nothing_is_held(t *testing.T) {
	raises := interruptible(t)
	raises.Store(true)
	_, dev, gate := heldDevice(t, "cuMemAllocFromPoolAsync")
	gate.Open()
	require.Eventually(t, func() bool { return !dev.drv.stalls() }, callLimit, time.Millisecond)
	addr, err := dev.Alloc(pooledSize)
	require.NoError(t, err)
	dev.Free(addr)
}

// Of threads that start a device at once all but the first undo what they did, and nothing else.
func TestP1_a_start_that_comes_second_leaves_what_the_device_keeps(t *testing.T) {
	f, dev, _ := fakeDevice(t)
	events, contexts := f.Count("live.events"), f.Count("live.contexts")
	require.NoError(t, dev.start("test"))
	require.Equal(t, events, f.Count("live.events"))
	require.Equal(t, contexts, f.Count("live.contexts"))
	for flags, n := range earlyFenceEvents {
		require.True(t, dev.fenceEvents[flags].Unused() >= n, "events with the flags %d", flags)
	}
}
