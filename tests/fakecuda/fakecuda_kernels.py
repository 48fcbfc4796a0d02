"""The kernels that the look-alike has, as programs which do the same on a GPU."""

from __future__ import annotations

HEAD = ".version 6.0\n.target sm_50"


def _loop(count: int, *lines: str) -> str:
    """Return a body in which the first thread alone goes over `count` elements; %r1 is the index, %rd9 its bytes."""
    return "\n    ".join(
        [
            ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<10>; .reg .f32 %f<4>;",
            "mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; or.b32 %r2, %r2, %r3;",
            "setp.ne.u32 %p1, %r2, 0; @%p1 bra DONE;",
            f"ld.param.u32 %r4, [ENTRY_{count}]; mov.u32 %r1, 0;",
            "AGAIN:",
            "setp.ge.u32 %p2, %r1, %r4; @%p2 bra DONE;",
            "mul.wide.u32 %rd9, %r1, 4;",
            *lines,
            "add.u32 %r1, %r1, 1; bra AGAIN;",
            "DONE:",
            "ret;",
        ]
    )


def _address(register: int, parameter: int) -> str:
    """Return what puts the address of an array's element into a register."""
    return f"ld.param.u64 %rd{register}, [ENTRY_{parameter}]; add.u64 %rd{register}, %rd{register}, %rd9;"


_DELAY = """.reg .pred %p<2>; .reg .u64 %t<5>;
    ld.param.u64 %t1, [ENTRY_0];
    mov.u64 %t2, %globaltimer;
    LOOK:
    mov.u64 %t3, %globaltimer;
    sub.u64 %t4, %t3, %t2;
    setp.lt.u64 %p1, %t4, %t1;
    @%p1 bra LOOK;
    ret;"""
_CONDITION = """.reg .u64 %at; .reg .u32 %value;
    .param .b64 first; .param .b32 second;
    ld.param.u64 %at, [ENTRY_0]; ld.param.u32 %value, [ENTRY_1];
    st.param.b64 [first], %at; st.param.b32 [second], %value;
    call.uni cudaGraphSetConditional, (first, second);
    ret;"""

#: Body by entry and parameters; ENTRY stands for the entry's name.
BODIES = {
    ("halstream_delay", "u64"): _DELAY,
    ("set_condition", "u64 u32"): _CONDITION,
    ("fill_u32", "u64 u32 u32"): _loop(2, _address(1, 0), "ld.param.u32 %r5, [ENTRY_1]; st.global.u32 [%rd1], %r5;"),
    ("scale_f32", "u64 f32 u32"): _loop(
        2, _address(1, 0), "ld.param.f32 %f1, [ENTRY_1]; ld.global.f32 %f2, [%rd1];",
        "mul.f32 %f2, %f2, %f1; st.global.f32 [%rd1], %f2;",
    ),
    ("add_f32", "u64 u64 u64 u32"): _loop(
        3, _address(1, 0), _address(2, 1), _address(3, 2), "ld.global.f32 %f1, [%rd2]; ld.global.f32 %f2, [%rd3];",
        "add.f32 %f1, %f1, %f2; st.global.f32 [%rd1], %f1;",
    ),
    ("saxpy", "f32 u64 u64 u32"): _loop(
        3, _address(1, 1), _address(2, 2), "ld.param.f32 %f1, [ENTRY_0]; ld.global.f32 %f2, [%rd1];",
        "ld.global.f32 %f3, [%rd2]; fma.rn.f32 %f3, %f1, %f2, %f3; st.global.f32 [%rd2], %f3;",
    ),
}  # fmt: skip
_DECLARED = {
    "set_condition": ".extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);\n",
}


def ptx(entry: str, params: str, body: str = "", head: str = HEAD) -> bytes:
    """Return a program of one function; params like ``"u64 u32"``."""
    body = body or BODIES.get((entry, params), "ret;").replace("ENTRY", entry)
    declared = ",\n".join(f"    .param .{kind} {entry}_{i}" for i, kind in enumerate(params.split()))
    start = f"//\n{head}\n.address_size 64\n{_DECLARED.get(entry, '')}"
    return f"{start}.visible .entry {entry}(\n{declared}\n)\n{{\n    {body}\n}}\n".encode() + b"\0"
