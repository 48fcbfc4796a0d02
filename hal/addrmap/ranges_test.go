package addrmap

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRangesAreASetOfAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ranges Ranges
		model := map[uint64]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			start, size := rapid.Uint64Range(0, 60).Draw(t, "start"), rapid.Uint64Range(1, 12).Draw(t, "size")
			adds := rapid.Bool().Draw(t, "adds")
			if adds {
				ranges.Add(start, size)
			} else {
				ranges.Remove(start, size)
			}
			for addr := start; addr < start+size; addr++ {
				model[addr] = adds
			}
		}
		for addr := range uint64(80) {
			require.Equal(t, model[addr], ranges.Has(addr), addr)
		}
		for i := 1; i < len(ranges.list); i++ {
			require.Less(t, ranges.list[i-1].end, ranges.list[i].start, "none touches the next")
		}
	})
}
