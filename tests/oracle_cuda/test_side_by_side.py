"""The same small programs with halstream and with clients of NVIDIA's: which calls of the driver they make.

The look-alike logs the calls. The table of docs/backends.md has them, with a reason where they differ;
`make oracle-cuda ORACLE=--write` writes it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

core = pytest.importorskip("cuda.core")
numba = pytest.importorskip("numba.cuda")

DOCS = Path(__file__).resolve().parents[2] / "docs" / "backends.md"
BEGIN, END = "<!-- side by side: begin -->\n", "<!-- side by side: end -->"
PTX = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry scale_f32(.param .u64 x, .param .f32 a, .param .u32 n) { ret; }
"""
#: Calls that concern which context is current, and how a thread takes captures of others.
CONTEXT = re.compile(
    r"cuCtx(Get|Set)Current|cuCtx(Push|Pop)Current.*|cuCtxGetDevice.*|cuThreadExchange.*|cuGetProcAddress.*"
)

POLLED = "a wait polls, so that it can have a limit and Ctrl-C ends it"
READY = "ready before, since a driver may wait for the device in the call"
NOTED = "the record says when the pinned memory is free again"


class Program(NamedTuple):
    """A program in the words of each library, and why not all make the same calls."""

    core: Callable[[Any], Any] | None
    numba: Callable[[Any], Any] | None
    ours: Callable[[Any], Any]
    why: str = ""


PROGRAMS = {
    "record an event": Program(
        lambda n: n.cs.record(n.ce), lambda n: n.ne.record(n.ns), lambda n: n.s.record(n.e)
    ),
    "record an event twice": Program(
        lambda n: (n.cs.record(n.ce), n.cs.record(n.ce)),
        lambda n: (n.ne.record(n.ns), n.ne.record(n.ns)),
        lambda n: (n.s.record(n.e), n.s.record(n.e)),
    ),
    "record an event with times": Program(
        lambda n: n.cs.record(n.ct), lambda n: n.nt.record(n.ns), lambda n: n.s.record(n.t)
    ),
    "record a new event": Program(
        lambda n: n.cs.record(), lambda n: numba.event(timing=False).record(n.ns), lambda n: n.s.record(), READY
    ),
    "make an event and drop it": Program(
        lambda n: n.cd.create_event().close(), lambda n: numba.event(), lambda n: n.hs.Event().close(),
        "made with its first record",
    ),
    "wait for an event": Program(
        lambda n: n.cs.wait(n.ce), lambda n: n.ne.wait(n.ns), lambda n: n.s.wait_event(n.e)
    ),
    "wait for two events": Program(
        lambda n: (n.cs.wait(n.ce), n.cs.wait(n.ct)),
        lambda n: (n.ne.wait(n.ns), n.nt.wait(n.ns)),
        lambda n: (n.s.wait_event(n.e), n.s.wait_event(n.t)),
    ),
    "record on one stream, wait on another": Program(
        lambda n: (n.cs.record(n.ce), n.cs2.wait(n.ce)),
        lambda n: (n.ne.record(n.ns), n.ne.wait(n.ns2)),
        lambda n: (n.s.record(n.e), n.s2.wait_event(n.e)),
    ),
    "wait for a stream": Program(
        lambda n: n.cs2.wait(n.cs), None, lambda n: n.s2.wait_stream(n.s), READY
    ),
    "query an event": Program(
        lambda n: n.ce.is_done, lambda n: n.ne.query(), lambda n: n.e.query()
    ),
    "record an event and query it": Program(
        lambda n: (n.cs.record(n.ce), n.ce.is_done), lambda n: (n.ne.record(n.ns), n.ne.query()),
        lambda n: (n.s.record(n.e), n.e.query()),
    ),
    "record an event and wait for it on the host": Program(
        lambda n: (n.cs.record(n.ce), n.ce.sync()), lambda n: (n.ne.record(n.ns), n.ne.synchronize()),
        lambda n: (n.s.record(n.e), n.e.synchronize()), POLLED,
    ),
    "wait for a stream on the host": Program(
        lambda n: n.cs.sync(), lambda n: n.ns.synchronize(), lambda n: (n.s.nop(), n.s.synchronize()), POLLED
    ),
    "wait for the device on the host": Program(
        None, lambda n: numba.synchronize(), lambda n: (n.s.nop(), n.hs.synchronize()), POLLED
    ),
    "times between events": Program(
        lambda n: n.cend - n.ct, lambda n: numba.event_elapsed_time(n.nt, n.nend),
        lambda n: n.t.elapsed(n.end),
    ),
    "make a stream and close it": Program(
        lambda n: n.cd.create_stream().close(), lambda n: numba.stream(), lambda n: n.hs.Stream().close(), READY
    ),
    "allocate 4 KiB and free it": Program(
        lambda n: n.cd.allocate(4096, stream=n.cs).close(n.cs), lambda n: numba.device_array(4096, np.uint8),
        lambda n: n.hs.empty(4096, np.uint8, stream=n.s), "from memory that the runtime keeps",
    ),
    "copy pinned memory to the device": Program(
        lambda n: n.cm.copy_from(n.cp, stream=n.cs), lambda n: n.nm.copy_to_device(n.np, stream=n.ns),
        lambda n: n.m.copy_from(n.p, n.s), NOTED,
    ),
    "copy device memory to pinned memory": Program(
        lambda n: n.cm.copy_to(n.cp, stream=n.cs), lambda n: n.nm.copy_to_host(n.np, stream=n.ns),
        lambda n: n.m.copy_to(n.p, n.s), NOTED,
    ),
    "copy on the device": Program(
        lambda n: n.cm2.copy_from(n.cm, stream=n.cs), lambda n: n.nm2.copy_to_device(n.nm, stream=n.ns),
        lambda n: n.m2.copy_from(n.m, n.s), "cuda.core leaves it to the driver where the memory lies",
    ),
    "fill with bytes": Program(
        lambda n: n.cm.fill(b"\7", stream=n.cs), None, lambda n: n.bytes.fill(7, n.s)
    ),
    "fill with words": Program(
        lambda n: n.cm.fill(b"\0\0\x80\x3f", stream=n.cs), None, lambda n: n.m.fill(1.0, n.s)
    ),
    "launch a kernel": Program(
        lambda n: core.launch(n.cs, core.LaunchConfig(grid=1, block=16), n.ck, n.cm, np.float32(2), np.uint32(16)),
        None, lambda n: n.s.launch(n.k, 1, 16, n.m, 2.0, 16),
    ),
    "launch, record, wait, launch": Program(
        lambda n: (PROGRAMS["launch a kernel"].core(n), n.cs.record(n.ce), n.cs2.wait(n.ce)), None,
        lambda n: (PROGRAMS["launch a kernel"].ours(n), n.s.record(n.e), n.s2.wait_event(n.e)),
    ),
    "ask for free memory": Program(
        None, lambda n: numba.current_context().get_memory_info(), lambda n: n.memory.memory_info(),
        "what the runtime's pool keeps counts as free",
    ),
}  # fmt: skip


