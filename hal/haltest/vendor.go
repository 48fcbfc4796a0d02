package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// vendorCases are about what stands on a vendor's library.
var vendorCases = []testCase{
	{"D4_a_handle_names_its_open_stream", Handles, func(k *Kit) {
		d := k.Device(0)
		s := k.Stream(hal.StreamOptions{})
		handle, ok := s.Handle()
		require.True(k, ok)
		require.Greater(k, handle, uint64(2), "0, 1 and 2 are default streams")
		same, err := d.External(k.Me, handle)
		require.NoError(k, err)
		require.Same(k, s, same)
		require.False(k, same.External())
		for _, number := range []uint64{0, 1} {
			legacy, err := d.External(k.Me, number)
			require.NoError(k, err)
			require.Same(k, d.Legacy(), legacy)
		}
		own, err := d.PerThreadStream(k.Me)
		require.NoError(k, err)
		handle, _ = own.Handle()
		same, err = d.External(k.Me, handle)
		require.NoError(k, err)
		require.Same(k, own, same)
	}},
	{"D4_a_handle_belongs_to_its_device", Handles | Pair, func(k *Kit) {
		handle, _ := k.StreamOn(1, ordinary).Handle()
		_, err := k.Device(0).External(k.Me, handle)
		require.ErrorIs(k, err, hal.ErrWrongDevice)
	}},
	{"E9_an_event_keeps_its_handle", Handles, func(k *Kit) {
		s, e, other := k.Stream(ordinary), k.Event(hal.EventOptions{}), k.Event(hal.EventOptions{})
		number, err := e.Handle(k.Me)
		require.NoError(k, err)
		require.Zero(k, number, "it has no device yet")
		require.NoError(k, s.Record(k.Me, other))
		for range 3 {
			require.NoError(k, s.Record(k.Me, e))
			again, err := e.Handle(k.Me)
			require.NoError(k, err)
			require.Greater(k, again, uint64(2))
			require.Contains(k, []uint64{0, number}, number)
			if number != 0 {
				require.Equal(k, number, again)
			}
			number = again
		}
		apart, err := other.Handle(k.Me)
		require.NoError(k, err)
		require.NotEqual(k, number, apart)
	}},
	{"E9_a_shared_event_keeps_its_rules", Handles | FourQueues, func(k *Kit) {
		a, b, waits := k.Stream(ordinary), k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		k.Record(a, e)
		_, err := e.Handle(k.Me)
		require.NoError(k, err)
		first, second := Hold(k, a).Started(), Hold(k, b).Started()
		k.Record(a, e)
		k.Wait(waits, e)
		bound, err := e.Point(k.Me)
		require.NoError(k, err)
		k.EventDone(e, false, "its stream is held")
		require.False(k, bound.Wait(0))
		k.Record(b, e)
		first.Release()
		k.Sync(waits)
		require.True(k, bound.Wait(int64(Limit)), "a wait is for the record at its call")
		k.EventDone(e, false, "the later record is pending")
		second.Release()
		k.Sync(b)
		k.EventDone(e, true, "both streams are idle")
	}},
	{"A8_abort_is_possible_or_refused", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		_, stream := s.Abort(k.Me)
		_, device := k.Device(0).Abort(k.Me)
		for _, err := range []error{stream, device} {
			if k.Has(Aborts) {
				require.NoError(k, err)
			} else {
				require.ErrorIs(k, err, hal.ErrNotSupported)
			}
		}
		k.Done(s, "nothing was enqueued")
	}},
	{"K2_a_backend_without_kernels_says_so", 0, func(k *Kit) {
		if k.Has(Kernels) {
			require.Positive(k, loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32").Threads())
			return
		}
		_, err := k.Device(0).LoadModule(k.Me, []byte(ptxFill+"\x00"))
		require.ErrorIs(k, err, hal.ErrNotSupported)
	}},
}
