// Elsewhere nothing is watched.
//go:build linux

package touch_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
	"halstream/hal/touch"
)

// watched returns an area of four pages that is watched, on a thread of the test's own.
func watched(t *testing.T) (*touch.Area, []byte) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	if err := touch.Start(); err != nil {
		var refused *driver.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, driver.NotSupported, refused.Kind)
		t.Skip(err)
	}
	t.Cleanup(touch.Stop)
	a, err := touch.NewArea(4 * touch.Page)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	require.NoError(t, a.Provide(a.Base, 4*touch.Page))
	return a, unsafe.Slice(*(**byte)(unsafe.Pointer(&a.Base)), 4*touch.Page)
}

var sink byte

// TestV23_the_first_byte_of_each_access_to_a_page_is_seen reads, then writes.
func TestV23_the_first_byte_of_each_access_to_a_page_is_seen(t *testing.T) {
	a, b := watched(t)
	touch.Begin(7)
	sink = b[5] + b[touch.Page+9]
	b[6] = 1
	b[touch.Page*3+2] = 2
	reads, writes, _ := touch.End(7, false)
	assert.Equal(t, []touch.Range{{a.Base + 5, 1}, {a.Base + touch.Page + 9, 1}}, reads)
	assert.Equal(t, []touch.Range{{a.Base + 6, 1}, {a.Base + 3*touch.Page + 2, 1}}, writes)
	assert.Equal(t, []byte{1, 2}, []byte{b[6], b[touch.Page*3+2]}, "closing a page keeps its contents")
}

// TestV23_changed_bytes_count_as_written compares the pages that were written.
func TestV23_changed_bytes_count_as_written(t *testing.T) {
	a, b := watched(t)
	touch.Begin(7)
	for i := 10; i < 20; i++ {
		b[i] = 1
	}
	b[30] = 0
	_, writes, _ := touch.End(7, true)
	assert.Equal(t, []touch.Range{{a.Base + 10, 1}, {a.Base + 10, 10}}, writes)
}

// TestV23_pages_are_closed_between_operations touches one page in each of several.
func TestV23_pages_are_closed_between_operations(t *testing.T) {
	_, b := watched(t)
	for op := uint32(1); op < 4; op++ {
		touch.Begin(op)
		sink = b[0]
		reads, _, _ := touch.End(op, false)
		assert.Len(t, reads, 1, op)
		sink = b[1]
		reads, _ = touch.TakeHost()
		assert.Len(t, reads, 1, op)
	}
	reads, writes := touch.TakeHost()
	assert.Empty(t, append(reads, writes...))
}

// TestV23_system_calls_are_seen reads a file into a page.
func TestV23_system_calls_are_seen(t *testing.T) {
	a, b := watched(t)
	f, err := os.Open("/dev/zero")
	require.NoError(t, err)
	defer f.Close()
	n, err := f.Read(b[touch.Page+3 : touch.Page+5])
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, writes := touch.TakeHost()
	assert.Equal(t, []touch.Range{{a.Base + touch.Page + 3, 1}}, writes)
}

// TestV23_the_runtimes_own_accesses_are_not_seen reads and writes by the alias.
func TestV23_the_runtimes_own_accesses_are_not_seen(t *testing.T) {
	a, b := watched(t)
	at := touch.Alias(a.Base + 3)
	*(*(**byte)(unsafe.Pointer(&at)))++
	reads, writes := touch.TakeHost()
	assert.Empty(t, append(reads, writes...))
	assert.Equal(t, byte(1), b[3])
	assert.Equal(t, uint64(12), touch.Alias(12))
}

// TestV25_no_access_waits_after_the_watch_has_ended uses the memory before, between and after.
func TestV25_no_access_waits_after_the_watch_has_ended(t *testing.T) {
	_, b := watched(t)
	b[0] = 1
	touch.Stop()
	b[0]++
	b[touch.Page]++
	require.NoError(t, touch.Start())
	b[0]++
	_, writes := touch.TakeHost()
	assert.Len(t, writes, 1)
	assert.Equal(t, byte(3), b[0])
}

// TestV24_threads_of_a_native_function_belong_to_the_operation touches memory from a
// thread that never called.
func TestV24_threads_of_a_native_function_belong_to_the_operation(t *testing.T) {
	_, b := watched(t)
	touch.Begin(9)
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // ends with the goroutine
		sink = b[0]
		close(done)
	}()
	<-done
	reads, _, _ := touch.End(9, false)
	assert.Len(t, reads, 1)
}

// TestV23_an_operation_begins_when_the_others_have_ended begins one on another thread.
func TestV23_an_operation_begins_when_the_others_have_ended(t *testing.T) {
	_, b := watched(t)
	touch.SetPatience(time.Minute)
	defer touch.SetPatience(10 * time.Millisecond)
	touch.Begin(1)
	var ended, early atomic.Bool
	caller, done := make(chan int, 1), make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread() // ends with the goroutine
		caller <- syscall.Gettid()
		touch.Begin(2)
		early.Store(!ended.Load())
		b[0] = 1
		_, writes, beside := touch.End(2, false)
		assert.Len(t, writes, 1)
		assert.False(t, beside)
	}()
	for id := <-caller; !sleeps(t, id) && !early.Load(); {
		runtime.Gosched()
	}
	b[0] = 2
	ended.Store(true)
	_, _, beside := touch.End(1, false)
	assert.False(t, beside)
	<-done
	assert.False(t, early.Load())
}

// sleeps reports whether a thread of the process waits in the system.
func sleeps(t *testing.T, id int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", id))
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[0] == 'S'
}

// TestV23_operations_that_run_side_by_side_say_so passes the patience of the second.
func TestV23_operations_that_run_side_by_side_say_so(t *testing.T) {
	watched(t)
	touch.SetPatience(time.Millisecond)
	defer touch.SetPatience(10 * time.Millisecond)
	touch.Begin(1)
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // ends with the goroutine
		touch.Begin(2)
		_, _, beside := touch.End(2, false)
		done <- beside
	}()
	assert.True(t, <-done)
	_, _, beside := touch.End(1, false)
	assert.True(t, beside)
}
