package pybuild

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// latePoint is never reached, and each of its waits returns later than it should,
// as on a thread that must wait for its turn.
type latePoint struct{ waits int }

func (p *latePoint) Wait(limit int64) bool {
	if limit != 0 {
		p.waits++
		time.Sleep(3 * time.Duration(limit))
	}
	return false
}

func TestOutside_aLimitCountsWhatTheWaitsReallyTook(t *testing.T) {
	p := &latePoint{}
	done, raised := outside(p, 4*sliceNS)
	require.False(t, done || raised)
	require.LessOrEqual(t, p.waits, 2, "two slices that take three times as long are more than the limit")
}

func TestDeadline_withoutALimitNeverComes(t *testing.T) {
	require.EqualValues(t, -1, deadlineAfter(-1).left())
	require.Zero(t, deadlineAfter(0).left())
	require.Positive(t, deadlineAfter(int64(time.Hour)).left())
}
