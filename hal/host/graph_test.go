package host_test

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/host"
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

// loop returns an executable of two branches: an empty node behind a fill, and a node that runs two copies, one
// after the other, twice: it looks at its condition three times.
func (k *scheduled) loop() *hal.GraphExec {
	k.Helper()
	block, err := k.rt.AllocHost(k.me, 64)
	require.NoError(k, err)
	word, next, zero := block.Start, block.Start+16, block.Start+32
	clear(bytesAt(block.Start, 64))
	bytesAt(next, 4)[0] = 1
	copied := func(target, source uint64) func(*hal.Stream) error {
		return func(s *hal.Stream) error {
			_, err := s.Copy(k.me, hal.CopySpec{Dst: target, Src: source, Width: 4})
			return err
		}
	}
	body, err := k.rt.NewGraph(k.me)
	require.NoError(k, err)
	first, err := body.Add(k.me, k.dev, nil, copied(word, next))
	require.NoError(k, err)
	_, err = body.Add(k.me, k.dev, []*hal.Node{first}, copied(next, zero))
	require.NoError(k, err)
	g, err := k.rt.NewGraph(k.me)
	require.NoError(k, err)
	_, err = g.AddWhile(k.me, nil, hal.GraphCondition{Addr: word, Initial: 1, Resets: true}, body)
	require.NoError(k, err)
	_, err = g.Add(k.me, k.dev, nil, func(s *hal.Stream) error { return s.Fill(k.me, block.Start+48, 1, 1, 16) })
	require.NoError(k, err)
	x, err := g.Instantiate(k.me)
	require.NoError(k, err)
	return x
}

// loopSteps launches a loop under a schedule, and returns its steps that are no calls, and the log.
func loopSteps(t *testing.T, schedule string) ([]driver.Step, []hal.Operation, *scheduled) {
	k := under(t, schedule, driver.Caller{})
	x := k.loop()
	require.NoError(t, k.rt.FollowExecution(true))
	log := k.rt.Log(false)
	require.NoError(t, x.Launch(k.me, k.a))
	require.NoError(t, k.c.Nop(k.me))
	k.rest(k.c)
	k.rest(k.a)
	log.Stop()
	var steps []driver.Step
	for _, step := range k.rt.Run().Steps {
		if step.Call == 0 {
			steps = append(steps, step)
		}
	}
	var operations []hal.Operation
	for _, o := range log.Take().All() {
		operations = append(operations, o)
	}
	return steps, operations, k
}

func names(steps []driver.Step) (list []string) {
	for _, step := range steps {
		list = append(list, strconv.Itoa(int(step.Stream))+"."+strconv.Itoa(int(step.Op)))
	}
	return list
}

func TestX10_each_look_of_a_loop_at_its_condition_has_a_name(t *testing.T) {
	steps, _, _ := loopSteps(t, "fifo")
	seen := map[string]bool{}
	looks := map[uint32]int{}
	for i, name := range names(steps) {
		assert.False(t, seen[name], name)
		seen[name] = true
		if steps[i].Tag != 0 {
			looks[steps[i].Tag]++
		}
	}
	launch := steps[0].Tag
	assert.Equal(t, map[uint32]int{launch: 1, launch + 1: 3, launch + 2: 1, launch + 3: 2, launch + 4: 2, launch + 5: 1}, looks,
		"the launch, the loop, the other branch, the two nodes of the body, and the other operation")
}

func TestX10_what_comes_behind_a_look_of_a_loop_is_held_until_the_look(t *testing.T) {
	steps, _, _ := loopSteps(t, "holds 4.1>2.1,3.1>4.1")
	assert.Equal(t, []string{"1.1", "2.1", "4.1", "3.1"}, names(steps)[:4], "the launch, the look, the body, the other branch")
}

func TestX10_the_branches_of_a_body_have_their_numbers_before_the_launch_begins(t *testing.T) {
	numbers := func(schedule string) map[uint32]uint32 {
		steps, _, _ := loopSteps(t, schedule)
		found, least := map[uint32]uint32{}, ^uint32(0)
		for _, step := range steps {
			if step.Tag != 0 {
				least = min(least, step.Tag)
			}
		}
		for _, step := range steps {
			if step.Tag != 0 {
				found[step.Tag-least] = step.Stream
			}
		}
		return found
	}
	early := numbers("fifo")
	require.Len(t, early, 6)
	require.Equal(t, early, numbers("starve 1"))
}

func TestO7_a_log_has_the_nodes_of_bodies_and_no_times_of_them(t *testing.T) {
	_, operations, k := loopSteps(t, "fifo")
	kinds := map[string]int{}
	copies := map[uint32]bool{}
	for _, o := range operations {
		if o.Launch == 0 {
			continue
		}
		kinds[o.Kind.String()]++
		if o.Kind == hal.OpCopy {
			copies[o.ID] = true
			assert.Equal(t, 0, o.Branch, "that of the loop")
			assert.Len(t, o.Writes, 1)
		}
	}
	assert.Equal(t, map[string]int{"while": 1, "fill": 1, "copy": 2}, kinds)
	ran := 0
	for _, e := range k.rt.Executions() {
		assert.False(t, copies[e.Tag], "it runs any number of times")
		ran++
	}
	assert.Equal(t, 4, ran, "the launch, its two nodes and the other operation")
}

// openUnder returns a runtime of its own under a schedule, and its one device.
func openUnder(t *testing.T, schedule string) (*hal.Runtime, *hal.Device, *hal.Thread) {
	t.Helper()
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	d, err := rt.Device(0)
	require.NoError(t, err)
	require.NoError(t, rt.SetSchedule(nil, schedule, driver.Caller{}))
	return rt, d, hal.NewThread()
}

// A program that only asks leaves the device no quiet moment, in which it would move by itself.
func TestG7_aLaunchRunsForQueriesOfItsRecordUnderASchedule(t *testing.T) {
	for _, schedule := range []string{"fifo", "latest", "random 3", "starve 1"} {
		rt, d, me := openUnder(t, schedule)
		s, err := d.NewStream(me, hal.StreamOptions{})
		require.NoError(t, err)
		e, err := rt.NewEvent(me, d, hal.EventOptions{})
		require.NoError(t, err)
		require.NoError(t, s.BeginCapture(me, hal.GlobalMode))
		require.NoError(t, s.RecordExternal(me, e))
		g, err := s.EndCapture(me)
		require.NoError(t, err)
		x, err := g.Instantiate(me)
		require.NoError(t, err)
		require.NoError(t, x.Launch(me, s))
		done := false
		for asked := 0; !done && asked < 1000; asked++ {
			done, err = e.Query(me)
			require.NoError(t, err)
		}
		require.True(t, done, schedule)
		require.NoError(t, x.Close(me))
		require.NoError(t, g.Close(me))
		rt.Close()
	}
}

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
