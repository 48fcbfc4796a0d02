package haltest

import (
	"encoding/binary"
	"os"
	"slices"
	"syscall"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

const staged = 64 << 10

var copyCases = []testCase{
	{"M3_copies_run_in_stream_order", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, size := range []int64{1, 4096, 4097, 300_001} {
			h, in := k.Pinned(size)
			back, out := k.Pinned(size)
			a, b := k.Alloc(0, size), k.Alloc(0, size)
			copy(in, pattern(int(size), 9))
			hold := Hold(k, s).Started()
			k.Copy(s, a.Start, h.Start, uint64(size))
			k.Copy(s, b.Start, a.Start, uint64(size))
			k.Fill(s, a, 0xee)
			k.Copy(s, back.Start, b.Start, uint64(size))
			out[0] = 0x77
			hold.Release()
			k.Sync(s)
			require.Equal(k, pattern(int(size), 9), out)
			require.Equal(k, byte(0xee), k.Read(a)[size-1])
		}
	}},
	{"M3_large_copies_move_every_byte_and_no_other", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		const guard = 200
		// Below and above the size from which copies are cut and shared.
		for _, size := range []int64{1<<20 - 1, 1<<20 + 1, 1_300_003} {
			h, in := k.Pinned(size + guard)
			back, out := k.Pinned(size + guard)
			b := k.Alloc(0, size+guard)
			copy(in, pattern(int(size+guard), 3))
			k.Fill(s, b, 0xee)
			k.Copy(s, b.Start+77, h.Start+31, uint64(size))
			k.Copy(s, back.Start, b.Start, uint64(size+guard))
			k.Sync(s)
			require.True(k, slices.Equal(in[31:31+size], out[77:77+size]), "%d bytes differ", size)
			for _, rest := range [][]byte{out[:77], out[77+size:]} {
				require.Equal(k, slices.Repeat([]byte{0xee}, len(rest)), rest, "around %d bytes", size)
			}
		}
	}},
	{"M3_ranges_lie_in_one_block", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		a, b := k.Alloc(0, 512), k.Alloc(0, 512)
		k.Write(b, pattern(512, 1))
		h, _ := k.Pinned(64)
		for name, c := range map[string]hal.CopySpec{
			"source ends behind its block": {Dst: a.Start, Src: h.Start, Width: 65},
			"target ends behind its block": {Dst: h.Start + 1, Src: a.Start, Width: 64},
			"rows end behind their block":  {Dst: a.Start, DstPitch: 256, Src: h.Start, SrcPitch: 8, Width: 1, Height: 4},
			"size past all addresses":      {Dst: a.Start, Src: b.Start, Width: 1<<64 - 1},
			"huge":                         {Dst: a.Start, Src: h.Start, Width: 1 << 62},
			"rows past all addresses":      {Dst: a.Start, DstPitch: 1 << 33, Src: b.Start, SrcPitch: 1 << 33, Width: 4, Height: 1<<31 + 1},
			"span past all addresses":      {Dst: a.Start, DstPitch: 1 << 63, Src: b.Start, SrcPitch: 1 << 63, Width: 4, Height: 3},
			"pitch less than the width":    {Dst: a.Start, DstPitch: 7, Src: b.Start, SrcPitch: 8, Width: 8, Height: 2},
			"no memory":                    {Dst: a.Start, Src: 4096, Width: 4},
			"no target":                    {Dst: 4096, Src: a.Start, Width: 4},
			"null":                         {Dst: a.Start, Src: 0, Width: 4},
			"past the last address":        {Dst: a.Start, Src: 1<<64 - 16, Width: 64},
		} {
			_, err := s.Copy(k.Me, c)
			require.ErrorIs(k, err, hal.ErrInvalidValue, name)
		}
		if k.Has(Exact) { // the device's addresses outside of every block, where they are all its own
			freed := k.Alloc(0, 512)
			require.NoError(k, k.RT.Free(k.Me, freed.Start))
			_, err := s.Copy(k.Me, hal.CopySpec{Dst: a.Start, Src: freed.Start, Width: 4})
			require.ErrorIs(k, err, hal.ErrInvalidValue)
		}
		k.Sync(s)
		require.Equal(k, pattern(512, 1), k.Read(b), "a refused copy moved something")
	}},
	{"M3_program_memory_beside_a_registered_block", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, 4096)
		addr, _ := k.Pageable(4096)
		require.NoError(k, k.RT.RegisterHost(k.Me, addr+1024, 1024))
		for _, r := range [][2]uint64{{addr, 2048}, {addr, 1025}, {addr + 1024, 1025}, {addr + 2047, 2}} {
			_, err := s.Copy(k.Me, hal.CopySpec{Dst: b.Start, Src: r[0], Width: r[1]})
			require.ErrorIs(k, err, hal.ErrInvalidValue, "%d bytes at %d", r[1], r[0]-addr)
		}
		k.Copy(s, b.Start, addr, 1024)
		k.Copy(s, b.Start, addr+1024, 1024)
		k.Sync(s)
		require.NoError(k, k.RT.UnregisterHost(k.Me, addr+1024))
	}},
	{"M3_every_page_of_pageable_memory_is_checked", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		page := uint64(os.Getpagesize())
		for _, count := range []uint64{3, 9, 65} {
			b := k.Alloc(0, int64(count*page))
			for _, access := range []int{syscall.PROT_READ, syscall.PROT_NONE} {
				memory, err := syscall.Mmap(-1, 0, int(count*page), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
				require.NoError(k, err)
				addr := addressOf(memory)
				middle := count / 2 * page
				require.NoError(k, syscall.Mprotect(memory[middle:middle+page], access))
				into := func(n uint64) error {
					p, err := s.Copy(k.Me, hal.CopySpec{Dst: addr, Src: b.Start, Width: n})
					if p != nil {
						k.Reached(p)
					}
					return err
				}
				out := func(n uint64) error {
					p, err := s.Copy(k.Me, hal.CopySpec{Dst: b.Start, Src: addr, Width: n})
					if p != nil {
						k.Reached(p)
					}
					return err
				}
				require.ErrorIs(k, into(count*page), hal.ErrInvalidValue, "a page in the middle cannot be written")
				require.NoError(k, into(middle), "the pages before it can")
				if access == syscall.PROT_NONE {
					require.ErrorIs(k, out(count*page), hal.ErrInvalidValue, "a page in the middle cannot be read")
				} else {
					require.NoError(k, out(count*page))
				}
				require.NoError(k, out(middle))
				k.Sync(s)
				require.NoError(k, syscall.Munmap(memory))
			}
		}
	}},
	{"M3_source_and_target_do_not_overlap", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, 1024)
		for _, apart := range []uint64{0, 1, 99} {
			for _, c := range []hal.CopySpec{
				{Dst: b.Start, Src: b.Start + apart, Width: 100},
				{Dst: b.Start + apart, Src: b.Start, Width: 100},
			} {
				_, err := s.Copy(k.Me, c)
				require.ErrorIs(k, err, hal.ErrInvalidValue)
				require.ErrorContains(k, err, "overlap")
			}
		}
		k.Copy(s, b.Start, b.Start+100, 100)
		k.Copy(s, b.Start+200, b.Start+100, 100)
		k.Copy(s, b.Start, b.Start, 0)
		k.Sync(s)
	}},
	{"M4_a_pinned_source_is_read_when_the_stream_gets_there", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, size := range []int64{64, 200_000} {
			b := k.Alloc(0, size)
			h, bytes := k.Pinned(size)
			copy(bytes, pattern(int(size), 1))
			hold := Hold(k, s).Started()
			k.Copy(s, b.Start, h.Start, uint64(size))
			copy(bytes, pattern(int(size), 2))
			hold.Release()
			k.Sync(s)
			require.Equal(k, pattern(int(size), 2), k.Read(b))
		}
	}},
	{"M4_a_device_source_is_read_when_the_stream_gets_there", Memory, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		a, b := k.Alloc(0, small), k.Alloc(0, small)
		k.Write(a, pattern(small, 1))
		hold := Hold(k, s).Started()
		k.Copy(s, b.Start, a.Start, small)
		k.Fill(other, a, 0x55)
		k.Sync(other)
		hold.Release()
		k.Sync(s)
		require.Equal(k, byte(0x55), k.Read(b)[0])
	}},
	{"M5_a_small_pageable_source_is_taken_within_the_call", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, size := range []int{1, 5000, staged} {
			b := k.Alloc(0, int64(size))
			addr, bytes := k.Pageable(size)
			copy(bytes, pattern(size, 1))
			hold := Hold(k, s).Started()
			k.Copy(s, b.Start, addr, uint64(size))
			clear(bytes)
			hold.Release()
			k.Sync(s)
			require.Equal(k, pattern(size, 1), k.Read(b))
		}
	}},
	{"M5_sources_taken_within_the_call_do_not_mix", Memory | Grows, func(k *Kit) {
		s := k.Stream(ordinary)
		const size, copies = 5000, 8
		addr, bytes := k.Pageable(size)
		hold := Hold(k, s).Started()
		var blocks []*hal.Block
		for i := range copies {
			blocks = append(blocks, k.Alloc(0, size))
			copy(bytes, pattern(size, byte(i)))
			k.Copy(s, blocks[i].Start, addr, size)
		}
		clear(bytes)
		hold.Release()
		k.Sync(s)
		for i, b := range blocks {
			require.Equal(k, pattern(size, byte(i)), k.Read(b), "copy %d", i)
		}
	}},
	{"M5_larger_copies_and_copies_to_pageable_memory_wait", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		const size = staged + 1
		b := k.Alloc(0, size)
		from, in := k.Pageable(size)
		to, out := k.Pageable(size)
		copy(in, pattern(size, 4))
		hold := Hold(k, s).Started()
		p, err := s.Copy(k.Me, hal.CopySpec{Dst: b.Start, Src: from, Width: size})
		require.NoError(k, err)
		q, err := s.Copy(k.Me, hal.CopySpec{Dst: to, Src: b.Start, Width: size})
		require.NoError(k, err)
		one, err := s.Copy(k.Me, hal.CopySpec{Dst: to, Src: b.Start, Width: 1})
		require.NoError(k, err)
		require.NotNil(k, one, "one byte to pageable memory")
		require.NotNil(k, p)
		require.NotNil(k, q)
		require.False(k, p.Wait(0), "the stream is held")
		hold.Release()
		k.Reached(p)
		k.Reached(q)
		k.Reached(one)
		require.Equal(k, pattern(size, 4), out)
		between, err := s.Copy(k.Me, hal.CopySpec{Dst: to, Src: from, Width: 16})
		require.NoError(k, err)
		k.Reached(between)
	}},
	{"M5_an_aborted_copy_says_so", Memory | Aborts, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, 16)
		to, _ := k.Pageable(16)
		hold := Hold(k, s).Started()
		p, err := s.Copy(k.Me, hal.CopySpec{Dst: to, Src: b.Start, Width: 16})
		require.NoError(k, err)
		k.Copy(s, b.Start, to, 16)
		n, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 2, n)
		hold.Release()
		k.Reached(p)
		require.ErrorIs(k, s.Failure(), hal.ErrAborted, "who waits for the copy must hear of it")
		k.Fill(s, b, 1)
		k.Sync(s)
	}},
	{"M6_a_copy_on_the_default_stream_is_in_its_order", Memory | FourQueues, func(k *Kit) {
		// The blocking copy is this one followed by a wait.
		legacy := k.Device(0).DefaultStream()
		ordered, free := k.Stream(hal.StreamOptions{}), k.Stream(ordinary)
		b := k.Alloc(0, small)
		to, bytes := k.Pageable(small)
		holdFree := Hold(k, free).Started()
		hold := Hold(k, ordered).Started()
		k.Fill(ordered, b, 0x21)
		p, err := legacy.Copy(k.Me, hal.CopySpec{Dst: to, Src: b.Start, Width: small})
		require.NoError(k, err)
		require.False(k, p.Wait(0), "an ordered stream has earlier work")
		hold.Release()
		k.Reached(p)
		require.Equal(k, byte(0x21), bytes[small-1])
		k.Pending(free, "a non-blocking stream takes no part")
		holdFree.Release()
	}},
	{"M8_fills_set_elements_of_1_2_and_4_bytes", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, size := range []uint8{1, 2, 4} {
			for _, count := range []uint64{1, 7, 5000} {
				n := count * uint64(size)
				b := k.Alloc(0, int64(n)+32)
				k.Fill(s, b, 0xcc)
				require.NoError(k, s.Fill(k.Me, b.Start+16, 0x89abcdef, size, count))
				k.Sync(s)
				got := k.Read(b)
				element := binary.LittleEndian.AppendUint32(nil, 0x89abcdef)[:size]
				for i := range n {
					require.Equal(k, element[i%uint64(size)], got[16+i])
				}
				for i := range 16 {
					require.Equal(k, []byte{0xcc, 0xcc}, []byte{got[i], got[16+int(n)+i]}, "around the range")
				}
			}
		}
		h, bytes := k.Pinned(64)
		k.Fill(s, h, 3)
		require.NoError(k, s.Fill(k.Me, h.Start, 4, 4, 0))
		k.Sync(s)
		require.Equal(k, byte(3), bytes[63])
	}},
	{"M8_what_cannot_be_filled", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, 1024)
		k.Write(b, pattern(1024, 8))
		addr, bytes := k.Pageable(64)
		clear(bytes)
		for name, f := range map[string]struct {
			dst   uint64
			size  uint8
			count uint64
		}{
			"size 3":             {b.Start, 3, 4},
			"size 0":             {b.Start, 0, 4},
			"size 8":             {b.Start, 8, 4},
			"not aligned to 2":   {b.Start + 1, 2, 4},
			"not aligned to 4":   {b.Start + 2, 4, 4},
			"behind the block":   {b.Start, 4, 257},
			"more than there is": {b.Start, 4, 1 << 62},
			"past all addresses": {b.Start, 1, 1<<64 - 1},
			"pageable":           {addr, 1, 4},
			"no memory":          {4096, 1, 4},
		} {
			require.ErrorIs(k, s.Fill(k.Me, f.dst, 1, f.size, f.count), hal.ErrInvalidValue, name)
		}
		k.Sync(s)
		require.Equal(k, pattern(1024, 8), k.Read(b))
		require.Equal(k, make([]byte, 64), bytes)
	}},
	{"M9_rows_leave_the_gaps_alone", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, shape := range [][4]uint64{{8, 8, 8, 5}, {5, 16, 9, 7}, {1, 3, 2, 200}, {300, 512, 300, 64}} {
			width, dp, sp, height := shape[0], shape[1], shape[2], shape[3]
			a, b := k.Alloc(0, int64(sp*height)), k.Alloc(0, int64(dp*height))
			in := pattern(int(sp*height), 6)
			k.Write(a, in)
			want := pattern(int(dp*height), 200)
			k.Write(b, want)
			_, err := s.Copy(k.Me, hal.CopySpec{Dst: b.Start, DstPitch: dp, Src: a.Start, SrcPitch: sp, Width: width, Height: height})
			require.NoError(k, err)
			k.Sync(s)
			for row := range height {
				copy(want[row*dp:row*dp+width], in[row*sp:])
			}
			require.Equal(k, want, k.Read(b), "%v", shape)
		}
	}},
	{"M9_rows_of_pageable_memory", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, height := range []uint64{10, 1000} { // taken within the call, and not
			addr, bytes := k.Pageable(int(128 * height))
			copy(bytes, pattern(len(bytes), 1))
			b := k.Alloc(0, int64(16*height))
			p, err := s.Copy(k.Me, hal.CopySpec{Dst: b.Start, DstPitch: 16, Src: addr, SrcPitch: 128, Width: 16, Height: height})
			require.NoError(k, err)
			if height == 1000 {
				k.Reached(p)
			} else {
				require.Nil(k, p)
				k.Sync(s)
			}
			got := k.Read(b)
			for row := range height {
				require.Equal(k, bytes[128*row:128*row+16], got[16*row:16*row+16])
			}
		}
	}},
	{"M9_rows_may_lie_between_rows", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		b := k.Alloc(0, 32*8)
		want := pattern(32*8, 2)
		k.Write(b, want)
		spec := hal.CopySpec{Dst: b.Start + 16, DstPitch: 32, Src: b.Start, SrcPitch: 32, Width: 16, Height: 8}
		_, err := s.Copy(k.Me, spec)
		require.NoError(k, err, "the right half of each row from the left half")
		k.Sync(s)
		for row := range 8 {
			copy(want[32*row+16:32*row+32], want[32*row:32*row+16])
		}
		require.Equal(k, want, k.Read(b))
		spec.Dst--
		_, err = s.Copy(k.Me, spec)
		require.ErrorIs(k, err, hal.ErrInvalidValue, "one byte of each row is shared")
		spec.Dst, spec.Src = b.Start, b.Start+17
		_, err = s.Copy(k.Me, spec)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
	}},
	{"M13_copies_cross_devices", Memory | Pair, func(k *Kit) {
		near, far := k.Stream(ordinary), k.StreamOn(1, ordinary)
		for i, s := range []*hal.Stream{near, far} {
			a, b, c := k.Alloc(0, 5000), k.Alloc(1, 5000), k.Alloc(0, 5000)
			k.Write(a, pattern(5000, byte(i)))
			k.Copy(s, b.Start, a.Start, 5000)
			k.Copy(s, c.Start, b.Start, 5000)
			k.Sync(s)
			require.Equal(k, pattern(5000, byte(i)), k.Read(b))
			require.Equal(k, pattern(5000, byte(i)), k.Read(c))
		}
	}},
}
