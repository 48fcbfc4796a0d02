package host_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// bytesAt is memory of the device or pinned memory.
func bytesAt(addr uint64, n int) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n) }

// branches returns an executable of two branches: a fill and an empty node with two nodes before it.
func (k *scheduled) branches() *hal.GraphExec {
	k.Helper()
	block, err := k.dev.Alloc(k.me, 64)
	require.NoError(k, err)
	require.NoError(k, k.a.BeginCapture(k.me, hal.RelaxedMode))
	require.NoError(k, k.b.WaitStream(k.me, k.a))
	for i, s := range []*hal.Stream{k.a, k.b} {
		require.NoError(k, s.Fill(k.me, block.Start+uint64(32*i), 1, 1, 32))
	}
	require.NoError(k, k.a.WaitStream(k.me, k.b))
	g, err := k.a.EndCapture(k.me)
	require.NoError(k, err)
	x, err := g.Instantiate(k.me)
	require.NoError(k, err)
	return x
}

func (k *scheduled) rest(s *hal.Stream) {
	k.Helper()
	done, err := s.Synchronize(k.me, limitNS)
	require.NoError(k, err)
	require.True(k, done)
}

func TestO7_a_log_has_the_nodes_of_a_launch_and_when_they_ran(t *testing.T) {
	k := under(t, "fifo", driver.Caller{})
	x := k.branches()
	require.NoError(t, k.rt.FollowExecution(true))
	log := k.rt.Log(true)
	require.NoError(t, x.Launch(k.me, k.a))
	k.rest(k.a)
	log.Stop()
	var launch hal.Operation
	nodes := map[uint32]hal.Operation{}
	for _, o := range log.Take().All() {
		switch {
		case o.Kind == hal.OpLaunchGraph:
			launch = o
		case o.Launch != 0:
			nodes[o.ID] = o
		}
	}
	require.Len(t, nodes, 2)
	for i := range 2 {
		n := nodes[launch.NodeID(i)]
		assert.Equal(t, hal.OpFill, n.Kind)
		assert.Equal(t, launch.ID, n.Launch)
		assert.Equal(t, i, n.Branch)
		assert.Len(t, n.Writes, 1)
	}
	ran := map[uint32]bool{}
	for _, e := range k.rt.Executions() {
		ran[e.Tag] = true
	}
	for id := range nodes {
		assert.True(t, ran[id], "node %d", id)
	}
}

// TestX10_the_branches_of_a_launch_have_their_numbers_before_it_begins starves the stream of the
// launch, so that another stream gets work first.
func TestX10_the_branches_of_a_launch_have_their_numbers_before_it_begins(t *testing.T) {
	numbers := func(schedule string) map[uint32]uint32 {
		k := under(t, schedule, driver.Caller{})
		x := k.branches()
		stop := k.rt.Listen(func(hal.Operation) {})
		defer stop()
		require.NoError(t, x.Launch(k.me, k.a))
		require.NoError(t, k.c.Nop(k.me))
		k.rest(k.c)
		k.rest(k.a)
		found := map[uint32]uint32{}
		for _, step := range k.rt.Run().Steps {
			if step.Tag != 0 {
				found[step.Tag] = step.Stream
			}
		}
		return found
	}
	early := numbers("fifo")
	require.Len(t, early, 4, "the launch, its two nodes and the other operation")
	require.Equal(t, early, numbers("starve 1"))
}

