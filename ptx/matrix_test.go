package ptx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// matrixElement is a type of elements: how one is written into bits, and its value.
type matrixElement struct {
	bits int
	make func(r *rand.Rand) (uint64, float64)
}

func small(r *rand.Rand) float64 { return float64(r.IntN(17)-8) / 4 }

var matrixElements = map[string]matrixElement{
	"f16":  {16, func(r *rand.Rand) (uint64, float64) { v := small(r); return uint64(toHalf(v)), v }},
	"bf16": {16, func(r *rand.Rand) (uint64, float64) { v := small(r); return f32(v) >> 16, v }},
	"tf32": {32, func(r *rand.Rand) (uint64, float64) { v := small(r); return f32(v) | 0xfff, v }}, // the low bits take no part
	"f32":  {32, func(r *rand.Rand) (uint64, float64) { v := small(r); return f32(v), v }},
	"f64":  {64, func(r *rand.Rand) (uint64, float64) { v := small(r); return f64(v), v }},
	"s8":   {8, func(r *rand.Rand) (uint64, float64) { v := r.IntN(256) - 128; return uint64(uint8(v)), float64(v) }},
	"u8":   {8, func(r *rand.Rand) (uint64, float64) { v := r.IntN(256); return uint64(v), float64(v) }},
	"s4":   {4, func(r *rand.Rand) (uint64, float64) { v := r.IntN(16) - 8; return uint64(v & 15), float64(v) }},
	"u4":   {4, func(r *rand.Rand) (uint64, float64) { v := r.IntN(16); return uint64(v), float64(v) }},
	"b1":   {1, func(r *rand.Rand) (uint64, float64) { v := r.IntN(2); return uint64(v), float64(v) }},
	"s32": {32, func(r *rand.Rand) (uint64, float64) {
		v := int32(r.IntN(2000) - 1000)
		return uint64(uint32(v)), float64(v)
	}},
}

