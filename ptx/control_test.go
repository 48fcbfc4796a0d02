package ptx

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernelText is a kernel k with one pointer %out, the thread in %tid and room for a few registers.
func kernelText(body string) string {
	return head + `
.entry k(.param .u64 p)
{
	.reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b32 %tid; .reg .b64 %out, %at;
	ld.param.u64 %out, [p];
	mov.u32 %tid, %tid.x;
	mad.wide.u32 %at, %tid, 4, %out;
` + body + "\n\tret;\n}\n"
}

// runWords runs a kernel of one block that writes words, and returns them.
func runWords(t testing.TB, text string, threads, words int) []uint32 {
	t.Helper()
	out := make(buffer[uint32], words)
	mustRun(t, text, "k", launchOf(1, threads, out))
	return out
}

// failure runs a kernel and returns its fault.
func failure(t testing.TB, text string, l Launch) *Fault {
	t.Helper()
	_, err := mustKernel(t, text, "k").Run(l)
	var f *Fault
	require.ErrorAs(t, err, &f)
	return f
}

func TestThreadsMeetAgainBehindBranches(t *testing.T) {
	// whoever comes from either side takes part in the vote behind it
	out := runWords(t, kernelText(`
	and.b32 %r1, %tid, 1; setp.eq.s32 %p1, %r1, 0;
	@%p1 bra EVEN;
	mul.lo.u32 %r2, %tid, 3;
	bra BOTH;
EVEN:
	mul.lo.u32 %r2, %tid, 5;
BOTH:
	activemask.b32 %r3;
	add.u32 %r2, %r2, %r3;
	st.b32 [%at], %r2;`), 70, 70)
	for i, v := range out {
		mask := ^uint32(0)
		if i >= 64 {
			mask = 0x3f
		}
		require.Equal(t, uint32(i)*[]uint32{5, 3}[i%2]+mask, v, i)
	}
}

func TestJumpByIndex(t *testing.T) {
	body := `
	rem.u32 %r1, %tid, 4;
	add.u32 %r1, %r1, OFFSET;
TABLE: .branchtargets A, B, C, A;
	brx.idx %r1, TABLE;
A:	mov.u32 %r2, 10; bra END;
B:	mov.u32 %r2, 20; bra END;
C:	mov.u32 %r2, 30;
END: st.b32 [%at], %r2;`
	out := runWords(t, kernelText(strings.Replace(body, "OFFSET", "0", 1)), 32, 32)
	for i, v := range out {
		require.Equal(t, []uint32{10, 20, 30, 10}[i%4], v)
	}
	f := failure(t, kernelText(strings.Replace(body, "OFFSET", "1", 1)), launchOf(1, 32, make(buffer[uint32], 32)))
	require.Equal(t, "branch", f.Kind)
	require.Equal(t, [3]int{3, 0, 0}, f.Thread)
}

const callsText = head + `
.func (.param .b32 r) twice(.param .b32 v)
{ .reg .b32 %v; ld.param.b32 %v, [v]; add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }
.func (.param .b32 r) square(.param .b32 v)
{ .reg .b32 %v; ld.param.b32 %v, [v]; mul.lo.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }
.func (.param .b32 r) fib(.param .b32 v)
{
	.reg .b32 %v, %w, %x; .reg .pred %p;
	.param .b32 a; .param .b32 b;
	ld.param.b32 %v, [v];
	setp.lt.u32 %p, %v, 2;
	@%p bra END;
	sub.u32 %w, %v, 1;
	st.param.b32 [a], %w;
	call (b), fib, (a);
	ld.param.b32 %x, [b];
	sub.u32 %w, %v, 2;
	st.param.b32 [a], %w;
	call (b), fib, (a);
	ld.param.b32 %v, [b];
	add.u32 %v, %v, %x;
END:
	st.param.b32 [r], %v;
	ret;
}
.global .u64 table[2] = { twice, square };
.entry k(.param .u64 p)
{
	.reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .pred %p1;
	.param .b32 a; .param .b32 b;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mad.wide.u32 %rd1, %r1, 8, %rd1;
	st.param.b32 [a], %r1;
	and.b32 %r2, %r1, 1;
	mov.u64 %rd2, table;
	mad.wide.u32 %rd2, %r2, 8, %rd2;
	ld.u64 %rd3, [%rd2];
	PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (b), %rd3, (a), PROTO;
	ld.param.b32 %r3, [b];
	st.b32 [%rd1], %r3;
	and.b32 %r2, %r1, 7;
	st.param.b32 [a], %r2;
	call.uni (b), fib, (a);
	ld.param.b32 %r3, [b];
	st.b32 [%rd1+4], %r3;
	ret;
}
`

