package waits_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/bindings/waits"
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

const slice = int64(10 * time.Millisecond)

func TestWait_aLimitCountsWhatTheWaitsReallyTook(t *testing.T) {
	p := &latePoint{}
	w := waits.Wait{Point: p, End: waits.After(4 * slice), Slice: slice, Look: func(bool) error { return nil }}
	done, err := w.Do()
	require.NoError(t, err)
	require.False(t, done)
	require.LessOrEqual(t, p.waits, 2, "two slices that take three times as long are more than the limit")
}

func TestWait_aLookEndsIt(t *testing.T) {
	wrong := errors.New("wrong")
	w := waits.Wait{Point: &latePoint{}, Slice: slice, Look: func(bool) error { return wrong }}
	done, err := w.Do()
	require.Same(t, wrong, err)
	require.False(t, done)
}

func TestDeadline_withoutALimitNeverComes(t *testing.T) {
	require.EqualValues(t, -1, waits.After(-1).Left())
	require.Zero(t, waits.After(0).Left())
	require.Positive(t, waits.After(int64(time.Hour)).Left())
}
