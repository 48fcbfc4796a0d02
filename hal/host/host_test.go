package host_test

import (
	"testing"

	"go.uber.org/goleak"

	"halstream/hal"
	"halstream/hal/haltest"
	"halstream/hal/host"
)

func TestConformance(t *testing.T) {
	defer goleak.VerifyNone(t)
	haltest.Run(t, haltest.Backend{
		Name: "host",
		Open: func() (*hal.Runtime, error) {
			drv, err := host.Open(host.Options{Devices: 2, Memory: 8 << 20, Engines: haltest.Engines})
			if err != nil {
				return nil, err
			}
			return hal.Open(drv, haltest.Threads)
		},
		Has: haltest.Gates | haltest.Delays | haltest.Contexts | haltest.Memory,
	})
}
