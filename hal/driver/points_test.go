package driver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// timedPoint is reached at a time; now is virtual in the bubble of a synctest.
type timedPoint struct {
	at      time.Time
	queries *int
}

func (p timedPoint) Wait(limit int64) bool {
	*p.queries++
	left := time.Until(p.at)
	if limit >= 0 && int64(left) > limit {
		time.Sleep(time.Duration(limit))
		return false
	}
	time.Sleep(left)
	return true
}

func TestPointsShareOneDeadline(t *testing.T) {
	for _, c := range []struct {
		name    string
		after   []time.Duration // when each point is reached
		limit   time.Duration
		reached bool
		took    time.Duration
	}{
		{"the limit is long enough for all", []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, 4 * time.Second, true, 3 * time.Second},
		{"the first point takes most of the limit", []time.Duration{3 * time.Second, 3500 * time.Millisecond}, 4 * time.Second, true, 3500 * time.Millisecond},
		{"the last one is reached too late", []time.Duration{3 * time.Second, 9 * time.Second}, 4 * time.Second, false, 4 * time.Second},
		{"the first one is reached too late", []time.Duration{9 * time.Second, time.Second}, 4 * time.Second, false, 4 * time.Second},
		{"a query does not sleep", []time.Duration{0, time.Second}, 0, false, 0},
		{"without a limit", []time.Duration{9 * time.Second, time.Second}, time.Duration(driver.Forever), true, 9 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, queries := time.Now(), 0
				var ps driver.Points
				for _, d := range c.after {
					ps = append(ps, timedPoint{start.Add(d), &queries})
				}
				require.Equal(t, c.reached, ps.Wait(int64(c.limit)))
				require.Equal(t, c.took, time.Since(start))
				require.Equal(t, len(c.after), queries, "every point is looked at")
			})
		})
	}
}

// interruptedPoint is not reached, and its limited waits end at once, as after a signal.
type interruptedPoint struct{ limits *[]int64 }

func (p interruptedPoint) Wait(limit int64) bool {
	*p.limits = append(*p.limits, limit)
	return false
}

func TestPointsAreOnlyQueriedAfterAWaitThatEndedEarly(t *testing.T) {
	for _, limit := range []int64{int64(time.Hour), driver.Forever} {
		var limits []int64
		p := interruptedPoint{&limits}
		require.False(t, driver.Points{p, p, p}.Wait(limit))
		require.Len(t, limits, 3)
		require.Equal(t, []int64{0, 0}, limits[1:])
	}
}
