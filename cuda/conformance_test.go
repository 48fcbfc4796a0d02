package cuda_test

import (
	"strconv"
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
	haltest.Kernels | haltest.Handles | haltest.Values

func TestConformanceOnTheLookAlike(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := fake(t)
	haltest.Run(t, haltest.Backend{
		Name: "cuda-fake", Open: open(f.Path), Has: has | haltest.Unbounded,
		Lose: func(ordinal int) error { return f.Control("poison %d 700", ordinal) },
	})
}

// As a driver on silicon may behave: calls hold the context's lock and wait for the device,
// and streams share hardware queues. The cases that are left out use more streams at once
// than there are queues, while one of them is held.
func TestConformanceOnTheSiliconProfile(t *testing.T) {
	// Which streams share a queue depends on the cases before, so with 4 other ones may
	// come to it than with 2.
	few := haltest.Reasons{}
	for _, name := range []string{
		"S2_a_held_stream_holds_no_other",
		"S5_default_stream_waits_for_ordered_streams",
		"S5_ordered_streams_wait_for_the_default_stream",
		"S5_synchronizing_the_default_stream_waits_for_ordered_streams",
		"S5_earlier_ordered_work_does_not_wait_for_later_default_work",
		"S5_a_wait_on_the_default_stream_is_work_of_it",
		"S6_a_stream_waits_for_another_ones_work_so_far",
		"S9_a_host_blocking_stream_returns_when_the_work_is_done",
		"E3_wait_uses_the_last_record_before_it",
		"E3_a_record_on_another_stream_does_not_move_a_wait",
		"H5_there_is_a_thread_for_the_next_function_below_the_limit",
		"L2_closing_lets_pending_work_finish",
		"A1_synchronizing_a_context_waits_for_its_own_streams",
		"A2_a_wait_for_a_future_event_waits_for_the_next_record",
		"A6_a_limit_that_does_not_pass_changes_nothing",
		"A10_a_report_may_take_reports_itself",
		"M6_a_copy_on_the_default_stream_is_in_its_order",
	} {
		few[name] = "more streams are used while one is held than there are hardware queues"
	}
	for _, c := range []struct {
		connections string
		has         haltest.Ability
		never       haltest.Reasons
	}{{"0", has | haltest.Unbounded, nil}, {"32", has, nil}, {"8", has, nil}, {"4", has, few}, {"2", has, few}} {
		t.Run(c.connections, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			t.Setenv("FAKECUDA_PROFILE", "silicon")
			t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", c.connections)
			f := fake(t)
			haltest.Run(t, haltest.Backend{
				Name: "cuda-fake", Open: open(f.Path), Has: c.has, Never: c.never,
				Lose: func(ordinal int) error { return f.Control("poison %d 700", ordinal) },
			})
		})
	}
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
		Name: "cuda-fake of CUDA 11.2", Open: open(fake(t).Path), Has: has &^ haltest.Values,
		Never: haltest.Reasons{"A2": why, "A4": why, "A5": why, "A6": why},
	})
}
