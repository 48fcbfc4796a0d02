package cuda

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda/fakectl"
	"halstream/hal/driver"
	"halstream/hal/park"
)

// countedLaunch counts the ends of the launches of a graph.
type countedLaunch struct{ ended int }

func (l *countedLaunch) Begin()                                             {}
func (l *countedLaunch) End()                                               { l.ended++ }
func (l *countedLaunch) Current() bool                                      { return true }
func (l *countedLaunch) Tag() driver.Tag                                    { return 0 }
func (l *countedLaunch) NodeRuns() []driver.NodeRun                         { return nil }
func (l *countedLaunch) NodeTitle(int) string                               { return "" }
func (l *countedLaunch) Ready(uint64, uint8, driver.Completer) *park.Parker { return nil }
func (l *countedLaunch) Drop(uint64) *park.Parker                           { return nil }

// filling returns an executable of so many fills, one after the other.
func filling(t *testing.T, dev *Device, count int) driver.Executable {
	t.Helper()
	at, err := dev.Alloc(64)
	require.NoError(t, err)
	nodes := make([]driver.GraphNode, count)
	for i := range nodes {
		nodes[i].Kind = driver.FillNode
		nodes[i].GraphWork = &driver.GraphWork{Fill: driver.Fill{Dst: at, Count: 64, Size: 1, On: driver.OnDevice}}
		if i > 0 {
			nodes[i].After = []int{i - 1}
		}
	}
	x, err := dev.drv.Instantiate(nodes)
	require.NoError(t, err)
	return x
}

// entries returns how many entries a device has for the launches on a stream.
func entries(dev *Device, s driver.Stream) int {
	dev.launches.mu.Lock()
	defer dev.launches.mu.Unlock()
	if q := dev.launches.queues[s.(*Stream)]; q != nil {
		return len(q.list) - q.head
	}
	return 0
}

func TestG6_what_a_graph_keeps_is_kept_until_the_last_of_many_launches(t *testing.T) {
	_, dev, s := fakeDevice(t)
	x := filling(t, dev, 1)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	var l countedLaunch
	const many = 5000
	for range many {
		require.NoError(t, x.Launch(s, &l))
	}
	require.Zero(t, l.ended)
	require.Equal(t, 1, entries(dev, s), "the cost of a launch grows with those that are pending")
	gate.Open()
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.Equal(t, many, l.ended)
	require.Zero(t, entries(dev, s))
	x.Close()
}

func TestG6_launches_end_when_their_stream_has_got_to_them(t *testing.T) {
	_, dev, s := fakeDevice(t)
	other, err := dev.NewStream(driver.StreamOptions{ID: 8})
	require.NoError(t, err)
	x := filling(t, dev, 1)
	var first, second, third countedLaunch
	start, err := s.Gate(1, 0) // or the first may have ended before its entry is counted
	require.NoError(t, err)
	require.NoError(t, x.Launch(s, &first))
	before := s.Point()
	gate, err := s.Gate(2, 0)
	require.NoError(t, err)
	require.NoError(t, x.Launch(s, &second))
	require.NoError(t, x.Launch(s, &first))
	y := filling(t, dev, 1)
	require.NoError(t, y.Launch(other, &third))
	require.Equal(t, 3, entries(dev, s))
	start.Open()
	require.True(t, before.Wait(int64(10*time.Second)))
	require.Equal(t, []int{1, 0, 0}, []int{first.ended, second.ended, third.ended})
	require.True(t, other.Point().Wait(int64(10*time.Second)))
	require.Equal(t, []int{1, 0, 1}, []int{first.ended, second.ended, third.ended})
	gate.Open()
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.Equal(t, []int{2, 1, 1}, []int{first.ended, second.ended, third.ended})
	x.Close()
	y.Close()
}

// Launches of two graphs in turns make one entry each, and those that have ended are let go of.
func TestG6_launches_that_have_ended_are_forgotten_while_others_are_pending(t *testing.T) {
	_, dev, s := fakeDevice(t)
	x := filling(t, dev, 1)
	var a, b countedLaunch
	const rounds = 500
	for range rounds {
		require.NoError(t, x.Launch(s, &a))
		p := s.Point()
		require.NoError(t, x.Launch(s, &b)) // behind the point: the list is never empty
		require.True(t, p.Wait(int64(10*time.Second)))
	}
	dev.launches.mu.Lock()
	room := len(dev.launches.queues[s.(*Stream)].list)
	dev.launches.mu.Unlock()
	require.LessOrEqual(t, room, 2*mostEnded+2)
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.Equal(t, []int{rounds, rounds}, []int{a.ended, b.ended})
	x.Close()
}

// calls returns how many calls of a driver look for the context, or exchange it.
func calls(f *fakectl.Fake) uint64 {
	return uint64(f.Count("cuCtxGetCurrent") + f.Count("cuCtxSetCurrent") + f.Count("cuThreadExchangeStreamCaptureMode"))
}

func TestG8_the_context_is_looked_for_once_for_all_nodes(t *testing.T) {
	f, dev, s := fakeDevice(t)
	_, err := dev.Alloc(64) // the first block of its size calls the driver
	require.NoError(t, err)
	before := calls(f)
	one := filling(t, dev, 1)
	between := calls(f)
	many := filling(t, dev, 100)
	require.Equal(t, between-before, calls(f)-between)
	require.EqualValues(t, 101, f.Count("cuGraphAddMemsetNode"))
	// A launch is one call of the driver and those that make the context current.
	before, looks := calls(f), f.Count("cuStreamIsCapturing")
	var l countedLaunch
	require.NoError(t, many.Launch(s, &l))
	require.LessOrEqual(t, calls(f)-before, uint64(3))
	require.Equal(t, looks, f.Count("cuStreamIsCapturing"))
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	one.Close()
	many.Close()
}

// A driver may destroy an executable only when its launches have ended, and the caller may have to let these go on.
func TestG6_an_executable_is_destroyed_behind_its_launches(t *testing.T) {
	f, dev, s := fakeDevice(t)
	destroyed := func() uint64 { return f.Count("cuGraphExecDestroy") }
	var l countedLaunch
	filling(t, dev, 1).Close()
	require.EqualValues(t, 1, destroyed(), "one that was never launched stays")
	x, again := filling(t, dev, 1), filling(t, dev, 1)
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	require.NoError(t, x.Launch(s, &l))
	require.NoError(t, again.Launch(s, &l))
	x.Close()
	require.EqualValues(t, 1, destroyed())
	gate.Open()
	require.True(t, s.Point().Wait(int64(10*time.Second)))
	require.EqualValues(t, 2, destroyed(), "it stays when its launch has ended")
	again.Close()
	require.EqualValues(t, 3, destroyed(), "its launch has ended before it is closed")
	require.Equal(t, 2, l.ended)
}

func TestL2_a_driver_is_closed_while_a_closed_executable_runs(t *testing.T) {
	f, dev, drv := lateDevice(t)
	s, err := dev.NewStream(driver.StreamOptions{ID: 7})
	require.NoError(t, err)
	x := filling(t, dev, 1)
	_, err = s.Gate(1, 0)
	require.NoError(t, err)
	var l countedLaunch
	require.NoError(t, x.Launch(s, &l))
	x.Close()
	drv.Close()
	require.Equal(t, 1, l.ended)
	require.Zero(t, f.Count("cuGraphExecDestroy"), "the driver would wait for the stream")
}
