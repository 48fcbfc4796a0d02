package ptx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTextsThatAreWrong checks that an error has the line and says what was expected, or what is not supported.
func TestTextsThatAreWrong(t *testing.T) {
	in := func(body string) string {
		return ".entry k(.param .u64 p) {\n.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p1;\n" + body + "\nret; }"
	}
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"hello", 4, `a directive such as .entry expected, not "hello"`},
		{".entry k( { }", 4, `a state space such as .reg expected, not "{"`},
		{".entry k() {", 4, `"}" expected, not the end of the text`},
		{"/* no end", 4, "a comment does not end"},
		{".file 1 \"no end", 4, "a string does not end"},
		{".section .debug_info { .b8 1", 4, "a section does not end"},
		{".global .b99 x;", 4, `a type such as .b32 expected, not ".b99"`},
		{".global .b32 x[3000000000];", 4, "variable x is too large"},
		{".global .b8 x[2] = {1, 2, 3};", 4, "more values than variable x has room for"},
		{".global .b64 x = y;", 4, "the name y is not known"},
		{".shared .b32 x = 1;", 4, "variable x has a first value"},
		{".global .align 3 .b32 x;", 4, "it must be a power of two"},
		{".tex .u64 x;", 4, "textures and surfaces are not supported"},
		{".entry k() .reqntid 2000 { }", 4, "a block of 2000 threads"},
		{".entry k() .reqnctapercluster 2 { }", 4, "clusters are not supported"},
		{".entry k() { ret; } .entry k() { ret; }", 4, "function k is there twice"},
		{in("st.param.b64 [p], %rd1;"), 6, "a store to parameters of a kernel or to constants"},
		{in("add.u32 %r1, %r2, %r9;"), 6, "register %r9: there are %r<4>"},
		{in("add.u32 %r1 %r2;"), 6, `"," expected, not "%r2"`},
		{in("@%r1 mov.u32 %r1, 1;"), 6, "a predicate expected"},
		{in("mov.u32 %r1, 1.2.3;"), 6, "a number expected"},
		{in("L: bra L;\nL: ret;"), 7, "label L is there twice"},
		{in("bra NOWHERE;"), 6, `label "NOWHERE" is not in function k`},
		{in("frobnicate.u32 %r1;"), 6, "frobnicate.u32: unknown instruction"},
		{in("add.u99 %r1, %r2, %r3;"), 6, "add.u99: not supported"},
		{in("add.u32 %r1, %r2;"), 6, "add.u32: 3 operands expected, not 2"},
		{in("add.u32 %r1, %r2, %rd1;"), 6, "add.u32: an operand of type .u32 expected, not %rd1 of 8 bytes"},
		{in("add.u32 5, %r2, %r1;"), 6, "add.u32: a register expected, not a number"},
		{in("mul.u32 %r1, %r2, %r1;"), 6, "mul.u32: .lo, .hi or .wide expected"},
		{in("mov.u32 %r1, %nothing;"), 6, "the register %nothing is not known"},
		{in("mov.u64 %rd1, nothing;"), 6, "the name nothing is not known"},
		{in("ld.global.u32 %r1, %rd1;"), 6, "an address such as [%rd1+8] expected"},
		{in("ld.param.u32 %r1, [p+99];"), 6, "99 bytes behind the begin of p, which has 8"},
		{in("call nothing;"), 6, "the function nothing is not defined"},
		{in("cvt.s32.f32 %r1, %r2;"), 6, "a rounding such as .rzi expected"},
		{in("shfl.up.b32 %r1, %r2, 1, 0;"), 6, "without .sync it ended with sm_70"},
		{in("wgmma.fence.sync.aligned;"), 6, "wgmma.fence.sync.aligned: not supported: it needs sm_90; kernels run as on sm_80"},
		{in("mbarrier.init.shared.b64 [%rd1], 1;"), 6, "mbarrier.init.shared.b64: not supported: it needs sm_90"},
		{in("cp.async.bulk.commit_group;"), 6, "cp.async.bulk.commit_group: not supported: it needs sm_90"},
		{in("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r1}, [%rd1, {%r1, %r2}];"), 6, "it needs textures"},
		{in("barrier.cluster.arrive;"), 6, "clusters need sm_90"},
		{in("ld.shared::cluster.u32 %r1, [%rd1];"), 6, "clusters need sm_90"},
		{in("min.s32 %r1, %r2, %r3, %r1;"), 6, "three operands need sm_100"},
		{in("vadd.s32.s32.s32 %r1, %r2, %r3;"), 6, "video instructions"},
		{in("atom.global.add.v2.f32 {%r1, %r2}, [%rd1], {%r1, %r2};"), 6, "it needs sm_90"},
		{in("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};"), 6, "vectors of [4 4 2 4] registers expected, not of [1 1 1 1]"},
		{in("{ .reg .b32 %x;\n}\nmov.u32 %x, 1;"), 8, "a register expected"},
		{in(strings.Repeat("{", 300)), 6, "blocks are nested more than 200 deep"},
	} {
		m, err := Parse(head + c.text)
		if err == nil {
			_, err = m.Kernel("k")
		}
		var s *SyntaxError
		require.ErrorAs(t, err, &s, c.text)
		require.Contains(t, s.Text, c.want, c.text)
		require.Equal(t, c.line, s.Line, c.text)
	}
}

