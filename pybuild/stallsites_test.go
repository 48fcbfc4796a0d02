package pybuild

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWaitSitesOfStreamsThatPassedAreRemoved is about the memory of programs that
// make one stream after another wait for one event.
func TestWaitSitesOfStreamsThatPassedAreRemoved(t *testing.T) {
	number := must[int64](t)
	const future = 1 << 8
	e, maker := number(EventNew(0, future)), number(StreamNew(0, 0, nonBlocking, 0))
	number(StreamRecord(maker, e))
	number(StreamSync(maker, -1))
	for range 20 * leastPruneAt {
		s := number(StreamNew(0, 0, nonBlocking, 0))
		number(StreamWaitEvent(s, e))
		number(StreamSync(s, -1))
		number(Close(s))
	}
	require.Len(t, waitSites, 1)
	for _, of := range waitSites {
		require.LessOrEqual(t, len(of.sites), leastPruneAt)
	}
	number(Close(e))
	require.Empty(t, waitSites)
	number(Close(maker))
}
