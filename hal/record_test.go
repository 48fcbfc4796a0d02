package hal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

// hookedDriver is the host backend with streams that call before right before each
// record.
type hookedDriver struct {
	driver.Driver
	driver.Simulator
	before func()
	after  func() // right after each record that was not refused, nil for none
	refuse error  // of every record
}

type hookedDevice struct {
	driver.Device
	drv *hookedDriver
}

type hookedStream struct {
	driver.Stream
	drv *hookedDriver
}

func (d *hookedDriver) Open(ordinal int) (driver.Device, error) {
	dev, err := d.Driver.Open(ordinal)
	return &hookedDevice{dev, d}, err
}

func (d *hookedDevice) NewStream(o driver.StreamOptions) (driver.Stream, error) {
	s, err := d.Device.NewStream(o)
	return &hookedStream{s, d.drv}, err
}

func (s *hookedStream) Record(e driver.Event, tag driver.Tag) error {
	s.drv.before()
	if s.drv.refuse != nil {
		return s.drv.refuse
	}
	err := s.Stream.Record(e, tag)
	if s.drv.after != nil {
		s.drv.after()
	}
	return err
}

// gate holds a stream of the hooked driver.
func (s *hookedStream) gate(t *testing.T) driver.Gate {
	g, err := s.Stream.Gate(1, 0)
	require.NoError(t, err)
	return g
}

// TestE4_version_grows_only_when_the_backend_has_the_record looks at an event while
// another thread is in the middle of its first record: once the new version can be
// seen, a query must find the record pending.
func TestE4_version_grows_only_when_the_backend_has_the_record(t *testing.T) {
	inner, err := host.Open(host.Options{})
	require.NoError(t, err)
	drv := &hookedDriver{Driver: inner, Simulator: inner}
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	defer rt.Close()
	me, other := hal.NewThread(), hal.NewThread()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	s, err := dev.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	g := hal.BackendStream(s).(*hookedStream).gate(t)
	e, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	looked := 0
	drv.before = func() {
		looked++
		version := e.Version()
		done, err := e.Query(other)
		require.NoError(t, err)
		require.Falsef(t, version > 0 && done, "version %d is completed behind a closed gate", version)
	}
	require.NoError(t, s.Record(me, e))
	require.Equal(t, 1, looked)
	require.EqualValues(t, 1, e.Version())
	done, err := e.Query(other)
	require.NoError(t, err)
	require.False(t, done)
	g.Open()
	done, err = e.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
}

// TestO1_refused_operations_are_not_notified fails a record in the backend, with and
// without a listener.
func TestO1_refused_operations_are_not_notified(t *testing.T) {
	inner, err := host.Open(host.Options{})
	require.NoError(t, err)
	drv := &hookedDriver{Driver: inner, Simulator: inner, before: func() {}, refuse: hal.ErrOutOfMemory}
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	defer rt.Close()
	me := hal.NewThread()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	s, err := dev.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	e, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Record(me, e), hal.ErrOutOfMemory)
	var seen []string
	stop := rt.Listen(func(o hal.Operation) { seen = append(seen, o.Kind) })
	defer stop()
	require.ErrorIs(t, s.Record(me, e), hal.ErrOutOfMemory)
	require.Zero(t, e.Version())
	drv.refuse = nil
	require.NoError(t, s.Record(me, e))
	require.EqualValues(t, 1, e.Version())
	require.Equal(t, []string{"record"}, seen)
}

// TestO1_listeners_see_the_order_of_the_backend delays a thread between its record and the
// return of the backend, and records on the same stream from another one meanwhile.
func TestO1_listeners_see_the_order_of_the_backend(t *testing.T) {
	inner, err := host.Open(host.Options{})
	require.NoError(t, err)
	drv := &hookedDriver{Driver: inner, Simulator: inner, before: func() {}}
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	defer rt.Close()
	me, other := hal.NewThread(), hal.NewThread()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	s, err := dev.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	first, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	second, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	var seen []*hal.Event
	stop := rt.Listen(func(o hal.Operation) { seen = append(seen, o.Event) })
	defer stop()
	drv.after = func() {
		drv.after = nil
		require.NoError(t, s.Record(other, second))
	}
	require.NoError(t, s.Record(me, first))
	require.Equal(t, []*hal.Event{first, second}, seen)
}
