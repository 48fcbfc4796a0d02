//go:build linux

package cuda_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// threadSlacks returns by how many nanoseconds the system may lengthen a sleep of each thread of the process.
func threadSlacks(t *testing.T) (all []string) {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*")
	require.NoError(t, err)
	for _, thread := range threads {
		// It is gone if the thread has ended meanwhile.
		if text, err := os.ReadFile(filepath.Join("/proc", filepath.Base(thread), "timerslack_ns")); err == nil {
			all = append(all, strings.TrimSpace(string(text)))
		}
	}
	return all
}

// A sleep of 5 microseconds would take 60, as Linux adds 50 to each. A thread of this package that polls asks for less,
// and a thread of the program has afterwards what it had.
func TestS2_short_sleeps_are_not_lengthened_and_leave_the_thread_as_it_was(t *testing.T) {
	if len(threadSlacks(t)) == 0 {
		t.Skip("the system does not tell by how much it lengthens sleeps")
	}
	require.NotContains(t, threadSlacks(t), "1000")
	dev := openDevices(t, fake(t).Path)[0]
	s, held := newStream(t, dev, 1), newStream(t, dev, 2)
	gate, err := held.Gate(1, 0)
	require.NoError(t, err)
	require.NoError(t, s.WaitStream(held, 0))
	var k sink
	require.NoError(t, s.HostFunc(driver.HostFunc{Token: 1, Sink: &k}))
	eventually(t, func() bool {
		for _, slack := range threadSlacks(t) {
			if slack == "1000" {
				return true
			}
		}
		return false
	}, "no thread asks for short sleeps")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := slackHere()
	require.False(t, s.Point().Wait(2_000_000)) // with pauses
	require.Equal(t, before, slackHere())
	gate.Open()
	eventually(t, func() bool { return k.ran.Load() == 1 }, "the function")
}

func slackHere() uintptr {
	const getTimerSlack = 30
	slack, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	return slack
}
