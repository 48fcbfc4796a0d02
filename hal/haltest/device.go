package haltest

import (
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var deviceCases = []testCase{
	{"D1_ordinals_count_from_zero", 0, func(k *Kit) {
		for i := range k.RT.Devices() {
			require.Equal(k, i, k.Device(i).Ordinal())
			require.NotEmpty(k, k.Device(i).Name())
		}
		for _, bad := range []int{-1, k.RT.Devices()} {
			_, err := k.RT.Device(bad)
			require.ErrorIs(k, err, hal.ErrInvalidDevice)
		}
	}},
	{"D2_each_thread_has_its_current_device", Pair, func(k *Kit) {
		other := hal.NewThread()
		require.Same(k, k.Device(0), k.Me.Device(k.RT))
		k.Me.SetDevice(k.Device(1))
		require.Same(k, k.Device(1), k.Me.Device(k.RT))
		require.Same(k, k.Device(0), other.Device(k.RT))
	}},
	{"D3_an_absent_backend_says_why", 0, func(k *Kit) {
		_, err := hal.OpenBackend("no such thing", 1)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "host")
	}},
	{"D4_objects_of_two_devices_do_not_mix", Pair, func(k *Kit) {
		near, far := k.Stream(ordinary), k.StreamOn(1, ordinary)
		e := k.Event(hal.EventOptions{})
		h := Hold(k, near).Started()
		k.Record(near, e)
		require.ErrorIs(k, far.Record(k.Me, e), hal.ErrWrongDevice)
		require.NoError(k, far.WaitStream(k.Me, near))
		k.Wait(far, e)
		k.Pending(far, "the other device's stream is held")
		h.Release()
		k.Sync(far)
	}},
	{"D4_objects_of_two_runtimes_do_not_mix", 0, func(k *Kit) {
		other, err := k.open()
		require.NoError(k, err)
		defer other.Close()
		dev, err := other.Device(0)
		require.NoError(k, err)
		foreign, err := dev.NewStream(k.Me, ordinary)
		require.NoError(k, err)
		unrecorded, err := other.NewEvent(k.Me, nil, hal.EventOptions{})
		require.NoError(k, err)
		recorded, err := other.NewEvent(k.Me, nil, timed)
		require.NoError(k, err)
		require.NoError(k, foreign.Record(k.Me, recorded))
		s, e := k.Stream(ordinary), k.Event(timed)
		k.Record(s, e)
		_, elapsed := e.Elapsed(k.Me, recorded)
		_, access := k.Device(0).CanAccess(k.Me, dev)
		for i, err := range []error{s.Wait(k.Me, unrecorded), s.Wait(k.Me, recorded), s.Record(k.Me, unrecorded),
			s.Record(k.Me, recorded), s.WaitStream(k.Me, foreign), foreign.Wait(k.Me, e), foreign.Record(k.Me, e),
			elapsed, access, k.Device(0).EnableAccess(k.Me, dev)} {
			require.ErrorIs(k, err, hal.ErrWrongDevice, "call %d", i)
			require.ErrorContains(k, err, "another Runtime", "call %d", i)
		}
		k.Sync(s)
		require.NoError(k, foreign.Close(k.Me))
	}},
	{"D5_synchronizing_a_device_waits_for_its_streams", Pair, func(k *Kit) {
		near, far := k.Stream(ordinary), k.StreamOn(1, ordinary)
		h := Hold(k, near).Started()
		k.Call(far, func() {})
		done, err := k.Device(1).Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.True(k, done, "it waits for the other device")
		done, err = k.Device(0).Synchronize(k.Me, int64(time.Millisecond))
		require.NoError(k, err)
		require.False(k, done, "it did not wait for a stream of its own")
		h.Release()
		done, err = k.Device(0).Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.True(k, done)
		k.Done(near, "the device is synchronized")
	}},
}
