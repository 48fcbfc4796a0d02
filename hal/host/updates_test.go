package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
)

// updating is a host driver whose executables call a function at the begin of their next launch or update,
// when the runtime has looked at the nodes that they have.
type updating struct {
	*host.Driver
	between *func()
}

type updatingExecutable struct {
	driver.Executable
	between *func()
}

func (d updating) Instantiate(nodes []driver.GraphNode) (driver.Executable, error) {
	x, err := d.Driver.Instantiate(nodes)
	return updatingExecutable{x, d.between}, err
}

func (x updatingExecutable) pause() {
	if between := *x.between; between != nil {
		*x.between = nil
		between()
	}
}

func (x updatingExecutable) Launch(s driver.Stream, l driver.GraphLaunch) error {
	x.pause()
	return x.Executable.Launch(s, l)
}

func (x updatingExecutable) Update(nodes []driver.GraphNode, commit func() bool) error {
	x.pause()
	return x.Executable.Update(nodes, commit)
}

// updates is a runtime with an executable of two fills, which a function may come between.
type updates struct {
	*bench
	s       *hal.Stream
	between func()
	x       *hal.GraphExec
	// blocks are what the nodes of the executable fill.
	blocks [2]*hal.Block
}

func newUpdates(t *testing.T) *updates {
	drv, err := host.Open(host.Options{Devices: 1, Memory: 8 << 20})
	require.NoError(t, err)
	u := &updates{}
	rt, err := hal.Open(updating{drv, &u.between}, 2)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	u.bench = &bench{t: t, rt: rt, me: hal.NewThread()}
	u.s = u.stream(0)
	u.blocks = [2]*hal.Block{u.block(), u.block()}
	u.x, err = u.graphOf(1, u.blocks).Instantiate(u.me)
	require.NoError(t, err)
	return u
}

func (u *updates) block() *hal.Block {
	b, err := u.rt.AllocHost(u.me, 16)
	require.NoError(u.t, err)
	return b
}

func (u *updates) graphOf(value uint32, blocks [2]*hal.Block) *hal.Graph {
	require.NoError(u.t, u.s.BeginCapture(u.me, hal.RelaxedMode))
	for _, b := range blocks {
		require.NoError(u.t, u.s.Fill(u.me, b.Start, value, 1, b.Size))
	}
	g, err := u.s.EndCapture(u.me)
	require.NoError(u.t, err)
	return g
}

// updateNode makes a node fill its block with another value.
func (u *updates) updateNode(index int, value uint32) {
	s, err := u.x.NodeBuilder(u.me, index)
	require.NoError(u.t, err)
	require.NoError(u.t, s.Fill(u.me, u.blocks[index].Start, value, 1, u.blocks[index].Size))
	require.NoError(u.t, u.x.BuiltUpdate(s, index))
}

// values returns what a launch writes.
func (u *updates) values() [2]byte {
	require.NoError(u.t, u.x.Launch(u.me, u.s))
	_, err := u.s.Synchronize(u.me, int64(graphLimit))
	require.NoError(u.t, err)
	return [2]byte{bytesAt(u.blocks[0].Start, 1)[0], bytesAt(u.blocks[1].Start, 1)[0]}
}

func TestG9_a_launch_beside_an_update_runs_what_it_has_checked(t *testing.T) {
	u := newUpdates(t)
	u.between = func() { require.NoError(t, u.x.Update(u.me, u.graphOf(2, u.blocks))) }
	require.Equal(t, [2]byte{2, 2}, u.values())
	gone := u.block()
	u.between = func() {
		require.NoError(t, u.x.Update(u.me, u.graphOf(3, [2]*hal.Block{u.blocks[0], gone})))
		require.NoError(t, gone.Free(u.me))
	}
	require.ErrorContains(t, u.x.Launch(u.me, u.s), "were freed")
	_, err := u.s.Synchronize(u.me, int64(graphLimit))
	require.NoError(t, err)
	require.EqualValues(t, 2, bytesAt(u.blocks[0].Start, 1)[0], "nothing runs")
}

func TestG9_the_later_one_of_two_updates_counts(t *testing.T) {
	u := newUpdates(t)
	u.between = func() { require.NoError(t, u.x.Update(u.me, u.graphOf(2, u.blocks))) }
	require.NoError(t, u.x.Update(u.me, u.graphOf(3, u.blocks)))
	require.Equal(t, [2]byte{3, 3}, u.values())
}

func TestG11_an_update_of_a_node_beside_another_one_keeps_that(t *testing.T) {
	u := newUpdates(t)
	u.between = func() { u.updateNode(1, 4) }
	u.updateNode(0, 5)
	require.Equal(t, [2]byte{5, 4}, u.values())
}

func TestG6_a_call_beside_the_close_of_an_executable_is_refused(t *testing.T) {
	u := newUpdates(t)
	u.between = func() { require.NoError(t, u.x.Close(u.me)) }
	require.ErrorIs(t, u.x.Launch(u.me, u.s), hal.ErrClosed)
	u = newUpdates(t)
	g := u.graphOf(2, u.blocks)
	u.between = func() { require.NoError(t, u.x.Close(u.me)) }
	require.ErrorIs(t, u.x.Update(u.me, g), hal.ErrClosed)
}
