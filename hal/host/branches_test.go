package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestG8_work_of_branches_waits_for_no_more_than_the_longest_delay has the delay grow as far as it does.
func TestG8_work_of_branches_waits_for_no_more_than_the_longest_delay(t *testing.T) {
	d := &Device{eng: &engine{}}
	b := &d.branches
	b.timer = time.AfterFunc(time.Hour, func() {})
	defer b.timer.Stop()
	for range 64 {
		b.later(d)
		b.timer.Stop()
		b.armed = false
		b.delay *= 2
	}
	b.later(d)
	require.Equal(t, branchDelayMost, b.delay)
}
