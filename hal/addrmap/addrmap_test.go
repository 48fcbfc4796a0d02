package addrmap

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type block struct{ start, size uint64 }

// sorted is the model of a Map: a list of blocks by address.
type sorted []*block

func (m sorted) find(addr uint64) *block {
	for _, b := range m {
		if addr >= b.start && addr-b.start < b.size {
			return b
		}
	}
	return nil
}

// overlapping returns the blocks that share bytes with a range.
func (m sorted) overlapping(start, size uint64) (found []*block) {
	for _, b := range m {
		if start < b.start+b.size && b.start < start+size {
			found = append(found, b)
		}
	}
	return found
}

// order lists a tree from left to right and checks its shape.
func order(t *rapid.T, n *node[*block], list *[]*block) {
	if n == nil {
		return
	}
	for _, child := range []*node[*block]{n.left, n.right} {
		if child != nil {
			require.LessOrEqual(t, child.rank, n.rank, "the ranks are not a heap")
		}
	}
	order(t, n.left, list)
	*list = append(*list, n.value)
	order(t, n.right, list)
}

func TestMapAgreesWithASortedList(t *testing.T) {
	const most = 4000 // addresses, few enough that ranges meet
	rapid.Check(t, func(t *rapid.T) {
		var tree Map[*block]
		var model sorted
		address := rapid.Uint64Range(1, most)
		length := rapid.Uint64Range(1, 300)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			start, size := address.Draw(t, "start"), length.Draw(t, "size")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				if len(model.overlapping(start, size)) == 0 {
					b := &block{start, size}
					tree.Insert(start, size, b)
					i, _ := slices.BinarySearchFunc(model, b, func(a, b *block) int { return int(a.start) - int(b.start) })
					model = slices.Insert(model, i, b)
				}
			case 2:
				if len(model) > 0 {
					i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
					tree.Remove(model[i].start)
					model = slices.Delete(model, i, i+1)
				}
			}
			for _, addr := range []uint64{start, start - 1, start + size, start + size - 1} {
				require.Same(t, model.find(addr), tree.Find(addr), "find %d", addr)
			}
			want := model.overlapping(start, size)
			if got := tree.Overlapping(start, size); got == nil {
				require.Empty(t, want, "%d bytes at %d", size, start)
			} else {
				require.Contains(t, want, got, "%d bytes at %d", size, start)
			}
			require.Equal(t, len(model), tree.Len())
			if rapid.Bool().Draw(t, "list") { // puts all ranges into the tree
				require.True(t, slices.Equal(model, slices.Collect(tree.All())))
				var list []*block
				order(t, tree.root, &list)
				require.True(t, slices.Equal(model, list), "%v and %v", model, list)
			}
		}
	})
}

func TestTreeOfManyRangesIsShallow(t *testing.T) {
	var tree Map[int]
	for i := range 20_000 {
		tree.Insert(uint64(i+1)*256, 256, i)
	}
	var depth func(n *node[int]) int
	depth = func(n *node[int]) int {
		if n == nil {
			return 0
		}
		return 1 + max(depth(n.left), depth(n.right))
	}
	tree.settle()
	// The depth of a random tree is about 2 ln n; four times that never happens.
	require.Less(t, depth(tree.root), 160)
}
