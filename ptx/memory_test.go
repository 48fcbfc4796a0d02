package ptx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoadsAndStores(t *testing.T) {
	out := make(buffer[uint64], 16)
	out[0] = 0x8182838485868788
	mustRun(t, kernelText(`
	.reg .b16 %h<4>; .reg .b64 %d<8>; .reg .b128 %w; .local .align 16 .b8 mine[32]; .shared .align 16 .b8 room[32];
	ld.s8 %h1, [%out]; cvt.s64.s16 %d1, %h1; st.b64 [%out+8], %d1;
	ld.global.u16 %r1, [%out+2]; cvt.u64.u32 %d2, %r1; st.global.b64 [%out+16], %d2;
	ld.global.s32 %d3, [%out]; st.b64 [%out+24], %d3;
	ld.v4.u8 {%r2, %r3, _, %r4}, [%out+4]; st.v2.b32 [%out+32], {%r2, %r4};
	ld.v2.b32 {%r5, %r6}, [%out]; st.local.v2.b32 [mine+8], {%r5, %r6}; ld.local.b64 %d4, [mine+8]; st.b64 [%out+40], %d4;
	mov.u64 %rd1, mine; cvta.local.u64 %rd1, %rd1; st.b8 [%rd1], %r5; ld.u8 %r7, [%rd1]; st.b32 [%out+48], %r7;
	mov.u32 %r8, room; st.shared.b64 [%r8+16], %d4; mov.u64 %rd2, room; cvta.shared.u64 %rd2, %rd2; ld.b64 %d5, [%rd2+16]; st.b64 [%out+56], %d5;
	cvta.to.shared.u64 %rd3, %rd2; setp.eq.u64 %p1, %rd3, 0; isspacep.shared %p2, %rd2; isspacep.global %p3, %rd2; isspacep.global %p4, %out;
	selp.u32 %r9, 1, 0, %p2; selp.u32 %r10, 10, 0, %p3; selp.u32 %r11, 100, 0, %p4; add.u32 %r9, %r9, %r10; add.u32 %r9, %r9, %r11; st.b32 [%out+64], %r9;
	mov.b128 %w, {%d4, %d5}; st.local.b128 [mine+16], %w; ld.local.b128 %w, [mine+16]; mov.b128 {%d6, %d7}, %w; st.b64 [%out+72], %d7;`), "k", launchOf(1, 1, out))
	require.Equal(t, []uint64{neg(0x78), 0x8586, neg(0x7a797878), 0x8100000084, 0x8182838485868788, 0x88, 0x8182838485868788, 101, 0x8182838485868788},
		[]uint64(out[1:10]))
}

func TestVariablesOfTheModule(t *testing.T) {
	text := head + `
.global .align 4 .b32 counter = 5;
.const .align 8 .f32 factors[4] = { 1.0, 0f40000000, -3.5 };
.global .align 8 .u64 pointers[2] = { generic(counter), factors+4 };
.global .align 1 .b8 bytes[9] = { 7, 0xFF(counter), 0xFF00(counter), 0xFF0000(counter), 0xFF000000(counter), 0xFF00000000(counter), 0xFF0000000000(counter) };
.extern .shared .align 16 .b8 dynamic[];
.entry k(.param .u64 p)
{
	.reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .f32 %f<3>;
	.shared .b32 fixed[5];
	ld.param.u64 %rd1, [p];
	atom.global.add.u32 %r1, [counter], 1;
	st.b32 [%rd1], %r1;
	ld.const.f32 %f1, [factors+8];
	st.f32 [%rd1+4], %f1;
	ld.global.u64 %rd2, [pointers+8];
	ld.f32 %f2, [%rd2];
	st.f32 [%rd1+8], %f2;
	ld.global.u8 %r2, [bytes];
	st.b32 [%rd1+12], %r2;
	mov.u32 %r3, dynamic;
	st.b32 [%rd1+16], %r3;
	ld.global.u64 %rd3, [pointers];
	mov.u64 %rd4, counter;
	sub.u64 %rd3, %rd3, %rd4;
	st.b32 [%rd1+20], %rd3;
	st.shared.b32 [fixed+16], %r3;
	st.shared.b32 [dynamic+12], %r3;
	ret;
}`
	m, err := Parse(text)
	require.NoError(t, err)
	k, err := m.Kernel("k")
	require.NoError(t, err)
	require.Equal(t, 32, k.SharedBytes())
	out := make(buffer[uint32], 6)
	l := launchOf(1, 1, out)
	l.Shared = 16
	for i := range 2 {
		_, err = k.Run(l)
		require.NoError(t, err)
		require.Equal(t, buffer[uint32]{5 + uint32(i), uint32(f32(-3.5)), uint32(f32(2)), 7, 32, 0}, out)
	}
	_, size, ok := m.Global("factors")
	require.True(t, ok)
	require.Equal(t, 16, size)
	_, _, ok = m.Global("dynamic")
	require.False(t, ok)
}

