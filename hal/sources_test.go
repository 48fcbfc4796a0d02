package hal_test

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// TestV42_sources_are_compared_when_the_host_begins_to_wait changes pinned memory after a
// copy of it has run.
func TestV42_sources_are_compared_when_the_host_begins_to_wait(t *testing.T) {
	rt, me, s, _ := inspected(t)
	defer rt.Listen(func(hal.Operation) {})()
	inUse, reports := true, []hal.Range(nil)
	rt.SetInspector(&hal.Inspector{
		Refilled:    func(uint32, hal.Range) {},
		InUse:       func(uint32) bool { return inUse },
		Overwritten: func(_ uint32, r hal.Range) { reports = append(reports, r) },
	})
	dev, err := rt.Device(0)
	require.NoError(t, err)
	target, err := dev.Alloc(me, 64)
	require.NoError(t, err)
	wait := func() {
		t.Helper()
		done, err := s.Synchronize(me, driver.Forever)
		require.NoError(t, err)
		require.True(t, done)
	}
	copied := func() *hal.Block {
		t.Helper()
		pinned, err := rt.AllocHost(me, 64)
		require.NoError(t, err)
		_, err = s.Copy(me, hal.CopySpec{Dst: target.Start, Src: pinned.Start, Width: 64})
		require.NoError(t, err)
		wait()
		require.Empty(t, reports, "nothing has changed")
		bytesAt(pinned.Start, 64)[63]++
		return pinned
	}

	pinned := copied()
	wait()
	require.Equal(t, []hal.Range{{Start: pinned.Start, Size: 64}}, reports)
	wait()
	require.Len(t, reports, 1, "once for each copy")

	reports = nil
	copied()
	inUse = false
	wait()
	inUse = true
	wait()
	require.Empty(t, reports, "the host had waited")

	require.NoError(t, copied().Free(me))
	wait()
	require.Empty(t, reports, "the memory was freed")

	own := make([]byte, 64)
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(own))))
	registered := func() {
		t.Helper()
		require.NoError(t, rt.RegisterHost(me, start, 64))
		_, err = s.Copy(me, hal.CopySpec{Dst: target.Start, Src: start, Width: 64})
		require.NoError(t, err)
		wait()
		require.Empty(t, reports, "nothing has changed")
		own[63]++
	}
	registered()
	wait()
	require.Equal(t, []hal.Range{{Start: start, Size: 64}}, reports)
	require.NoError(t, rt.UnregisterHost(me, start))
	reports = nil
	registered()
	require.NoError(t, rt.UnregisterHost(me, start))
	wait()
	require.Empty(t, reports, "the memory is the program's own again")
	runtime.KeepAlive(own)

	copied()
	rt.SetInspector(nil)
	require.Len(t, reports, 1, "the end of a check compares, too")
}

// TestV42_a_source_is_compared_before_the_host_learns_that_its_copy_is_done asks in each way that does not wait, and after
// the copy has run: as soon as listeners know of the answer, the host comes after the copy and may change its source.
func TestV42_a_source_is_compared_before_the_host_learns_that_its_copy_is_done(t *testing.T) {
	rt, me, s, _ := inspected(t)
	var order []string
	rt.SetInspector(&hal.Inspector{
		Refilled:    func(uint32, hal.Range) {},
		InUse:       func(uint32) bool { return true },
		Overwritten: func(uint32, hal.Range) { order = append(order, "overwritten") },
	})
	defer rt.Listen(func(o hal.Operation) {
		switch o.Kind {
		case hal.OpSynchronizeStream, hal.OpQueryStream, hal.OpQueryEvent:
			order = append(order, o.Kind.String())
		}
	})()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	target, err := dev.Alloc(me, 64)
	require.NoError(t, err)
	e, err := rt.NewEvent(me, dev, hal.EventOptions{})
	require.NoError(t, err)
	for want, ask := range map[string]func() (bool, error){
		"synchronize stream": func() (bool, error) { return s.TryFinish(me) },
		"query stream":       func() (bool, error) { return s.Query(me) },
		"query event":        func() (bool, error) { return e.Query(me) },
	} {
		pinned, err := rt.AllocHost(me, 64)
		require.NoError(t, err)
		_, err = s.Copy(me, hal.CopySpec{Dst: target.Start, Src: pinned.Start, Width: 64})
		require.NoError(t, err)
		require.NoError(t, s.Record(me, e))
		require.Eventually(t, s.Idle, 10*time.Second, time.Millisecond)
		bytesAt(pinned.Start, 64)[0]++
		order = nil
		done, err := ask()
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, []string{"overwritten", want}, order)
	}
}
