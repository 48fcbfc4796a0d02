package host

import (
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// setStreamingFrom changes from which size copies use streaming stores, where the
// processor has them, and returns a function that restores it.
func setStreamingFrom(size uint64) (restore func()) {
	before := streamingFrom
	if before != ^uint64(0) {
		streamingFrom = size
	}
	return func() { streamingFrom = before }
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// numbered returns bytes that differ from their neighbours and from 0xff.
func numbered(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7+i>>8) % 251
	}
	return b
}

// checkCopied verifies target[at:at+size] and that all around it is still 0xff.
func checkCopied(t require.TestingT, target []byte, at int, source []byte) {
	end := at + len(source)
	require.True(t, slices.Equal(source, target[at:end]), "the bytes differ")
	for i, b := range target {
		if i < at || i >= end {
			require.Equal(t, byte(0xff), b, "byte %d outside the copy was written", i)
		}
	}
}

func TestM3_streaming_stores_copy_exactly_the_range(t *testing.T) {
	defer setStreamingFrom(0)()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 3000).Draw(t, "size")
		from, at := rapid.IntRange(0, 130).Draw(t, "from"), rapid.IntRange(0, 130).Draw(t, "at")
		source := numbered(from + size)
		target := slices.Repeat([]byte{0xff}, at+size+130)
		w := &copyWork{Dst: address(target) + uint64(at), Src: address(source) + uint64(from), Width: uint64(size), Height: 1}
		w.run()
		checkCopied(t, target, at, source[from:])
		runtime.KeepAlive(source)
	})
}

func TestM3_only_copies_that_do_not_fit_the_cache_use_streaming_stores(t *testing.T) {
	defer setStreamingFrom(1000)()
	if streamingFrom != 1000 {
		// Not a fault: the limit then says that no copy is large enough.
		t.Skip("this processor has no streaming stores that are used")
	}
	require.Zero(t, streaming(1000))
	require.EqualValues(t, 1, streaming(1001))
}
