package haltest

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// loadModule loads a program on a device until the end of the case.
func loadModule(k *Kit, ordinal int, text string) *hal.Module {
	k.T.Helper()
	m, err := k.Device(ordinal).LoadModule(k.Me, append([]byte(text), 0))
	require.NoError(k, err)
	k.T.Cleanup(func() { _ = m.Close(nil) })
	return m
}

func loadFunction(k *Kit, m *hal.Module, name string) *hal.Function {
	k.T.Helper()
	f, err := m.Function(name)
	require.NoError(k, err)
	return f
}

// cells is the form of arguments: numbers of up to 8 bytes.
func cells(values ...uint64) []byte {
	out := make([]byte, driver.Cell*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint64(out[driver.Cell*i:], v)
	}
	return out
}

// line is a launch of one thread for each of n elements.
func line(n uint32, args ...uint64) hal.LaunchSpec {
	const block = 64
	return hal.LaunchSpec{Grid: [3]uint32{(n + block - 1) / block, 1, 1}, Block: [3]uint32{block, 1, 1},
		Args: cells(args...)}
}

func whole(b *hal.Block) []hal.Range { return []hal.Range{{Start: b.Start, Size: b.Size}} }

func words(values []byte) []uint32 {
	out := make([]uint32, len(values)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(values[4*i:])
	}
	return out
}

