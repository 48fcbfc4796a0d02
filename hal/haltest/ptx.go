package haltest

// Kernels of the suite, as text that every GPU's driver compiles. The look-alike
// driver has C functions of the same names. Each is for one thread an element.
const (
	ptxHead = `.version 6.0
.target sm_50
.address_size 64
`

	// ptxFill: n numbers at x become v.
	ptxFill = ptxHead + `
.visible .entry fill_u32(
	.param .u64 fill_x,
	.param .u32 fill_v,
	.param .u32 fill_n
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<7>;
	.reg .b64 %d<5>;

	ld.param.u64 %d1, [fill_x];
	ld.param.u32 %r1, [fill_v];
	ld.param.u32 %r2, [fill_n];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.u32 %r6, %r3, %r4, %r5;
	setp.ge.u32 %p1, %r6, %r2;
	@%p1 bra FILL_END;
	cvta.to.global.u64 %d2, %d1;
	mul.wide.u32 %d3, %r6, 4;
	add.u64 %d4, %d2, %d3;
	st.global.u32 [%d4], %r1;
FILL_END:
	ret;
}
`

	// ptxVariable: a variable of 64 numbers, and a function that nothing calls.
	ptxVariable = ptxHead + `
.visible .global .align 4 .b8 numbers[256];

.func nothing() { ret; }
`

	// ptxRace: thread i of a block writes word i of shared memory and reads the next one, with a barrier
	// between the two if wait is not 0.
	ptxRace = ptxHead + `
.visible .entry race_u32(
	.param .u64 race_x,
	.param .u32 race_wait
)
{
	.shared .align 4 .b8 race_words[256];
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %d<5>;

	ld.param.u64 %d1, [race_x];
	ld.param.u32 %r1, [race_wait];
	mov.u32 %r2, %tid.x;
	shl.b32 %r3, %r2, 2;
	mov.u32 %r4, race_words;
	add.u32 %r5, %r4, %r3;
	st.shared.u32 [%r5], %r2;
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra RACE_READ;
	bar.sync 0;
RACE_READ:
	add.u32 %r6, %r3, 4;
	and.b32 %r6, %r6, 255;
	add.u32 %r7, %r4, %r6;
	ld.shared.u32 %r8, [%r7];
	cvta.to.global.u64 %d2, %d1;
	mul.wide.u32 %d3, %r2, 4;
	add.u64 %d4, %d2, %d3;
	st.global.u32 [%d4], %r8;
	ret;
}
`

	// ptxBox: element i of x becomes v plus the word i of the box of 40 bytes, for i below 10.
	ptxBox = ptxHead + `
.visible .entry box_u32(
	.param .u32 box_v,
	.param .align 8 .b8 box_box[40],
	.param .u64 box_x
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	.reg .b64 %d<8>;

	ld.param.u32 %r1, [box_v];
	ld.param.u64 %d1, [box_x];
	mov.u32 %r2, %tid.x;
	setp.ge.u32 %p1, %r2, 10;
	@%p1 bra BOX_END;
	mul.wide.u32 %d2, %r2, 4;
	mov.b64 %d3, box_box;
	add.u64 %d4, %d3, %d2;
	ld.param.u32 %r3, [%d4];
	add.u32 %r4, %r3, %r1;
	cvta.to.global.u64 %d5, %d1;
	add.u64 %d6, %d5, %d2;
	st.global.u32 [%d6], %r4;
BOX_END:
	ret;
}
`

	// ptxAdd: out = a + b, n numbers each.
	ptxAdd = ptxHead + `
.visible .entry add_f32(
	.param .u64 add_out,
	.param .u64 add_a,
	.param .u64 add_b,
	.param .u32 add_n
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<4>;
	.reg .b64 %d<11>;

	ld.param.u64 %d1, [add_out];
	ld.param.u64 %d2, [add_a];
	ld.param.u64 %d3, [add_b];
	ld.param.u32 %r1, [add_n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 bra ADD_END;
	cvta.to.global.u64 %d4, %d1;
	cvta.to.global.u64 %d5, %d2;
	cvta.to.global.u64 %d6, %d3;
	mul.wide.u32 %d7, %r5, 4;
	add.u64 %d8, %d5, %d7;
	add.u64 %d9, %d6, %d7;
	add.u64 %d10, %d4, %d7;
	ld.global.f32 %f1, [%d8];
	ld.global.f32 %f2, [%d9];
	add.f32 %f3, %f1, %f2;
	st.global.f32 [%d10], %f3;
ADD_END:
	ret;
}
`

	// ptxWrong has a mistake, which the look-alike driver knows by its words.
	ptxWrong = ptxHead + `
.visible .entry fill_u32(
	.param .u64 fill_x
)
{
	syntax_error_here;
	ret;
}
`
)
