package hal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

func TestOpenBackendSaysWhyOneIsAbsent(t *testing.T) {
	name := fmt.Sprintf("absent %p", t) // names stay registered
	hal.Register(name, 1, func() (driver.Driver, error) {
		return nil, driver.Errorf(driver.BackendAbsent, "open", "no such library")
	})
	_, err := hal.OpenBackend(name, 1)
	require.ErrorIs(t, err, hal.ErrAbsent)
	require.ErrorContains(t, err, "no such library")
	rt, err := hal.OpenBackend("auto", 1)
	require.NoError(t, err, "auto goes on to the next backend")
	require.Equal(t, "host", rt.Name())
	rt.Close()
	require.Panics(t, func() { hal.Register(name, 1, nil) })
}
