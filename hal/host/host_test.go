package host_test

import (
	"testing"

	"go.uber.org/goleak"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/haltest"
	"halstream/hal/host"
)

const has = haltest.Gates | haltest.Delays | haltest.Contexts | haltest.Memory | haltest.Grows |
	haltest.FourQueues | haltest.EightQueues | haltest.Follows | haltest.Aborts | haltest.Ranked | haltest.Explains | haltest.Exact | haltest.Unbounded | haltest.Values | haltest.Graphs |
	haltest.Conditions | haltest.HostBodies | haltest.Recovers | haltest.Kernels

func TestConformance(t *testing.T) {
	defer goleak.VerifyNone(t)
	haltest.Run(t, haltest.Backend{
		Name: "host",
		Open: func() (*hal.Runtime, error) {
			drv, err := host.Open(host.Options{Devices: 2, Memory: 96 << 20, Engines: haltest.Engines})
			if err != nil {
				return nil, err
			}
			return hal.Open(drv, haltest.Threads)
		},
		Has: has | haltest.RealTime,
	})
}

// The suite holds under every deterministic schedule, too: none of them does
// what the contract does not allow.
func TestConformanceUnderSchedules(t *testing.T) {
	t.Setenv("HALSTREAM_STALL_S", "0.02")
	for _, schedule := range []string{"fifo", "earliest", "latest", "random 1", "pct 1 3 2000", "starve 1"} {
		t.Run(schedule, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			haltest.Run(t, haltest.Backend{
				Name: "host under " + schedule,
				Open: func() (*hal.Runtime, error) {
					drv, err := host.Open(host.Options{Devices: 2, Memory: 96 << 20, Engines: haltest.Engines})
					if err != nil {
						return nil, err
					}
					rt, err := hal.Open(drv, haltest.Threads)
					if err != nil {
						return nil, err
					}
					return rt, rt.SetSchedule(nil, schedule, driver.Caller{})
				},
				Has: has,
			})
		})
	}
}
