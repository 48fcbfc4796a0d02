package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func (k *kit) allocCached(s *hal.Stream, r []hal.Range) uint32 {
	return k.do(hal.Operation{Kind: hal.OpAllocate, Stream: s, Writes: r, Cached: true})
}

func (k *kit) freeCached(s *hal.Stream, r []hal.Range) uint32 {
	return k.do(hal.Operation{Kind: hal.OpFree, Stream: s, Writes: r, Cached: true})
}

// Freeing is no access; what the memory is given out for is.
func TestC8_a_cached_block_conflicts_only_once_it_is_given_out_again(t *testing.T) {
	k := newKit(t)
	own, side := k.free(), k.free()
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	k.waitStream(side, own)
	used := k.read(side, is(0, 50))
	k.freeCached(own, is(0, 100))
	k.none()
	k.allocCached(own, is(0, 100))
	k.none()
	k.write(own, is(50, 100))
	k.none()
	found := k.one(Race, used, k.write(own, is(0, 100)))
	require.Equal(t, GivenOut, found.Reason.Memory)
	require.Equal(t, uint64(50), found.Range.Size)
}

func TestC8_a_wait_before_the_memory_is_used_again_orders_it(t *testing.T) {
	k := newKit(t)
	own, side := k.free(), k.free()
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	k.waitStream(side, own)
	k.read(side, is(0, 100))
	k.freeCached(own, is(0, 100))
	k.allocCached(own, is(0, 100))
	k.waitStream(own, side)
	k.write(own, is(0, 100))
	k.none()
}

// Another stream gets the memory when the work of the one that freed it is done.
func TestC8_cached_memory_that_another_stream_gets_comes_after_its_free(t *testing.T) {
	k := newKit(t)
	own, other := k.free(), k.free()
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	k.freeCached(own, is(0, 100))
	k.allocCached(other, is(0, 50))
	k.write(other, is(0, 50))
	k.none()
	last := k.write(own, is(60, 70)) // of nobody: the other stream does not come after it
	k.one(Race, last, k.write(other, is(60, 70)))
}

func TestC8_a_recorded_stream_is_waited_for_before_cached_memory_is_used_again(t *testing.T) {
	k := newKit(t)
	own, recorded, forgotten := k.free(), k.free(), k.free()
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	for _, s := range []*hal.Stream{recorded, forgotten} {
		k.waitStream(s, own)
	}
	k.read(recorded, is(0, 100))
	used := k.read(forgotten, is(0, 100))
	k.host(hal.OpFreeMemory, k.me, hal.Operation{
		Stream: k.legacy(), Writes: is(0, 100), Cached: true, Users: []*hal.Stream{own, recorded},
	})
	k.allocCached(own, is(0, 100))
	k.none()
	k.one(Race, used, k.write(own, is(0, 100)))
}

// The allocation orders nothing: who uses the memory on another stream has to come after its former user.
func TestC8_memory_that_is_given_out_again_and_first_used_elsewhere_is_reported(t *testing.T) {
	for name, wait := range map[string]bool{"missing": false, "made": true} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			own, side := k.free(), k.free()
			k.allocCached(own, is(0, 100))
			k.write(own, is(0, 100))
			k.sync(own)
			used := k.read(own, is(0, 100))
			k.freeCached(own, is(0, 100))
			k.allocCached(own, is(0, 50))
			if wait {
				k.waitStream(side, own)
			}
			second := k.write(side, is(0, 50))
			if wait {
				k.none()
				return
			}
			require.Equal(t, GivenOut, k.one(Race, used, second).Reason.Memory)
		})
	}
}

// What the host has waited for before the memory is given out comes before all uses of it.
func TestC8_a_recorded_stream_is_waited_for_before_memory_is_used_elsewhere(t *testing.T) {
	k := newKit(t)
	own, recorded, side := k.free(), k.free(), k.free()
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	k.waitStream(recorded, own)
	k.read(recorded, is(0, 100))
	k.host(hal.OpFreeMemory, k.me, hal.Operation{
		Stream: k.legacy(), Writes: is(0, 100), Cached: true, Users: []*hal.Stream{own, recorded},
	})
	k.allocCached(own, is(0, 100))
	k.write(side, is(0, 100))
	k.none()
}

// The stream that gets the memory again has waited for some of that work itself, and not for all of it.
func TestC8_a_recorded_stream_is_waited_for_beyond_what_the_owner_has_waited_for(t *testing.T) {
	k := newKit(t)
	own, recorded, side := k.free(), k.free(), k.free()
	made, used := k.event(hal.Standard), k.event(hal.Standard)
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	k.record(own, made, 1)
	k.wait(recorded, made, 1)
	k.record(recorded, used, 1)
	k.read(recorded, is(0, 100))
	k.host(hal.OpFreeMemory, k.me, hal.Operation{
		Stream: k.legacy(), Writes: is(0, 100), Cached: true, Users: []*hal.Stream{own, recorded},
	})
	k.wait(own, used, 1)
	k.allocCached(own, is(0, 100))
	k.write(own, is(0, 100))
	k.none()
	k.write(side, is(0, 50))
	require.Len(t, k.c.Take(), 1, "with the write of the new owner")
}

// Whether the memory is given out again so soon depends on the moment, and what else the streams do must not.
func TestC8_memory_that_is_given_out_again_orders_only_itself(t *testing.T) {
	for name, reused := range map[string]bool{"the same memory": true, "other memory": false} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			own, side := k.free(), k.free()
			k.allocCached(own, is(0, 100))
			k.write(own, is(0, 100))
			k.waitStream(side, own)
			k.read(side, is(0, 100))
			result := k.write(side, is(500, 600))
			k.host(hal.OpFreeMemory, k.me, hal.Operation{
				Stream: k.legacy(), Writes: is(0, 100), Cached: true, Users: []*hal.Stream{own, side},
			})
			given := is(200, 300)
			if reused {
				given = is(0, 100)
			}
			k.allocCached(own, given)
			k.write(own, given)
			k.none()
			k.one(Race, result, k.read(own, is(500, 600)))
		})
	}
}
