package host_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
	"halstream/ptx"
)

// openDevice returns a device of a host backend with so many engines.
func openDevice(t *testing.T, engines int) driver.Device {
	t.Helper()
	drv, err := host.Open(host.Options{Devices: 1, Memory: 1 << 20, Engines: engines})
	require.NoError(t, err)
	t.Cleanup(drv.Close)
	d, err := drv.Open(0)
	require.NoError(t, err)
	return d
}

// loadKernel returns a kernel by the text between its name and the end.
func loadKernel(t *testing.T, d driver.Device, text string) driver.SimulatedFunction {
	t.Helper()
	m, err := d.(driver.KernelDevice).Load([]byte(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k" + text))
	require.NoError(t, err)
	f, err := m.Function("k")
	require.NoError(t, err)
	return f.(driver.SimulatedFunction)
}

// TestK3_the_device_says_what_a_launch_may_have compares the facts of a device with the launches that it takes.
func TestK3_the_device_says_what_a_launch_may_have(t *testing.T) {
	d := openDevice(t, 3)
	fact := func(name string) int {
		text, err := d.(driver.FactDevice).Fact(name)
		require.NoError(t, err, name)
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	attribute := func(number int) uint32 { return uint32(fact(fmt.Sprintf("attribute:%d", number))) }
	f := loadKernel(t, d, "() { ret; }")
	launch := func(change func(*driver.Launch)) error {
		l := driver.Launch{Function: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		change(&l)
		_, err := f.Prepare(l, nil)
		return err
	}
	for i := range 3 {
		block, grid := attribute(2+i), attribute(5+i)
		for more, refused := range []bool{false, true} {
			errs := map[string]error{
				"block": launch(func(l *driver.Launch) { l.Block[i] = block + uint32(more) }),
				"grid":  launch(func(l *driver.Launch) { l.Grid[i] = grid + uint32(more) }),
			}
			for what, err := range errs {
				if refused {
					require.ErrorIs(t, err, hal.ErrInvalidValue, "%s %d", what, i)
				} else {
					require.NoError(t, err, "%s %d", what, i)
				}
			}
		}
	}
	require.EqualValues(t, f.Threads(), attribute(1))
	require.EqualValues(t, f.Shared(), attribute(97))
	require.NoError(t, launch(func(l *driver.Launch) { l.Shared = attribute(97) }))
	require.Error(t, launch(func(l *driver.Launch) { l.Shared = attribute(97) + 1 }))
	require.Equal(t, []int{8, 0, 32, 3}, []int{fact("major"), fact("minor"), fact("warp"), fact("processors")})
	require.Equal(t, []uint32{8, 0, 32, 3}, []uint32{attribute(75), attribute(76), attribute(10), attribute(16)})
	for _, name := range []string{"uuid", "attribute:1000", "attribute:x"} {
		_, err := d.(driver.FactDevice).Fact(name)
		require.ErrorIs(t, err, hal.ErrNotSupported, name)
	}
}

// TestK3_launches_share_the_list_of_memory counts what launches copy in a program with many blocks of memory.
func TestK3_launches_share_the_list_of_memory(t *testing.T) {
	d := openDevice(t, 2)
	f := loadKernel(t, d, "() { ret; }")
	list := func(from uint64) []driver.Extent {
		extents := make([]driver.Extent, 50_000)
		for i := range extents {
			extents[i] = driver.Extent{Start: from + 100*uint64(i), End: from + 100*uint64(i) + 50}
		}
		return extents
	}
	l := driver.Launch{Function: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	prepare := func(memory []driver.Extent) *ptx.Memory {
		prepared, err := f.Prepare(l, memory)
		require.NoError(t, err)
		require.Nil(t, prepared.Run(false).Fault)
		return host.KernelMemory(prepared)
	}
	memory := list(1 << 20)
	first := prepare(memory)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		require.Same(t, first, prepare(memory))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50_000*16), "bytes of 100 launches")
	require.NotSame(t, first, prepare(list(1<<21)), "memory has changed")
}
