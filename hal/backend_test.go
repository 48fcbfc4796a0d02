package hal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

func TestOpenBackendReturnsTheReasonOfAnAbsentBackend(t *testing.T) {
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

func TestSkippedNamesTheBackendsBeforeTheChosenOne(t *testing.T) {
	rt, err := hal.OpenBackend("auto", 1)
	require.NoError(t, err)
	defer rt.Close()
	name := fmt.Sprintf("passed %p", t) // names stay registered
	before := len(rt.Skipped())
	hal.Register(name, 2, func() (driver.Driver, error) {
		return nil, driver.Errorf(driver.BackendAbsent, "open", "it is not installed")
	})
	again, err := hal.OpenBackend("auto", 1)
	require.NoError(t, err)
	defer again.Close()
	require.Len(t, again.Skipped(), before+1)
	require.Contains(t, again.Skipped(), name+": it is not installed")
	explicit, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer explicit.Close()
	require.Empty(t, explicit.Skipped())
}