func TestParametersOfAKernel(t *testing.T) {
	k := mustKernel(t, head+`
.entry k(.param .u8 a, .param .align 8 .b8 s[24], .param .u64 .ptr .global .align 4 p, .param .b16 z)
{
	.reg .b64 %rd<4>; .reg .b32 %r<3>; .reg .b16 %h;
	ld.param.u64 %rd1, [p];
	ld.param.u8 %r1, [a];
	ld.param.u64 %rd2, [s+16];
	ld.param.u16 %h, [z];
	mov.b64 %rd3, s;
	cvta.param.u64 %rd3, %rd3;
	ld.u32 %r2, [%rd3+8];
	st.b64 [%rd1], %rd2; st.b32 [%rd1+8], %r1; st.b32 [%rd1+12], %r2; st.b16 [%rd1+16], %h;
	ret;
}`, "k")
	require.Equal(t, []Param{{"a", 1, 1, 0, false}, {"s", 24, 8, 8, false}, {"p", 8, 8, 32, true}, {"z", 2, 2, 40, false}}, k.Params())
	require.Equal(t, 42, k.ParamBytes())
	out := make(buffer[uint32], 5)
	l := launchOf(1, 1, uint8(9), uint64(1), uint64(2<<32|3), uint64(4), out)
	l.Params = append(l.Params, 0x34, 0x12)
	_, err := k.Run(l)
	require.NoError(t, err)
	require.Equal(t, buffer[uint32]{4, 0, 9, 3, 0x1234}, out)
}

