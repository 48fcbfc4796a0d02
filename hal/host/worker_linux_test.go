package host

import (
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// Policies of linux/sched.h.
const (
	policyBatch = 3
	policyIdle  = 5
)

// policy returns the scheduling policy of the calling thread.
func policy() uintptr {
	found, _, _ := syscall.RawSyscall(syscall.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	return found
}

func TestM12_an_engine_does_not_interrupt_the_thread_that_wakes_it(t *testing.T) {
	drv, err := Open(Options{Devices: 1})
	require.NoError(t, err)
	defer drv.Close()
	d, err := drv.Open(0)
	require.NoError(t, err)
	s, err := d.NewStream(driver.StreamOptions{})
	require.NoError(t, err)
	source, target := numbered(2*inlineMost), make([]byte, 2*inlineMost)
	var seen uintptr
	_, err = s.Copy(driver.Copy{
		Dst: address(target), Src: address(source), Width: 2 * inlineMost, Height: 1,
		Before: func() { seen = policy() }, // on the engine's thread
	})
	require.NoError(t, err)
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.EqualValues(t, policyBatch, seen)
	runtime.KeepAlive(source)
}

func TestAThreadThatWasAnEngineIsAsBefore(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := policy()
	end := yieldToWaker()
	require.EqualValues(t, policyBatch, policy())
	end()
	require.Equal(t, before, policy())
}

func TestM12_a_policy_that_the_program_has_chosen_stays(t *testing.T) {
	seen := make(chan [3]uintptr)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its policy
		var priority int32
		syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, policyIdle, uintptr(unsafe.Pointer(&priority)))
		before := policy()
		end := yieldToWaker()
		during := policy()
		end()
		seen <- [3]uintptr{before, during, policy()}
	}()
	found := <-seen
	require.Equal(t, [3]uintptr{policyIdle, policyIdle, policyIdle}, found)
}
