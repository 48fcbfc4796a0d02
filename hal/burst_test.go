package hal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func TestH6_a_burst_without_functions_left_takes_no_more(t *testing.T) {
	var b hal.Burst
	require.True(t, b.Add())
	require.True(t, b.Add())
	require.True(t, b.Begin())
	require.True(t, b.Begin())
	require.False(t, b.Begin())
	require.False(t, b.Add(), "the thread that runs the burst has found its end")
	require.EqualValues(t, 2, b.Seal())
}

func TestH6_functions_that_have_not_begun_are_cut_once(t *testing.T) {
	var b hal.Burst
	for range 5 {
		require.True(t, b.Add())
	}
	require.True(t, b.Begin())
	require.EqualValues(t, 4, b.Cut())
	require.Zero(t, b.Cut())
	require.False(t, b.Begin())
	added, begun := b.Counts()
	require.EqualValues(t, 5, added)
	require.EqualValues(t, 1, begun)
}
