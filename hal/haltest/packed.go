package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// newPacked launches fill_u32 on the first n words of memory at an address, as callers do that pack arguments: the first one
// has a mode.
func newPacked(k *Kit, s *hal.Stream, f *hal.Function, mode string, addr uint64, value, n uint32) (placed bool, err error) {
	spec := line(n, addr, uint64(value), uint64(n))
	copy(spec.Args[8:], cells(uint64(4 * n))[:8])
	placed, err = s.LaunchPacked(k.Me, f, spec, mode+"--")
	clear(spec.Args) // they were taken
	return placed, err
}

var packedCases = []testCase{
	{"K1_what_a_packed_launch_works_on_is_not_given_back", Kernels | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		m := loadModule(k, 0, ptxFill)
		f := loadFunction(k, m, "fill_u32")
		h, bytes := k.Pinned(256)
		clear(bytes)
		hold := Hold(k, s).Started()
		placed, err := newPacked(k, s, f, "w", h.Start, 9, 64)
		require.NoError(k, err)
		require.True(k, placed)
		k.Pending(s, "the stream is held")
		err = k.RT.FreeHost(k.Me, h.Start, false)
		require.ErrorIs(k, err, hal.ErrNotReady)
		require.ErrorContains(k, err, "a kernel")
		require.NoError(k, m.Close(k.Me))
		hold.Release()
		k.Sync(s)
		require.EqualValues(k, 9, words(bytes)[63], "a launch of a closed module still runs")
		_, err = newPacked(k, s, f, "w", h.Start, 9, 64)
		require.ErrorIs(k, err, hal.ErrClosed)
		require.NoError(k, k.RT.FreeHost(k.Me, h.Start, false), "a launch that was refused uses nothing")
	}},
	{"D4_memory_that_a_packed_launch_cannot_use_is_left_to_its_caller", Kernels | Memory | Pair, func(k *Kit) {
		s, m := k.Stream(ordinary), loadModule(k, 0, ptxFill)
		f := loadFunction(k, m, "fill_u32")
		near, far := k.Alloc(0, 256), k.Alloc(1, 256)
		k.Fill(s, near, 0)
		for _, mode := range []string{"r", "w", "b"} {
			for _, addr := range []uint64{far.Start, near.Start + 4, 8} { // of another device, too long, and in no block
				placed, err := newPacked(k, s, f, mode, addr, 1, 64)
				require.NoError(k, err)
				require.False(k, placed, "%s %#x", mode, addr)
			}
		}
		placed, err := newPacked(k, k.StreamOn(1, ordinary), f, "w", near.Start, 1, 64)
		require.False(k, placed && err == nil, "memory and function of another device")
		placed, err = newPacked(k, s, f, "W", near.Start+4, 3, 63)
		require.NoError(k, err)
		require.True(k, placed)
		k.Sync(s)
		require.EqualValues(k, []uint32{0, 3, 3}, words(k.Read(near))[:3])
	}},
	{"M11_a_packed_launch_says_what_it_reads_and_writes", Kernels | Memory | Graphs, func(k *Kit) {
		s, f := k.Stream(ordinary), loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32")
		b := k.Alloc(0, 256)
		for _, c := range []struct {
			mode          string
			reads, writes []hal.Range
		}{{"r", whole(b), []hal.Range{}}, {"w", []hal.Range{}, whole(b)}, {"B", whole(b), whole(b)}} {
			var reads, writes []hal.Range
			stop := k.RT.Listen(func(o hal.Operation) {
				if o.Kind == hal.OpLaunch {
					reads, writes = o.Reads, o.Writes
				}
			})
			_, err := newPacked(k, s, f, c.mode, b.Start, 1, 64)
			require.NoError(k, err)
			k.Sync(s)
			stop()
			require.Equal(k, c.reads, reads)
			require.Equal(k, c.writes, writes)
			k.Capture(s)
			_, err = newPacked(k, s, f, c.mode, b.Start, 2, 64)
			require.NoError(k, err)
			g := k.EndCapture(s)
			reads, writes = g.Nodes()[0].Accesses()
			require.Equal(k, c.reads, reads)
			require.Equal(k, c.writes, writes)
		}
	}},
	{"K1_a_graph_keeps_the_program_of_its_launches_and_each_of_their_arguments", Kernels | Memory | Graphs, func(k *Kit) {
		s, m := k.Stream(ordinary), loadModule(k, 0, ptxFill)
		f := loadFunction(k, m, "fill_u32")
		const n = 20 // more than the blocks that a graph looks through one by one
		blocks := make([]*hal.Block, n)
		for i := range blocks {
			blocks[i] = k.Alloc(0, 64)
		}
		k.Capture(s)
		for i, b := range blocks {
			_, err := newPacked(k, s, f, "w", b.Start, uint32(i), 16)
			require.NoError(k, err)
		}
		require.NoError(k, m.Close(k.Me))
		_, err := newPacked(k, s, f, "w", blocks[0].Start, 1, 16)
		require.ErrorIs(k, err, hal.ErrClosed, "a closed module is refused also where the graph keeps it")
		g := k.EndCapture(s)
		require.Len(k, g.Nodes(), n)
		k.Launch(k.Executable(g), s)
		k.Sync(s)
		for i, b := range blocks {
			require.EqualValues(k, i, words(k.Read(b))[15])
		}
	}},
}
