package ascend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// Where the library refuses a row of a copy, those before it are enqueued: the copy is work of the stream, so that its
// memory stays in use, and the stream reports the error.
func TestM9_a_row_that_is_refused_fails_the_stream(t *testing.T) {
	f, _, d := fakeDevice(t)
	s, err := d.NewStream(driver.StreamOptions{Level: 3})
	require.NoError(t, err)
	src, err := d.Alloc(256)
	require.NoError(t, err)
	dst, err := d.Alloc(256)
	require.NoError(t, err)
	g, err := s.Gate(1, 0)
	require.NoError(t, err)
	plane := driver.Copy{Dst: dst, Src: src, Width: 32, Height: 4, DstPitch: 64, SrcPitch: 64,
		To: driver.OnDevice, From: driver.OnDevice}
	before := s.Last()
	for call := 1; call <= 4; call++ {
		require.NoError(t, f.Control("fault aclrtMemcpyAsync %d 207001", f.Count("aclrtMemcpyAsync")+uint64(call)))
		_, err = s.Copy(plane)
		if call == 1 {
			require.ErrorContains(t, err, "aclrtMemcpyAsync", "nothing was enqueued")
			require.Equal(t, before, s.Last())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, before+uint64(call)-1, s.Last())
		require.False(t, s.Reached(s.Last()), "rows are pending behind the gate")
		failure := s.Failure()
		require.ErrorContains(t, failure, "aclrtMemcpyAsync")
	}
	g.Open()
	require.True(t, s.Point().Wait(faultLimit))
	require.Nil(t, s.Failure())
	d.Free(src)
	d.Free(dst)
}
