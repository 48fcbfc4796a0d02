package ascend_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"halstream/ascend"
	"halstream/ascend/fakectl"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/haltest"
)

// fake returns the look-alike library as if it had just been loaded.
func fake(t testing.TB) *fakectl.Fake {
	t.Helper()
	f, err := fakectl.Open(fakectl.Path())
	require.NoError(t, err)
	require.NoError(t, f.Control("reset"))
	return f
}

// fakeDevice returns the look-alike library in its first state, the backend, which is closed with the test, and device 0.
func fakeDevice(t *testing.T) (*fakectl.Fake, *ascend.Driver, driver.Device) {
	t.Helper()
	f := fake(t)
	drv, err := ascend.Open(f.Path)
	require.NoError(t, err)
	t.Cleanup(drv.Close)
	d, err := drv.Open(0)
	require.NoError(t, err)
	return f, drv, d
}

func open(path string) func() (*hal.Runtime, error) {
	return func() (*hal.Runtime, error) {
		drv, err := ascend.Open(path)
		if err != nil {
			return nil, err
		}
		return hal.Open(drv, haltest.Threads)
	}
}

// What AscendCL has on silicon, too: there are no kernels, graphs and handles of other libraries.
const has = haltest.Gates | haltest.Delays | haltest.Contexts | haltest.Memory | haltest.RealTime |
	haltest.Values | haltest.Grows | haltest.Unbounded | haltest.FourQueues | haltest.EightQueues

func TestConformanceOnTheLookAlike(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := fake(t)
	haltest.Run(t, haltest.Backend{
		Name: "ascend-fake", Open: open(f.Path), Has: has,
		Lose: func(ordinal int) error { return f.Control("lose %d 507899", ordinal) },
	})
	require.Zero(t, f.Count("illegal"), "a callback called the library")
}

// As a chip may be that has few operations in a queue, so that an enqueue waits for room.
func TestConformanceWithShortQueues(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Setenv("FAKEACL_QUEUE", "256")
	f := fake(t)
	haltest.Run(t, haltest.Backend{Name: "ascend-fake", Open: open(f.Path), Has: has &^ haltest.Unbounded})
}

// On silicon, where there is any: HAL_REQUIRE=ascend makes the library's absence a failure.
func TestConformance(t *testing.T) {
	haltest.Run(t, haltest.Backend{Name: "ascend", Open: open(""), Has: has})
}
