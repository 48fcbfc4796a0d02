"""A kernel that every side launches, so that the launch is what differs."""

#: fill_u32(x, v, n) sets n words at x to v. Old on purpose: every driver compiles it.
FILL = """
.version 6.0
.target sm_50
.address_size 64

.visible .entry fill_u32(
    .param .u64 fill_x,
    .param .u32 fill_v,
    .param .u32 fill_n
)
{
    .reg .pred %past;
    .reg .b32 %value, %count, %block, %width, %index;
    .reg .b64 %base, %offset, %place;

    ld.param.u64 %base, [fill_x];
    ld.param.u32 %value, [fill_v];
    ld.param.u32 %count, [fill_n];
    mov.u32 %block, %ctaid.x;
    mov.u32 %width, %ntid.x;
    mov.u32 %index, %tid.x;
    mad.lo.u32 %index, %block, %width, %index;
    setp.ge.u32 %past, %index, %count;
    @%past bra DONE;
    cvta.to.global.u64 %base, %base;
    mul.wide.u32 %offset, %index, 4;
    add.u64 %place, %base, %offset;
    st.global.u32 [%place], %value;
DONE:
    ret;
}
"""
WORDS = 32
