package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// head begins every text of these tests.
const head = ".version 8.0\n.target sm_80\n.address_size 64\n"

// buffer is memory that a kernel works on.
type buffer[T any] []T

func (b buffer[T]) address() uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

func (b buffer[T]) span() Range {
	var v T
	return Range{b.address(), b.address() + uint64(len(b))*uint64(unsafe.Sizeof(v))}
}

type spanned interface {
	address() uint64
	span() Range
}

// launchOf packs parameters: buffers are pointers, numbers have the size of their type.
func launchOf(grid, block int, args ...any) Launch {
	l := Launch{Grid: [3]int{grid, 1, 1}, Block: [3]int{block, 1, 1}, Limit: 1 << 28}
	var memory []Range
	put := func(v uint64, size int) {
		for len(l.Params)%size != 0 {
			l.Params = append(l.Params, 0)
		}
		l.Params = append(l.Params, binary.LittleEndian.AppendUint64(nil, v)[:size]...)
	}
	for _, a := range args {
		switch v := a.(type) {
		case spanned:
			put(v.address(), 8)
			memory = append(memory, v.span())
		case uint64:
			put(v, 8)
		case uint32:
			put(uint64(v), 4)
		case int:
			put(uint64(v), 4)
		case float32:
			put(uint64(math.Float32bits(v)), 4)
		case uint8:
			put(uint64(v), 1)
		default:
			panic(fmt.Sprintf("%T", a))
		}
	}
	sortRanges(memory)
	var err error
	if l.Memory, err = NewMemory(memory); err != nil {
		panic(err)
	}
	return l
}

func sortRanges(r []Range) {
	for i := range r {
		for k := i; k > 0 && r[k].Start < r[k-1].Start; k-- {
			r[k], r[k-1] = r[k-1], r[k]
		}
	}
}

func mustKernel(t testing.TB, text, name string) *Kernel {
	t.Helper()
	m, err := Parse(text)
	require.NoError(t, err)
	k, err := m.Kernel(name)
	require.NoError(t, err)
	return k
}

func mustRun(t testing.TB, text, name string, l Launch) *Report {
	t.Helper()
	r, err := mustKernel(t, text, name).Run(l)
	require.NoError(t, err)
	return r
}

const addText = head + `
.entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<11>;
	ld.param.u64 %rd1, [x];
	ld.param.u64 %rd2, [y];
	ld.param.u64 %rd3, [z];
	ld.param.u32 %r2, [n];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.s32 %r1, %r3, %r4, %r5;
	setp.ge.s32 %p1, %r1, %r2;
	@%p1 bra DONE;
	cvta.to.global.u64 %rd4, %rd1;
	mul.wide.s32 %rd5, %r1, 4;
	add.s64 %rd6, %rd4, %rd5;
	cvta.to.global.u64 %rd7, %rd2;
	add.s64 %rd8, %rd7, %rd5;
	ld.global.f32 %f1, [%rd8];
	ld.global.f32 %f2, [%rd6];
	add.f32 %f3, %f2, %f1;
	cvta.to.global.u64 %rd9, %rd3;
	add.s64 %rd10, %rd9, %rd5;
	st.global.f32 [%rd10], %f3;
DONE:
	ret;
}
`

func TestAddVectors(t *testing.T) {
	const n = 1000
	x, y, z := make(buffer[float32], n), make(buffer[float32], n), make(buffer[float32], n)
	for i := range x {
		x[i], y[i] = float32(i), float32(i)*0.5
	}
	mustRun(t, addText, "add", launchOf(4, 256, x, y, z, n))
	for i := range z {
		require.Equal(t, x[i]+y[i], z[i], i)
	}
	k := mustKernel(t, addText, "add")
	require.Equal(t, []Access{AccessRead, AccessRead, AccessWrite, 0}, k.Accesses())
	runtime.KeepAlive(z)
}

func TestBounds(t *testing.T) {
	x, y, z := make(buffer[float32], 100), make(buffer[float32], 100), make(buffer[float32], 99)
	_, err := mustKernel(t, addText, "add").Run(launchOf(1, 128, x, y, z, 100))
	var f *Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, "bounds", f.Kind)
	require.Equal(t, [3]int{99, 0, 0}, f.Thread)
	require.True(t, strings.HasPrefix(err.Error(), "Invalid __global__ write of size 4 bytes at address 0x"), err)
	require.Contains(t, err.Error(), "is 1 bytes after the nearest allocation")
}

func TestKernel_registersAreWhatIsAliveAtOnce(t *testing.T) {
	m, err := Parse(head + `
.entry in_turn(.param .u64 p) {
	.reg .b32 %r<4>;
	.reg .b64 %rd1;
	ld.param.u64 %rd1, [p];
	ld.b32 %r0, [%rd1];
	st.b32 [%rd1], %r0;
	ld.b32 %r1, [%rd1];
	st.b32 [%rd1], %r1;
	ld.b32 %r2, [%rd1];
	st.b32 [%rd1], %r2;
	ld.b32 %r3, [%rd1];
	st.b32 [%rd1], %r3;
	ret;
}
.entry at_once(.param .u64 p) {
	.reg .b32 %r<4>;
	.reg .b64 %rd1;
	ld.param.u64 %rd1, [p];
	ld.b32 %r0, [%rd1];
	ld.b32 %r1, [%rd1];
	ld.b32 %r2, [%rd1];
	ld.b32 %r3, [%rd1];
	st.b32 [%rd1], %r0;
	st.b32 [%rd1], %r1;
	st.b32 [%rd1], %r2;
	st.b32 [%rd1], %r3;
	ret;
}`)
	require.NoError(t, err)
	for name, registers := range map[string]int{"in_turn": 4, "at_once": 6} { // each frame has four; an address takes two
		k, err := m.Kernel(name)
		require.NoError(t, err)
		require.Equal(t, registers, k.Registers(), name)
	}
}
