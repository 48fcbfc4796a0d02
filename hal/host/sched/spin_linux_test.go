package sched

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// looks returns what spin answers on a thread that stays on the processor of the one
// that woke it.
func looks(t *testing.T, word int32, forNS int64) bool {
	t.Helper()
	return onProcessorOf(t, func(waker int32) bool { return spin(&word, forNS, leaveNS, waker) })
}

// onProcessorOf calls look on a thread that stays on the processor of the one that woke it.
func onProcessorOf(t *testing.T, look func(waker int32) bool) bool {
	t.Helper()
	found, failed := make(chan bool, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		waker := processor()
		var mask [16]uint64
		mask[waker/64] = 1 << (waker % 64)
		_, _, err := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
		if err != 0 {
			failed <- err
			return
		}
		found <- look(waker)
	}()
	select {
	case answer := <-found:
		return answer
	case err := <-failed:
		t.Skipf("the system lets no thread choose its processor: %v", err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "it still looks for work")
	}
	return false
}

func TestAThreadLooksForNoWorkOnTheProcessorOfTheOneThatWokeIt(t *testing.T) {
	require.False(t, looks(t, 0, int64(time.Hour)))
}

func TestAThreadTakesWorkThatIsThereOnThatProcessorToo(t *testing.T) {
	require.True(t, looks(t, 1, 0))
}

func TestThePumpDoesNotWaitForAHelperInWhosePlaceItRuns(t *testing.T) {
	helping := int32(1)
	require.True(t, onProcessorOf(t, func(waker int32) bool {
		spinWhile(&helping, int64(time.Hour), waker)
		return true
	}))
}

func TestThePumpWaitsForAHelperNoLongerThanALimit(t *testing.T) {
	helping, begin := int32(1), time.Now()
	spinWhile(&helping, int64(time.Millisecond), -1)
	require.GreaterOrEqual(t, time.Since(begin), time.Millisecond, "it did not wait")
}

func TestThePumpWaitsForAHelperUntilItEnds(t *testing.T) {
	helping, done := int32(1), make(chan struct{})
	go func() {
		spinWhile(&helping, int64(time.Hour), -1)
		close(done)
	}()
	atomic.StoreInt32(&helping, 0)
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		require.Fail(t, "it still waits")
	}
}