func TestWrongLaunches(t *testing.T) {
	k := mustKernel(t, head+".entry k(.param .u32 a) .reqntid 32 { ret; }", "k")
	good := launchOf(1, 32, 5)
	_, err := k.Run(good)
	require.NoError(t, err)
	for want, change := range map[string]func(l *Launch){
		"a grid of [0 1 1] blocks":               func(l *Launch) { l.Grid[0] = 0 },
		"a grid of [1 70000 1] blocks":           func(l *Launch) { l.Grid[1] = 70000 },
		"a block of [0 1 1] threads":             func(l *Launch) { l.Block[0] = 0 },
		"a block of 64 threads; 32 are the most": func(l *Launch) { l.Block[0] = 64 },
		"the kernel was compiled for [32 1 1]":   func(l *Launch) { l.Block = [3]int{16, 2, 1} },
		"8 bytes of parameters; it takes 4":      func(l *Launch) { l.Params = make([]byte, 8) },
		"-1 bytes of shared memory":              func(l *Launch) { l.Shared = -1 },
		"300000 bytes of shared memory":          func(l *Launch) { l.Shared = 300000 },
	} {
		l := good
		change(&l)
		_, err := k.Run(l)
		require.ErrorContains(t, err, want)
	}
	_, err = NewMemory([]Range{{100, 200}, {150, 300}})
	require.ErrorContains(t, err, "ranges of memory overlap or are out of order")
	m, err := Parse(head + ".entry k() { ret; }")
	require.NoError(t, err)
	_, err = m.Kernel("other")
	require.ErrorContains(t, err, "there is no kernel other")
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		body, kind, text string
		thread           int
	}{
		{"mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1];", "bounds", "Invalid __global__ read of size 4 bytes at address 0x0, which is a null pointer", 0},
		{"ld.u32 %r1, [%at+4];", "bounds", "is 1 bytes after the nearest allocation", 31},
		{"ld.u32 %r1, [%at+-4];", "bounds", "is 4 bytes before the nearest allocation", 0},
		{"atom.add.u32 %r1, [%at+4], 1;", "bounds", "Invalid __global__ atomic of size 4 bytes", 31},
		{"setp.eq.u32 %p1, %tid, 7; @%p1 st.u32 [%at+2], %tid;", "misaligned", "Invalid __global__ write of size 4 bytes", 7},
		{"ld.v4.u32 {%r1, %r2, %r3, %r4}, [%out+4];", "misaligned", "Invalid __global__ read of size 16 bytes", 0},
		{".shared .b32 room[32]; mul.lo.u32 %r1, %tid, 4; ld.shared.u32 %r2, [%r1+8];", "shared bounds", "Invalid __shared__ read of size 4 bytes at address 0x80, which is out of bounds of 128 bytes", 30},
		{".shared .b32 room[32]; mul.lo.u32 %r1, %tid, 4; ld.shared.u32 %r2, [%r1+4];", "shared bounds", "at address 0x80", 31},
		{".shared .b32 room[32]; mul.lo.u32 %r1, %tid, 4; st.shared.u32 [%r1+1], %r1;", "misaligned", "Invalid __shared__ write", 0},
		{".local .b32 mine[4]; mov.u64 %rd1, mine; st.local.u32 [%rd1+16], %r1;", "local bounds", "Invalid __local__ write of size 4 bytes at address 0x10, which is out of bounds of 16 bytes", 0},
		{".shared .b32 room[4]; mov.u64 %rd1, room; cvta.shared.u64 %rd1, %rd1; ld.u32 %r1, [%rd1+512];", "shared bounds", "at address 0x200", 0},
		{"mov.u64 %rd1, 0x0900000000000000; ld.u32 %r1, [%rd1];", "no space", "which is in no state space", 0},
		{"setp.eq.u32 %p1, %tid, 3; @%p1 trap;", "trap", "Trap at kernel k by thread (3,0,0) in block (0,0,0) [trap, PTX line", 3},
		{"brkpt;", "breakpoint", "Breakpoint", 0},
		{"mov.u32 %r1, 20; bar.sync %r1;", "barrier", "Invalid arguments: barrier 20", 0},
		{"bar.sync 1, 33;", "barrier", "33 threads", 0},
		{".shared .align 16 .b8 room[64]; cp.async.ca.shared.global [room], [%at+4], 4;", "bounds", "Invalid __global__ read of size 4 bytes", 31},
	} {
		t.Run(c.body, func(t *testing.T) {
			out := make(buffer[uint32], 33)
			if out.address()%16 == 0 {
				out = out[:32]
			} else {
				out = out[1:]
			}
			f := failure(t, kernelText(c.body), launchOf(1, 32, out))
			require.Equal(t, c.kind, f.Kind)
			require.Contains(t, f.Error(), c.text)
			require.Equal(t, [3]int{c.thread, 0, 0}, f.Thread)
		})
	}
}

