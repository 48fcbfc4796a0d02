package cuda

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda/fakectl"
	"halstream/hal/driver"
	"halstream/hal/vendor"
)

const lateLimit = 10 * time.Second

// lateDevice returns a device of the look-alike driver, and what closes its backend.
func lateDevice(t *testing.T) (*fakectl.Fake, *Device, *Driver) {
	t.Helper()
	f := NewFake(t)
	drv, err := Open(f.Path)
	require.NoError(t, err)
	opened, err := drv.Open(0)
	require.NoError(t, err)
	dev := opened.(*Device)
	require.NoError(t, dev.usable("test"))
	return f, dev, drv
}

// recorded returns an event that is recorded on a stream, which are both closed by what is returned.
func recorded(t *testing.T, dev *Device) (*Event, driver.Stream, func()) {
	t.Helper()
	s, err := dev.NewStream(driver.StreamOptions{ID: 1})
	require.NoError(t, err)
	e, err := dev.NewEvent(driver.EventOptions{ID: 1})
	require.NoError(t, err)
	require.NoError(t, s.Record(e, 0))
	return e.(*Event), s, func() { e.Close(); s.Close() }
}

// A wait with a limit leaves a query behind that another library holds up in the driver. The query
// returns after the device was closed: until then its event and the context stay.
func TestS8_a_query_that_is_left_behind_keeps_its_event_and_the_context(t *testing.T) {
	f, dev, drv := lateDevice(t)
	e, recordedOn, closeBoth := recorded(t, dev)
	s, err := dev.NewStream(driver.StreamOptions{ID: 2})
	require.NoError(t, err)
	gate, err := dev.NewEvent(driver.EventOptions{ID: 2, Settable: true})
	require.NoError(t, err)
	require.NoError(t, s.Wait(gate, driver.Forever, 0))
	require.NoError(t, s.Wait(e, int64(time.Millisecond), 0))
	require.NoError(t, f.Control("stop cuEventQuery 1"))
	t.Cleanup(func() { _ = f.Control("stop cuEventQuery 0") })
	require.NoError(t, recordedOn.Record(gate, 0))
	require.Eventually(t, func() bool { return s.Failure() != nil }, lateLimit, time.Millisecond, "the wait has no end")
	require.EqualValues(t, 1, f.Count("stopped"))
	require.Eventually(t, func() bool {
		done, err := s.Query()
		return err == nil && done
	}, lateLimit, time.Millisecond, "the stream stays held")
	done, err := recordedOn.Query()
	require.NoError(t, err)
	require.True(t, done)
	closeBoth()
	gate.Close()
	s.Close()

	drv.Close()
	require.EqualValues(t, 1, f.Count("live.contexts"), "the context went from under the query")
	require.EqualValues(t, 2, f.Count("live.events"), "that of the query, and the zero of all times")

	require.NoError(t, f.Control("stop cuEventQuery 0"))
	require.Eventually(t, func() bool { return f.Count("live.contexts") == 0 }, lateLimit, time.Millisecond,
		"nothing gives the context back")
	require.Zero(t, f.Count("live.events"))
	require.Zero(t, f.Count("dead"), "the query was for an event that was destroyed")
}

// The same where the thread of the query has not come to the driver when the device is closed.
func TestS8_a_query_that_begins_after_the_end_has_its_event(t *testing.T) {
	f, dev, drv := lateDevice(t)
	other, err := f.NewForeign(0) // another library, which uses the context on
	require.NoError(t, err)
	t.Cleanup(other.End)
	e, _, closeBoth := recorded(t, dev)
	at := e.Point().(*vendor.Fence)
	l := dev.state()
	require.True(t, l.refs.Hold())
	closeBoth()
	drv.Close()
	asked := f.Count("cuEventQuery")
	require.Zero(t, f.Count("cuDevicePrimaryCtxRelease_v2"))
	require.True(t, at.Wait(int64(time.Millisecond)), "a wait for a device that was closed ends")
	require.Equal(t, asked, f.Count("cuEventQuery"), "a closed device is not asked")
	require.EqualValues(t, 2, f.Count("live.events"), "that of the query, and the zero of all times")
	l.Leave()
	require.Zero(t, f.Count("live.events"))
	require.EqualValues(t, 1, f.Count("cuDevicePrimaryCtxRelease_v2"))
	require.False(t, l.refs.Hold(), "the context is used again")
}

// Another library may have taken the place of the driver otherwise, in whose functions the call goes on.
func TestS8_a_call_that_is_left_behind_keeps_the_library(t *testing.T) {
	_, dev, drv := lateDevice(t)
	before := open.Load()
	l := dev.state()
	require.True(t, l.refs.Hold())
	drv.Close()
	require.EqualValues(t, before-1, open.Load())
	l.Leave()
	require.EqualValues(t, before-2, open.Load())
}
