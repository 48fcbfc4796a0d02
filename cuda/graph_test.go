package cuda_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/hal/driver"
	"halstream/hal/park"
)

// launch counts the ends of the launches of a graph.
type launch struct{ ended atomic.Int64 }

func (l *launch) Begin()                                             {}
func (l *launch) End()                                               { l.ended.Add(1) }
func (l *launch) Current() bool                                      { return true }
func (l *launch) Tag() driver.Tag                                    { return 0 }
func (l *launch) NodeRuns() []driver.NodeRun                         { return nil }
func (l *launch) NodeTitle(int) string                               { return "" }
func (l *launch) Ready(uint64, uint8, driver.Completer) *park.Parker { return nil }
func (l *launch) Drop(uint64) *park.Parker                           { return nil }
func fillNode(at uint64, value uint32, after ...int) (n driver.GraphNode) {
	n.Kind, n.After = driver.FillNode, after
	n.GraphWork = &driver.GraphWork{Fill: driver.Fill{Dst: at, Count: 4, Value: value, Size: 1, On: driver.OnDevice}}
	return n
}

func copyNode(to, from uint64, after ...int) (n driver.GraphNode) {
	n.Kind, n.After = driver.CopyNode, after
	copied := driver.Copy{Dst: to, Src: from, Width: 4, Height: 1, DstPitch: 4, SrcPitch: 4, To: driver.OnDevice, From: driver.OnDevice}
	n.GraphWork = &driver.GraphWork{Copy: &copied}
	return n
}

func TestG8_a_graph_of_device_work_is_one_call_of_the_driver(t *testing.T) {
	f := fake(t)
	drv, err := cuda.Open(f.Path)
	require.NoError(t, err)
	defer drv.Close()
	dev, err := drv.Open(0)
	require.NoError(t, err)
	s := newStream(t, dev, 1)
	at, err := dev.Alloc(32)
	require.NoError(t, err)
	nodes := []driver.GraphNode{fillNode(at, 'a'), fillNode(at+8, 'b', 0), copyNode(at+16, at, 0), copyNode(at+24, at+8, 1, 2)}
	x, err := any(drv).(driver.GraphDriver).Instantiate(nodes)
	require.NoError(t, err)
	require.EqualValues(t, 1, f.Count("live.executables"))
	require.Zero(t, f.Count("live.graphs"))
	var l launch
	filled(t, s, at, 32, 0)
	before := f.Count("cuMemsetD8Async")
	for i := range int64(3) {
		require.NoError(t, x.Launch(s, &l))
		require.True(t, s.Point().Wait(int64(10*time.Second)))
		require.Equal(t, i+1, l.ended.Load(), "a launch has ended, and what it keeps is kept")
	}
	require.EqualValues(t, 3, f.Count("cuGraphLaunch"))
	require.Equal(t, before, f.Count("cuMemsetD8Async"))
	require.Zero(t, f.Count("cuMemcpyDtoDAsync_v2"))
	got := string(f.Read(at, 32))
	require.Equal(t, "aaaa", got[0:4])
	require.Equal(t, "aaaa", got[16:20])
	require.Equal(t, "bbbb", got[24:28])
	x.Close()
	require.Zero(t, f.Count("live.executables"))
}

func TestG9_launches_after_an_update_come_after_those_before(t *testing.T) {
	f := fake(t)
	drv, err := cuda.Open(f.Path)
	require.NoError(t, err)
	defer drv.Close()
	dev, err := drv.Open(0)
	require.NoError(t, err)
	s, other := newStream(t, dev, 1), newStream(t, dev, 2)
	at, err := dev.Alloc(8)
	require.NoError(t, err)
	x, err := any(drv).(driver.GraphDriver).Instantiate([]driver.GraphNode{fillNode(at, 'a')})
	require.NoError(t, err)
	var l launch
	gate, err := s.Gate(1, 0)
	require.NoError(t, err)
	require.NoError(t, x.Launch(s, &l))
	require.NoError(t, x.Update([]driver.GraphNode{fillNode(at, 'b')}, func() bool { return true }))
	require.NoError(t, x.Launch(other, &l))
	require.False(t, other.Point().Wait(int64(20*time.Millisecond)), "the launch before has not begun")
	gate.Open()
	require.True(t, other.Point().Wait(int64(10*time.Second)))
	require.Equal(t, "bbbb", string(f.Read(at, 4)))
	x.Close()
}

// The first failing call names itself, nothing of the graph is left, and the next one succeeds.
func TestG8_a_graph_that_the_driver_refuses_leaves_nothing(t *testing.T) {
	f := fake(t)
	drv, err := cuda.Open(f.Path)
	require.NoError(t, err)
	defer drv.Close()
	dev, err := drv.Open(0)
	require.NoError(t, err)
	at, err := dev.Alloc(16)
	require.NoError(t, err)
	nodes := []driver.GraphNode{fillNode(at, 'a'), copyNode(at+8, at, 0)}
	for _, call := range []string{"cuGraphCreate", "cuGraphAddMemsetNode", "cuGraphAddMemcpyNode", "cuGraphInstantiateWithFlags"} {
		require.NoError(t, f.Control("fault %s 0 2", call))
		_, err := any(drv).(driver.GraphDriver).Instantiate(nodes)
		require.ErrorContains(t, err, call)
		require.NoError(t, f.Control("faults off"))
		require.Zero(t, f.Count("live.graphs")+f.Count("live.executables"), call)
	}
	x, err := any(drv).(driver.GraphDriver).Instantiate(nodes)
	require.NoError(t, err)
	x.Close()
}
