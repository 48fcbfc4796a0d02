package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// index enqueues an operation that may access all of a range, and hands in what it accesses.
func (k *kit) index(s *hal.Stream, most []hal.Range) uint32 {
	return k.do(hal.Operation{Kind: hal.OpNative, Name: "index", Stream: s, Reads: most, Writes: most, HandsIn: true})
}

func TestV45_what_is_declared_is_an_upper_bound(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	first, second := k.index(a, is(0, 100)), k.index(b, is(0, 100))
	k.none()
	require.Equal(t, []*hal.Stream{a, b}, k.c.Awaited())
	k.c.HandedIn(second, is(50, 60), nil)
	require.Equal(t, []*hal.Stream{a}, k.c.Awaited())
	k.none() // the first one may have accessed anything
	k.c.HandedIn(first, nil, is(0, 50))
	require.Empty(t, k.c.Awaited())
	k.none()
}

func TestV45_an_overlap_is_reported_whenever_the_accesses_come(t *testing.T) {
	for name, order := range map[string][]int{"first": {0, 1}, "last": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			a, b := k.free(), k.free()
			ids := []uint32{k.index(a, is(0, 100)), k.index(b, is(0, 100))}
			e := k.event(hal.Standard)
			k.record(a, e, 1)
			for _, i := range order {
				k.c.HandedIn(ids[i], nil, is(10*uint64(i), 10*uint64(i)+12))
			}
			found := k.c.Take()
			require.Len(t, found, 1)
			r := found[0]
			require.Equal(t, []uint32{ids[0], ids[1]}, []uint32{r.First.ID, r.Second.ID})
			require.Equal(t, is(10, 12)[0], r.Range)
			require.False(t, r.First.Seen || r.Second.Seen)
			require.Nil(t, r.Reason.Record, "the one behind the first was not there yet")
		})
	}
}

// What it accessed is compared also with work that a later one hides from the table by then.
func TestV45_work_behind_it_is_compared_in_the_order_of_the_calls(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	first := k.index(a, is(0, 100))
	write := k.write(b, is(0, 100))
	k.waitStream(b, a)
	k.write(b, is(0, 100)) // comes behind both
	k.sync(b)
	k.c.tidy()
	k.c.HandedIn(first, is(7, 8), nil)
	require.Equal(t, is(7, 8)[0], k.one(Race, first, write).Range)
}

func TestV45_one_that_hands_in_nothing_has_accessed_what_it_declared(t *testing.T) {
	k := newKit(t)
	k.c.Record()
	a, b := k.free(), k.free()
	first := k.index(a, is(0, 100))
	write := k.write(b, is(0, 100))
	k.c.Finish()
	k.one(Race, first, write)
	require.Empty(t, k.c.Awaited())
	k.none()
}

func TestV45_memory_that_is_freed_and_given_out_behind_it_keeps_its_order(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	waiting := k.index(a, is(200, 300))
	k.do(hal.Operation{Kind: hal.OpAllocate, Stream: a, Writes: is(0, 100)})
	k.write(a, is(0, 100))
	k.do(hal.Operation{Kind: hal.OpFree, Stream: a, Writes: is(0, 100)})
	k.do(hal.Operation{Kind: hal.OpAllocate, Stream: b, Writes: is(0, 100)}) // so it comes after the free
	k.write(b, is(0, 100))
	k.host(hal.OpFreeMemory, k.me, hal.Operation{Stream: b, Writes: is(0, 100)})
	k.host(hal.OpNewMemory, k.me, hal.Operation{Stream: b, Writes: is(0, 100)})
	k.write(a, is(0, 100))
	k.c.HandedIn(waiting, is(200, 201), nil)
	k.none()
}

func TestV45_the_source_of_a_copy_behind_it_is_known(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	waiting := k.index(a, is(200, 300))
	copied := k.do(hal.Operation{Kind: hal.OpCopy, Stream: b, Reads: is(0, 10), Writes: is(20, 30)})
	k.c.Source(copied, is(0, 10)[0])
	require.True(t, k.c.SourceInUse(copied))
	require.True(t, k.c.Unwaited(k.me))
	k.c.Refilled(copied, is(0, 10)[0])
	require.Len(t, k.c.Take(), 1)
	k.c.HandedIn(waiting, nil, nil)
	k.none()
}

