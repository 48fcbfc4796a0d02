package cuda

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// The driver counts a stream as idle whose records only the legacy default stream holds up.
func TestS5_what_waits_only_for_the_default_stream_is_work_of_an_ordered_stream(t *testing.T) {
	const long = int64(10 * time.Second)
	for name, enqueue := range map[string]func(dev *Device, s driver.Stream) error{
		"an empty operation": func(_ *Device, s driver.Stream) error { return s.Nop(0) },
		"a record": func(dev *Device, s driver.Stream) error {
			e, err := dev.NewEvent(driver.EventOptions{})
			if err != nil {
				return err
			}
			t.Cleanup(e.Close)
			return s.Record(e, 0)
		},
		"the record that another stream waits for": func(dev *Device, s driver.Stream) error {
			other, err := dev.NewStream(driver.StreamOptions{})
			if err != nil {
				return err
			}
			t.Cleanup(other.Close)
			return other.WaitStream(s, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, dev, _ := fakeDevice(t)
			s, err := dev.NewStream(driver.StreamOptions{Ordered: true})
			require.NoError(t, err)
			gate, err := dev.Legacy().Gate(1, 0)
			require.NoError(t, err)
			require.NoError(t, enqueue(dev, s))
			before := s.Point()
			done, err := s.Query()
			require.NoError(t, err)
			require.False(t, done)
			require.False(t, before.Wait(0))
			gate.Open()
			require.True(t, before.Wait(long))
			require.True(t, s.Point().Wait(long))
			done, err = s.Query()
			require.NoError(t, err)
			require.True(t, done)
			s.Close()
		})
	}
}
