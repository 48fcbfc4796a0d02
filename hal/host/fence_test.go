package host

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWaitersComeOutByPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h waiters
		count := map[uint64]int{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(h) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(h)-1).Draw(t, "which")
				count[h[i].seq]--
				h.remove(i)
			}
			seq := rapid.Uint64Range(0, 9).Draw(t, "place")
			h.add(waiter{seq: seq})
			count[seq]++
		}
		var last uint64
		for len(h) > 0 {
			w := h.pop()
			require.GreaterOrEqual(t, w.seq, last)
			last = w.seq
			count[w.seq]--
		}
		for seq, n := range count {
			require.Zero(t, n, "place %d", seq)
		}
	})
}
