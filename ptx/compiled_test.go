package ptx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The texts in testdata were made by Triton 3.9 of a vector addition (blocks of 1024), a softmax of rows of up to 1024,
// matrix products with tiles of 64 x 64 x 32 (f16, by mma) and of 32 x 32 x 32 (f32 for sm_70, by fma), and attention
// with heads of 64 and tiles of 64 x 32.

func testdata(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".ptx"))
	require.NoError(t, err)
	return string(text)
}

// work is a launch of a kernel with what verifies its results.
type work struct {
	kernel *Kernel
	launch Launch
	verify func(t testing.TB)
}

func floats(r *rand.Rand, n int) buffer[float32] {
	out := make(buffer[float32], n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

func halvesOf(v buffer[float32]) buffer[uint16] {
	out := make(buffer[uint16], len(v))
	for i := range v {
		out[i] = toHalf(float64(v[i]))
		v[i] = float32(fromHalf(out[i]))
	}
	return out
}

func near(t testing.TB, want, got []float32, tolerance float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(want[i] - got[i])); !(d <= tolerance) {
			t.Fatalf("element %d is %v, not %v", i, got[i], want[i])
		}
	}
}

// compiledWork sets up a kernel of testdata; size is that of a side, or the length of vectors.
func compiledWork(t testing.TB, name string, size int) work {
	r := rand.New(rand.NewPCG(7, 8))
	m, err := Parse(testdata(t, name))
	require.NoError(t, err)
	w := work{}
	w.kernel, err = m.Kernel(m.Kernels()[0])
	require.NoError(t, err)
	null := uint64(0) // Triton's scratch memory, of which these have none
	switch name {
	case "add":
		x, y, z := floats(r, size), floats(r, size), make(buffer[float32], size)
		w.launch = launchOf((size+1023)/1024, 128, x, y, z, size, null, null)
		w.verify = func(t testing.TB) {
			for i := range z {
				require.Equal(t, x[i]+y[i], z[i])
			}
		}
	case "softmax":
		in, out := floats(r, size*size), make(buffer[float32], size*size)
		w.launch = launchOf(size, 128, out, in, size, size, size, null, null)
		w.launch.Shared = 16
		w.verify = func(t testing.TB) {
			want := make([]float32, size)
			for y := range size {
				sum := 0.0
				for x := range want {
					sum += math.Exp(float64(in[y*size+x]))
				}
				for x := range want {
					want[x] = float32(math.Exp(float64(in[y*size+x])) / sum)
				}
				near(t, want, out[y*size:(y+1)*size], 1e-6)
			}
		}
	case "matmul", "matmul32":
		a, b, c := floats(r, size*size), floats(r, size*size), make(buffer[float32], size*size)
		tile := 32
		if name == "matmul" {
			ha, hb := halvesOf(a), halvesOf(b)
			tile = 64
			w.launch = launchOf(size/tile, 128, ha, hb, c, size, size, size, null, null)
			w.launch.Shared = 16384
		} else {
			w.launch = launchOf(size/tile, 128, a, b, c, size, size, size, null, null)
			w.launch.Shared = 8192
		}
		w.launch.Grid[1] = size / tile
		w.verify = func(t testing.TB) {
			want := make([]float32, size)
			for y := range size {
				for x := range want {
					sum := 0.0
					for k := range size {
						sum += float64(a[y*size+k]) * float64(b[k*size+x])
					}
					want[x] = float32(sum)
				}
				near(t, want, c[y*size:(y+1)*size], 1e-4*float64(size))
			}
		}
	case "attention":
		const heads, d = 2, 64
		q, k, v, out := floats(r, heads*size*d), floats(r, heads*size*d), floats(r, heads*size*d), make(buffer[uint16], heads*size*d)
		w.launch = launchOf(size/64, 128, halvesOf(q), halvesOf(k), halvesOf(v), out, float32(0.125), heads, size, null, null)
		w.launch.Grid[1], w.launch.Shared = heads, 24576
		w.verify = func(t testing.TB) {
			want, got := make([]float32, d), make([]float32, d)
			for row := range heads * size {
				h := row / size * size
				weights, sum := make([]float64, size), 0.0
				for j := range size {
					for e := range d {
						weights[j] += float64(q[row*d+e]) * float64(k[(h+j)*d+e])
					}
					weights[j] = math.Exp(weights[j] * 0.125)
					sum += weights[j]
				}
				for e := range d {
					s := 0.0
					for j := range size {
						s += weights[j] * float64(v[(h+j)*d+e])
					}
					want[e] = float32(s / sum)
					got[e] = float32(fromHalf(out[row*d+e]))
				}
				near(t, want, got, 4e-3)
			}
		}
	}
	return w
}

