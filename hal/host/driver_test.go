package host_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

func TestL6_close_waits_for_a_copy_that_runs(t *testing.T) {
	drv, err := host.Open(host.Options{Devices: 1, Memory: 1 << 30})
	require.NoError(t, err)
	dev, err := drv.Open(0)
	require.NoError(t, err)
	memory := dev
	const size = 32 << 20
	from, err := memory.Alloc(size)
	require.NoError(t, err)
	to, err := memory.Alloc(size)
	require.NoError(t, err)
	s, err := dev.NewStream(driver.StreamOptions{ID: 1})
	require.NoError(t, err)
	started := make(chan struct{})
	copied := driver.Copy{
		Dst: to, Src: from, DstPitch: size, SrcPitch: size, Width: size, Height: 1,
		To: driver.OnDevice, From: driver.OnDevice, Before: func() { close(started) },
	}
	_, err = s.Copy(copied)
	require.NoError(t, err)
	<-started
	drv.Close()
	// On a slow machine the copy may go on: its memory stays mapped then.
	require.Eventually(t, func() bool {
		done, err := s.Query()
		return err == nil && done
	}, time.Duration(limitNS), time.Millisecond)
	require.ErrorIs(t, s.Nop(0), hal.ErrClosed)
	_, err = memory.Alloc(256)
	require.ErrorIs(t, err, hal.ErrClosed)
	memory.Free(from) // does nothing
	drv.Close()       // does nothing
}

func TestL6_close_lets_a_blocked_thread_go_on(t *testing.T) {
	for _, schedule := range []string{"parallel", "fifo", "latest"} {
		t.Run(schedule, func(t *testing.T) {
			k := under(t, schedule, driver.Caller{})
			_, err := k.a.Gate(k.me)
			require.NoError(t, err)
			p, err := k.a.Point(k.me)
			require.NoError(t, err)
			entered, ended := make(chan struct{}), make(chan bool, 1)
			go func() {
				close(entered)
				ended <- p.Wait(driver.Forever)
			}()
			<-entered
			k.rt.Close()
			select {
			case <-ended:
			case <-time.After(time.Duration(limitNS)):
				t.Fatal("the thread waits for work that was lost")
			}
		})
	}
}

// inChild runs the test itself in a process of its own, and reports whether this
// is that process: a fault there ends the process, not the whole run.
func inChild(t *testing.T) bool {
	if os.Getenv("HALSTREAM_TEST_CHILD") == t.Name() {
		return true
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), "HALSTREAM_TEST_CHILD="+t.Name())
	out, err := child.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	return false
}

// TestL6_close_waits_for_running_copies closes runtimes whose engines, and threads
// that take part in copies, are in the middle of copies of device memory.
func TestL6_close_waits_for_running_copies(t *testing.T) {
	if !inChild(t) {
		return
	}
	const size = 64 << 20
	for range 10 {
		drv, err := host.Open(host.Options{Memory: 1 << 30})
		require.NoError(t, err)
		rt, err := hal.Open(drv, 1)
		require.NoError(t, err)
		me := hal.NewThread()
		dev, err := rt.Device(0)
		require.NoError(t, err)
		a, err := dev.Alloc(me, size)
		require.NoError(t, err)
		b, err := dev.Alloc(me, size)
		require.NoError(t, err)
		waited := make(chan struct{})
		for range 3 {
			s, err := dev.NewStream(me, hal.StreamOptions{})
			require.NoError(t, err)
			for range 4 {
				_, err = s.Copy(me, hal.CopySpec{Dst: b.Start, Src: a.Start, Width: size})
				require.NoError(t, err)
			}
			go func() {
				_, _ = s.Synchronize(hal.NewThread(), driver.Forever)
				waited <- struct{}{}
			}()
		}
		rt.Close()
		for range 3 {
			<-waited
		}
	}
}

func TestEnvironmentIsChecked(t *testing.T) {
	for _, bad := range []string{"0", "-1", "x", "1e3", "65"} {
		t.Setenv("HALSTREAM_HOST_DEVICES", bad)
		_, err := host.Open(host.Options{})
		require.ErrorContains(t, err, "HALSTREAM_HOST_DEVICES", bad)
	}
}
