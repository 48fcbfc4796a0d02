package cuda_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/cuda/fakectl"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/park"
)

// captureElsewhere lets another library capture a non-blocking stream.
func captureElsewhere(t *testing.T) (rt *hal.Runtime, me *hal.Thread, s *hal.Stream, end func() int) {
	t.Helper()
	return captureOfStream(t, hal.StreamOptions{NonBlocking: true})
}

// captureOfStream makes a stream that another library captures. The capture ends with the test at the latest.
func captureOfStream(t *testing.T, o hal.StreamOptions) (rt *hal.Runtime, me *hal.Thread, s *hal.Stream, end func() int) {
	t.Helper()
	f := fake(t)
	rt, err := open(f.Path)()
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	me = hal.NewThread()
	d, err := rt.Device(0)
	require.NoError(t, err)
	s, err = d.NewStream(me, o)
	require.NoError(t, err)
	other, err := f.NewForeign(0)
	require.NoError(t, err)
	t.Cleanup(other.End)
	handle, ok := s.Handle()
	require.True(t, ok)
	require.Zero(t, other.Call("cuStreamBeginCapture_v2", handle, uint64(hal.RelaxedMode)))
	ended := false
	end = func() int {
		ended = true
		_, code := other.Ended("cuStreamEndCapture", handle)
		return code
	}
	t.Cleanup(func() {
		if !ended {
			end()
		}
	})
	return rt, me, s, end
}

func requireCode(t *testing.T, code int, err error) {
	t.Helper()
	var e *hal.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, hal.ErrCapture)
	require.Equal(t, code, e.Code, "%v", err)
}

func TestG1_a_wait_beside_a_capture_of_another_library_is_refused(t *testing.T) {
	t.Run("device", func(t *testing.T) {
		_, me, s, end := captureElsewhere(t)
		_, err := s.Device().Point(me)
		requireCode(t, 900, err)
		end()
		done, err := s.Device().Synchronize(me, int64(10*time.Second))
		require.NoError(t, err)
		require.True(t, done)
	})
	t.Run("event", func(t *testing.T) {
		rt, me, s, _ := captureElsewhere(t)
		e, err := rt.NewEvent(me, s.Device(), hal.EventOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Record(me, e))
		_, err = e.Point(me)
		requireCode(t, 907, err)
		o, err := s.Device().NewStream(me, hal.StreamOptions{NonBlocking: true})
		require.NoError(t, err)
		requireCode(t, 907, o.WaitLimited(me, e, int64(time.Hour)))
	})
	t.Run("event of a capture that has ended", func(t *testing.T) {
		rt, me, s, end := captureElsewhere(t)
		e, err := rt.NewEvent(me, s.Device(), hal.EventOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Record(me, e))
		require.Contains(t, e.Describe(), "another library captures")
		require.Zero(t, end(), "the capture is invalid")
		o, err := s.Device().NewStream(me, hal.StreamOptions{NonBlocking: true})
		require.NoError(t, err)
		_, err = e.Query(me)
		requireCode(t, 907, err)
		_, err = e.Point(me)
		requireCode(t, 907, err)
		requireCode(t, 907, o.Wait(me, e))
		requireCode(t, 907, o.WaitLimited(me, e, int64(time.Hour)))
		require.NoError(t, o.Record(me, e))
		p, err := e.Point(me)
		require.NoError(t, err)
		require.True(t, p.Wait(int64(10*time.Second)))
	})
	t.Run("copy", func(t *testing.T) {
		_, me, s, end := captureElsewhere(t)
		const size = 33 << 20 // which the driver stages, not this package
		block, err := s.Device().Alloc(me, size)
		require.NoError(t, err)
		target := make([]byte, size)
		_, err = s.Copy(me, hal.CopySpec{Dst: uint64(uintptr(unsafe.Pointer(&target[0]))), Src: block.Start, Width: size, Height: 1})
		requireCode(t, 900, err)
		require.Zero(t, end(), "the capture is invalid")
	})
}

func TestG1_what_needs_the_host_is_refused_beside_a_capture_of_another_library(t *testing.T) {
	_, me, s, end := captureElsewhere(t)
	requireCode(t, 900, s.HostFunc(me, 7))
	state, err := s.IsCapturing(me)
	require.NoError(t, err)
	require.Equal(t, hal.Capturing, state)
	require.Zero(t, end(), "the capture is invalid")
	state, err = s.IsCapturing(me)
	require.NoError(t, err)
	require.Equal(t, hal.NotCapturing, state)
}