func TestVersionsAndTargets(t *testing.T) {
	for text, want := range map[string]string{
		".version 99.1\n":                                     "line 1: version \"99.1\" is not supported",
		".version 8.0\n.target gfx90a\n":                      "line 2: target \"gfx90a\" is not supported",
		".version 8.0\n.target sm_80\n.address_size 32\n":     "only addresses of 64 bits",
		".version 8.0\n.target sm_80, debug\n.address_size 7": "only addresses of 64 bits",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want)
	}
	m, err := Parse(head + ".entry b() { ret; } .func f() { ret; } .entry a() { ret; }")
	require.NoError(t, err)
	require.Equal(t, "sm_80", m.Target())
	require.Equal(t, []string{"b", "a"}, m.Kernels())
}

func TestLabelsBelongToTheirBlocks(t *testing.T) {
	out := runWords(t, kernelText(`
	mov.u32 %r1, 0;
	{ setp.lt.u32 %p1, %tid, 5; @%p1 bra SKIP; add.u32 %r1, %r1, 1; SKIP: }
	{ setp.lt.u32 %p1, %tid, 9; @%p1 bra SKIP; add.u32 %r1, %r1, 2; SKIP: }
	st.b32 [%at], %r1;`), 32, 32)
	require.Equal(t, []uint32{0, 1, 3}, []uint32{out[4], out[5], out[9]})
}

func TestTablesOfLabelsBelongToTheirBlocks(t *testing.T) {
	out := runWords(t, kernelText(`
	mov.u32 %r1, 0;
	and.b32 %r2, %tid, 1;
	{ T: .branchtargets A, B; brx.idx %r2, T; A: add.u32 %r1, %r1, 1; bra NEXT; B: add.u32 %r1, %r1, 2; }
NEXT:
	{ T: .branchtargets B, A; { brx.idx %r2, T; } A: add.u32 %r1, %r1, 10; bra END; B: add.u32 %r1, %r1, 20; }
END:
	st.b32 [%at], %r1;`), 32, 32)
	require.Equal(t, []uint32{21, 12}, out[:2])
}

// TestLongTexts parses and decodes texts of which each part could cost more than its length.
func TestLongTexts(t *testing.T) {
	var b strings.Builder
	b.WriteString(head + ".entry k() {\n.reg .b32 %r<100000>; .reg .pred %p;\n")
	for i := range 20000 { // a block of code and a register that lives long for each line
		fmt.Fprintf(&b, "L%d: mov.u32 %%r%d, %%tid.x;\nsetp.eq.u32 %%p, %%r%d, %d;\n@%%p bra L%d;\n", i, i, i/2, i, i/3)
	}
	b.WriteString("ret; }")
	m, err := Parse(b.String())
	require.NoError(t, err)
	_, err = m.Kernel("k")
	require.NoError(t, err)
}

// FuzzParse searches for texts that make the parser or the decoder panic.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.ptx"))
	require.NoError(f, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(addText)
	f.Add(callsText)
	f.Add(kernelText("TABLE: .branchtargets A, B; brx.idx %r1, TABLE; A: bar.sync 0; B: trap;"))
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			var s *SyntaxError
			require.True(t, errors.As(err, &s))
			return
		}
		for _, name := range m.Kernels() {
			_, _ = m.Kernel(name)
		}
	})
}
