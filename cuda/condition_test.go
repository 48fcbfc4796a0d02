package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/cuda/fakectl"
	"halstream/hal"
	"halstream/hal/driver"
)

// conditions are what tests of nodes with conditions have: a pinned word, and a device's memory.
type conditions struct {
	t    *testing.T
	f    *fakectl.Fake
	rt   *hal.Runtime
	me   *hal.Thread
	d    *hal.Device
	s    *hal.Stream
	word hal.GraphCondition
	at   uint64
}

func newConditions(t *testing.T) *conditions {
	c := &conditions{t: t, f: fake(t), me: hal.NewThread()}
	rt, err := open(c.f.Path)()
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	c.rt = rt
	word, err := rt.AllocHost(c.me, 8)
	require.NoError(t, err)
	c.d, err = rt.Device(0)
	require.NoError(t, err)
	block, err := c.d.Alloc(c.me, 64)
	require.NoError(t, err)
	c.s, err = c.d.NewStream(c.me, hal.StreamOptions{})
	require.NoError(t, err)
	c.word, c.at = hal.GraphCondition{Addr: word.Start, Initial: 1, Resets: true}, block.Start
	return c
}

// graph returns a graph with one node for each function, which enqueues it.
func (c *conditions) graph(enqueue ...func(*hal.Stream) error) *hal.Graph {
	c.t.Helper()
	g, err := c.rt.NewGraph(c.me)
	require.NoError(c.t, err)
	for _, f := range enqueue {
		_, err = g.Add(c.me, c.d, nil, f)
		require.NoError(c.t, err)
	}
	return g
}

func (c *conditions) fill(s *hal.Stream) error { return s.Fill(c.me, c.at, 1, 1, 64) }

func (c *conditions) stop(s *hal.Stream) error { return s.Fill(c.me, c.word.Addr, 0, 4, 1) }

// ofHost is a copy from pinned memory to pinned memory, which is work of the host.
func (c *conditions) ofHost(s *hal.Stream) error {
	_, err := s.Copy(c.me, hal.CopySpec{Dst: c.word.Addr + 4, Src: c.word.Addr, Width: 4})
	return err
}

func (c *conditions) run(x *hal.GraphExec) {
	c.t.Helper()
	require.NoError(c.t, x.Launch(c.me, c.s))
	done, err := c.s.Synchronize(c.me, int64(10*time.Second))
	require.NoError(c.t, err)
	require.True(c.t, done, "the launch does not end")
}

// Where work of the host is beside a node with a condition only that node is the driver's graph.
func TestG13_a_launch_with_a_condition_is_one_call_of_the_driver(t *testing.T) {
	c := newConditions(t)
	g := c.graph()
	_, err := g.AddWhile(c.me, nil, c.word, c.graph(c.fill, c.stop))
	require.NoError(t, err)
	for _, around := range []bool{false, true} {
		if around {
			_, err = g.Add(c.me, c.d, nil, c.ofHost)
			require.NoError(t, err)
		}
		x, err := g.Instantiate(c.me)
		require.NoError(t, err)
		require.EqualValues(t, 1, c.f.Count("live.graphs"), "the body, which is the executable's")
		require.EqualValues(t, 1, c.f.Count("live.executables"))
		launches, fills := c.f.Count("cuGraphLaunch"), c.f.Count("cuMemsetD8Async")
		for range 3 {
			c.run(x)
		}
		require.EqualValues(t, launches+3, c.f.Count("cuGraphLaunch"))
		require.Equal(t, fills, c.f.Count("cuMemsetD8Async"), "of the body")
		require.EqualValues(t, 1, c.f.Read(c.at, 64)[63])
		require.NoError(t, x.Close(c.me))
		require.Zero(t, c.f.Count("live.executables")+c.f.Count("live.graphs"))
	}
}

func TestG13_bodies_that_the_driver_cannot_run_are_refused_by_their_nodes(t *testing.T) {
	c := newConditions(t)
	inner := c.graph()
	_, err := inner.AddIf(c.me, nil, c.word, c.graph(c.fill, c.ofHost))
	require.NoError(t, err)
	around := c.graph()
	_, err = around.AddChild(c.me, nil, inner)
	require.NoError(t, err)
	allowed := c.graph(c.fill)
	_, err = allowed.AddIf(c.me, nil, c.word, c.graph(c.fill))
	require.NoError(t, err)
	x, err := allowed.Instantiate(c.me)
	require.NoError(t, err)
	graphs := c.f.Count("live.graphs")
	for _, g := range []*hal.Graph{inner, around} {
		_, err := g.Instantiate(c.me)
		require.ErrorIs(t, err, hal.ErrNotSupported)
		require.ErrorContains(t, err, "node 1 (copy) cannot be in a body on the cuda backend")
		require.ErrorContains(t, err, "put it before or behind the condition")
		require.ErrorIs(t, x.Update(c.me, g), hal.ErrNotSupported)
	}
	require.Equal(t, graphs, c.f.Count("live.graphs"))
	c.run(x)
}

