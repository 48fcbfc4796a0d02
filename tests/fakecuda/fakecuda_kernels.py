"""The kernels that the look-alike has, as programs which do the same on a GPU."""

from __future__ import annotations

HEAD = ".version 6.0\n.target sm_50"


def _loop(count: int, *lines: str) -> str:
    """Return a body in which the first thread alone goes over `count` elements; %r1 is the index, %rd9 its bytes."""
    return "\n    ".join(
        [
            ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<10>;",
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

#: Body by entry and parameters; ENTRY stands for the entry's name.
BODIES = {
    ("halstream_delay", "u64"): _DELAY,
    ("fill_u32", "u64 u32 u32"): _loop(2, _address(1, 0), "ld.param.u32 %r5, [ENTRY_1]; st.global.u32 [%rd1], %r5;"),
}


def ptx(entry: str, params: str, body: str = "", head: str = HEAD) -> bytes:
    """Return a program of one function; params like ``"u64 u32"``."""
    body = body or BODIES.get((entry, params), "ret;").replace("ENTRY", entry)
    declared = ",\n".join(f"    .param .{kind} {entry}_{i}" for i, kind in enumerate(params.split()))
    start = f"//\n{head}\n.address_size 64\n"
    return f"{start}.visible .entry {entry}(\n{declared}\n)\n{{\n    {body}\n}}\n".encode() + b"\0"