func TestAtomicOnPartOfTheLastWordOfMemory(t *testing.T) {
	word := buffer[uint64]{0xabcd0064}
	l := launchOf(1, 7, word)
	half := Range{word.address(), word.address() + 2}
	var err error
	l.Memory, err = NewMemory([]Range{half})
	require.NoError(t, err)
	l.Flags = FlagRecord
	// as compilers do where a device has no atomic operation on the part
	report := mustRun(t, kernelText(`
	ld.relaxed.gpu.global.b32 %r1, [%out];
AGAIN:
	add.u32 %r2, %r1, 1;
	atom.relaxed.gpu.global.cas.b32 %r3, [%out], %r1, %r2;
	setp.ne.u32 %p1, %r3, %r1; mov.u32 %r1, %r3;
	@%p1 bra AGAIN;`), "k", l)
	require.Equal(t, uint64(0xabcd0064+7), word[0])
	require.Equal(t, [][]Range{{half}, {half}}, [][]Range{report.Reads, report.Writes})
	for _, body := range []string{
		"ld.global.b32 %r1, [%out];", "ld.relaxed.gpu.global.v2.b32 {%r1, %r2}, [%out];", "ld.relaxed.gpu.global.u64 %rd1, [%out];",
		"ld.relaxed.gpu.global.b32 %r1, [%out+4];", "atom.global.add.u32 %r1, [%out], 1;", "st.global.b32 [%out], %r1;",
	} {
		require.Equal(t, "bounds", failure(t, kernelText(body), l).Kind, body)
	}
}

func TestPrint(t *testing.T) {
	text := head + `
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 format[40] = {116, 37, 100, 58, 37, 46, 50, 102, 32, 37, 115, 32, 37, 108, 108, 120, 32, 37, 42, 117, 37, 37, 10};
.global .align 1 .b8 word[4] = {97, 98, 99, 0};
.entry k(.param .u64 p)
{
	.reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f64 %d; .reg .pred %p;
	.local .align 8 .b8 args[48];
	mov.u32 %r1, %tid.x;
	setp.gt.u32 %p, %r1, 1;
	@%p bra END;
	st.local.u32 [args], %r1;
	cvt.rn.f64.u32 %d, %r1; mul.f64 %d, %d, 0d3FF8000000000000;
	st.local.f64 [args+8], %d;
	mov.u64 %rd1, word;
	st.local.u64 [args+16], %rd1;
	mov.u64 %rd2, 0x123456789a; st.local.u64 [args+24], %rd2;
	mov.u32 %r2, 5; st.local.u32 [args+32], %r2; st.local.u32 [args+36], %r1;
	mov.u64 %rd3, format;
	mov.u64 %rd4, args; cvta.local.u64 %rd4, %rd4;
	{ .param .b64 f; .param .b64 a; .param .b32 r;
	st.param.b64 [f], %rd3; st.param.b64 [a], %rd4;
	call.uni (r), vprintf, (f, a);
	ld.param.b32 %r3, [r]; }
	ld.param.u64 %rd5, [p]; st.b32 [%rd5], %r3;
END:	ret;
}`
	out := make(buffer[uint32], 1)
	r := mustRun(t, text, "k", launchOf(1, 32, out))
	require.Equal(t, "t0:0.00 abc 123456789a     0%\nt1:1.50 abc 123456789a     1%\n", r.Output)
	require.Equal(t, uint32(6), out[0])
}

func TestHeapOfKernels(t *testing.T) {
	out := runWords(t, strings.Replace(kernelText(`
	.param .b64 size; .param .b64 block; .param .b64 old;
	mov.u64 %rd1, 64; st.param.b64 [size], %rd1;
	call (block), malloc, (size);
	ld.param.b64 %rd2, [block];
	st.b32 [%rd2+60], %tid;
	ld.b32 %r1, [%rd2+60];
	st.param.b64 [old], %rd2;
	call free, (old);
	st.b32 [%at], %r1;`), ".entry", ".extern .func (.param .b64 r) malloc(.param .b64 n); .extern .func free(.param .b64 p);\n.entry", 1), 32, 32)
	require.Equal(t, uint32(31), out[31])
}

// sharedText is a kernel of two warps that works on 64 words of shared memory with threads of its own.
func sharedText(body string) string {
	return kernelText(".shared .align 16 .b8 room[256]; mul.lo.u32 %r15, %tid, 4; sub.u32 %r14, 252, %r15;\n" + body)
}

