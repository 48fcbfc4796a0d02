package host

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFifoIsFirstInFirstOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q fifo
		var model []uint64
		next := uint64(0)
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			switch {
			case rapid.IntRange(0, 2).Draw(t, "what") > 0 || len(model) == 0:
				next++
				q.push(&op{arg: next})
				model = append(model, next)
			case rapid.IntRange(0, 40).Draw(t, "drop") == 0:
				rest := q.drop()
				require.Len(t, rest, len(model)-1)
				for i, o := range rest {
					require.Equal(t, model[i+1], o.arg)
				}
				model = model[:1]
			default:
				require.Equal(t, model[0], q.front().arg)
				q.pop()
				model = model[1:]
			}
			require.EqualValues(t, len(model), q.n)
		}
	})
}

// A program may have 10,000 idle streams and a million pending operations.
func TestAStreamAndItsOperationsAreSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Stream{}), uintptr(144), "a size class of Go's allocator")
	require.Equal(t, uintptr(224), firstChunk*unsafe.Sizeof(op{}), "a size class of Go's allocator")
	const header = 8 // of what is larger than 512 bytes and has pointers
	require.LessOrEqual(t, laterChunk*unsafe.Sizeof(op{})+header, uintptr(4096))
	require.Greater(t, (laterChunk+1)*unsafe.Sizeof(op{})+header, uintptr(4096), "the chunk fills its memory")
}
