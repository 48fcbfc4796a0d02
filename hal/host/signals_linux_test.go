package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

// TestP1_threads_of_the_runtime_block_what_the_process_was_started_with starts this test
// once more, with a signal blocked, and looks at every thread there.
func TestP1_threads_of_the_runtime_block_what_the_process_was_started_with(t *testing.T) {
	const variable = "HALSTREAM_TEST_BLOCKED"
	if os.Getenv(variable) == "" {
		env, err := exec.LookPath("env")
		require.NoError(t, err)
		if err := exec.Command(env, "--block-signal=USR1", "true").Run(); err != nil {
			t.Skip("this env cannot block a signal for what it starts")
		}
		again := exec.Command(env, "--block-signal=USR1", os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), variable+"=1")
		output, err := again.CombinedOutput()
		require.NoError(t, err, string(output))
		return
	}
	drv, err := host.Open(host.Options{Devices: 1})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	defer rt.Close()
	d, err := rt.Device(0)
	require.NoError(t, err)
	s, err := d.NewStream(nil, hal.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Delay(nil, 1_000_000), "work for an engine")
	done, err := s.Synchronize(nil, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	threads, err := filepath.Glob("/proc/self/task/*/status")
	require.NoError(t, err)
	require.Greater(t, len(threads), 1)
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // it has ended
		}
		require.NoError(t, err)
		_, rest, found := strings.Cut(string(text), "SigBlk:")
		require.True(t, found)
		mask, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
		require.NoError(t, err)
		require.NotZero(t, mask>>(syscall.SIGUSR1-1)&1, string(text))
	}
}
