package park_test

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/park"
)

// signaled parks on a thread that gets one signal after the other, and returns
// what Park answers. After many signals it calls last.
func signaled(t *testing.T, p *park.Parker, limitNS int64, on bool, last func()) (got, ended bool) {
	t.Helper()
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGUSR1)
	defer signal.Stop(came)
	thread, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		park.EndOnSignal(on)
		thread <- syscall.Gettid()
		got = p.Park(limitNS, 0)
		ended = park.EndOnSignal(false)
	}()
	tid, end := <-thread, time.After(limit)
	// A signal may come before the thread sleeps: so there is always one more.
	for n := 0; ; n++ {
		if n == 100 {
			last()
		}
		require.NoError(t, syscall.Tgkill(os.Getpid(), tid, syscall.SIGUSR1))
		select {
		case <-came:
		case <-end:
			p.Unpark() // so that the thread ends
			<-done
			require.Fail(t, "no signal has ended the wait")
		}
		select {
		case <-done:
			return got, ended
		case <-time.After(time.Millisecond):
		}
	}
}

func TestASignalEndsALimitedPark(t *testing.T) {
	p := park.Get()
	got, ended := signaled(t, p, int64(time.Hour), true, func() {})
	require.False(t, got)
	require.True(t, ended)
	p.Unpark() // it must be as one that nobody sleeps on
	require.True(t, p.Park(int64(time.Hour), 0))
	park.Put(p)
}

func TestSignalsDoNotEndOtherParks(t *testing.T) {
	for name, c := range map[string]struct {
		limit int64
		on    bool
	}{"not asked for": {int64(time.Hour), false}, "without a limit": {-1, true}} {
		t.Run(name, func(t *testing.T) {
			p := park.Get()
			got, ended := signaled(t, p, c.limit, c.on, p.Unpark)
			require.True(t, got)
			require.False(t, ended)
			park.Put(p)
		})
	}
}