func TestCallsByAddressAndRecursion(t *testing.T) {
	out := runWords(t, callsText, 40, 80)
	for i := range uint32(40) {
		want := 2 * i
		if i%2 == 1 {
			want = i * i
		}
		require.Equal(t, want, out[2*i])
		require.Equal(t, []uint32{0, 1, 1, 2, 3, 5, 8, 13}[i%8], out[2*i+1])
	}
}

func TestCallOfNoFunction(t *testing.T) {
	text := strings.Replace(callsText, "ld.u64 %rd3, [%rd2];", "mov.u64 %rd3, 4096;", 1)
	f := failure(t, text, launchOf(1, 1, make(buffer[uint32], 2)))
	require.Equal(t, "call", f.Kind)
	require.Contains(t, f.Error(), "Call of address 0x1000, which is no function")
}

func TestRecursionWithoutEnd(t *testing.T) {
	text := head + `.func f() { call f, (); ret; } .entry k() { call f, (); ret; }`
	f := failure(t, text, launchOf(1, 32))
	require.Equal(t, "stack", f.Kind)
}

func TestBarriersOfSomeWarps(t *testing.T) {
	// warps 0 and 1 hand a word to warps 2 and 3: those arrive at barrier 1 without waiting
	out := runWords(t, kernelText(`
	.shared .b32 word;
	setp.ge.u32 %p1, %tid, 64;
	@%p1 bra TAKE;
	setp.eq.u32 %p2, %tid, 5;
	@%p2 st.shared.b32 [word], 77;
	bar.arrive 1, 128;
	mov.u32 %r1, 1;
	bra END;
TAKE:
	bar.sync 1, 128;
	ld.shared.b32 %r1, [word];
END: st.b32 [%at], %r1;`), 128, 128)
	require.Equal(t, uint32(1), out[63])
	require.Equal(t, uint32(77), out[64])
	require.Equal(t, uint32(77), out[127])
}

func TestBarrierReductions(t *testing.T) {
	out := runWords(t, kernelText(`
	setp.lt.u32 %p1, %tid, 40;
	bar.red.popc.u32 %r1, 0, %p1;
	barrier.sync 3;
	bar.red.and.pred %p2, 0, %p1;
	bar.red.or.pred %p3, 2, !%p1;
	selp.u32 %r2, 100, 0, %p2; selp.u32 %r3, 1000, 0, %p3;
	add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
	st.b32 [%at], %r1;`), 96, 96)
	require.Equal(t, uint32(1040), out[0])
	require.Equal(t, uint32(1040), out[95])
}

func TestThreadsThatEndedCountAtBarriers(t *testing.T) {
	out := runWords(t, kernelText(`
	setp.ge.u32 %p1, %tid, 50;
	@%p1 exit;
	bar.sync 0;
	st.b32 [%at], 9;`), 100, 100)
	require.Equal(t, uint32(9), out[49])
	require.Equal(t, uint32(0), out[50])
	out = runWords(t, kernelText(`
	setp.ge.u32 %p1, %tid, 50;
	@%p1 exit;
	setp.ge.u32 %p1, %tid, 20;
	@%p1 bra B;
	bar.sync 0;
	st.b32 [%at], 9;
	exit;
B:
	bar.sync 0;
	st.b32 [%at], 8;`), 100, 100)
	require.Equal(t, []uint32{9, 8, 0}, []uint32{out[19], out[49], out[50]}, "at two places")
}

