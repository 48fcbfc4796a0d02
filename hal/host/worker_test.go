package host

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// TestM12_the_work_of_one_stream_needs_one_worker has work of the stream wait for the worker that runs the work before it.
func TestM12_the_work_of_one_stream_needs_one_worker(t *testing.T) {
	drv, err := Open(Options{Devices: 1, Engines: 4})
	require.NoError(t, err)
	defer drv.Close()
	opened, err := drv.Open(0)
	require.NoError(t, err)
	d, e := opened.(*Device), drv.eng
	s, err := d.NewStream(driver.StreamOptions{})
	require.NoError(t, err)
	for range 2 {
		for range 100 {
			require.NoError(t, s.Delay(1, 0))
		}
		require.True(t, s.Point().Wait(int64(10*time.Second)))
	}
	e.Lock()
	defer e.Unlock()
	require.LessOrEqual(t, d.busy+len(d.idle), 1, "workers")
}

// TestM3_a_thread_that_waits_runs_a_copy_whose_worker_is_not_awake_yet keeps the lock from the enqueue on, so that the
// worker has its work and cannot have begun it.
func TestM3_a_thread_that_waits_runs_a_copy_whose_worker_is_not_awake_yet(t *testing.T) {
	drv, err := Open(Options{Devices: 1, Engines: 1})
	require.NoError(t, err)
	defer drv.Close()
	opened, err := drv.Open(0)
	require.NoError(t, err)
	d, e := opened.(*Device), drv.eng
	made, err := d.NewStream(driver.StreamOptions{})
	require.NoError(t, err)
	s := made.(*Stream)
	source, target := numbered(2*inlineMost), make([]byte, 2*inlineMost)
	copied := func() *copyWork {
		return &copyWork{Dst: address(target), Src: address(source), Width: 2 * inlineMost, Height: 1}
	}
	require.NoError(t, e.submit(s, &op{kind: opWork, ref: copied()})) // a worker for it, which is idle afterwards
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.Eventually(t, func() bool {
		e.Lock()
		defer e.Unlock()
		return len(d.idle) == 1
	}, 10*time.Second, time.Millisecond)
	clear(target)

	e.Lock()
	require.False(t, e.Help(), "there is nothing to run")
	e.add(s, &op{kind: opWork, ref: copied()})
	e.submitted(s)
	require.Len(t, e.woken, 1)
	require.True(t, e.Help())
	require.Equal(t, s.submitted.Load(), s.completed.Load())
	checkCopied(t, target, 0, source)
	require.Zero(t, d.busy)
	clear(target)
	e.Unlock() // now the worker wakes

	require.NoError(t, e.submit(s, &op{kind: opWork, ref: copied()}))
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	checkCopied(t, target, 0, source)
	runtime.KeepAlive(source)
}
