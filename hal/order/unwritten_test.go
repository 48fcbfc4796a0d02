package order

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func TestK5_what_nobody_wrote_is_kept_to_the_byte(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var u unwritten
		var fresh [64]bool
		for range 60 {
			start := random.Uint64N(64)
			p := piece{start, start + random.Uint64N(65-start)}
			allocates := random.IntN(3) == 0
			for i := p.start; i < p.end; i++ {
				fresh[i] = allocates
			}
			if allocates {
				u.allocate(p)
			} else {
				u.write(p)
			}
			for i := range uint64(64) {
				part, found := u.within(piece{i, i + 1})
				require.Equal(t, fresh[i], found)
				require.True(t, !found || part == piece{i, i + 1})
			}
			for i := 1; i < len(u.pieces); i++ {
				require.LessOrEqual(t, u.pieces[i-1].end, u.pieces[i].start)
			}
		}
	}
}

// kernel enqueues a kernel that writes some bytes, and returns what ends it.
func (k *kit) kernel(s *hal.Stream, reads, writes, inputs []hal.Range) (id uint32, run func()) {
	id = k.do(hal.Operation{Kind: hal.OpLaunch, Name: "scale", Stream: s, Reads: reads, Writes: writes, HandsIn: true})
	return id, func() {
		k.c.KernelRan(id, hal.KernelReport{Inputs: inputs})
		k.c.HandedIn(id, reads, writes)
	}
}

func (k *kit) allocate(s *hal.Stream, r []hal.Range) uint32 {
	return k.host(hal.OpNewMemory, k.me, hal.Operation{Stream: s, Writes: r})
}

func TestK5_a_kernel_that_reads_what_nobody_wrote_is_reported_once(t *testing.T) {
	k := newKit(t)
	s := k.free()
	k.allocate(s, is(0, 100))
	k.write(s, is(0, 40))
	first, run := k.kernel(s, is(0, 100), nil, is(0, 100))
	_, again := k.kernel(s, is(0, 100), nil, is(0, 100))
	again()
	run()
	found := k.c.Take()
	require.Len(t, found, 1)
	require.Equal(t, []any{Kernel, first, "initcheck"}, []any{found[0].Category, found[0].First.ID, found[0].Kernel.Check})
	require.Equal(t, is(40, 100)[0], found[0].Range)
	require.Regexp(t, "^Uninitialized __global__ memory read of size 60 bytes at address 0x\\w+ at kernel scale$", found[0].Kernel.Text)
}

func TestK5_what_may_have_been_written_is_not_reported(t *testing.T) {
	for name, write := range map[string]func(k *kit, s *hal.Stream){
		"a fill":   func(k *kit, s *hal.Stream) { k.write(s, is(0, 100)) },
		"the host": func(k *kit, _ *hal.Stream) { k.hostWrite(is(0, 100)) },
		"a kernel": func(k *kit, s *hal.Stream) {
			_, run := k.kernel(s, nil, is(0, 100), nil)
			run()
		},
		"a function that does not say": func(k *kit, s *hal.Stream) { k.do(hal.Operation{Kind: hal.OpCall, Stream: s}) },
		"a function that says something else": func(k *kit, s *hal.Stream) {
			k.do(hal.Operation{Kind: hal.OpCall, Stream: s, Writes: is(200, 300)})
		},
		"nobody, but it is pinned memory": func(k *kit, _ *hal.Stream) {
			k.host(hal.OpNewMemory, k.me, hal.Operation{Writes: is(0, 100)})
		},
		"another library": func(k *kit, _ *hal.Stream) { k.c.Exposed(is(0, 100)[0]) },
		"nobody, but it was freed": func(k *kit, _ *hal.Stream) {
			k.host(hal.OpFreeMemory, k.me, hal.Operation{Writes: is(0, 100)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			s := k.free()
			k.allocate(s, is(0, 100))
			write(k, s)
			k.sync(s)
			_, run := k.kernel(s, is(0, 100), nil, is(0, 100))
			run()
			require.Empty(t, k.c.Take())
		})
	}
}

func TestK5_memory_that_is_given_out_again_is_unwritten(t *testing.T) {
	k := newKit(t)
	s := k.free()
	k.allocate(s, is(0, 100))
	k.write(s, is(0, 100))
	k.do(hal.Operation{Kind: hal.OpFree, Stream: s, Writes: is(0, 100)})
	k.do(hal.Operation{Kind: hal.OpAllocate, Stream: s, Writes: is(0, 100)})
	_, run := k.kernel(s, is(90, 94), is(90, 94), is(90, 94))
	run()
	require.Equal(t, is(90, 94)[0], k.one(Kernel, k.id, 0).Range)
}
