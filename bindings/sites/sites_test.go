package sites_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/bindings/sites"
)

func TestEqualValuesHaveOneNumber(t *testing.T) {
	n := sites.Numbers[string]{Most: 2}
	require.EqualValues(t, 1, n.Of("a"))
	require.EqualValues(t, 2, n.Of("b"))
	require.EqualValues(t, 1, n.Of("a"))
	require.Zero(t, n.Of("c"), "there are two already")
	v, known := n.At(2)
	require.True(t, known)
	require.Equal(t, "b", v)
	for _, unknown := range []uint32{0, 3} {
		_, known = n.At(unknown)
		require.False(t, known)
	}
}