func TestStuckBarrier(t *testing.T) {
	f := failure(t, head+`.file 1 "dir/program.cu"
.entry k()
{
	.reg .pred %p; .reg .b32 %r;
	mov.u32 %r, %tid.x;
	setp.lt.u32 %p, %r, 32;
	.loc 1 10 3
	@%p bra A;
	.loc 1 12 3
	bar.sync 2, 64;
	ret;
A:
	.loc 1 14 3, function_name $L_info, inlined_at 1 30 5
	bar.sync 1, 64;
	ret;
}`, launchOf(1, 64))
	require.Equal(t, "barrier stuck", f.Kind)
	require.Contains(t, f.Error(), "Barrier error detected. Divergent thread(s) in block")
	require.Contains(t, f.Error(), "program.cu:12")
	require.Contains(t, f.Error(), "program.cu:14, inlined at program.cu:30")
}

func TestStuckWarp(t *testing.T) {
	f := failure(t, kernelText(`
	setp.lt.u32 %p1, %tid, 5;
	@%p1 bra A;
	bar.warp.sync 0xffffffff;
	bra END;
A:	vote.sync.ballot.b32 %r1, %p1, 0xffffffff;
END:`), launchOf(1, 32, make(buffer[uint32], 32)))
	require.Equal(t, "warp stuck", f.Kind)
	require.Contains(t, f.Error(), "Divergent thread(s) in warp")
	require.NotEmpty(t, f.Other)
}

func TestWarpMeetsFromSeveralPlaces(t *testing.T) {
	// both sides execute a like shuffle with the mask of all
	out := runWords(t, kernelText(`
	mov.u32 %r1, %tid;
	setp.lt.u32 %p1, %tid, 16;
	@%p1 bra LOW;
	add.u32 %r1, %r1, 100;
	shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
	bra END;
LOW:
	mov.u32 %r3, %r1;
	shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;
	mov.u32 %r2, %r4;
END: st.b32 [%at], %r2;`), 32, 32)
	require.Equal(t, uint32(116), out[0])
	require.Equal(t, uint32(0), out[16])
	require.Equal(t, uint32(15), out[31])
}

func TestWarpInstructionsOfSomeLanes(t *testing.T) {
	out := runWords(t, kernelText(`
	and.b32 %r1, %tid, 3; setp.eq.u32 %p1, %r1, 1;
	mov.u32 %r5, 0;
	@!%p1 bra END;
	activemask.b32 %r2;
	match.any.sync.b32 %r3, %tid, %r2;
	vote.sync.all.pred %p2, %p1, %r2;
	elect.sync %r4|%p3, %r2;
	redux.sync.add.u32 %r5, %tid, %r2;
	selp.u32 %r6, 1000, 0, %p3; add.u32 %r5, %r5, %r6;
	shfl.sync.idx.b32 %r7, %tid, 5, 31, %r2; add.u32 %r5, %r5, %r7;
END: st.b32 [%at], %r5;`), 32, 32)
	sum := uint32(1 + 5 + 9 + 13 + 17 + 21 + 25 + 29)
	require.Equal(t, uint32(0), out[0])
	require.Equal(t, sum+1000+5, out[1])
	require.Equal(t, sum+5, out[5])
}

func TestVotesWithAConstantPredicate(t *testing.T) {
	for _, truth := range []string{"-1", "1", "7"} {
		out := runWords(t, kernelText(`
	and.b32 %r1, %tid, 3; setp.eq.u32 %p1, %r1, 1;
	mov.u32 %r5, 0;
	@!%p1 bra END;
	mov.pred %p2, `+truth+`;
	vote.sync.ballot.b32 %r5, %p2, 0x22222222;
	vote.sync.all.pred %p3, `+truth+`, 0x22222222;
	@!%p3 mov.u32 %r5, 5;
END: st.b32 [%at], %r5;`), 32, 32)
		require.Equal(t, []uint32{0, 0x22222222, 0, 0, 0, 0x22222222}, out[:6], truth)
	}
}

