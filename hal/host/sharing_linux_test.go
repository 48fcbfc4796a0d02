package host

import (
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

func bytesAt(addr, size uint64) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size) }

// sharable returns a device, and blocks of 256 bytes that lie on the same pages, each filled with its number.
func sharable(t *testing.T, blocks int) (*Device, []uint64) {
	t.Helper()
	drv, err := Open(Options{Devices: 1})
	require.NoError(t, err)
	t.Cleanup(drv.Close)
	made, err := drv.Open(0)
	require.NoError(t, err)
	d := made.(*Device)
	var all []uint64
	for i := range blocks {
		addr, err := d.Alloc(align)
		require.NoError(t, err)
		for j := range bytesAt(addr, align) {
			bytesAt(addr, align)[j] = byte(i)
		}
		all = append(all, addr)
	}
	return d, all
}

func TestShare_movesAPageWithAllThatLiesOnIt(t *testing.T) {
	d, blocks := sharable(t, 40) // two pages and a half
	for _, i := range []int{3, 39, 3, 20} {
		m, err := d.Share(blocks[i], align)
		require.NoError(t, err)
		there, err := d.Map(m)
		require.NoError(t, err)
		require.NotEqual(t, blocks[i], there)
		require.Equal(t, bytesAt(blocks[i], align), bytesAt(there, align))
		bytesAt(there, align)[7] = 100
		bytesAt(blocks[i], align)[8] = 101
		require.Equal(t, byte(100), bytesAt(blocks[i], align)[7])
		require.Equal(t, byte(101), bytesAt(there, align)[8])
		d.Unmap(there, align)
	}
	for i, addr := range blocks {
		require.Equal(t, byte(i), bytesAt(addr, align)[200], "block %d", i)
	}
}

func TestShare_aBlockOverPagesOfWhichSomeAreSharedIsOneMapping(t *testing.T) {
	d, _ := sharable(t, 1)
	const size = 64 << 10
	large, err := d.Alloc(size)
	require.NoError(t, err)
	for i := range bytesAt(large, size) {
		bytesAt(large, size)[i] = byte(i >> 8)
	}
	_, err = d.Share(large+20_000, 5_000)
	require.NoError(t, err)
	_, err = d.Share(large+40_000, 1)
	require.NoError(t, err)
	m, err := d.Share(large, size)
	require.NoError(t, err)
	there, err := d.Map(m)
	require.NoError(t, err)
	defer d.Unmap(there, size)
	for i := range size {
		require.Equal(t, byte(i>>8), bytesAt(there, size)[i])
	}
	bytesAt(large, size)[size-1] = 3
	require.Equal(t, byte(3), bytesAt(there, size)[size-1])
}

func TestShare_whatIsFreedGivesItsMemoryBack(t *testing.T) {
	d, _ := sharable(t, 1)
	const size = 4 << 20
	addr, err := d.Alloc(size)
	require.NoError(t, err)
	bytesAt(addr, size)[size/2] = 9
	m, err := d.Share(addr, size)
	require.NoError(t, err)
	there, err := d.Map(m)
	require.NoError(t, err)
	defer d.Unmap(there, size)
	d.Free(addr)
	require.Equal(t, byte(0), bytesAt(there, size)[size/2])
}

func TestMap_ofAnEndedProcessOrWhatItDoesNotShareFails(t *testing.T) {
	d, blocks := sharable(t, 1)
	m, err := d.Share(blocks[0], align)
	require.NoError(t, err)
	ended := exec.Command(os.Args[0], "-test.run", "^$")
	require.NoError(t, ended.Run())
	for _, one := range []struct {
		text  string
		wrong func(m *driver.SharedMemory)
	}{
		{"has ended", func(m *driver.SharedMemory) { m.Process = ended.Process.Pid }},
		{"has ended", func(m *driver.SharedMemory) { m.Started++ }},
		{"does not let this one have it", func(m *driver.SharedMemory) { m.File = 1 << 20 }},
		{"shares no such memory", func(m *driver.SharedMemory) { m.Offset = 1 << 60 }},
		{"shares no such memory", func(m *driver.SharedMemory) { m.Size = 0 }},
	} {
		bad := m
		one.wrong(&bad)
		_, err := d.Map(bad)
		require.ErrorContains(t, err, one.text)
		require.Equal(t, driver.InvalidValue, err.(*driver.Error).Kind)
	}
}
