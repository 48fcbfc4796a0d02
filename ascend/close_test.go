package ascend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// Closing an idle stream enqueues nothing: a switch of the backend right after a synchronize of all
// devices is not refused for work that only the close has made.
func TestS3_closing_an_idle_stream_enqueues_nothing(t *testing.T) {
	f, _, d := fakeDevice(t)
	s, err := d.NewStream(driver.StreamOptions{Level: 3})
	require.NoError(t, err)
	require.NoError(t, s.Nop(0))
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	records := f.Count("aclrtRecordEvent")
	s.Close()
	require.Equal(t, records, f.Count("aclrtRecordEvent"))
	require.Zero(t, d.Pending())
	require.True(t, s.Point().Wait(0))
}

func TestS3_work_of_a_closed_stream_is_pending_until_it_is_done(t *testing.T) {
	_, _, d := fakeDevice(t)
	s, err := d.NewStream(driver.StreamOptions{Level: 3})
	require.NoError(t, err)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	s.Close()
	require.Positive(t, d.Pending())
	require.False(t, s.Point().Wait(0), "its gate is closed")
	gate.Open()
	require.True(t, s.Point().Wait(int64(10*time.Second)))
}