func TestG13_a_driver_without_conditions_is_named_by_its_version(t *testing.T) {
	for version, want := range map[string][2]string{
		"12020": {"need a driver for CUDA 12.3 or newer, and this one is for 12.2", "12.3 or newer"},
		"12040": {"", "a node that chooses between bodies needs a driver for CUDA 12.8 or newer, and this one is for 12.4"},
		"12080": {"", ""},
	} {
		t.Run(version, func(t *testing.T) {
			t.Setenv("FAKECUDA_VERSION", version)
			c := newConditions(t)
			one, two, nested := c.graph(), c.graph(), c.graph()
			_, err := one.AddIf(c.me, nil, c.word, c.graph(c.fill))
			require.NoError(t, err)
			_, err = two.AddIfElse(c.me, nil, c.word, c.graph(c.fill), c.graph(c.stop))
			require.NoError(t, err)
			body := c.graph()
			_, err = body.AddSwitch(c.me, nil, c.word, []*hal.Graph{c.graph(c.fill)})
			require.NoError(t, err)
			_, err = nested.AddIf(c.me, nil, c.word, body)
			require.NoError(t, err)
			for i, g := range []*hal.Graph{one, two, nested} {
				x, err := g.Instantiate(c.me)
				if text := want[min(i, 1)]; text != "" {
					require.ErrorIs(t, err, hal.ErrNotSupported)
					require.ErrorContains(t, err, text)
					continue
				}
				require.NoError(t, err)
				c.run(x)
			}
		})
	}
}

// A node with a condition is where its bodies work, which are on one device.
func TestG13_a_node_with_a_condition_is_on_the_device_of_its_bodies(t *testing.T) {
	c := newConditions(t)
	second, err := c.rt.Device(1)
	require.NoError(t, err)
	block, err := second.Alloc(c.me, 64)
	require.NoError(t, err)
	body := c.graph()
	_, err = body.AddEmpty(c.me, nil)
	require.NoError(t, err)
	_, err = body.Add(c.me, second, nil, func(s *hal.Stream) error { return s.Fill(c.me, block.Start, 6, 1, 64) })
	require.NoError(t, err)
	g := c.graph()
	_, err = g.AddIf(c.me, nil, c.word, body)
	require.NoError(t, err)
	x, err := g.Instantiate(c.me)
	require.NoError(t, err)
	c.run(x) // on a stream of the other device
	require.EqualValues(t, 6, c.f.Read(block.Start, 64)[63])
	mixed := c.graph(c.fill)
	_, err = mixed.AddIf(c.me, nil, c.word, body)
	require.NoError(t, err)
	two := c.graph()
	_, err = two.AddIf(c.me, nil, c.word, mixed)
	require.NoError(t, err)
	_, err = two.Instantiate(c.me)
	require.ErrorIs(t, err, hal.ErrNotSupported)
	require.ErrorContains(t, err, "node 1 (fill) cannot be in a body on the cuda backend: it is on device 1, and the body begins on device 0")
	mixed = c.graph(func(s *hal.Stream) error { return s.Fill(c.me, c.at, 5, 1, 64) })
	other := c.graph()
	_, err = other.Add(c.me, second, nil, func(s *hal.Stream) error { return s.Fill(c.me, block.Start, 9, 1, 64) })
	require.NoError(t, err)
	_, err = mixed.AddIf(c.me, nil, c.word, other)
	require.NoError(t, err)
	x, err = mixed.Instantiate(c.me) // a node for each device
	require.NoError(t, err)
	c.run(x)
	require.Equal(t, []byte{5, 9}, []byte{c.f.Read(c.at, 64)[63], c.f.Read(block.Start, 64)[63]})
}

// The first failing call names itself, and nothing of the graph is left.
func TestG13_a_condition_that_the_driver_refuses_leaves_nothing(t *testing.T) {
	c := newConditions(t)
	g := c.graph(c.ofHost) // so that the node is the driver's graph by itself
	_, err := g.AddWhile(c.me, nil, c.word, c.graph(c.fill, c.stop))
	require.NoError(t, err)
	streams := uint64(0)
	for _, call := range []string{"cuGraphCreate", "cuGraphConditionalHandleCreate", "cuGraphAddKernelNode_v2", "cuGraphAddNode_v2",
		"cuGraphAddMemsetNode", "cuGraphInstantiateWithFlags"} {
		require.NoError(t, c.f.Control("fault %s 0 2", call))
		_, err := g.Instantiate(c.me)
		require.ErrorContains(t, err, call)
		require.NoError(t, c.f.Control("faults off"))
		require.Zero(t, c.f.Count("live.graphs")+c.f.Count("live.executables"), call)
		if streams == 0 {
			streams = c.f.Count("live.streams") // those that were closed are kept for later use
		}
		require.Equal(t, streams, c.f.Count("live.streams"), call)
	}
	x, err := g.Instantiate(c.me)
	require.NoError(t, err)
	c.run(x)
}

// A graph of copies between pinned and device memory is the driver's, too.
func TestG8_copies_of_pinned_memory_are_nodes_of_the_drivers_graph(t *testing.T) {
	c := newConditions(t)
	copied := func(s *hal.Stream) error {
		_, err := s.Copy(c.me, hal.CopySpec{Dst: c.at, Src: c.word.Addr, Width: 4})
		return err
	}
	x, err := c.graph(copied).Instantiate(c.me)
	require.NoError(t, err)
	require.EqualValues(t, 1, c.f.Count("live.executables"))
	c.run(x)
	require.Zero(t, c.f.Count("cuMemcpyHtoDAsync_v2"))
	require.NoError(t, x.Close(c.me))
}

var _ driver.BodyChecker = (*cuda.Driver)(nil)
