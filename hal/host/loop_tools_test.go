package host_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

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