// TestMatrixProducts multiplies matrices of all shapes and types. Where an element lies is written here as in the
// manual's pictures: for A the row is a quarter of the lane, columns go by register; B likewise by columns.
func TestMatrixProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ shape, types, mods string }{
		{"m16n8k8", "f32 f16 f16 f32", ""}, {"m16n8k16", "f32 f16 f16 f32", ""}, {"m16n8k16", "f16 f16 f16 f16", ""}, {"m16n8k8", "f16 f16 f16 f16", ""},
		{"m16n8k16", "f16 f16 f16 f32", ""}, {"m16n8k16", "f32 f16 f16 f16", ""},
		{"m16n8k8", "f32 bf16 bf16 f32", ""}, {"m16n8k16", "f32 bf16 bf16 f32", ""}, {"m16n8k4", "f32 tf32 tf32 f32", ""}, {"m16n8k8", "f32 tf32 tf32 f32", ""},
		{"m8n8k4", "f64 f64 f64 f64", ""}, {"m8n8k16", "s32 s8 s8 s32", ""}, {"m16n8k16", "s32 u8 s8 s32", ""}, {"m16n8k32", "s32 s8 u8 s32", ""},
		{"m16n8k32", "s32 u8 u8 s32", ".satfinite"}, {"m8n8k32", "s32 s4 u4 s32", ""}, {"m16n8k32", "s32 s4 s4 s32", ""}, {"m16n8k64", "s32 u4 u4 s32", ""},
		{"m8n8k128", "s32 b1 b1 s32", ".xor.popc"}, {"m16n8k128", "s32 b1 b1 s32", ".and.popc"}, {"m16n8k256", "s32 b1 b1 s32", ".xor.popc"},
	} {
		t.Run(c.shape+" "+c.types+c.mods, func(t *testing.T) {
			types := strings.Fields(c.types)
			m, n, k, ok := shape(c.shape)
			require.True(t, ok)
			word := max(32, matrixElements[types[1]].bits)
			each := func(typ string) int { return word / matrixElements[typ].bits }
			counts := []int{m * n / 32 / each(types[0]), m * k / 32 / each(types[1]), k * n / 32 / each(types[2]), m * n / 32 / each(types[3])}
			a, b, sum := make([]float64, m*k), make([]float64, k*n), make([]float64, m*n)
			regs := [4][][]uint64{}
			place := func(list int, typ string, at func(reg, lane, e int) *float64) {
				e := each(typ)
				for reg := range counts[list] {
					row := make([]uint64, 32)
					for lane := range row {
						for i := range e {
							bits, v := matrixElements[typ].make(r)
							row[lane] |= bits << (i * matrixElements[typ].bits)
							*at(reg, lane, i) = v
						}
					}
					regs[list] = append(regs[list], row)
				}
			}
			ea, eb, ec := each(types[1]), each(types[2]), each(types[3])
			place(1, types[1], func(reg, lane, e int) *float64 {
				row, block := lane/4, reg
				if m == 16 {
					row, block = row+8*(reg%2), reg/2
				}
				return &a[row*k+block*4*ea+lane%4*ea+e]
			})
			place(2, types[2], func(reg, lane, e int) *float64 { return &b[(reg*4*eb+lane%4*eb+e)*n+lane/4] })
			sumAt := func(e int) func(reg, lane, i int) int {
				return func(reg, lane, i int) int {
					if e == 2 { // a pair in each register
						return (lane/4+8*reg)*n + lane%4*2 + i
					}
					return (lane/4+8*(reg/2))*n + lane%4*2 + reg%2
				}
			}
			place(3, types[3], func(reg, lane, e int) *float64 { return &sum[sumAt(ec)(reg, lane, e)] })
			for y := range m {
				for x := range n {
					for q := range k {
						va, vb := a[y*k+q], b[q*n+x]
						switch {
						case strings.Contains(c.mods, "xor"):
							va, vb = math.Abs(va-vb), 1
						}
						sum[y*n+x] += va * vb
					}
				}
			}
			// a kernel that loads all registers of a lane, multiplies, and stores D
			var names [4]string
			declare, load := "", ""
			total := counts[1] + counts[2] + counts[3]
			offset := 0
			for list := range 4 {
				var vector []string
				for reg := range counts[list] {
					name := fmt.Sprintf("%%%c%d", "dxyz"[list], reg)
					declare += fmt.Sprintf(".reg .b%d %s;\n", word, name)
					vector = append(vector, name)
					if list > 0 {
						load += fmt.Sprintf("ld.b%d %s, [%%rd1+%d];\n", word, name, 8*offset)
						offset++
					}
				}
				names[list] = "{" + strings.Join(vector, ", ") + "}"
			}
			store := ""
			for reg := range counts[0] {
				store += fmt.Sprintf("st.b%d [%%rd2+%d], %%d%d;\n", word, 8*reg, reg)
			}
			body := fmt.Sprintf("%smad.wide.u32 %%rd1, %%tid, %d, %%out;\nmad.wide.u32 %%rd2, %%tid, %d, %%out; add.u64 %%rd2, %%rd2, %d;\n%smma.sync.aligned.%s.row.col%s.%s%s %s, %s, %s, %s;\n%s",
				declare, 8*total, 8*counts[0], 8*32*total, load, c.shape, strings.TrimSuffix(c.mods, c.mods[min(len(c.mods), strings.Index(c.mods+".xor", ".xor")):]),
				strings.Join(types, "."), c.mods[strings.Index(c.mods+".", "."):], names[0], names[1], names[2], names[3], store)
			if c.mods == ".satfinite" || c.mods == "" {
				body = strings.Replace(body, "."+strings.Join(types, ".")+c.mods, c.mods+"."+strings.Join(types, "."), 1)
				body = strings.Replace(body, ".satfinite.satfinite", ".satfinite", 1)
			}
			text := kernelText(body)
			memory := make(buffer[uint64], 32*(total+counts[0]))
			for lane := range 32 {
				at := lane * total
				for list := 1; list < 4; list++ {
					for _, row := range regs[list] {
						memory[at] = row[lane]
						at++
					}
				}
			}
			mustRun(t, text, "k", launchOf(1, 32, memory))
			ed := each(types[0])
			for lane := range 32 {
				for reg := range counts[0] {
					got := memory[32*total+lane*counts[0]+reg]
					for e := range ed {
						want := sum[sumAt(ed)(reg, lane, e)]
						var v float64
						switch types[0] {
						case "f16":
							v, want = fromHalf(uint16(got>>(16*e))), fromHalf(toHalf(want))
						case "f32":
							v = float64(math.Float32frombits(uint32(got)))
						case "f64":
							v = math.Float64frombits(got)
						default:
							v = float64(int32(got))
						}
						require.Equal(t, want, v, "lane %d register %d", lane, reg)
					}
				}
			}
		})
	}
}

