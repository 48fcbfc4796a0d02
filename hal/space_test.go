package hal

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sorted is the model of a space: a list of blocks by address.
type sorted []*Block

func (m sorted) find(addr uint64) *Block {
	for _, b := range m {
		if addr >= b.Start && addr-b.Start < b.Size {
			return b
		}
	}
	return nil
}

// overlapping returns the blocks that share bytes with a range.
func (m sorted) overlapping(start, size uint64) (found []*Block) {
	for _, b := range m {
		if start < b.Start+b.Size && b.Start < start+size {
			found = append(found, b)
		}
	}
	return found
}

// order lists a tree from left to right and checks its shape.
func order(t *rapid.T, n *leaf, list *[]*Block) {
	if n == nil {
		return
	}
	for _, child := range []*leaf{n.left, n.right} {
		if child != nil {
			require.LessOrEqual(t, child.rank, n.rank, "the ranks are not a heap")
		}
	}
	order(t, n.left, list)
	*list = append(*list, n.block)
	order(t, n.right, list)
}

func TestSpaceIsASortedListOfBlocks(t *testing.T) {
	const most = 4000 // addresses, few enough that ranges meet
	rapid.Check(t, func(t *rapid.T) {
		var s space
		var m sorted
		address := rapid.Uint64Range(1, most)
		length := rapid.Uint64Range(1, 300)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			start, size := address.Draw(t, "start"), length.Draw(t, "size")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				if len(m.overlapping(start, size)) == 0 {
					b := &Block{Start: start, Size: size}
					s.insert(b)
					i, _ := slices.BinarySearchFunc(m, b, func(a, b *Block) int { return int(a.Start) - int(b.Start) })
					m = slices.Insert(m, i, b)
				}
			case 2:
				if len(m) > 0 {
					i := rapid.IntRange(0, len(m)-1).Draw(t, "which")
					s.remove(m[i])
					m = slices.Delete(m, i, i+1)
				}
			}
			for _, addr := range []uint64{start, start - 1, start + size, start + size - 1} {
				require.Same(t, m.find(addr), s.find(addr), "find %d", addr)
			}
			want := m.overlapping(start, size)
			if got := s.overlaps(start, size); got == nil {
				require.Empty(t, want, "%d bytes at %d", size, start)
			} else {
				require.Contains(t, want, got, "%d bytes at %d", size, start)
			}
			require.Equal(t, len(m), s.n)
			var list []*Block
			order(t, s.root, &list)
			require.True(t, slices.Equal(m, list), "%v and %v", m, list)
		}
	})
}

func TestSpacesOfManyBlocksAreShallow(t *testing.T) {
	var s space
	for i := range 20_000 {
		s.insert(&Block{Start: uint64(i+1) * 256, Size: 256})
	}
	var depth func(n *leaf) int
	depth = func(n *leaf) int {
		if n == nil {
			return 0
		}
		return 1 + max(depth(n.left), depth(n.right))
	}
	// The depth of a random tree is about 2 ln n; four times that never happens.
	require.Less(t, depth(s.root), 160)
}

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

func TestSpansThatNoMemoryHas(t *testing.T) {
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
