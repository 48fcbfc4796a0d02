package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// In front of the nodes of a graph with conditions are the fills that set these.
func TestG13_nodes_come_after_the_nodes_that_they_name_and_all_after_the_first_fills(t *testing.T) {
	fills := newGraphParts(0, 2, nil)
	p := newGraphParts(0, 3, fills.made())
	p.addFill(nil, &driver.Fill{Count: 1, Size: 4})
	p.addFill([]int{0}, &driver.Fill{Count: 1, Size: 4})
	p.addFill([]int{1, 0}, &driver.Fill{Count: 1, Size: 4})
	var after []int
	for _, index := range p.after {
		after = append(after, int(index))
	}
	require.Equal(t, []int{0, 1, 2, 3, 2}, after)
	for i, want := range [][2]int{{0, 2}, {2, 1}, {3, 2}} {
		require.Equal(t, want, [2]int{int(p.nodes[i].after), int(p.nodes[i].count)})
	}
	require.Len(t, p.made(), 3)
}
