package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

func synced(t *testing.T, s driver.Stream) {
	t.Helper()
	require.True(t, s.Point().Wait(int64(10*time.Second)))
}

func filled(t *testing.T, s driver.Stream, addr, size uint64, value uint32) {
	t.Helper()
	require.NoError(t, s.Fill(driver.Fill{Dst: addr, Count: size, Value: value, Size: 1, On: driver.OnDevice}))
}

// A driver's copies of rows take rows that are at most two GiB from each other.
func TestM3_rows_that_are_far_from_each_other_are_copied_one_by_one(t *testing.T) {
	const pitch = 1 << 31
	f, dev, _ := contended(t, map[string]string{"MEMORY": "8589934592"})
	s := newStream(t, dev, 1)
	far, err := dev.Alloc(pitch + 8)
	require.NoError(t, err)
	near, err := dev.Alloc(16)
	require.NoError(t, err)
	filled(t, s, far, 8, 'a')
	filled(t, s, far+pitch, 8, 'b')
	synced(t, s)
	_, err = s.Copy(driver.Copy{Dst: near, Src: far, Width: 8, Height: 2, DstPitch: 8, SrcPitch: pitch,
		To: driver.OnDevice, From: driver.OnDevice})
	require.NoError(t, err)
	synced(t, s)
	require.Equal(t, "aaaaaaaabbbbbbbb", string(f.Read(near, 16)))
	require.Zero(t, f.Count("cuMemcpy2DAsync_v2"))
}

// Rows of two devices need one call of the driver, however many they are.
func TestM3_rows_between_devices_are_one_call(t *testing.T) {
	f := fake(t)
	devs := openDevices(t, f.Path)
	s := newStream(t, devs[0], 1)
	here, err := devs[0].Alloc(64)
	require.NoError(t, err)
	there, err := devs[1].Alloc(64)
	require.NoError(t, err)
	filled(t, s, here, 64, '.')
	for i := range uint64(4) {
		filled(t, s, here+16*i, 2, uint32('a'+i))
	}
	_, err = s.Copy(driver.Copy{Dst: there, Src: here, Width: 2, Height: 4, DstPitch: 4, SrcPitch: 16,
		To: driver.OnDevice, From: driver.OnDevice, DstDevice: 1})
	require.NoError(t, err)
	synced(t, s)
	got := f.Read(there, 14)
	require.Equal(t, "aa", string(got[0:2]))
	require.Equal(t, "bb", string(got[4:6]))
	require.Equal(t, "dd", string(got[12:14]))
	require.EqualValues(t, 1, f.Count("cuMemcpy3DPeerAsync"))
	require.Zero(t, f.Count("cuMemcpyPeerAsync"))
}