func TestCompiledKernels(t *testing.T) {
	for name, size := range map[string]int{"add": 5000, "softmax": 300, "matmul": 128, "matmul32": 64, "attention": 128} {
		for _, flags := range []Flags{0, FlagShared | FlagSync | FlagRecord} {
			t.Run(fmt.Sprint(name, flags), func(t *testing.T) {
				w := compiledWork(t, name, size)
				w.launch.Flags = flags
				report, err := w.kernel.Run(w.launch)
				require.NoError(t, err)
				require.Empty(t, report.Findings)
				w.verify(t)
				if flags != 0 {
					require.NotEmpty(t, report.Writes)
				}
			})
		}
	}
}

// processorTime is the time that the process has had of processors, which other programs do not disturb much.
func processorTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkKernels reports the time of one launch, and how many instructions threads executed in a second.
func BenchmarkKernels(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"add", 1 << 20}, {"softmax", 1024}, {"matmul32", 512}, {"matmul", 512}, {"attention", 256}} {
		for _, flags := range []struct {
			name string
			f    Flags
		}{{"", 0}, {"/unbounded", FlagNoBounds}, {"/record", FlagRecord}, {"/shared", FlagShared}} {
			b.Run(c.name+flags.name, func(b *testing.B) {
				w := compiledWork(b, c.name, c.size)
				w.launch.Flags, w.launch.Limit = flags.f, 0
				var lanes int64
				begin := processorTime(b)
				for b.Loop() {
					r, err := w.kernel.Run(w.launch)
					require.NoError(b, err)
					lanes += r.LaneInstructions
				}
				seconds := (processorTime(b) - begin).Seconds()
				b.ReportMetric(float64(lanes)/seconds/1e9, "Glane-instr/s")
				b.ReportMetric(1e3*seconds/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// BenchmarkInstructionSets runs the product of f32 with each set of instructions that the processor has.
func BenchmarkInstructionSets(b *testing.B) {
	best := InstructionSet()
	defer UseInstructionSet(best)
	for _, set := range []string{"avx2", "avx512"} {
		if !UseInstructionSet(set) {
			continue
		}
		b.Run(set, func(b *testing.B) {
			w := compiledWork(b, "matmul32", 256)
			var lanes int64
			begin := processorTime(b)
			for b.Loop() {
				r, err := w.kernel.Run(w.launch)
				require.NoError(b, err)
				lanes += r.LaneInstructions
			}
			b.ReportMetric(float64(lanes)/(processorTime(b)-begin).Seconds()/1e9, "Glane-instr/s")
		})
	}
}

// BenchmarkThreads runs a matrix product of 64 blocks by one thread and by two.
func BenchmarkThreads(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			w := compiledWork(b, "matmul", 512)
			for b.Loop() {
				r, err := w.kernel.Start(w.launch)
				require.NoError(b, err)
				done := make(chan bool)
				for range threads {
					go func() {
						r.Work()
						done <- true
					}()
				}
				for range threads {
					<-done
				}
				r.Close()
			}
		})
	}
}

// BenchmarkLaunch is a launch of one block of a kernel that is loaded.
func BenchmarkLaunch(b *testing.B) {
	w := compiledWork(b, "add", 1000)
	begin := processorTime(b)
	for b.Loop() {
		if _, err := w.kernel.Run(w.launch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(1e6*(processorTime(b)-begin).Seconds()/float64(b.N), "cpu-us/op")
}

// BenchmarkParse parses and decodes a text of 3,600 instructions.
func BenchmarkParse(b *testing.B) {
	text := testdata(b, "attention")
	start, end := strings.LastIndex(text, "\n{\n")+3, strings.LastIndex(text, "ret;")
	lines := strings.Split(text[start:end], "\n")
	var body []string
	count := 0
	for round := 0; count < 3600; round++ { // the same code again and again, with labels of its own
		for _, l := range lines {
			if strings.HasPrefix(l, ".reg") && round > 0 {
				continue
			}
			body = append(body, strings.ReplaceAll(l, "$L__BB0_", fmt.Sprintf("$L_%d_", round)))
			if strings.HasSuffix(l, ";") && !strings.HasPrefix(l, ".") {
				count++
			}
		}
	}
	text = text[:start] + strings.Join(body, "\n") + text[end:]
	begin := processorTime(b)
	for b.Loop() {
		m, err := Parse(text)
		require.NoError(b, err)
		_, err = m.Kernel(m.Kernels()[0])
		require.NoError(b, err)
	}
	b.ReportMetric(1e3*(processorTime(b)-begin).Seconds()/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(count), "instructions")
}
