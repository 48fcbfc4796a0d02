package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/hal"
	"halstream/hal/driver"
)

// A launch that fails gives up what it has kept once, not also when the stream gets to what was enqueued of it.
func TestG8_a_launch_that_fails_leaves_the_executable_what_it_keeps(t *testing.T) {
	f := fake(t)
	rt, err := open(f.Path)()
	require.NoError(t, err)
	defer rt.Close()
	me, worker := hal.NewThread(), hal.NewThread()
	d, err := rt.Device(0)
	require.NoError(t, err)
	s, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	block, err := d.Alloc(me, 64)
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture(me, hal.RelaxedMode))
	const token = 7
	require.NoError(t, s.HostFunc(me, token))
	require.NoError(t, s.Fill(me, block.Start, 1, 1, 64))
	g, err := s.EndCapture(me)
	require.NoError(t, err)
	x, err := g.Instantiate(me)
	require.NoError(t, err)
	require.NoError(t, g.Close(me))

	rt.Funcs.Start()
	tasks := make(chan hal.Task, 8)
	go func() {
		for {
			task, err := rt.Funcs.Next(worker, -1)
			if err != nil || task.End {
				return
			}
			task.Spawn = false // no other thread is needed
			tasks <- task
			if task.Token != 0 && !task.Drop {
				rt.Funcs.Done(worker, false, nil)
			}
		}
	}()
	next := func(limit time.Duration) (task hal.Task) {
		select {
		case task = <-tasks:
		case <-time.After(limit):
		}
		return task
	}
	require.NoError(t, f.Control("fault cuMemsetD8Async +1 2"))
	require.Error(t, x.Launch(me, s))
	require.Equal(t, hal.Task{Token: token}, next(5*time.Second), "what was enqueued before runs")
	_, _ = s.Synchronize(me, int64(10*time.Second))
	require.Zero(t, next(50*time.Millisecond), "the executable keeps the function")
	require.NoError(t, x.Launch(me, s))
	require.Equal(t, hal.Task{Token: token}, next(5*time.Second))
	_, err = s.Synchronize(me, int64(10*time.Second))
	require.NoError(t, err)
	require.NoError(t, x.Close(me))
	require.Equal(t, hal.Task{Token: token, Drop: true}, next(5*time.Second))
}

func TestG8_a_launch_that_the_driver_refuses_has_ended(t *testing.T) {
	f := fake(t)
	drv, err := cuda.Open(f.Path)
	require.NoError(t, err)
	defer drv.Close()
	dev, err := drv.Open(0)
	require.NoError(t, err)
	s := newStream(t, dev, 1)
	at, err := dev.Alloc(32)
	require.NoError(t, err)
	x, err := any(drv).(driver.GraphDriver).Instantiate([]driver.GraphNode{fillNode(at, 'a')})
	require.NoError(t, err)
	var l launch
	require.NoError(t, f.Control("fault cuGraphLaunch +1 2"))
	require.Error(t, x.Launch(s, &l))
	require.EqualValues(t, 1, l.ended.Load())
	require.NoError(t, x.Launch(s, &l))
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.EqualValues(t, 2, l.ended.Load())
	x.Close()
}

func TestG12_a_launch_that_fails_allocates_nothing(t *testing.T) {
	f := fake(t)
	rt, err := open(f.Path)()
	require.NoError(t, err)
	defer rt.Close()
	me := hal.NewThread()
	d, err := rt.Device(0)
	require.NoError(t, err)
	s, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture(me, hal.RelaxedMode))
	block, err := s.AllocAsync(me, 64)
	require.NoError(t, err)
	require.NoError(t, s.Fill(me, block.Start, 1, 1, 64))
	g, err := s.EndCapture(me)
	require.NoError(t, err)
	x, err := g.Instantiate(me)
	require.NoError(t, err)
	require.NoError(t, f.Control("fault cuGraphLaunch +1 2"))
	require.Error(t, x.Launch(me, s))
	require.Error(t, s.Fill(me, block.Start, 1, 1, 64), "nothing has allocated it")
	require.NoError(t, x.Launch(me, s))
	require.NoError(t, s.Fill(me, block.Start, 1, 1, 64))
	require.NoError(t, s.FreeAsync(me, block.Start))
	require.NoError(t, x.Launch(me, s))
	require.NoError(t, s.FreeAsync(me, block.Start))
	require.NoError(t, x.Close(me))
	require.NoError(t, g.Close(me))
}
