package hal

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCopiesOfRowsOverlapWhereTheyShareBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pitch := rapid.Uint64Range(1, 12).Draw(t, "pitch")
		c := CopySpec{
			Dst: rapid.Uint64Range(100, 160).Draw(t, "dst"), Src: rapid.Uint64Range(100, 160).Draw(t, "src"),
			DstPitch: pitch, SrcPitch: pitch,
			Width: rapid.Uint64Range(1, pitch).Draw(t, "width"), Height: rapid.Uint64Range(1, 6).Draw(t, "height"),
		}
		touched := map[uint64]bool{}
		shared := false
		for row := range c.Height {
			for i := range c.Width {
				touched[c.Src+row*pitch+i] = true
			}
		}
		for row := range c.Height {
			for i := range c.Width {
				shared = shared || touched[c.Dst+row*pitch+i]
			}
		}
		to, ok := span(c.Dst, c.DstPitch, c.Width, c.Height)
		require.True(t, ok)
		from, ok := span(c.Src, c.SrcPitch, c.Width, c.Height)
		require.True(t, ok)
		require.Equal(t, shared, c.overlap(to, from), "%+v", c)
	})
}

func TestSpanRejectsRangesBeyondTheAddressSpace(t *testing.T) {
	for _, c := range [][4]uint64{
		{1, 1 << 33, 4, 1<<31 + 1}, {1, 1 << 63, 4, 3}, {1, 1<<64 - 1, 1<<64 - 1, 2}, {1 << 63, 1, 1 << 63, 1},
	} {
		_, ok := span(c[0], c[1], c[2], c[3])
		require.False(t, ok, "%v", c)
	}
	n, ok := span(16, 8, 3, 4)
	require.True(t, ok)
	require.EqualValues(t, 27, n)
}
