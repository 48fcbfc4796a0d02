package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// overwritten says that the source of a copy that had run was changed when a wait began.
func (k *kit) overwritten(id uint32, r []hal.Range) { k.c.Overwritten(id, r[0]) }

func TestV42_a_source_that_changes_before_the_host_waits_is_reported(t *testing.T) {
	k := newKit(t)
	s := k.free()
	k.hostWrite(is(0, 100))
	id := k.copyFrom(s, is(0, 100))
	require.True(t, k.c.SourceInUse(id))
	k.overwritten(id, is(0, 100))
	got := k.one(Refill, id, 0)
	require.Equal(t, SourceChanged, got.Reason.Why)
	k.overwritten(id, is(0, 100))
	k.none()
}

func TestV42_a_source_is_the_hosts_again_once_it_waited(t *testing.T) {
	k := newKit(t)
	s := k.free()
	id := k.copyFrom(s, is(0, 100))
	k.sync(s)
	require.False(t, k.c.SourceInUse(id))
	k.overwritten(id, is(0, 100))
	k.none()
}

// A function that works on nothing else than it declares cannot have changed the memory.
func TestV42_a_function_that_declares_all_of_its_accesses_explains_nothing(t *testing.T) {
	for name, function := range map[string]hal.Operation{
		"none": {Kind: hal.OpCall, Complete: true},
		"read": {Kind: hal.OpCall, Complete: true, Reads: is(500, 510)},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			s := k.free()
			id := k.copyFrom(s, is(0, 100))
			function.Stream = s
			k.do(function)
			k.overwritten(id, is(0, 100))
			k.one(Refill, id, 0)
		})
	}
}

// launchFunction enqueues a graph with a function that declares nothing.
func launchFunction(k *kit, s, _ *hal.Stream) {
	g, err := k.rt.NewGraph(k.me)
	require.NoError(k.t, err)
	_, err = g.Add(k.me, k.device(0), nil, func(s *hal.Stream) error { return s.HostFunc(k.me, 1) })
	require.NoError(k.t, err)
	k.do(hal.Operation{Kind: hal.OpLaunchGraph, Stream: s, Nodes: g.NodeList()})
	k.id++ // of the node
}

// Each of these may be what changed the memory, and is reported by itself if it is wrong.
func TestV42_accesses_that_may_have_changed_the_source_later(t *testing.T) {
	memory := func(what hal.OperationKind) func(k *kit, s, other *hal.Stream) {
		return func(k *kit, _, _ *hal.Stream) { k.do(hal.Operation{Kind: what, Host: true, Writes: is(0, 100)}) }
	}
	for name, may := range map[string]func(k *kit, s, other *hal.Stream){
		"a write behind the copy":           func(k *kit, s, _ *hal.Stream) { k.write(s, is(50, 60)) },
		"a function behind the copy":        func(k *kit, s, _ *hal.Stream) { k.call(s) },
		"a function of another stream":      func(k *kit, _, other *hal.Stream) { k.call(other) },
		"another owner of the memory":       memory(hal.OpNewMemory),
		"somebody after it was freed":       memory(hal.OpFreeMemory),
		"a graph with functions of its own": launchFunction,
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			s, other := k.free(), k.free()
			id := k.copyFrom(s, is(0, 100))
			may(k, s, other)
			k.overwritten(id, is(0, 100))
			k.none()
		})
	}
}
