package hal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

// hookedDriver is the host backend with streams that call before right before each
// record, asked right before each query, and after right after the next record, wait or free.
type hookedDriver struct {
	driver.Driver
	driver.Simulator
	before func()
	asked  func() // nil for none
	after  func() // not after a record that was refused; nil for none
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
	defer s.enqueued()
	return s.Stream.Record(e, tag)
}

func (s *hookedStream) Query() (bool, error) {
	if s.drv.asked != nil {
		s.drv.asked()
	}
	return s.Stream.Query()
}

func (s *hookedStream) Wait(e driver.Event, limit int64, tag driver.Tag) error {
	defer s.enqueued()
	return s.Stream.Wait(e, limit, tag)
}

func (s *hookedStream) Fence(tag driver.Tag) uint64 {
	defer s.enqueued()
	return s.Stream.Fence(tag)
}

// enqueued calls the function after, once.
func (s *hookedStream) enqueued() {
	if after := s.drv.after; after != nil {
		s.drv.after = nil
		after()
	}
}

// hooked returns a runtime on a hooked driver and a stream of it.
func hooked(t *testing.T, me *hal.Thread) (*hookedDriver, *hal.Runtime, *hal.Stream) {
	t.Helper()
	inner, err := host.Open(host.Options{})
	require.NoError(t, err)
	drv := &hookedDriver{Driver: inner, Simulator: inner, before: func() {}}
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	_, s := firstStream(t, rt, me)
	return drv, rt, s
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
	me, other := hal.NewThread(), hal.NewThread()
	drv, rt, s := hooked(t, me)
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
	me := hal.NewThread()
	drv, rt, s := hooked(t, me)
	drv.refuse = hal.ErrOutOfMemory
	e, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Record(me, e), hal.ErrOutOfMemory)
	var seen []string
	stop := rt.Listen(func(o hal.Operation) { seen = append(seen, o.Kind.String()) })
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
	me, other := hal.NewThread(), hal.NewThread()
	drv, rt, s := hooked(t, me)
	first, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	second, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	var seen []*hal.Event
	stop := rt.Listen(func(o hal.Operation) { seen = append(seen, o.Event) })
	defer stop()
	drv.after = func() { require.NoError(t, s.Record(other, second)) }
	require.NoError(t, s.Record(me, first))
	require.Equal(t, []*hal.Event{first, second}, seen)
}

// TestO1_listeners_see_which_record_a_wait_is_bound_to delays a thread between its wait
// and the return of the backend, and records the event again from another one meanwhile.
func TestO1_listeners_see_which_record_a_wait_is_bound_to(t *testing.T) {
	me, other := hal.NewThread(), hal.NewThread()
	drv, rt, s := hooked(t, me)
	g := hal.BackendStream(s).(*hookedStream).gate(t)
	defer g.Open()
	e, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	waiting, err := s.Device().NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Record(me, e))
	type seen struct {
		kind    string
		version uint64
	}
	var operations []seen
	stop := rt.Listen(func(o hal.Operation) { operations = append(operations, seen{o.Kind.String(), o.Version}) })
	defer stop()
	drv.after = func() { require.NoError(t, s.Record(other, e)) }
	require.NoError(t, waiting.Wait(me, e))
	require.Equal(t, []seen{{"wait", 1}, {"record", 2}}, operations)
}

// TestO1_a_free_is_listed_where_it_has_its_place does the same for a free and a record.
func TestO1_a_free_is_listed_where_it_has_its_place(t *testing.T) {
	me, other := hal.NewThread(), hal.NewThread()
	drv, rt, s := hooked(t, me)
	e, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	b, err := s.AllocAsync(me, 64)
	require.NoError(t, err)
	var seen []string
	stop := rt.Listen(func(o hal.Operation) { seen = append(seen, o.Kind.String()) })
	defer stop()
	drv.after = func() { require.NoError(t, s.Record(other, e)) }
	require.NoError(t, s.FreeAsync(me, b.Start))
	require.Equal(t, []string{"free", "record"}, seen)
}

func TestS4_a_query_reports_the_error_of_work_that_ends_during_it(t *testing.T) {
	me, other := hal.NewThread(), hal.NewThread()
	drv, rt, s := hooked(t, me)
	rt.Funcs.Start()
	require.NoError(t, s.HostFunc(me, 1))
	task, err := rt.Funcs.Next(other, int64(10*time.Second))
	require.NoError(t, err)
	require.NotZero(t, task.Token)
	drv.asked = func() {
		drv.asked = nil
		rt.Funcs.Done(other, true, &hal.Error{Kind: driver.HostFunction, Text: "it failed"})
	}
	done, err := s.Query(me)
	require.ErrorIs(t, err, hal.ErrHostFunction)
	require.False(t, done)
	done, err = s.Query(me)
	require.NoError(t, err)
	require.True(t, done)
}
