package hal_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// shared returns a device of a new host backend, a thread, and an event that other processes can have.
func shared(t *testing.T) (*hal.Device, *hal.Thread, *hal.Event) {
	t.Helper()
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	d, err := rt.Device(0)
	require.NoError(t, err)
	me := hal.NewThread()
	e, err := rt.NewEvent(me, nil, hal.EventOptions{Interprocess: true})
	require.NoError(t, err)
	_, err = e.Share(me, d)
	require.NoError(t, err)
	return d, me, e
}

func TestE10_what_another_process_has_recorded_last_is_what_an_event_stands_for(t *testing.T) {
	d, me, e := shared(t)
	s, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	done, err := e.Query(me)
	require.NoError(t, err)
	require.True(t, done, "nobody has recorded it")
	first, second := e.RecordElsewhere(0), e.RecordElsewhere(0)
	require.NoError(t, s.Wait(me, e))
	for _, number := range []uint64{first, second} {
		done, err = e.Query(me)
		require.NoError(t, err)
		require.False(t, done)
		done, err = s.Query(me)
		require.NoError(t, err)
		require.False(t, done)
		done, err = e.Synchronize(me, 0)
		require.NoError(t, err)
		require.False(t, done)
		e.EndElsewhere(number)
	}
	for _, wait := range []func() (bool, error){
		func() (bool, error) { return s.Synchronize(me, ends) },
		func() (bool, error) { return e.Synchronize(me, ends) },
		func() (bool, error) { return e.Query(me) },
	} {
		done, err = wait()
		require.NoError(t, err)
		require.True(t, done)
	}
	require.NoError(t, s.Record(me, e)) // it is this process's again
	done, err = e.Synchronize(me, ends)
	require.NoError(t, err)
	require.True(t, done)
}

func TestE10_more_records_than_there_are_places_do_not_pend(t *testing.T) {
	d, me, e := shared(t)
	s, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	gate, err := s.Gate(me)
	require.NoError(t, err)
	for range hal.RecordPlaces {
		require.NoError(t, s.Record(me, e))
	}
	err = s.Record(me, e)
	require.ErrorIs(t, err, hal.ErrInvalidValue)
	require.ErrorContains(t, err, "511 records of an event that other processes have are pending")
	gate.Open()
	done, err := s.Synchronize(me, ends)
	require.NoError(t, err)
	require.True(t, done)
	require.Eventually(t, func() bool { return s.Record(me, e) == nil }, time.Duration(ends), time.Millisecond)
}

func TestE10_an_event_may_be_closed_while_its_records_pend(t *testing.T) {
	d, me, e := shared(t)
	s, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	gate, err := s.Gate(me)
	require.NoError(t, err)
	require.NoError(t, s.Record(me, e))
	require.NoError(t, e.Close(me))
	require.ErrorIs(t, s.Record(me, e), hal.ErrClosed)
	require.ErrorIs(t, s.Wait(me, e), hal.ErrClosed)
	gate.Open()
	done, err := s.Synchronize(me, ends)
	require.NoError(t, err)
	require.True(t, done)
}

func TestE10_no_process_opens_its_own_event_or_shares_one_made_for_itself(t *testing.T) {
	d, me, e := shared(t)
	first, err := e.Share(me, d)
	require.NoError(t, err)
	_, err = d.Runtime().OpenEvent(me, first)
	require.ErrorIs(t, err, hal.ErrWrongContext)
	_, err = d.Runtime().OpenMemory(me, first)
	require.ErrorIs(t, err, hal.ErrInvalidValue)
	require.ErrorContains(t, err, "no handle of memory")
	plain, err := d.Runtime().NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	_, err = plain.Share(me, d)
	require.ErrorIs(t, err, hal.ErrInvalidValue)
	require.ErrorContains(t, err, "made for this process alone")
}

func TestE10_a_wait_for_a_process_that_ends_fails(t *testing.T) {
	d, me, e := shared(t)
	s, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	other := exec.Command("sleep", "60")
	require.NoError(t, other.Start())
	e.RecordElsewhere(other.Process.Pid)
	require.NoError(t, s.Wait(me, e))
	done, err := s.Synchronize(me, int64(300*time.Millisecond)) // it runs
	require.NoError(t, err)
	require.False(t, done)
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	done, err = s.Synchronize(me, ends)
	if err == nil {
		require.True(t, done)
		err = s.Failure()
	}
	require.ErrorContains(t, err, "which had recorded the event, has ended before the work was done")
}
