package haltest

import (
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// lostCases come last: the device that they lose stays lost.
var lostCases = []testCase{
	{"D6_a_lost_device_holds_nobody_up", Loses | Gates | Pair, func(k *Kit) {
		const lost = 1
		near, far := k.Stream(ordinary), k.StreamOn(lost, ordinary)
		e := k.Event(hal.EventOptions{})
		g, err := far.Gate(k.Me)
		require.NoError(k, err)
		var ran atomic.Int32
		before := k.served.left()
		for range 3 {
			k.Call(far, func() { ran.Add(1) })
		}
		k.Record(far, e)
		waits := []func(t *hal.Thread) (bool, error){
			func(t *hal.Thread) (bool, error) { return far.Synchronize(t, int64(Limit)) },
			func(t *hal.Thread) (bool, error) { return e.Synchronize(t, int64(Limit)) },
			func(t *hal.Thread) (bool, error) { return k.Device(lost).Synchronize(t, int64(Limit)) },
		}
		ended := make(chan error, len(waits))
		for _, wait := range waits {
			go func() {
				t := hal.NewThread()
				defer t.Retire()
				_, err := wait(t)
				ended <- err
			}()
		}
		require.NoError(k, k.lose(lost))
		for range waits {
			require.ErrorIs(k, Receive(k, ended, "a wait for a lost device"), hal.ErrDeviceLost)
		}
		for end := time.Now().Add(Limit); k.served.left() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				k.stuck("functions on a lost device are neither run nor dropped")
			}
		}
		require.Zero(k, ran.Load(), "a function ran on a lost device")

		first := k.Device(lost).Lost()
		require.ErrorIs(k, first, hal.ErrDeviceLost)
		_, err = k.Device(lost).NewStream(k.Me, ordinary)
		for _, err := range []error{err, far.Record(k.Me, e), far.Nop(k.Me), k.TryCall(far, func() {})} {
			require.ErrorIs(k, err, hal.ErrDeviceLost)
			require.ErrorContains(k, err, first.(*hal.Error).Text, "the first cause is told")
		}
		_, err = far.Query(k.Me)
		require.ErrorIs(k, err, hal.ErrDeviceLost)
		g.Open()

		k.Call(near, func() {})
		k.Sync(near)
	}},
}
