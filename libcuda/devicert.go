package libcuda

import "strings"

// The runtime of devices, which kernels call and NVIDIA's linkers take from a library of machine code: here it is PTX, put
// behind programs that call it.

// deviceRuntime are the functions of grid barriers by which compilers synchronize cooperative launches. The handle of a grid
// is the address of its workspace, whose second word counts the blocks that have arrived: its highest bit changes when
// all have.
const deviceRuntime = `
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
	.reg .b32 %low, %high;
	.reg .b64 %address;
	mov.u32 %high, %envreg1;
	mov.u32 %low, %envreg2;
	mov.b64 %address, {%low, %high};
	st.param.b64 [handle], %address;
	ret;
}
.visible .func (.param .b32 code) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
	.reg .pred %other, %same;
	.reg .b32 %x, %y, %z, %blocks, %adds, %before, %now;
	.reg .b64 %address;
	ld.param.b64 %address, [handle];
	barrier.sync 0;
	mov.u32 %x, %tid.x;
	mov.u32 %y, %tid.y;
	mov.u32 %z, %tid.z;
	or.b32 %x, %x, %y;
	or.b32 %x, %x, %z;
	setp.ne.u32 %other, %x, 0;
	@%other bra BEHIND;
	mov.u32 %blocks, %nctaid.x;
	mov.u32 %y, %nctaid.y;
	mul.lo.u32 %blocks, %blocks, %y;
	mov.u32 %z, %nctaid.z;
	mul.lo.u32 %blocks, %blocks, %z;
	mov.u32 %x, %ctaid.x;
	mov.u32 %y, %ctaid.y;
	mov.u32 %z, %ctaid.z;
	or.b32 %x, %x, %y;
	or.b32 %x, %x, %z;
	setp.ne.u32 %other, %x, 0;
	mov.u32 %adds, 1;
	@%other bra ARRIVE;
	sub.u32 %blocks, %blocks, 1;
	mov.u32 %adds, 0x80000000;
	sub.u32 %adds, %adds, %blocks;
ARRIVE:
	membar.gl;
	atom.global.add.u32 %before, [%address+4], %adds;
WAIT:
	ld.volatile.global.u32 %now, [%address+4];
	xor.b32 %now, %now, %before;
	and.b32 %now, %now, 0x80000000;
	setp.eq.u32 %same, %now, 0;
	@%same bra WAIT;
	membar.gl;
BEHIND:
	barrier.sync 0;
	mov.u32 %x, 0;
	st.param.b32 [code], %x;
	ret;
}
`

// withRuntime returns a program with the runtime of devices, if it calls that.
func withRuntime(text string) string {
	if strings.Contains(text, "cudaCGGetIntrinsicHandle") && !strings.Contains(text, deviceRuntime) {
		return text + deviceRuntime
	}
	return text
}
