package haltest

/*
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static void *hs_test_at(uint64_t addr) { return (void *)(uintptr_t)addr; }

static void hs_test_count(void *p) { ++*(int32_t *)p; }

// Doubles and adds one: the result tells in which order such calls ran.
static void hs_test_odd(void *p) { *(int32_t *)p = 2 * *(int32_t *)p + 1; }

// Blocks its engine until the second number is set; sets the first at once.
static void hs_test_block(void *p) {
	_Atomic int32_t *door = p;
	atomic_store(&door[0], 1);
	struct timespec nap = {0, 100000};
	while (atomic_load(&door[1]) == 0) nanosleep(&nap, NULL);
}

static void hs_test_open(void *p) { atomic_store(&((_Atomic int32_t *)p)[1], 1); }
static int hs_test_entered(void *p) { return atomic_load(&((_Atomic int32_t *)p)[0]); }

static uint64_t hs_test_address(int which) {
	void (*f[])(void *) = {hs_test_count, hs_test_odd, hs_test_block};
	return (uint64_t)(uintptr_t)f[which];
}
*/
import "C"

import (
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// Native functions of the suite, by their addresses.
var (
	nativeCount = uint64(C.hs_test_address(0))
	nativeOdd   = uint64(C.hs_test_address(1))
	nativeBlock = uint64(C.hs_test_address(2))
)

// at returns memory of the host as a slice. It is C memory: no copy of the
// runtime ever sees a pointer into Go's heap.
func at(addr uint64, n int) []byte {
	return unsafe.Slice((*byte)(C.hs_test_at(C.uint64_t(addr))), n)
}

// Alloc returns device memory, freed at the end of the case.
func (k *Kit) Alloc(ordinal int, size int64) *hal.Block {
	k.T.Helper()
	b, err := k.Device(ordinal).Alloc(k.Me, size)
	require.NoError(k, err)
	k.T.Cleanup(func() { _ = k.RT.Free(nil, b.Start) })
	return b
}

// Pinned returns pinned memory, freed at the end of the case, and its bytes.
func (k *Kit) Pinned(size int64) (*hal.Block, []byte) {
	k.T.Helper()
	b, err := k.RT.AllocHost(k.Me, size)
	require.NoError(k, err)
	k.T.Cleanup(func() { _ = k.RT.FreeHost(nil, b.Start, true) })
	return b, at(b.Start, int(size))
}

// Pageable returns memory of the program that the runtime knows nothing of.
func (k *Kit) Pageable(size int) (uint64, []byte) {
	p := C.malloc(C.size_t(size))
	require.NotNil(k, p)
	k.T.Cleanup(func() { C.free(p) })
	addr := uint64(uintptr(p))
	return addr, at(addr, size)
}

// Copy enqueues a copy between blocks. It need not be waited for, unless both are pinned (M5).
func (k *Kit) Copy(s *hal.Stream, dst, src, n uint64) {
	k.T.Helper()
	p, err := s.Copy(k.Me, hal.CopySpec{Dst: dst, Src: src, Width: n})
	require.NoError(k, err)
	to, _, _, _ := k.RT.Lookup(dst)
	from, _, _, _ := k.RT.Lookup(src)
	if to == hal.Pinned && from == hal.Pinned {
		k.Reached(p)
		return
	}
	require.Nil(k, p, "the copy is not asynchronous")
}

// Write puts bytes into device memory, and waits.
func (k *Kit) Write(b *hal.Block, value []byte) {
	k.T.Helper()
	s := k.Stream(ordinary)
	h, bytes := k.Pinned(int64(len(value)))
	copy(bytes, value)
	k.Copy(s, b.Start, h.Start, uint64(len(value)))
	k.Sync(s)
}

// Read returns the bytes of device memory.
func (k *Kit) Read(b *hal.Block) []byte {
	k.T.Helper()
	s := k.Stream(ordinary)
	h, bytes := k.Pinned(int64(b.Size))
	k.Copy(s, h.Start, b.Start, b.Size)
	k.Sync(s)
	return append([]byte(nil), bytes...)
}

// Fill sets bytes.
func (k *Kit) Fill(s *hal.Stream, b *hal.Block, value byte) {
	k.T.Helper()
	require.NoError(k, s.Fill(k.Me, b.Start, uint32(value), 1, b.Size))
}

// Reached waits for a point.
func (k *Kit) Reached(p driver.Point) {
	k.T.Helper()
	require.NotNil(k, p, "the call promised to wait and gave no point")
	require.True(k, p.Wait(int64(Limit)))
}

// pattern returns n bytes that differ from row to row and from seed to seed.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + byte(i>>8)*31 + seed
	}
	return b
}

// Door is a native function that keeps an engine until it is opened.
type Door struct{ p unsafe.Pointer }

// Block enqueues a native function that blocks, and opens it at the end of the case.
func (k *Kit) Block(s *hal.Stream) Door {
	k.T.Helper()
	d := newDoor()
	k.T.Cleanup(func() {
		d.Open()
		// The function looks at it once more after it was opened.
		if p, err := s.Point(nil); err == nil {
			p.Wait(int64(Limit))
		}
		d.free()
	})
	require.NoError(k, s.Native(k.Me, nativeBlock, d.address(), hal.Accesses{}))
	return d
}

func newDoor() Door { return Door{C.calloc(2, 4)} }

// address is the argument of the function that the door holds.
func (d Door) address() uint64 { return uint64(uintptr(d.p)) }

func (d Door) free() { C.free(d.p) }

// Open lets the function end.
func (d Door) Open() { C.hs_test_open(d.p) }

// entered reports whether the function has begun.
func (d Door) entered() bool { return C.hs_test_entered(d.p) != 0 }

// Entered waits until the function runs.
func (k *Kit) Entered(d Door) {
	k.T.Helper()
	limit := time.Now().Add(Limit)
	for !d.entered() {
		if time.Now().After(limit) {
			k.stuck("a native function never started")
		}
		time.Sleep(100 * time.Microsecond) // only between two looks: C cannot signal a channel
	}
}

// addressOf returns the address of Go memory, which the caller keeps alive.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
