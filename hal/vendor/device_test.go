package vendor

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// fakeDevice is a device of a library whose events are reached in the order of their numbers.
type fakeDevice struct {
	Device
	events  FenceEvents
	pause   func() bool
	await   func(e *FenceEvent, limit int64) (bool, *driver.Error) // what the library answers
	made    uintptr                                                // the latest event
	inside  atomic.Int64                                           // calls that keep the context
	dropped atomic.Int64
	closed  atomic.Bool
}

func (d *fakeDevice) Pause() bool  { return d.pause() }
func (d *fakeDevice) DropBlocked() { d.dropped.Add(1) }

func (d *fakeDevice) Enter() Context {
	if d.closed.Load() {
		return nil
	}
	d.inside.Add(1)
	return d
}

func (d *fakeDevice) Leave() { d.inside.Add(-1) }

func (d *fakeDevice) Await(e *FenceEvent, limit int64, _ string) (bool, *driver.Error) {
	return d.await(e, limit)
}

// newEvent returns an event with one reference.
func (d *fakeDevice) newEvent(t *testing.T) *FenceEvent {
	t.Helper()
	e, err := d.events.New(func() (uintptr, error) { d.made++; return d.made, nil })
	require.NoError(t, err)
	return e
}

func newDevice(t *testing.T) *fakeDevice {
	t.Helper()
	d := &fakeDevice{pause: sleeps(t), await: func(*FenceEvent, int64) (bool, *driver.Error) { return true, nil }}
	d.Init(d)
	d.events.Init(&d.Device, 3)
	return d
}

func TestD6_a_device_is_lost_once_with_its_first_cause(t *testing.T) {
	d := newDevice(t)
	require.Nil(t, d.Lost())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _ = d.Lose(driver.Errorf(driver.Unknown, "copy", "first")) })
	}
	all.Wait()
	require.EqualValues(t, 1, d.dropped.Load(), "what waits for the host is dropped more than once, or never")
	err := d.Lose(driver.Errorf(driver.Unknown, "fill", "second"))
	require.ErrorContains(t, err, "the device is lost since copy: first")
	require.Equal(t, driver.DeviceLost, d.Lost().Kind)
	require.Equal(t, "synchronize", d.Lost().Op)
	require.True(t, d.Unusable())
}

func TestD6_a_task_of_a_lost_device_does_not_begin_and_those_before_are_waited_for(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t)
		require.True(t, d.BeginTask())
		_ = d.Lose(driver.Errorf(driver.DeviceLost, "copy", "lost"))
		require.False(t, d.BeginTask())
		require.False(t, d.AwaitTasks(0))
		require.False(t, d.AwaitTasks(int64(time.Second)))
		go func() {
			time.Sleep(2 * time.Second)
			d.EndTask()
		}()
		require.True(t, d.AwaitTasks(-1))
	})
}

// A signal ends a wait that has a limit: its caller goes on where it was.
func TestD6_a_signal_ends_a_wait_for_tasks_that_has_a_limit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice(t)
		require.True(t, d.BeginTask())
		pauses := 0
		d.pause = func() bool {
			pauses++
			if pauses == 3 {
				d.EndTask()
			}
			return true
		}
		require.False(t, d.AwaitTasks(int64(time.Hour)))
		require.Equal(t, 1, pauses)
		require.True(t, d.AwaitTasks(-1), "a wait without a limit goes on")
	})
}