func TestMatch(t *testing.T) {
	out := runWords(t, kernelText(`
	rem.u32 %r1, %tid, 5;
	match.any.sync.b32 %r2, %r1, -1;
	match.all.sync.b32 %r3|%p1, %r1, -1;
	mov.u64 %rd1, 7;
	match.all.sync.b64 %r4|%p2, %rd1, -1;
	selp.u32 %r5, %r2, 0, %p2;
	@%p1 mov.u32 %r5, 0;
	st.b32 [%at], %r5;`), 32, 32)
	require.Equal(t, uint32(0x42108421), out[0])
	require.Equal(t, uint32(0x42108421<<1), out[1])
}

func TestSpinningThreads(t *testing.T) {
	// a lock that the threads of a warp wait for in the naive way
	text := kernelText(`
TRY:
	atom.global.cas.b32 %r1, [%out], 0, 1;
	setp.ne.s32 %p1, %r1, 0;
	@%p1 bra TRY;
	ld.volatile.global.b32 %r2, [%out+4];
	add.u32 %r2, %r2, 1;
	st.volatile.global.b32 [%out+4], %r2;
	membar.gl;
	atom.global.exch.b32 %r1, [%out], 0;`)
	out := make(buffer[uint32], 2)
	mustRun(t, text, "k", launchOf(3, 64, out))
	require.Equal(t, buffer[uint32]{0, 192}, out)
}

// gridBarrier makes every block wait for all others.
const gridBarrier = `
	mov.u32 %r1, %nctaid.x;
	setp.ne.u32 %p1, %tid, 0;
	@%p1 bra WAITED;
	atom.global.add.u32 %r2, [%out], 1;
SPIN:
	ld.acquire.gpu.global.u32 %r2, [%out];
	setp.lt.u32 %p2, %r2, %r1;
	@%p2 bra SPIN;
WAITED:
	bar.sync 0;
	mov.u32 %r3, %ctaid.x;
	mad.wide.u32 %rd1, %r3, 4, %out;
	ld.global.u32 %r2, [%out];
	st.global.u32 [%rd1+4], %r2;`

func TestBlocksThatWaitForEachOther(t *testing.T) {
	const blocks = 20
	for _, threads := range []int{1, 3} {
		out := make(buffer[uint32], blocks+1)
		r, err := mustKernel(t, kernelText(gridBarrier), "k").Start(launchOf(blocks, 64, out))
		require.NoError(t, err)
		var wait sync.WaitGroup
		for range threads {
			wait.Go(r.Work)
		}
		wait.Wait()
		_, err = r.Report()
		require.NoError(t, err)
		r.Close()
		for _, v := range out {
			require.Equal(t, uint32(blocks), v)
		}
	}
}

func TestLimit(t *testing.T) {
	l := launchOf(1, 32, make(buffer[uint32], 32))
	l.Limit = 100_000
	f := failure(t, kernelText("AGAIN: bra AGAIN;"), l)
	require.Equal(t, "limit", f.Kind)
	require.Contains(t, f.Error(), "did not end within 100000 instructions, at kernel k")
	require.Equal(t, "bra", f.Instruction)
	// and one that waits for another block which never comes
	f = failure(t, kernelText("AGAIN: ld.volatile.b32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN;"), l)
	require.Equal(t, "limit", f.Kind)
}

func TestStop(t *testing.T) {
	l := launchOf(1, 32, make(buffer[uint32], 32))
	l.Limit = 0
	r, err := mustKernel(t, kernelText("AGAIN: bra AGAIN;"), "k").Start(l)
	require.NoError(t, err)
	defer r.Close()
	done := make(chan struct{})
	go func() {
		r.Work()
		close(done)
	}()
	r.Stop()
	<-done
	_, err = r.Report()
	require.ErrorIs(t, err, ErrStopped)
}

