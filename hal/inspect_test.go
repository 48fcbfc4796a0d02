package hal_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// bytesAt returns memory of the host device.
func bytesAt(addr uint64, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)
}

type found struct {
	id     uint32
	ranges []hal.Range
}

// inspected returns a runtime with an inspector, a stream, and the reports of the
// inspector.
func inspected(t *testing.T) (rt *hal.Runtime, me *hal.Thread, s *hal.Stream, reports *[]found) {
	rt, err := hal.OpenBackend("host", 4)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	me = hal.NewThread()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	s, err = dev.NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	reports = new([]found)
	rt.SetInspector(&hal.Inspector{
		Refilled: func(id uint32, r hal.Range) { *reports = append(*reports, found{id, []hal.Range{r}}) },
		Observed: func(id uint32, changed []hal.Range) { *reports = append(*reports, found{id, changed}) },
	})
	return rt, me, s, reports
}

// TestChangedPinnedSourceIsReported changes pinned memory between the call of a copy
// and its execution.
func TestChangedPinnedSourceIsReported(t *testing.T) {
	for _, c := range []struct {
		name string
		size int64
		rows uint64
	}{{"short", 64, 1}, {"for an engine", 64 << 10, 1}, {"of rows", 64, 4}, {"large enough to be shared", 2 << 20, 1}} {
		t.Run(c.name, func(t *testing.T) {
			rt, me, s, reports := inspected(t)
			var last uint32
			defer rt.Listen(func(o hal.Operation) { last = o.ID })()
			pinned, err := rt.AllocHost(me, c.size)
			require.NoError(t, err)
			dev, err := rt.Device(0)
			require.NoError(t, err)
			target, err := dev.Alloc(me, c.size)
			require.NoError(t, err)
			source := bytesAt(pinned.Start, int(c.size))
			width := uint64(c.size) / c.rows
			if c.rows > 1 {
				width /= 2
			}
			pitch := uint64(c.size) / c.rows
			copied := func(touch int) uint32 {
				gate, err := s.Gate(me)
				require.NoError(t, err)
				p, err := s.Copy(me, hal.CopySpec{Dst: target.Start, Src: pinned.Start, DstPitch: pitch, SrcPitch: pitch,
					Width: width, Height: c.rows})
				require.NoError(t, err)
				require.Nil(t, p)
				id := last
				if touch >= 0 {
					source[touch]++
				}
				gate.Open()
				done, err := s.Synchronize(me, driver.Forever)
				require.NoError(t, err)
				require.True(t, done)
				return id
			}
			copied(-1)
			require.Empty(t, *reports, "nothing changed")
			id := copied(int(width) - 1)
			span := pitch*(c.rows-1) + width
			require.Equal(t, []found{{id, []hal.Range{{Start: pinned.Start, Size: span}}}}, *reports)
			require.Equal(t, source[:width], bytesAt(target.Start, int(width)), "the copy still copies")
			if c.rows > 1 {
				copied(int(width))
				require.Len(t, *reports, 1, "what lies between the rows does not count")
			}
			rt.SetInspector(nil)
			copied(0)
			require.Len(t, *reports, 1, "nobody asks")
		})
	}
}

// TestDroppedCopyIsNotReported aborts the stream before the copy runs.
func TestDroppedCopyIsNotReported(t *testing.T) {
	rt, me, s, reports := inspected(t)
	defer rt.Listen(func(hal.Operation) {})()
	pinned, err := rt.AllocHost(me, 64)
	require.NoError(t, err)
	dev, err := rt.Device(0)
	require.NoError(t, err)
	target, err := dev.Alloc(me, 64)
	require.NoError(t, err)
	gate, err := s.Gate(me)
	require.NoError(t, err)
	_, err = s.Copy(me, hal.CopySpec{Dst: target.Start, Src: pinned.Start, Width: 64})
	require.NoError(t, err)
	bytesAt(pinned.Start, 64)[0]++
	n, err := s.Abort(me)
	require.NoError(t, err)
	require.Equal(t, 2, n, "the gate and the copy")
	gate.Open()
	_, err = s.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.Empty(t, *reports)
}

// TestV45_a_check_can_wait_until_its_listeners_were_notified stops a listener while another thread has delivered to it what
// the caller enqueues meanwhile.
func TestV45_a_check_can_wait_until_its_listeners_were_notified(t *testing.T) {
	rt, me, s, _ := inspected(t)
	e, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	begun, goOn := make(chan struct{}), make(chan struct{})
	var seen []uint32
	defer rt.Listen(func(o hal.Operation) {
		if seen = append(seen, o.ID); len(seen) == 1 {
			close(begun)
			<-goOn
		}
	})()
	first := make(chan error, 1)
	go func() { first <- s.Record(hal.NewThread(), e) }()
	<-begun
	require.NoError(t, s.Record(me, e))
	p := rt.Notified()
	require.False(t, p.Wait(0), "the other thread has not delivered yet")
	require.Len(t, seen, 1)
	close(goOn)
	require.True(t, p.Wait(int64(20*time.Second)))
	require.GreaterOrEqual(t, len(seen), 2)
	require.NoError(t, <-first)
	require.True(t, rt.Notified().Wait(driver.Forever))
}

// TestV45_what_a_function_hands_in_comes_behind_the_function has a driver's thread run it before the enqueuing thread
// goes on.
func TestV45_what_a_function_hands_in_comes_behind_the_function(t *testing.T) {
	rt, me, s, _ := inspected(t)
	var order []string
	rt.SetInspector(&hal.Inspector{
		Refilled: func(uint32, hal.Range) {},
		HandedIn: func(uint32, []hal.Range, []hal.Range) { order = append(order, "handed in") },
	})
	defer rt.Listen(func(hal.Operation) { order = append(order, "enqueued") })()
	hal.HandInBeforeItsPlace(s, me, hal.Range{Start: 1 << 20, Size: 8})
	require.True(t, rt.Notified().Wait(int64(20*time.Second)))
	require.Equal(t, []string{"enqueued", "handed in"}, order)
}