// TestWmma loads matrices, multiplies and stores, by rows and by columns.
func TestWmma(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		shape, a, c, layoutA, layoutB string
		counts                        [3]int
	}{
		{"m16n16k16", "f16", "f32", "row", "col", [3]int{8, 8, 8}}, {"m16n16k16", "f16", "f16", "col", "row", [3]int{8, 8, 4}},
		{"m8n32k16", "f16", "f32", "row", "row", [3]int{8, 8, 8}}, {"m32n8k16", "f16", "f32", "col", "col", [3]int{8, 8, 8}},
		{"m16n16k16", "bf16", "f32", "row", "col", [3]int{4, 4, 8}}, {"m8n32k16", "bf16", "f32", "row", "col", [3]int{2, 8, 8}},
		{"m32n8k16", "bf16", "f32", "row", "col", [3]int{8, 2, 8}}, {"m16n16k8", "tf32", "f32", "row", "row", [3]int{4, 4, 8}},
		{"m8n8k4", "f64", "f64", "row", "col", [3]int{1, 1, 2}}, {"m16n16k16", "s8", "s32", "row", "col", [3]int{2, 2, 8}},
		{"m8n32k16", "u8", "s32", "col", "row", [3]int{1, 4, 8}}, {"m32n8k16", "s8", "s32", "row", "row", [3]int{4, 1, 8}},
		{"m8n8k32", "s4", "s32", "row", "col", [3]int{1, 1, 2}}, {"m8n8k128", "b1", "s32", "row", "col", [3]int{1, 1, 2}},
	} {
		t.Run(fmt.Sprintf("%s %s %s %s %s", c.shape, c.a, c.c, c.layoutA, c.layoutB), func(t *testing.T) {
			m, n, k, _ := shape(c.shape)
			// each matrix in memory with some room behind each row
			write := func(rows, cols int, typ, layout string) (buffer[uint64], []float64, int) {
				e := matrixElements[typ]
				along, across := cols, rows
				if layout == "col" {
					along, across = rows, cols
				}
				stride := along + 128/e.bits
				memory := make(buffer[uint64], 1+stride*across*e.bits/64)
				values := make([]float64, rows*cols)
				for y := range rows {
					for x := range cols {
						bits, v := e.make(r)
						at := y*stride + x
						if layout == "col" {
							at = x*stride + y
						}
						memory[at*e.bits/64] |= bits << (at * e.bits % 64)
						values[y*cols+x] = v
					}
				}
				return memory, values, stride
			}
			a, va, strideA := write(m, k, c.a, c.layoutA)
			b, vb, strideB := write(k, n, c.a, c.layoutB)
			sum, vc, strideC := write(m, n, c.c, "row")
			for y := range m {
				for x := range n {
					for q := range k {
						p := va[y*k+q] * vb[q*n+x]
						if c.a == "b1" {
							p = math.Abs(va[y*k+q] - vb[q*n+x])
						}
						vc[y*n+x] += p
					}
				}
			}
			word := max(32, matrixElements[c.a].bits)
			vector := func(name string, count int) (string, string) {
				var list []string
				for i := range count {
					list = append(list, fmt.Sprintf("%%%s%d", name, i))
				}
				return fmt.Sprintf(".reg .b%d %%%s<%d>;", word, name, count), "{" + strings.Join(list, ", ") + "}"
			}
			da, na := vector("x", c.counts[0])
			db, nb := vector("y", c.counts[1])
			dc, nc := vector("z", c.counts[2])
			op := fmt.Sprintf("wmma.mma.sync.aligned.%s.%s.%s.%s.%s.%s.%s", c.layoutA, c.layoutB, c.shape, c.c, c.a, c.a, c.c)
			switch c.a {
			case "f16":
				op = fmt.Sprintf("wmma.mma.sync.aligned.%s.%s.%s.%s.%s", c.layoutA, c.layoutB, c.shape, c.c, c.c)
			case "b1":
				op = strings.Replace(op, "mma.sync", "mma.xor.popc.sync", 1)
			}
			text := head + fmt.Sprintf(`.entry k(.param .u64 a, .param .u64 b, .param .u64 c) {
			.reg .b64 %%rd<4>; .reg .b32 %%s<3>; %s %s %s
			ld.param.u64 %%rd1, [a]; ld.param.u64 %%rd2, [b]; ld.param.u64 %%rd3, [c]; mov.u32 %%s0, %d; mov.u32 %%s1, %d; mov.u32 %%s2, %d;
			wmma.load.a.sync.aligned.%s.%s.global.%s %s, [%%rd1], %%s0;
			wmma.load.b.sync.aligned.%s.%s.global.%s %s, [%%rd2], %%s1;
			wmma.load.c.sync.aligned.row.%s.%s %s, [%%rd3], %%s2;
			%s %s, %s, %s, %s;
			wmma.store.d.sync.aligned.row.%s.global.%s [%%rd3], %s, %%s2; ret; }`, da, db, dc, strideA, strideB, strideC,
				c.layoutA, c.shape, c.a, na, c.layoutB, c.shape, c.a, nb, c.shape, c.c, nc, op, nc, na, nb, nc, c.shape, c.c, nc)
			mustRun(t, text, "k", launchOf(1, 32, a, b, sum))
			e := matrixElements[c.c]
			for y := range m {
				for x := range n {
					at := y*strideC + x
					got := sum[at*e.bits/64] >> (at * e.bits % 64)
					var v float64
					want := vc[y*n+x]
					switch c.c {
					case "f16":
						v, want = fromHalf(uint16(got)), fromHalf(toHalf(want))
					case "f32":
						v = float64(math.Float32frombits(uint32(got)))
					case "f64":
						v = math.Float64frombits(got)
					default:
						v = float64(int32(got))
					}
					require.Equal(t, want, v, "row %d column %d", y, x)
				}
			}
		})
	}
}