// A query of a mark that the capture has would break it, whatever the thread's mode.
func TestS3_looks_do_not_break_the_capture_of_another_library(t *testing.T) {
	rt, me, s, end := captureElsewhere(t)
	e, err := rt.NewEvent(me, s.Device(), hal.EventOptions{})
	require.NoError(t, err)
	block, err := s.Device().Alloc(me, 64)
	require.NoError(t, err)
	pinned, err := rt.AllocHost(me, 64)
	require.NoError(t, err)
	_, err = s.Copy(me, hal.CopySpec{Dst: block.Start, Src: pinned.Start, Width: 64, Height: 1})
	require.NoError(t, err)
	require.NoError(t, s.Record(me, e))
	_, err = e.QueryInternal(me)
	requireCode(t, 907, err)
	require.Contains(t, e.Describe(), "another library captures")
	require.Error(t, rt.FreeHost(me, pinned.Start, false), "the copy is not done")
	require.Zero(t, end(), "the capture is invalid")
	done, err := s.Device().Synchronize(me, int64(10*time.Second))
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, rt.FreeHost(me, pinned.Start, false))
}

// Work on the legacy default stream would depend on an ordered stream, so that it cannot be queried beside its capture.
func TestG1_the_legacy_default_stream_is_not_queried_beside_an_ordered_stream_of_another_capture(t *testing.T) {
	_, me, s, end := captureOfStream(t, hal.StreamOptions{})
	legacy := s.Device().Legacy()
	_, err := legacy.IsCapturing(me)
	requireCode(t, 906, err)
	require.Zero(t, end(), "the capture is invalid")
	state, err := legacy.IsCapturing(me)
	require.NoError(t, err)
	require.Equal(t, hal.NotCapturing, state)
}

func TestG1_a_graph_with_functions_is_refused_beside_a_capture_of_another_library(t *testing.T) {
	f, s, x := functionGraph(t)
	other, err := f.NewForeign(0)
	require.NoError(t, err)
	t.Cleanup(other.End)
	handle := s.(driver.VendorStream).Handle()
	require.Zero(t, other.Call("cuStreamBeginCapture_v2", handle, uint64(hal.RelaxedMode)))
	var l launch
	requireCode(t, 900, x.Launch(s, &l))
	require.EqualValues(t, 1, l.ended.Load(), "the launch keeps the executable")
	require.Zero(t, s.Last(), "operations were enqueued")
	_, code := other.Ended("cuStreamEndCapture", handle)
	require.Zero(t, code, "the capture is invalid")
}

func TestG12_a_graph_with_memory_is_refused_beside_a_capture_of_another_library(t *testing.T) {
	_, me, s, _ := captureElsewhere(t)
	o, err := s.Device().NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	require.NoError(t, o.BeginCapture(me, hal.RelaxedMode))
	block, err := o.AllocAsync(me, 64)
	require.NoError(t, err)
	require.NoError(t, o.FreeAsync(me, block.Start))
	g, err := o.EndCapture(me)
	require.NoError(t, err)
	x, err := g.Instantiate(me)
	require.NoError(t, err)
	requireCode(t, 900, x.Launch(me, s))
	require.NoError(t, x.Launch(me, o))
	require.NoError(t, x.Close(me))
	require.NoError(t, g.Close(me))
}

// functionGraph returns a graph that the driver cannot have as one of its own, and a stream.
func functionGraph(t *testing.T) (*fakectl.Fake, driver.Stream, driver.Executable) {
	t.Helper()
	f := fake(t)
	drv, err := cuda.Open(f.Path)
	require.NoError(t, err)
	t.Cleanup(drv.Close)
	dev, err := drv.Open(0)
	require.NoError(t, err)
	at, err := dev.Alloc(32)
	require.NoError(t, err)
	function := driver.GraphNode{Kind: driver.CallNode, Token: 7, After: []int{0}, GraphWork: &driver.GraphWork{}}
	x, err := any(drv).(driver.GraphDriver).Instantiate([]driver.GraphNode{fillNode(at, 'a'), function})
	require.NoError(t, err)
	t.Cleanup(x.Close)
	return f, newStream(t, dev, 1), x
}

// completing is a launch whose functions end at once.
type completing struct{ launch }

func (l *completing) Ready(_ uint64, _ uint8, c driver.Completer) *park.Parker {
	go c.Complete(nil)
	return nil
}

// A launch that has begun is enqueued whole, and the stream is closed behind it.
func TestL3_a_launch_of_branches_ends_before_its_stream_is_closed(t *testing.T) {
	f, s, x := functionGraph(t)
	require.NoError(t, f.Control("stop cuEventRecord 1"))
	t.Cleanup(func() { _ = f.Control("stop cuEventRecord 0") })
	var l completing
	launched := make(chan error, 1)
	go func() { launched <- x.Launch(s, &l) }()
	eventually(t, func() bool { return f.Count("stopped") > 0 }, "the launch has not begun")
	s.Close()
	require.NoError(t, f.Control("stop cuEventRecord 0"))
	select {
	case err := <-launched:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the launch does not end")
	}
	require.ErrorIs(t, s.Nop(0), hal.ErrClosed)
	var late launch
	require.ErrorIs(t, x.Launch(s, &late), hal.ErrClosed)
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	eventually(t, func() bool { return l.ended.Load() == 1 }, "the launch keeps the executable")
}