func TestAgain(t *testing.T) {
	out := make(buffer[uint32], 1)
	r, err := mustKernel(t, kernelText("red.global.add.u32 [%out], 1;"), "k").Start(launchOf(4, 32, out))
	require.NoError(t, err)
	defer r.Close()
	for i := range 3 {
		require.EqualValues(t, 4, r.WorkSome(100))
		_, err := r.Report()
		require.NoError(t, err)
		require.EqualValues(t, 128*(i+1), out[0])
		r.Again()
	}
}

func TestAtomicsOfSeveralThreads(t *testing.T) {
	text := kernelText(`
	atom.global.add.u32 %r1, [%out], 1;
	red.global.add.f32 [%out+4], 0f3F800000;
	red.global.max.u32 [%out+8], %tid;
	red.global.add.u64 [%out+16], 3;
	red.global.inc.u32 [%out+24], 999;
	red.global.add.noftz.f16x2 [%out+28], 0x00003c00;
	red.global.add.f64 [%out+32], 0d3FF0000000000000;`)
	out := make(buffer[uint32], 10)
	r, err := mustKernel(t, text, "k").Start(launchOf(8, 128, out))
	require.NoError(t, err)
	defer r.Close()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(r.Work)
	}
	wait.Wait()
	_, err = r.Report()
	require.NoError(t, err)
	require.Equal(t, buffer[uint32]{1024, uint32(f32(1024)), 127, 0, 3072, 0, 24, 0x6400, 0, 0x40900000}, out)
}

func TestAtomicResults(t *testing.T) {
	for _, c := range []struct {
		op             string
		typ            string
		old, b, c, new uint64
	}{
		{"add", "u32", 5, 7, 0, 12}, {"min", "s32", 5, s32(-7), 0, s32(-7)}, {"max", "u32", 5, s32(-7), 0, s32(-7)}, {"and", "b32", 6, 3, 0, 2},
		{"or", "b64", 6, 1 << 40, 0, 1<<40 | 6}, {"xor", "b32", 6, 3, 0, 5}, {"exch", "b64", 6, 3, 0, 3}, {"inc", "u32", 5, 5, 0, 0}, {"inc", "u32", 4, 5, 0, 5},
		{"dec", "u32", 0, 9, 0, 9}, {"dec", "u32", 12, 9, 0, 9}, {"dec", "u32", 3, 9, 0, 2}, {"cas", "b32", 5, 5, 8, 8}, {"cas", "b32", 5, 6, 8, 5},
		{"cas", "b16", 5, 5, 8, 8}, {"cas", "b64", 5, 5, 8, 8}, {"min", "u64", 9, 4, 0, 4}, {"max", "s64", neg(9), 4, 0, 4}, {"add", "f32", f32(1), f32(2), 0, f32(3)},
		{"add", "f64", f64(1), f64(2), 0, f64(3)}, {"add.noftz", "f16", one16, one16, 0, two16}, {"add.noftz", "bf16", 0x3f80, 0x3f80, 0, 0x4000},
		{"add.noftz", "bf16x2", 0x3f803f80, 0x3f800000, 0, 0x40003f80},
	} {
		for _, space := range []string{"global", "shared"} {
			t.Run(space+"."+c.op+"."+c.typ, func(t *testing.T) {
				size := typeSizes[c.typ]
				compare := ""
				if strings.HasPrefix(c.op, "cas") {
					compare = ", %e"
				}
				prepare, finish, place := "", "", "%out"
				if space == "shared" {
					prepare = fmt.Sprintf(".shared .align 8 .b8 room[8]; ld.b%d %%x, [%%out]; st.shared.b%d [room], %%x;", 8*size, 8*size)
					finish = fmt.Sprintf("ld.shared.b%d %%x, [room]; st.b%d [%%out], %%x;", 8*size, 8*size)
					place = "room"
				}
				text := kernelText(fmt.Sprintf(`.reg .b%d %%d, %%c, %%e, %%x; mov.b%d %%d, 0; mov.b%d %%c, %#x; mov.b%d %%e, %#x; %s
				atom.relaxed.gpu.%s.%s.%s %%d, [%s], %%c%s; %s st.b%d [%%out+8], %%d;`, 8*size, 8*size, 8*size, c.b, 8*size, c.c, prepare, space, c.op, c.typ, place, compare, finish, 8*size))
				out := buffer[uint64]{c.old, 0}
				mustRun(t, text, "k", launchOf(1, 1, out))
				require.Equal(t, buffer[uint64]{c.new, c.old}, out)
			})
		}
	}
}