func TestChecksOfSharedMemory(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       string // of a finding, or empty
	}{
		{"a barrier between", "st.shared.u32 [%r15], 1; bar.sync 0; ld.shared.u32 %r1, [%r14]; st.u32 [%at], %r1;", ""},
		{"none between", "st.shared.u32 [%r15], 1; ld.shared.u32 %r1, [%r14]; st.u32 [%at], %r1;", "Race reported between Read access of thread (0,0,0) at __shared__ 0xfc"},
		{"one warp", "setp.ge.u32 %p1, %tid, 32; @%p1 exit; st.shared.u32 [%r15], 1; xor.b32 %r1, %r15, 4; ld.shared.u32 %r1, [%r1]; st.u32 [%at], %r1;", ""},
		{"two writes", "st.shared.u32 [%r15], 1; st.shared.u32 [%r14], 2;", "Race reported between Write access of thread"},
		{"copies of one value", "and.b32 %r2, %r15, 124; st.shared.u32 [%r2], 7; bar.sync 0; ld.shared.u32 %r1, [%r2]; st.u32 [%at], %r1;", ""},
		{"bytes of one word", "shr.u32 %r2, %tid, 5; st.shared.u8 [%r2], 1; bar.sync 0; ld.shared.u8 %r1, [%r2]; st.u32 [%at], %r1;", ""},
		{"other bytes of a word are read", "shr.u32 %r2, %tid, 5; st.shared.u8 [%r2], 1; ld.shared.u8 %r1, [%r2]; st.u32 [%at], %r1;", ""},
		{"written behind a read", "st.shared.u32 [%r15], 1; bar.sync 0; ld.shared.u32 %r1, [%r14]; st.u32 [%at], %r1; st.shared.u32 [%r15], 2;", "and Read access of"},
		{"read by both warps, written by the first", "st.shared.u32 [%r15], 1; bar.sync 0; ld.shared.u32 %r1, [room]; st.u32 [%at], %r1; setp.ne.u32 %p1, %tid, 0; @%p1 exit; st.shared.u32 [room], %r1;",
			"Race reported between Write access of thread (0,0,0) at __shared__ 0x0"},
		{"four words of each lane", "and.b32 %r2, %tid, 15; shl.b32 %r2, %r2, 4; st.shared.v4.u32 [%r2], {%tid, %tid, %tid, %tid}; bar.sync 0; ld.shared.v4.u32 {%r1, %r3, %r4, %r5}, [%r2]; add.u32 %r1, %r1, %r3; add.u32 %r4, %r4, %r5; add.u32 %r1, %r1, %r4; st.u32 [%at], %r1;", ""},
		{"one of four words by the other warp", "and.b32 %r2, %tid, 15; shl.b32 %r2, %r2, 4; st.shared.v4.u32 [%r2], {1, 1, 1, 1}; bar.sync 0; setp.eq.u32 %p1, %tid, 40; @%p1 st.shared.u32 [room+136], 2; ld.shared.v4.u32 {%r1, %r3, %r4, %r5}, [%r2]; add.u32 %r1, %r1, %r3; add.u32 %r4, %r4, %r5; add.u32 %r1, %r1, %r4; st.u32 [%at], %r1;",
			"Race reported between Read access of thread (8,0,0) at __shared__ 0x80"},
		{"atomics", "st.shared.u32 [%r15], 1; bar.sync 0; atom.shared.add.u32 %r1, [room], 1; st.u32 [%at], %r1;", ""},
		{"never written", "ld.shared.u32 %r1, [%r15]; st.u32 [%at], %r1;", "Uninitialized __shared__ memory read at address 0x0"},
		{"never written, not used", "ld.shared.u32 %r1, [%r15];", ""},
		{"a sink", "setp.ge.u32 %p1, %tid, 16; @%p1 exit; shl.b32 %r2, %tid, 4; st.shared.u32 [%r2], 1; ld.shared.v4.u32 {%r1, _, _, _}, [%r2]; st.u32 [%at], %r1;", ""},
		{"half of a vector used", "setp.ge.u32 %p1, %tid, 16; @%p1 exit; shl.b32 %r2, %tid, 4; st.shared.u32 [%r2], 1; ld.shared.v2.u32 {%r1, %r3}, [%r2]; st.u32 [%at], %r1;", ""},
		{"the wrong half", "setp.ge.u32 %p1, %tid, 16; @%p1 exit; shl.b32 %r2, %tid, 4; st.shared.u32 [%r2], 1; ld.shared.v2.u32 {%r1, %r3}, [%r2]; st.u32 [%at], %r3;", "Uninitialized"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := make(buffer[uint32], 64)
			l := launchOf(2, 64, out)
			l.Flags = FlagShared | FlagSync
			r := mustRun(t, sharedText(c.body), "k", l)
			if c.want == "" {
				require.Empty(t, r.Findings)
				return
			}
			require.NotEmpty(t, r.Findings)
			text := ""
			for _, f := range r.Findings {
				text += f.Error() + "\n"
			}
			require.Contains(t, text, c.want)
			require.Contains(t, text, "PTX line")
			l.Flags = 0
			require.Empty(t, mustRun(t, sharedText(c.body), "k", l).Findings)
		})
	}
}

