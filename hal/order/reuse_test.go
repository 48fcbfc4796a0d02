package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// The free is no access, but work of other streams has to come after the allocation.
func TestM22_reusable_memory_is_allocated_in_order_and_freed_in_none(t *testing.T) {
	k := newKit(t)
	own, side := k.free(), k.free()
	reusable := func() uint32 {
		return k.do(hal.Operation{Kind: hal.OpAllocate, Stream: own, Writes: is(0, 100), Cached: true, InOrder: true})
	}
	allocated := reusable()
	used := k.read(side, is(0, 50))
	require.Equal(t, Unallocated, k.one(Race, allocated, used).Reason.Memory)
	k.freeCached(own, is(0, 100))
	reusable()
	k.none()
	require.Equal(t, GivenOut, k.one(Race, used, k.write(own, is(0, 100))).Reason.Memory)
}

// A free by the program is an access: what it conflicts with is reported with it, and
// not again with what the memory is given out for next.
func TestM22_a_free_of_cached_memory_by_the_program_is_reported_once(t *testing.T) {
	k := newKit(t)
	own, side := k.free(), k.free()
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	k.waitStream(side, own)
	used := k.read(side, is(0, 50))
	freed := k.do(hal.Operation{Kind: hal.OpFree, Stream: own, Writes: is(0, 100)})
	require.Equal(t, Freed, k.one(Race, used, freed).Reason.Memory)
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	k.none()
}