class Names:
    """What the programs use: c... of cuda.core, n... of numba, the rest of halstream."""


@pytest.fixture(scope="module")
def names() -> Any:
    import halstream as hs
    from halstream import _memory

    n: Any = Names()
    n.cd = core.Device(0)
    n.cd.set_current()
    nonblocking = core.StreamOptions(nonblocking=True)
    n.cs, n.cs2 = (n.cd.create_stream(options=nonblocking) for _ in range(2))
    times = core.EventOptions(timing_enabled=True)
    n.ce, n.ct, n.cend = n.cs.record(), n.cs.record(options=times), n.cs.record(options=times)
    n.cm, n.cm2 = (n.cd.allocate(64, stream=n.cs) for _ in range(2))
    n.cp = core.LegacyPinnedMemoryResource().allocate(64)
    n.ck = core.ObjectCode.from_ptx(PTX.encode()).get_kernel("scale_f32")
    n.ns, n.ns2 = numba.stream(), numba.stream()
    n.ne, n.nt, n.nend = numba.event(timing=False), numba.event(), numba.event()
    for event in (n.ne, n.nt, n.nend):
        event.record(n.ns)
    n.nm, n.nm2 = (numba.device_array(16, np.float32, stream=n.ns) for _ in range(2))
    n.np = numba.pinned_array(16, np.float32)
    n.hs, n.memory = hs, _memory
    n.s, n.s2 = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    n.e, n.t, n.end = n.s.record(), hs.Event(timing=True), hs.Event(timing=True)
    n.t.record(n.s)
    n.end.record(n.s)
    n.m, n.m2, n.bytes = hs.zeros(16, np.float32), hs.zeros(16, np.float32), hs.zeros(64, np.uint8)
    n.p = hs.pinned_empty(16, np.float32)
    n.k = hs.Kernel(PTX, name="scale_f32", signature="inout float32 *x, float32 a, uint32 n")
    numba.synchronize()
    return n