func TestBarriersAtDifferentPlaces(t *testing.T) {
	l := launchOf(1, 64, make(buffer[uint32], 64))
	l.Flags = FlagSync
	r := mustRun(t, kernelText("setp.lt.u32 %p1, %tid, 32; @%p1 bra A; bar.sync 0; bra END; A: bar.sync 0; END:"), "k", l)
	require.Len(t, r.Findings, 1)
	require.Contains(t, r.Findings[0].Error(), "barrier 0 is met at different places")
	require.Equal(t, "synccheck", r.Findings[0].Check)
	r = mustRun(t, kernelText("setp.lt.u32 %p1, %tid, 32; @%p1 bra A; bar.sync 1, 64; bra END; A: bar.sync 1, 64; END:"), "k", l)
	require.Empty(t, r.Findings, "parts of a block that meet")
}

func TestExactAccesses(t *testing.T) {
	text := head + `
.global .b32 hidden;
.entry k(.param .u64 in, .param .u64 out)
{
	.reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .pred %p;
	ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 32, %r1;
	mad.wide.u32 %rd3, %r1, 12, %rd1;      // a column of three
	ld.global.u32 %r3, [%rd3+4];
	setp.lt.u32 %p, %r1, 40;
	mad.wide.u32 %rd4, %r1, 8, %rd2;
	@%p st.global.v2.u32 [%rd4+16], {%r3, %r3};
	st.global.u32 [hidden], %r3;
	setp.eq.u32 %p, %r1, 63;
	@%p red.global.add.u32 [%rd2], %r3;
	ret;
}`
	in, out := make(buffer[uint32], 200), make(buffer[uint32], 200)
	l := launchOf(2, 32, in, out)
	l.Flags = FlagRecord
	k := mustKernel(t, text, "k")
	require.Equal(t, []Access{AccessRead, AccessRead | AccessWrite}, k.Accesses())
	for _, threads := range []int{1, 2} {
		r, err := k.Start(l)
		require.NoError(t, err)
		done := make(chan bool)
		for range threads {
			go func() {
				r.WorkSome(int64(2 / threads))
				done <- true
			}()
		}
		for range threads {
			<-done
		}
		report, err := r.Report()
		require.NoError(t, err)
		r.Close()
		var reads []Range
		for i := range 64 {
			a := in.address() + uint64(12*i) + 4
			reads = append(reads, Range{a, a + 4})
		}
		at := out.address()
		if at < in.address() {
			reads = append([]Range{{at, at + 4}}, reads...)
		} else {
			reads = append(reads, Range{at, at + 4})
		}
		require.Equal(t, reads, report.Reads)
		require.Equal(t, []Range{{at, at + 4}, {at + 16, at + 16 + 320}}, report.Writes)
	}
}

