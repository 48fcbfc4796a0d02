package host_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

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