func TestWideAtomics(t *testing.T) {
	out := make(buffer[uint64], 5)
	if out.address()%16 != 0 {
		out = out[1:] // one of two neighbours is at a multiple of 16
	}
	out = out[:4]
	copy(out, []uint64{1, 2, 0, 0})
	mustRun(t, kernelText(`.reg .b128 %a, %b, %d; .reg .b64 %one, %two, %three; mov.u64 %one, 1; mov.u64 %two, 2; mov.u64 %three, 3;
	mov.b128 %a, {%one, %two}; mov.b128 %b, {%three, %one}; atom.global.cas.b128 %d, [%out], %a, %b; st.b128 [%out+16], %d;`), "k", launchOf(1, 1, out))
	require.Equal(t, buffer[uint64]{3, 1, 1, 2}, out)
}

func TestSpecialRegisters(t *testing.T) {
	out := make(buffer[uint32], 8*12)
	l := launchOf(1, 1, out)
	l.Grid, l.Block = [3]int{2, 3, 2}, [3]int{2, 2, 2}
	mustRun(t, head+`
.entry k(.param .u64 p)
{
	.reg .b32 %r<9>; .reg .b64 %rd<3>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
	mad.lo.u32 %r4, %r3, 2, %r2; mad.lo.u32 %r4, %r4, 2, %r1;
	mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
	mad.lo.u32 %r5, %r3, 3, %r2; mad.lo.u32 %r5, %r5, 2, %r1;
	mad.lo.u32 %r6, %r5, 8, %r4;
	mad.wide.u32 %rd2, %r6, 4, %rd1;
	mov.u32 %r7, %nctaid.y; mad.lo.u32 %r6, %r7, 1000, %r6;
	mov.u32 %r7, %laneid; mad.lo.u32 %r6, %r7, 10000, %r6;
	mov.u32 %r7, %lanemask_lt; popc.b32 %r7, %r7; mad.lo.u32 %r6, %r7, 1000000, %r6;
	st.b32 [%rd2], %r6;
	ret;
}`, "k", l)
	for i, v := range out {
		lane := i % 8
		require.EqualValues(t, i+3000+10000*lane+1000000*lane, v)
	}
}

func TestClockGoesOn(t *testing.T) {
	out := runWords(t, kernelText(`mov.u64 %rd1, %clock64; nanosleep.u32 100; mov.u64 %rd2, %globaltimer; setp.gt.u64 %p1, %rd2, %rd1; selp.u32 %r1, 1, 0, %p1; st.b32 [%at], %r1;`), 32, 32)
	require.Equal(t, uint32(1), out[31])
}

// TestManyRuns launches kernels of one program from several threads.
func TestManyRuns(t *testing.T) {
	k := mustKernel(t, addText, "add")
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 20 {
				x, y, z := make(buffer[float32], 300), make(buffer[float32], 300), make(buffer[float32], 300)
				x[299], y[299] = 1, 2
				if _, err := k.Run(launchOf(3, 128, x, y, z, 300)); err != nil || z[299] != 3 {
					panic(fmt.Sprint(err, z[299]))
				}
				runtime.KeepAlive(z)
			}
		})
	}
	wait.Wait()
}