func TestW6_a_launch_that_never_ends_is_at_a_node_with_its_line(t *testing.T) {
	k := under(t, "fifo", driver.Caller{})
	site := uint32(40)
	k.rt.SetSites(func() uint32 { site++; return site })
	require.NoError(t, k.a.BeginCapture(k.me, hal.RelaxedMode))
	require.NoError(t, k.a.Nop(k.me))
	at := site + 1
	require.NoError(t, k.a.HostFunc(k.me, 7))
	g, err := k.a.EndCapture(k.me)
	require.NoError(t, err)
	k.rt.SetSites(nil)
	x, err := g.Instantiate(k.me)
	require.NoError(t, err)
	require.NoError(t, k.rt.SetSchedule(k.me, "parallel", driver.Caller{}))
	require.NoError(t, x.Launch(k.me, k.b))
	worker := hal.NewThread()
	task, err := k.rt.Funcs.Next(worker, limitNS)
	require.NoError(t, err)
	require.EqualValues(t, 7, task.Token)
	sites := map[driver.Need]uint32{}
	for _, b := range k.rt.Busy() {
		sites[b.Need] = b.Site
	}
	assert.Equal(t, map[driver.Need]uint32{driver.NeedStream: 0, driver.NeedFunction: at}, sites)
	assert.Contains(t, k.b.Describe(), "a launch of a graph, at node 1 (call), host function 7, handed over")
	assert.Contains(t, k.dev.Describe(), "at node 1 (call), host function 7")
	k.rt.Funcs.Done(worker, false, nil)
	k.rest(k.b)
}

// TestV44_a_node_whose_pinned_source_has_changed_is_named has a listener and an inspector, as a check does.
func TestV44_a_node_whose_pinned_source_has_changed_is_named(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	source, err := k.rt.AllocHost(k.me, 64)
	require.NoError(t, err)
	target, err := k.dev.Alloc(k.me, 64)
	require.NoError(t, err)
	require.NoError(t, k.a.BeginCapture(k.me, hal.RelaxedMode))
	_, err = k.a.Copy(k.me, hal.CopySpec{Dst: target.Start, Src: source.Start, Width: 64})
	require.NoError(t, err)
	g, err := k.a.EndCapture(k.me)
	require.NoError(t, err)
	x, err := g.Instantiate(k.me)
	require.NoError(t, err)
	var launch hal.Operation
	stop := k.rt.Listen(func(o hal.Operation) {
		if o.Kind == hal.OpLaunchGraph {
			launch = o
		}
	})
	defer stop()
	var named []uint32
	k.rt.SetInspector(&hal.Inspector{Refilled: func(id uint32, _ hal.Range) { named = append(named, id) }})
	defer k.rt.SetInspector(nil)
	for _, refilled := range []bool{false, true} {
		named = nil
		require.NoError(t, x.Launch(k.me, k.a))
		if refilled {
			bytesAt(source.Start, 64)[5]++
		}
		k.rest(k.a)
		if refilled {
			require.Equal(t, []uint32{launch.NodeID(0)}, named)
		} else {
			require.Empty(t, named)
		}
	}
}

// TestV44_what_a_function_of_a_graph_writes_is_observed changes memory that the function does not declare.
func TestV44_what_a_function_of_a_graph_writes_is_observed(t *testing.T) {
	k := under(t, "fifo", driver.Caller{})
	block, err := k.dev.Alloc(k.me, 64)
	require.NoError(t, err)
	require.NoError(t, k.a.BeginCapture(k.me, hal.RelaxedMode))
	require.NoError(t, k.a.HostFunc(k.me, 7))
	g, err := k.a.EndCapture(k.me)
	require.NoError(t, err)
	x, err := g.Instantiate(k.me)
	require.NoError(t, err)
	stop := k.rt.Listen(func(hal.Operation) {})
	defer stop()
	seen := map[uint32][]hal.Range{}
	k.rt.SetInspector(&hal.Inspector{Observed: func(id uint32, changed []hal.Range) { seen[id] = changed }})
	defer k.rt.SetInspector(nil)
	worker := hal.NewThread()
	ended := make(chan error, 1)
	go func() {
		_, err := k.rt.Funcs.Next(worker, limitNS)
		if err == nil {
			bytesAt(block.Start, 64)[3]++
			k.rt.Funcs.Done(worker, false, nil)
		}
		ended <- err
	}()
	require.NoError(t, x.Launch(k.me, k.a))
	k.rest(k.a)
	require.NoError(t, <-ended)
	require.Len(t, seen, 1)
	for _, changed := range seen {
		require.Equal(t, []hal.Range{{Start: block.Start + 3, Size: 1}}, changed)
	}
}