func TestMatricesInSharedMemory(t *testing.T) {
	// four matrices of 8 rows of 16 bytes, stored transposed and loaded again
	for _, trans := range []string{"", ".trans"} {
		out := runWords(t, kernelText(fmt.Sprintf(`
		.shared .align 16 .b8 room[512];
		shl.b32 %%r1, %%tid, 4;
		mul.lo.u32 %%r2, %%tid, 2; mul.lo.u32 %%r2, %%r2, 0x10001; add.u32 %%r2, %%r2, 0x10000;
		add.u32 %%r3, %%r2, 0x400040; add.u32 %%r4, %%r3, 0x400040; add.u32 %%r5, %%r4, 0x400040;
		stmatrix.sync.aligned.m8n8.x4.shared.b16 [%%r1], {%%r2, %%r3, %%r4, %%r5};
		ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%%r6, %%r7, %%r8, %%r9}, [%%r1];
		mad.wide.u32 %%rd1, %%tid, 16, %%out;
		st.v4.b32 [%%rd1], {%%r6, %%r7, %%r8, %%r9};`, trans)), 32, 128)
		for lane := range 32 {
			for m := range 4 {
				row, col := lane/4, lane%4*2
				want := uint32(64*m+8*row+col) | uint32(64*m+8*row+col+1)<<16
				if trans != "" {
					want = uint32(64*m+8*col+row) | uint32(64*m+8*(col+1)+row)<<16
				}
				require.Equal(t, want, out[4*lane+m], "lane %d matrix %d", lane, m)
			}
		}
	}
	f := failure(t, kernelText(".shared .align 16 .b8 room[64]; shl.b32 %r1, %tid, 4; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];"), launchOf(1, 32, make(buffer[uint32], 1)))
	require.Equal(t, "shared bounds", f.Kind)
	require.Equal(t, [3]int{4, 0, 0}, f.Thread)
}
