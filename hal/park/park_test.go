package park_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/park"
)

const limit = 20 * time.Second

// The race detector fails this where nothing that it sees orders the two.
func TestWhat_is_done_before_a_thread_is_woken_is_seen_by_it(t *testing.T) {
	p := park.Get()
	defer park.Put(p)
	for want := range 1000 {
		got := -1
		go func() {
			got = want
			p.Unpark()
		}()
		require.True(t, p.Park(int64(limit), 0))
		require.Equal(t, want, got)
	}
}
