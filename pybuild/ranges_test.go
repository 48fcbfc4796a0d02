package pybuild

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// TestAccessesOfAFunction reads what _core/_declared.py and _checks/reach.py write.
func TestAccessesOfAFunction(t *testing.T) {
	a, err := accesses("r:16:4 w:32:2:8:3 o:64:1  r:0:0")
	require.NoError(t, err)
	require.Equal(t, hal.Accesses{
		Reads:   []hal.Range{{Start: 16, Size: 4}, {}},
		Writes:  []hal.Range{{Start: 32, Size: 2}, {Start: 40, Size: 2}, {Start: 48, Size: 2}},
		Reached: []hal.Range{{Start: 64, Size: 1}},
	}, a)
	for _, wrong := range []string{"r", "r:1", "x:1:2", "r:1:2:3", "r:-1:2", "r:1:2:3:4:5", "w:1:a"} {
		_, err := accesses(wrong)
		require.ErrorContains(t, err, "is no range", wrong)
	}
}
