package pages_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal/pages"
)

// mapping is pages of memory with one in the middle that is changed.
func mapping(t *testing.T, count int) ([]byte, uint64, int) {
	page := os.Getpagesize()
	b, err := syscall.Mmap(-1, 0, count*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	return b, uint64(uintptr(unsafe.Pointer(&b[0]))), page
}

func TestEveryPageIsChecked(t *testing.T) {
	// Few pages are touched, many are looked up in the list of mappings.
	for _, count := range []int{3, 9, 99} {
		b, addr, page := mapping(t, count)
		middle := b[count/2*page : (count/2+1)*page]
		size := uint64(len(b)) - 2
		require.True(t, pages.Readable(addr+1, size), "%d pages", count)
		require.True(t, pages.Writable(addr+1, size))
		require.NoError(t, syscall.Mprotect(middle, syscall.PROT_READ))
		require.True(t, pages.Readable(addr+1, size))
		require.False(t, pages.Writable(addr+1, size), "a page in the middle is read-only")
		require.NoError(t, syscall.Mprotect(middle, syscall.PROT_NONE))
		require.False(t, pages.Readable(addr+1, size), "a page in the middle has no access")
		require.False(t, pages.Writable(addr+1, size))
		require.True(t, pages.Readable(addr+1, uint64(count/2*page)-1), "the range ends before it")
		room := make([]byte, size)
		require.False(t, pages.Read(uint64(uintptr(unsafe.Pointer(&room[0]))), addr+1, size))
	}
}

func TestAddressesWithoutMemory(t *testing.T) {
	b, addr, page := mapping(t, 3)
	require.False(t, pages.Readable(0, 1))
	require.False(t, pages.Readable(addr, 0))
	require.False(t, pages.Readable(addr, ^uint64(0)))
	require.False(t, pages.Readable(^uint64(0)-10, 10))
	require.False(t, pages.Readable(1<<63, 8), "no address of a program")
	require.NoError(t, syscall.Mprotect(b[page:2*page], syscall.PROT_NONE))
	require.False(t, pages.Readable(addr+uint64(page)-1, 2))
	require.False(t, pages.Readable(addr+uint64(2*page)-1, 2))
}

func TestAFileEndsBeforeItsMapping(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	page := os.Getpagesize()
	require.NoError(t, f.Truncate(int64(page)))
	for _, count := range []int{2, 99} {
		b, err := syscall.Mmap(int(f.Fd()), 0, count*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		require.NoError(t, err)
		addr := uint64(uintptr(unsafe.Pointer(&b[0])))
		require.True(t, pages.Readable(addr, uint64(page)))
		require.False(t, pages.Readable(addr, uint64(count*page)), "behind the end of the file")
		require.False(t, pages.Writable(addr, uint64(count*page)))
		require.NoError(t, syscall.Munmap(b))
	}
}

func TestReadCopies(t *testing.T) {
	for _, size := range []int{1, 4096, 100_000} {
		from, to := make([]byte, size), make([]byte, size)
		for i := range from {
			from[i] = byte(i * 7)
		}
		require.True(t, pages.Read(uint64(uintptr(unsafe.Pointer(&to[0]))), uint64(uintptr(unsafe.Pointer(&from[0]))), uint64(size)))
		require.Equal(t, from, to)
	}
}

func BenchmarkReadable(b *testing.B) {
	for _, size := range []int{64, 4096, 64 << 10, 1 << 20, 64 << 20} {
		room := make([]byte, size)
		clear(room)
		addr := uint64(uintptr(unsafe.Pointer(&room[0])))
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			for b.Loop() {
				pages.Readable(addr, uint64(size))
			}
		})
	}
}