def calls(look_alike: ctypes.CDLL, program: Callable[[Any], Any] | None, names: Any, log: Path) -> str:
    """Return the calls of the driver that a program makes in steady state; several of the same in a row are one."""
    if program is None:
        return ""
    for _ in range(3):
        program(names)
        numba.synchronize()
        names.hs.synchronize(timeout=10)
    gc.collect()
    assert look_alike.fakecuda_control(f"log {log}".encode()) == 0
    try:
        result = program(names)
        del result
    finally:
        look_alike.fakecuda_control(b"log off")
    numba.synchronize()
    names.hs.synchronize(timeout=10)
    thread, found = threading.get_native_id(), []
    for line in log.read_text().splitlines():
        who, name = line.split()[:2]
        if int(who) != thread or CONTEXT.fullmatch(name):
            continue
        name = re.sub(r"_v\d+$|_ptsz$", "", name)
        if not found or found[-1] != name or not name.endswith("Query"):
            found.append(name)
    return ", ".join(f"`{name}`" for name in found) or "none"


def row(look_alike: ctypes.CDLL, title: str, names: Any, log: Path) -> str:
    program = PROGRAMS[title]
    theirs = [calls(look_alike, one, names, log) for one in (program.core, program.numba)]
    ours = calls(look_alike, program.ours, names, log)
    same = all(text in ("", ours) for text in theirs)
    assert same != bool(program.why), f"{theirs} and {ours}: {program.why or 'why is that so?'}"
    return f"| {title} | {theirs[0]} | {theirs[1]} | {'the same' if same else ours} | {program.why} |\n"


HEAD = "| program | cuda.core | numba-cuda | halstream | why they differ |\n|---|---|---|---|---|\n"


def test_the_calls_are_those_of_the_documentation(look_alike: ctypes.CDLL, names: Any, tmp_path: Path) -> None:
    found, problems = HEAD, []
    for title in PROGRAMS:
        try:
            found += row(look_alike, title, names, tmp_path / "calls")
        except Exception as exc:
            problems.append(f"{title}: {exc!r}")
    assert not problems, "\n".join(problems)
    text = DOCS.read_text()
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    if os.environ.get("HALSTREAM_ORACLE_CUDA") == "write":
        DOCS.write_text(before + BEGIN + found + END + after)
        return
    assert found.splitlines() == table.splitlines()


def test_dialects_make_the_calls_of_the_core(look_alike: ctypes.CDLL, names: Any, tmp_path: Path) -> None:
    """Programs of torch's and cupy's names against those of the core."""
    from halstream.cupy import cuda as cupy
    from halstream.torch import cuda as torch

    log = tmp_path / "calls"
    t, t2, c, c2 = torch.Stream(), torch.Stream(), cupy.Stream(non_blocking=True), cupy.Stream(non_blocking=True)
    te, ce = t.record_event(), c.record()
    pairs: dict[str, list[Callable[[Any], Any]]] = {
        "record an event": [lambda n: t.record_event(te), lambda n: te.record(t), lambda n: c.record(ce)],
        "record a new event": [lambda n: t.record_event(), lambda n: c.record()],
        "wait for an event": [lambda n: t2.wait_event(te), lambda n: te.wait(t2), lambda n: c2.wait_event(ce)],
        "wait for a stream": [lambda n: t2.wait_stream(t)],
        "record an event and query it": [
            lambda n: (t.record_event(te), te.query()), lambda n: (c.record(ce), ce.done)
        ],
        "record on one stream, wait on another": [
            lambda n: (te.record(t), t2.wait_event(te)), lambda n: (c.record(ce), c2.wait_event(ce))
        ],
        "record an event and wait for it on the host": [
            lambda n: (te.record(t), te.synchronize()), lambda n: (c.record(ce), ce.synchronize())
        ],
    }  # fmt: skip
    for title, programs in pairs.items():
        expected = calls(look_alike, PROGRAMS[title].ours, names, log)
        for program in programs:
            assert calls(look_alike, program, names, log) == expected, title
