package cuda_test

import (
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"halstream/cuda"
	"halstream/cuda/fakectl"
	"halstream/hal"
	"halstream/hal/haltest"
)

// fake returns the look-alike driver as if it had just been loaded.
func fake(t testing.TB) *fakectl.Fake {
	t.Helper()
	return cuda.NewFake(t)
}

func open(path string) func() (*hal.Runtime, error) {
	return func() (*hal.Runtime, error) {
		drv, err := cuda.Open(path)
		if err != nil {
			return nil, err
		}
		return hal.Open(drv, haltest.Threads)
	}
}

// What a driver keeps on silicon, too. Priorities are a hint there, work cannot
// be taken back, and few streams can be held at once by the hardware's queues.
const has = haltest.Gates | haltest.Delays | haltest.Contexts | haltest.Memory | haltest.RealTime |
	haltest.Graphs | haltest.Conditions | haltest.Kernels | haltest.Handles | haltest.Values | haltest.Grows | haltest.FourQueues | haltest.EightQueues

func TestConformanceOnTheLookAlike(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := fake(t)
	haltest.Run(t, haltest.Backend{
		Name: "cuda-fake", Open: open(f.Path), Has: has | haltest.Unbounded,
		Lose: func(ordinal int) error { return f.Control("poison %d 700", ordinal) },
	})
}

// As a driver on silicon may behave: calls hold the context's lock and wait for the device,
// and streams share hardware queues. With fewer than 8 of them the cases are left out that use
// more streams than there are queues, while one of them is held.
func TestConformanceOnTheSiliconProfile(t *testing.T) {
	for _, c := range []struct {
		queues int
		has    haltest.Ability
	}{{0, has | haltest.Unbounded}, {32, has}, {8, has}, {4, has &^ haltest.EightQueues},
		{2, has &^ (haltest.EightQueues | haltest.FourQueues)}} {
		t.Run(strconv.Itoa(c.queues), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			t.Setenv("FAKECUDA_PROFILE", "silicon")
			t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", strconv.Itoa(c.queues))
			f := fake(t)
			haltest.Run(t, haltest.Backend{
				Name: "cuda-fake", Open: open(f.Path), Has: c.has,
				Lose: func(ordinal int) error { return f.Control("poison %d 700", ordinal) },
			})
		})
	}
}

// As a driver may behave that waits for the device in every call that can: the runtime
// comes to none of them while a stream is held, unless the program asks for more memory.
func TestConformanceWhereCallsWaitForTheDevice(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Setenv("FAKECUDA_PROFILE", "silicon")
	t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")
	t.Setenv("FAKECUDA_DRAIN", strings.Join(draining, ","))
	f := fake(t)
	haltest.Run(t, haltest.Backend{Name: "cuda-fake", Open: open(f.Path), Has: has &^ haltest.Grows})
}

// draining are the functions of the driver that may wait until the device is idle.
var draining = []string{
	"cuMemAlloc_v2", "cuMemAllocFromPoolAsync", "cuMemFree_v2", "cuMemFreeAsync", "cuMemPoolTrimTo", "cuMemGetInfo_v2",
	"cuMemHostAlloc", "cuMemFreeHost", "cuMemHostRegister_v2", "cuMemHostUnregister", "cuStreamCreateWithPriority",
	"cuStreamDestroy_v2", "cuEventCreate", "cuEventDestroy_v2", "cuModuleLoadData", "cuModuleLoadDataEx", "first_launch",
}

// On silicon, where there is any: make gpu runs it with HAL_REQUIRE=cuda.
func TestConformance(t *testing.T) {
	haltest.Run(t, haltest.Backend{Name: "cuda", Open: open(""), Has: has})
}

// On the oldest driver that will do, the driver's threads hold the streams, and
// memory comes from the plain calls.
func TestConformanceOnTheOldestDriver(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Setenv("FAKECUDA_VERSION", strconv.Itoa(cuda.LeastVersion))
	t.Setenv("FAKECUDA_MEMOPS", "0")
	t.Setenv("FAKECUDA_POOLS", "0")
	t.Setenv("FAKECUDA_HOST_THREADS", "64")
	const why = "events that are set and reset need stream memory operations"
	haltest.Run(t, haltest.Backend{
		Name: "cuda-fake of CUDA 11.2", Open: open(fake(t).Path), Has: has &^ (haltest.Values | haltest.Conditions),
		Never: haltest.Reasons{"A2": why, "A4": why, "A5": why, "A6": why},
	})
}
