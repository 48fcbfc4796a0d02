package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"halstream/cuda"
	"halstream/cuda/fakectl"
	"halstream/hal"
	"halstream/hal/haltest"
)

// fake returns the look-alike driver as if it had just been loaded.
func fake(t testing.TB) *fakectl.Fake {
	t.Helper()
	f, err := fakectl.Open(fakectl.Path())
	require.NoError(t, err)
	require.NoError(t, f.Control("reset"))
	return f
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
	haltest.Kernels | haltest.Handles

func TestConformanceOnTheLookAlike(t *testing.T) {
	defer goleak.VerifyNone(t)
	haltest.Run(t, haltest.Backend{Name: "cuda-fake", Open: open(fake(t).Path), Has: has | haltest.Unbounded})
}

// On silicon, where there is any: make gpu runs it with HAL_REQUIRE=cuda.
func TestConformance(t *testing.T) {
	haltest.Run(t, haltest.Backend{Name: "cuda", Open: open(""), Has: has})
}