var kernelCases = []testCase{
	{"K1_kernels_run_in_stream_order", Kernels | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32")
		const n = 1000
		b := k.Alloc(0, 4*n)
		first, gotFirst := k.Pinned(4 * n)
		second, gotSecond := k.Pinned(4 * n)
		hold := Hold(k, s).Started()
		require.NoError(k, s.Launch(k.Me, f, line(n, b.Start, 0x01020304, n), nil, whole(b)))
		k.Copy(s, first.Start, b.Start, 4*n)
		require.NoError(k, s.Launch(k.Me, f, line(n, b.Start, 7, n-1), nil, whole(b)))
		k.Copy(s, second.Start, b.Start, 4*n)
		k.Pending(s, "the stream is held")
		hold.Release()
		k.Sync(s)
		for i, v := range words(gotFirst) {
			require.EqualValues(k, 0x01020304, v, "element %d", i)
		}
		got := words(gotSecond)
		require.EqualValues(k, 7, got[n-2])
		require.EqualValues(k, 0x01020304, got[n-1], "an element that the kernel was not to touch")
	}},
	{"K1_arguments_are_taken_at_the_call", Kernels | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32")
		b := k.Alloc(0, 256)
		hold := Hold(k, s).Started()
		spec := line(64, b.Start, 5, 64)
		require.NoError(k, s.Launch(k.Me, f, spec, nil, whole(b)))
		clear(spec.Args)
		hold.Release()
		k.Sync(s)
		require.EqualValues(k, 5, words(k.Read(b))[63])
	}},
	{"K1_a_kernel_reads_what_comes_before_it", Kernels | Memory, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxAdd), "add_f32")
		a, b, out := k.Alloc(0, 400), k.Alloc(0, 400), k.Alloc(0, 400)
		h, got := k.Pinned(400)
		e := k.Event(hal.EventOptions{})
		one, two := math.Float32bits(1.5), math.Float32bits(2.25)
		hold := Hold(k, other).Started()
		require.NoError(k, other.Fill(k.Me, a.Start, one, 4, 100))
		k.Record(other, e)
		k.Wait(s, e)
		require.NoError(k, s.Fill(k.Me, b.Start, two, 4, 100))
		require.NoError(k, s.Launch(k.Me, f, line(100, out.Start, a.Start, b.Start, 100),
			append(whole(a), whole(b)...), whole(out)))
		k.Copy(s, h.Start, out.Start, 400)
		hold.Release()
		k.Sync(s)
		for _, v := range words(got) {
			require.Equal(k, float32(3.75), math.Float32frombits(v))
		}
	}},
	{"K1_what_a_kernel_works_on_is_not_given_back", Kernels | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		m := loadModule(k, 0, ptxFill)
		f := loadFunction(k, m, "fill_u32")
		h, bytes := k.Pinned(256)
		clear(bytes)
		var seen []string
		stop := k.RT.Listen(func(o hal.Operation) {
			if !o.Host {
				seen = append(seen, o.Kind.String())
			}
		})
		hold := Hold(k, s).Started()
		require.NoError(k, s.Launch(k.Me, f, line(64, h.Start, 9, 64), nil, whole(h)))
		stop()
		require.Equal(k, []string{"call", "launch"}, seen)
		err := k.RT.FreeHost(k.Me, h.Start, false)
		require.ErrorIs(k, err, hal.ErrNotReady)
		require.ErrorContains(k, err, "a kernel")
		require.NoError(k, m.Close(k.Me))
		require.NoError(k, m.Close(k.Me))
		hold.Release()
		k.Sync(s)
		require.EqualValues(k, 9, words(bytes)[63], "a launch of a closed module still runs")
		require.ErrorIs(k, s.Launch(k.Me, f, line(64, h.Start, 9, 64), nil, nil), hal.ErrClosed)
		_, err = m.Function("fill_u32")
		require.ErrorIs(k, err, hal.ErrClosed)
	}},
	{"V45_a_kernel_hands_in_what_it_accesses", Kernels | Memory | Recovers, func(k *Kit) {
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxAdd), "add_f32")
		b, other := k.Alloc(0, 4*100), k.Alloc(0, 4*100)
		k.Fill(s, b, 0)
		k.Fill(s, other, 0)
		seen := k.HandedIn()
		require.NoError(k, s.Launch(k.Me, f, line(8, b.Start, b.Start+80, other.Start, 8), whole(other), whole(b)))
		k.Sync(s)
		k.Eventually(func() bool { return len(seen()) == 1 }, "the kernel has handed in nothing")
		reads := []hal.Range{{Start: b.Start + 80, Size: 32}, {Start: other.Start, Size: 32}}
		if other.Start < b.Start {
			slices.Reverse(reads)
		}
		require.Equal(k, hal.Accesses{Reads: reads, Writes: []hal.Range{{Start: b.Start, Size: 32}}}, seen()[0].accesses)
		require.Equal(k, reads, seen()[0].kernel.Inputs)
	}},
	{"K5_a_mistake_that_does_not_end_a_kernel_is_found", Kernels | Memory | Recovers, func(k *Kit) {
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxRace), "race_u32")
		b := k.Alloc(0, 4*64)
		seen := k.HandedIn()
		for _, wait := range []uint64{1, 0} {
			require.NoError(k, s.Launch(k.Me, f, line(64, b.Start, wait), nil, whole(b)))
		}
		k.Sync(s)
		k.Eventually(func() bool { return len(seen()) == 2 }, "the kernels have handed in nothing")
		require.Empty(k, seen()[0].kernel.Findings, "with a barrier")
		found := seen()[1].kernel.Findings
		require.NotEmpty(k, found)
		require.Equal(k, "racecheck", found[0].Check)
		require.Regexp(k, `^Race reported between \w+ access of thread \(\d+,0,0\) at __shared__ .* kernel race_u32 .* in block \(0,0,0\)`,
			found[0].Text)
		k.RT.SetInspector(nil)
		require.NoError(k, s.Launch(k.Me, f, line(64, b.Start, 0), nil, whole(b)))
		k.Sync(s)
		require.Len(k, seen(), 2)
	}},
	{"K2_mistakes_are_told_at_the_load", Kernels, func(k *Kit) {
		d := k.Device(0)
		for name, image := range map[string][]byte{"nothing": nil, "no program": []byte("this is none\x00")} {
			_, err := d.LoadModule(k.Me, image)
			require.ErrorIs(k, err, hal.ErrInvalidValue, name)
		}
		_, err := d.LoadModule(k.Me, []byte(ptxWrong+"\x00"))
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "line ", "the compiler says where")
		_, err = loadModule(k, 0, ptxFill).Function("no_such_kernel")
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "no_such_kernel")
		k.Sync(k.Stream(ordinary))
	}},
	{"K2_a_launch_that_cannot_run_fails_at_the_call", Kernels | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32")
		b := k.Alloc(0, 256)
		k.Fill(s, b, 1)
		most := uint32(f.Threads())
		require.Positive(k, most)
		changes := map[string]func(*hal.LaunchSpec){
			"no grid":          func(l *hal.LaunchSpec) { l.Grid[2] = 0 },
			"no block":         func(l *hal.LaunchSpec) { l.Block[1] = 0 },
			"too many threads": func(l *hal.LaunchSpec) { l.Block = [3]uint32{most, 2, 1} },
			"past all numbers": func(l *hal.LaunchSpec) { l.Block = [3]uint32{1 << 31, 1 << 31, 1 << 31} },
			"no cells":         func(l *hal.LaunchSpec) { l.Args = l.Args[1:] },
			"too much shared":  func(l *hal.LaunchSpec) { l.Shared = uint32(f.Shared()) + 1 },
			"half a cluster":   func(l *hal.LaunchSpec) { l.Grid, l.Cluster = [3]uint32{3, 1, 1}, [3]uint32{2, 1, 1} },
			"a flat cluster":   func(l *hal.LaunchSpec) { l.Cluster = [3]uint32{1, 0, 0} },
		}
		if _, known := f.Parameters(); known {
			changes["no argument"] = func(l *hal.LaunchSpec) { l.Args = nil }
			changes["an argument more"] = func(l *hal.LaunchSpec) { l.Args = append(l.Args, make([]byte, driver.Cell)...) }
		}
		for name, change := range changes {
			spec := line(64, b.Start, 2, 64)
			change(&spec)
			err := s.Launch(k.Me, f, spec, nil, whole(b))
			require.ErrorIs(k, err, hal.ErrInvalidValue, name)
		}
		spec := line(64, b.Start, 2, 64)
		spec.Block[0] = most + 1
		require.ErrorContains(k, s.Launch(k.Me, f, spec, nil, nil), "at most")
		k.Sync(s)
		require.EqualValues(k, 0x01010101, words(k.Read(b))[0], "a refused launch ran")
	}},
	{"K1_a_block_may_have_all_shared_memory_of_its_kernel", Kernels | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32")
		b := k.Alloc(0, 4)
		spec := line(1, b.Start, 0x05060708, 1)
		spec.Shared = uint32(f.Shared())
		require.GreaterOrEqual(k, spec.Shared, uint32(48<<10))
		require.NoError(k, s.Launch(k.Me, f, spec, nil, whole(b)))
		k.Sync(s)
		require.EqualValues(k, 0x05060708, words(k.Read(b))[0])
	}},
	{"K1_a_struct_is_passed_by_value", Kernels | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxBox), "box_u32")
		b := k.Alloc(0, 40)
		spec := line(10)
		spec.Args = make([]byte, (1+3+1)*driver.Cell)
		binary.LittleEndian.PutUint32(spec.Args, 100)
		for i := range 10 {
			binary.LittleEndian.PutUint32(spec.Args[driver.Cell+4*i:], uint32(i*i))
		}
		binary.LittleEndian.PutUint64(spec.Args[4*driver.Cell:], b.Start)
		if _, known := f.Parameters(); !known {
			return // nobody can tell
		}
		if !f.Simulated() {
			require.ErrorIs(k, s.Launch(k.Me, f, spec, nil, whole(b)), hal.ErrNotSupported)
			return
		}
		require.NoError(k, s.Launch(k.Me, f, spec, nil, whole(b)))
		k.Sync(s)
		for i, v := range words(k.Read(b)) {
			require.EqualValues(k, 100+i*i, v)
		}
		for _, n := range []int{0, 3, 4, 6} {
			wrong := spec
			wrong.Args = make([]byte, n*driver.Cell)
			err := s.Launch(k.Me, f, wrong, nil, nil)
			require.ErrorIs(k, err, hal.ErrInvalidValue)
			require.ErrorContains(k, err, "box_u32 takes arguments of [4 40 8] bytes")
		}
	}},
	{"K1_a_captured_launch_runs_when_its_graph_is_launched", Kernels | Graphs | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		m := loadModule(k, 0, ptxFill)
		f := loadFunction(k, m, "fill_u32")
		b := k.Alloc(0, 4)
		k.Fill(s, b, 0)
		k.Sync(s)
		k.Capture(s)
		spec := line(1, b.Start, 0x01020304, 1)
		require.NoError(k, s.Launch(k.Me, f, spec, nil, whole(b)))
		clear(spec.Args) // they were taken
		g := k.EndCapture(s)
		require.Equal(k, hal.OpKernel, g.Nodes()[0].Kind())
		x := k.Executable(g)
		k.Sync(s)
		require.EqualValues(k, 0, words(k.Read(b))[0], "a launch that is captured does not run")
		require.NoError(k, m.Close(k.Me)) // the graph keeps the program
		for range 2 {
			k.Fill(s, b, 0)
			k.Launch(x, s)
			k.Sync(s)
			require.EqualValues(k, 0x01020304, words(k.Read(b))[0])
		}
	}},
	{"K4_a_module_has_variables_of_its_own", Kernels | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		f := loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32")
		var variables []hal.Range
		var modules []*hal.Module
		for i := range 2 {
			m := loadModule(k, 0, ptxVariable)
			r, err := m.Global(k.Me, "numbers")
			require.NoError(k, err)
			require.EqualValues(k, 256, r.Size)
			again, err := m.Global(k.Me, "numbers")
			require.NoError(k, err)
			require.Equal(k, r, again)
			kind, start, size, ordinal := k.RT.Lookup(r.Start + 8)
			require.Equal(k, []any{hal.DeviceMemory, r.Start, r.Size, 0}, []any{kind, start, size, ordinal})
			require.NoError(k, s.Launch(k.Me, f, line(64, r.Start, uint64(7+i), 64), nil, []hal.Range{r}))
			variables, modules = append(variables, r), append(modules, m)
		}
		got, bytes := k.Pinned(512)
		for i, r := range variables {
			k.Copy(s, got.Start+uint64(256*i), r.Start, 256)
		}
		hold := Hold(k, s).Started() // work on a variable whose module is closed
		k.Copy(s, variables[0].Start, got.Start+256, 256)
		k.Copy(s, got.Start, variables[0].Start, 4)
		require.NoError(k, modules[0].Close(k.Me))
		kind, _, _, _ := k.RT.Lookup(variables[0].Start)
		require.Equal(k, hal.Pageable, kind, "a variable of a closed module")
		hold.Release()
		k.Sync(s)
		require.EqualValues(k, []uint32{8, 7}, words(bytes)[:2])
		require.EqualValues(k, []uint32{8, 8}, words(bytes)[64:66])
		_, err := modules[0].Global(k.Me, "numbers")
		require.ErrorIs(k, err, hal.ErrClosed)
		_, err = modules[1].Global(k.Me, "none")
		require.ErrorIs(k, err, hal.ErrInvalidValue)
		require.ErrorContains(k, err, "none")
		require.ErrorIs(k, k.RT.Free(k.Me, variables[1].Start), hal.ErrInvalidValue, "a module's memory")
	}},
	{"K2_what_is_known_of_a_function", Kernels, func(k *Kit) {
		a, err := loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32").Attributes()
		require.NoError(k, err)
		require.Zero(k, a.Shared)
		require.Zero(k, a.Local)
		require.Positive(k, a.PTXVersion)
		require.Positive(k, a.BinaryVersion)
	}},
	{"K2_a_module_belongs_to_its_device", Kernels | Pair, func(k *Kit) {
		f := loadFunction(k, loadModule(k, 0, ptxFill), "fill_u32")
		far := k.StreamOn(1, ordinary)
		require.ErrorIs(k, far.Launch(k.Me, f, line(1, 0, 0, 0), nil, nil), hal.ErrWrongDevice)
		k.Sync(far)
	}},
}