func TestV45_too_many_accesses_behind_one_are_compared_without_it_first(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	first := k.index(a, is(0, 100))
	write := k.write(b, is(0, 100))
	for range maxQueued {
		k.read(b, is(200, 300))
	}
	require.Empty(t, k.c.Awaited())
	k.none()
	k.c.HandedIn(first, is(0, 1), nil)
	k.one(Race, first, write)
}

func TestV45_a_recorded_run_has_what_was_handed_in(t *testing.T) {
	k := newKit(t)
	k.c.Record()
	a, b := k.free(), k.free()
	many := make([]hal.Range, 300)
	for i := range many {
		many[i] = is(uint64(2*i), uint64(2*i+1))[0]
	}
	first, second := k.index(a, is(0, 1000)), k.index(b, is(0, 1000))
	k.c.HandedIn(first, nil, many)
	k.c.HandedIn(second, is(7, 9), is(900, 901))
	k.one(Race, first, second)
	again, threads := New(), replayThreads{}
	for _, call := range k.c.calls() {
		again.replay(call, threads)
	}
	found := again.Take()
	require.Len(t, found, 1)
	require.Equal(t, is(8, 9)[0], found[0].Range)
}

func TestV45_nodes_that_hand_in_are_compared_in_each_launch(t *testing.T) {
	k := newKit(t)
	g := k.graph()
	most := []hal.Access{{Start: 1 << 20, Bytes: 100, Mode: hal.Reads | hal.Writes}}
	for range 2 {
		_, err := g.Add(k.me, k.device(0), nil, func(s *hal.Stream) error {
			return s.NativeFunc(k.me, &hal.NativeFunc{Name: "index", Accesses: most, Function: 1, HandsIn: true})
		})
		require.NoError(t, err)
	}
	stop := k.rt.Listen(k.c.Handle)
	x, err := g.Instantiate(k.me)
	stop()
	require.NoError(t, err)
	require.NotNil(t, x)
	k.none()
	s := k.free()
	run := func(handsIn bool) uint32 {
		id := k.do(hal.Operation{Kind: hal.OpLaunchGraph, Stream: s, Nodes: g.NodeList(), HandsIn: handsIn})
		k.id += uint32(g.NodeList().All())
		return id
	}
	apart := run(true)
	k.c.HandedIn(apart+1, nil, is(0, 50))
	k.c.HandedIn(apart+2, nil, is(50, 100))
	k.none()
	together := run(true)
	k.c.HandedIn(together+2, nil, is(50, 100))
	k.c.HandedIn(together+1, nil, is(0, 51))
	require.Equal(t, NoPath, k.one(Race, together+1, together+2).Reason.Why)
	k.c = New()
	declared := run(false) // of a backend that does not tell
	k.one(Race, declared+1, declared+2)
}

func TestK5_mistakes_of_a_kernel_are_reported_once_for_each_place(t *testing.T) {
	k := newKit(t)
	s := k.free()
	launch := func() uint32 {
		return k.do(hal.Operation{Kind: hal.OpLaunch, Name: "scale", Stream: s, Writes: is(0, 100), HandsIn: true, Site: 7})
	}
	first, second := launch(), launch()
	found := func(place string) hal.KernelFinding {
		return hal.KernelFinding{Check: "racecheck", Place: place, Text: "at " + place}
	}
	k.c.KernelRan(second, hal.KernelReport{Findings: []hal.KernelFinding{found("a")}})
	k.c.KernelRan(first, hal.KernelReport{Findings: []hal.KernelFinding{found("a"), found("b")}})
	k.c.KernelRan(first+100, hal.KernelReport{Findings: []hal.KernelFinding{found("c")}}) // nobody knows it
	reports := k.c.Take()
	require.Len(t, reports, 2)
	for i, of := range []uint32{second, first} {
		require.Equal(t, Kernel, reports[i].Category)
		require.Equal(t, of, reports[i].First.ID)
		require.True(t, reports[i].Second.Unknown)
	}
	require.Equal(t, []string{"at a", "at b"}, []string{reports[0].Kernel.Text, reports[1].Kernel.Text})
	require.Equal(t, []int64{2, 1}, []int64{reports[0].Count.Load(), reports[1].Count.Load()})
}
