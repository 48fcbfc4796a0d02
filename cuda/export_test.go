package cuda

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda/fakectl"
)

// NewFake returns the look-alike driver in its first state. It waits for the calls that an earlier
// test has left behind in the driver: what they give back there belongs to the state before.
func NewFake(t testing.TB) *fakectl.Fake {
	t.Helper()
	require.Eventually(t, func() bool { return open.Load() == 0 }, 10*time.Second, time.Millisecond,
		"an earlier test has left a device open")
	f, err := fakectl.Open(fakectl.Path())
	require.NoError(t, err)
	require.NoError(t, f.Control("reset"))
	return f
}