func TestStaticAccesses(t *testing.T) {
	for body, want := range map[string][]Access{
		"ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1;":                                 {AccessRead, AccessWrite},
		"atom.global.add.u32 %r1, [%rd2], 1;":                                                   {0, AccessRead | AccessWrite},
		"setp.eq.u64 %p1, %rd1, 0; selp.b64 %rd3, %rd1, %rd2, %p1; st.b32 [%rd3], 1;":           {AccessWrite, AccessWrite},
		"ld.u64 %rd3, [%rd1]; st.b32 [%rd3], 1;":                                                {AccessRead | AccessUnknown, AccessUnknown},
		"L: add.u64 %rd3, %rd4, 4; mov.u64 %rd4, %rd1; ld.u32 %r1, [%rd3]; @%p1 bra L;":         {AccessRead, 0},
		".shared .b32 s; cp.async.ca.shared.global [s], [%rd2], 4;":                             {0, AccessRead},
		".shared .b32 s; st.shared.b64 [s], %rd1; ld.shared.b64 %rd3, [s]; ld.b32 %r1, [%rd3];": {AccessUnknown, AccessUnknown},
	} {
		k := mustKernel(t, head+fmt.Sprintf(".entry k(.param .u64 a, .param .u64 b) { .reg .b64 %%rd<6>; .reg .b32 %%r<3>; .reg .pred %%p1; ld.param.u64 %%rd1, [a]; ld.param.u64 %%rd2, [b];\n%s ret; }", body), "k")
		require.Equal(t, want, k.Accesses(), body)
	}
}

func TestAsynchronousCopies(t *testing.T) {
	out := make(buffer[uint32], 36)
	for i := range out {
		out[i] = uint32(i + 1)
	}
	mustRun(t, kernelText(`
	.shared .align 16 .b8 room[256];
	mul.lo.u32 %r1, %tid, 4; mov.u32 %r2, 2; setp.eq.u32 %p1, %tid, 1;
	cp.async.ca.shared.global [%r1], [%at], 4;
	cp.async.ca.shared.global [%r1+128], [%at], 4, %r2;
	cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
	ld.shared.u32 %r3, [%r1]; ld.shared.u32 %r4, [%r1+128]; mul.lo.u32 %r3, %r3, 1000; add.u32 %r3, %r3, %r4; 
	cp.async.ca.shared.global [%r1], [%at], 4, %p1; cp.async.wait_all; ld.shared.u32 %r4, [%r1]; mul.lo.u32 %r4, %r4, 1000000; add.u32 %r3, %r3, %r4;
	st.b32 [%at], %r3;`), "k", launchOf(1, 32, out))
	require.Equal(t, uint32(1001001), out[0])
	require.Equal(t, uint32(2002), out[1])
	require.Equal(t, uint32(32032032), out[31])
}

func TestInputs(t *testing.T) {
	x, y := make(buffer[uint32], 64), make(buffer[uint32], 64)
	l := launchOf(2, 32, x, y)
	l.Flags = FlagRecord
	r := mustRun(t, head+`
.entry k(.param .u64 x, .param .u64 y)
{
	.reg .b64 %rd<6>; .reg .b32 %r<6>;
	ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 32, %r1;
	mad.wide.u32 %rd3, %r1, 4, %rd1;
	mad.wide.u32 %rd4, %r1, 4, %rd2;
	ld.global.u32 %r3, [%rd3];     // before its write
	st.global.u32 [%rd3], %r3;
	st.global.u32 [%rd4], %r3;
	ld.global.u32 %r4, [%rd4];     // behind its write
	red.global.add.u32 [%rd1+200], 1;
	ret;
}`, "k", l)
	require.Equal(t, []Range{x.span()}, r.Inputs)
}
