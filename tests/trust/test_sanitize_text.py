"""Reports as text: the two stacks, the bytes, why, and a line that really orders the two."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from sanitize_help import mended, run

PLAIN = """
    import halstream as hs
    import numpy as np

    def load(stream):
        table.fill(1, stream)

    def total():
        return 0

    one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    table = hs.empty(64, np.uint8)
    load(one)
    two.call(total, reads=[table[16:48]])
    one.synchronize()
    two.synchronize()
"""


def test_V41_a_report_names_operations_places_and_the_remedy(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.py"
    report = run(path, PLAIN)
    (found,) = report
    text = found.text
    lines = [line.strip() for line in text.splitlines()]
    assert "two operations touch the same 32 bytes, and nothing orders them" in lines[0]
    assert lines[1] == f"bytes 16 to 47 of `table`, device memory of 64 bytes, made at {path}:12"
    assert lines[2].startswith("1. a fill of 64 bytes writes on stream ") and lines[2].endswith("(one)")
    assert lines[3:7] == [
        f"{path}:6 in load",
        "table.fill(1, stream)",
        f"{path}:13 in <module>",
        "load(one)",
    ]
    second = next(i for i, line in enumerate(lines) if line.startswith("2. "))
    assert lines[second].startswith("2. function total reads on stream ") and lines[second].endswith("(two)")
    assert lines[second + 1 : second + 3] == [f"{path}:14 in <module>", "two.call(total, reads=[table[16:48]])"]
    assert any(line.startswith("why: stream ") and "never waited for stream" in line for line in lines)
    fix = lines.index(f"fix: before {path}:14")
    assert lines[fix + 1] == "two.wait(one.record())" == found.fix
    assert "halstream/_" not in text, "own frames are cut away"
    # Memory is compared under deterministic schedules, which the host device has.
    seen = "seen: 1 function: 1 declared what they touch" + "; memory was compared around 1" * (backend == "host")
    how = ", found in the order of the calls" * (backend == "host")
    assert str(report) == f"halstream: 1 unordered access{how}\n\n{text}\n\n{seen}"


BROKEN: dict[str, tuple[str, str]] = {
    "plain": (PLAIN, "two.wait(one.record())"),
    "plain, an event that is there": (
        """
        import halstream as hs
        import numpy as np
        one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
        x = hs.empty(64, np.uint8)
        x.fill(1, one)
        done = one.record()
        x.fill(2, two)
        """,
        "two.wait(done)",
    ),
    "plain, an event recorded again since": (
        """
        import halstream as hs
        import numpy as np
        one, two, three = [hs.Stream(non_blocking=True) for _ in range(3)]
        x, done = hs.empty(64, np.uint8), hs.Event()
        x.fill(1, one)
        one.record(done)
        three.record(done)
        x.fill(2, two)
        """,
        "two.wait(one.record())",
    ),
    "torch": (
        """
        import halstream as hs
        from halstream.torch import cuda
        side = cuda.Stream()
        main = cuda.Stream()
        x = hs.empty(64)
        with cuda.stream(side):
            x.fill(1)
        with cuda.stream(main):
            x.fill(2)
        """,
        "main.wait_event(side.record_event())",
    ),
    "torch, the default stream": (
        """
        import halstream as hs
        from halstream.torch import cuda
        side = cuda.Stream()
        x = hs.empty(64)
        x.fill(1, side)
        x.fill(2)
        """,
        "cuda.default_stream().wait_event(side.record_event())",
    ),
    "torch, memory given back too early": (
        """
        import halstream as hs
        from halstream.torch import cuda
        main, side = cuda.Stream(), cuda.Stream()
        kept = hs.empty(64, stream=main)
        side.wait_event(main.record_event())
        kept.fill(1, side)
        kept._memory.free()
        side.synchronize()
        """,
        "kept.record_stream(side)",
    ),
    "paddle": (
        """
        import halstream as hs
        from halstream.paddle import device
        one, two = device.Stream(), device.Stream()
        x = hs.empty(64)
        with device.stream_guard(one):
            x.fill(1)
        with device.stream_guard(two):
            x.fill(2)
        """,
        "two.wait_event(one.record_event())",
    ),
    "mindspore": (
        """
        import numpy as np
        from halstream import mindspore
        from halstream.mindspore import Tensor, hal, ops
        one, two = hal.Stream(), hal.Stream()
        a = Tensor(np.ones((4, 4), np.float32))
        with hal.StreamCtx(one):
            b = ops.matmul(a, a)
        with hal.StreamCtx(two):
            c = ops.matmul(b, b)
        two.synchronize()
        """,
        "two.wait_event(one.record_event())",
    ),
    "cupy": (
        """
        import halstream.cupy as cp
        from halstream.cupy import cuda
        one, two = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
        with two:
            x = cp.empty(64, "f4")
        with one:
            x.fill(1)
        y = x.get(stream=two)
        """,
        "two.wait_event(one.record())",
    ),
    "cupy, the null stream": (
        """
        import halstream.cupy as cp
        from halstream.cupy import cuda
        work = cuda.Stream(non_blocking=True)
        x = cp.empty(64, "f4")
        x.fill(1)
        y = x.get(stream=work)
        """,
        "work.wait_event(cuda.Stream.null.record())",
    ),
    "acl": (
        """
        from halstream import acl
        from halstream.acl import rt
        rt.set_device(0)
        one, ret = rt.create_stream()
        two, ret = rt.create_stream()
        event, ret = rt.create_event()
        block, ret = rt.malloc(256, 0)
        rt.memset_async(block, 256, 1, 256, one)
        rt.memset_async(block, 256, 2, 256, two)
        rt.synchronize_stream(one)
        rt.synchronize_stream(two)
        rt.reset_device(0)
        """,
        "done, _ = rt.create_event(); rt.record_event(done, one); rt.stream_wait_event(two, done)",
    ),
    "acl, the host": (
        """
        import halstream as hs
        from halstream import acl
        acl.rt.set_device(0)
        one, ret = acl.rt.create_stream()
        block, ret = acl.rt.malloc(256, 0)
        host, ret = acl.rt.malloc_host(256)
        acl.rt.memcpy_async(host, 256, block, 256, acl.ACL_MEMCPY_DEVICE_TO_HOST, one)
        seen = (acl.util.ptr_to_bytes(host, 256), hs.host_access(Seen(host), "r"))
        acl.rt.synchronize_stream(one)
        acl.rt.reset_device(0)
        """,
        "acl.rt.synchronize_stream(one)",
    ),
    "the host": (
        """
        import halstream as hs
        import numpy as np
        copies = hs.Stream(non_blocking=True)
        x, back = hs.empty(64, np.uint8), hs.pinned_empty(64, np.uint8)
        x.copy_to(back, copies)
        hs.host_access(back, "r")
        """,
        "copies.synchronize()",
    ),
    "streams of a list": (
        """
        import halstream as hs
        x = hs.empty(64)
        streams = [hs.Stream(non_blocking=True) for _ in range(3)]
        def work(s):
            x.fill(1, s)
        work(streams[0])
        work(streams[2])
        """,
        "streams[2].wait(streams[0].record())",
    ),
}


@pytest.fixture
def leave_acl() -> Any:
    yield
    from halstream._core import _current

    _current.reset()


@pytest.mark.parametrize("name", BROKEN)
def test_the_line_that_is_proposed_orders_the_two(backend: str, tmp_path: Path, name: str, leave_acl: None) -> None:
    source, fix = BROKEN[name]
    if "Seen(" in source:  # an address as an object with memory
        source = source.replace("Seen(host)", 'type("Seen", (), {"ptr": host, "nbytes": 256})')
    report = run(tmp_path / "broken.py", source)
    (found,) = report
    assert found.fix == fix, found.text
    again = run(tmp_path / "mended.py", mended(source, found))
    assert not again, f"{found.text}\n\nand with that line:\n\n{again}"


def test_what_cannot_be_named_is_numbered(backend: str) -> None:
    with hs.sanitize(on="collect") as report:
        exec(compile(textwrap.dedent(PLAIN), "nowhere.py", "exec"), {})
    (found,) = report
    assert "nowhere.py:6 in load" in found.text
    assert found.fix == "import halstream; halstream.synchronize()"


def test_a_refill_names_the_memory_and_what_to_wait_for(backend: str, tmp_path: Path) -> None:
    report = run(
        tmp_path / "refill.py",
        """
        import halstream as hs
        import numpy as np
        copies = hs.Stream(non_blocking=True)
        x, staging = hs.empty(64, np.uint8), hs.pinned_empty(64, np.uint8)
        staging[:] = 1
        gate = hs.testing.Gate(copies)
        x.copy_from(staging, copies)
        sent = copies.record()
        staging[:] = 2
        gate.open()
        copies.synchronize()
        """,
    )
    (found,) = report
    assert found.category == "refill" and found.fix == "sent.synchronize()"
    assert (
        "pinned memory refilled: 64 bytes changed after the call that copies them, before the host waited for it"
        in found.text
    )


def test_reasons(backend: str, tmp_path: Path) -> None:
    head = """
        import halstream as hs
        import numpy as np
        a, b, c = [hs.Stream(non_blocking=True) for _ in range(3)]
        x = hs.empty(64, np.uint8)
        """
    for number, (program, why) in enumerate(
        {
            "x.fill(1, a); b.wait(c.record()); x.fill(2, b)": "waited at",
            "x.fill(1, a); b.wait(b.record()); x.fill(2, b)": "for an event that it has recorded itself, not for",
            "x.fill(1, a); b.wait(hs.Event()); x.fill(2, b)": "that was not recorded by then: such a wait orders",
            "e = a.record(); x.fill(1, a); b.wait(e); x.fill(2, b)": "for a record that stream",
            "b.wait_stream(a); x.fill(1, a); x.fill(2, b)": "before the write was enqueued",
            "x.fill(1, a); x.fill(2, hs.Stream.from_handle(0, 0))": "is non-blocking: it takes no part",
            "x.fill(1, a); a.synchronize(); x.fill(1, a); hs.host_access(x, 'r')": "the host waited for stream",
            "x.fill(1, a); while not a.query(): pass; x.fill(2, b)": "a query that returned true orders them",
        }.items()
    ):
        steps = "".join(f"{step}\n" for step in program.split("; "))
        report = run(tmp_path / f"why_{number}.py", textwrap.dedent(head) + steps)
        (found,) = report.all
        assert why in found.text.partition("why: ")[2], found.text


def test_python_code_without_a_file_is_reported_too(backend: str) -> None:
    source = (
        "import halstream as hs\n"
        "a, b = hs.Stream(), hs.Stream()\n"
        "x = hs.empty(4)\n"
        "with hs.sanitize(on='collect') as report:\n"
        "    x.fill(1, a)\n"
        "    x.fill(2, b)\n"
        "print(report)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert "<string>:6 in <module>" in done.stdout
    # From 3.13 on CPython keeps the text of -c, and so the streams of the two lines have names.
    remedy = "b.wait(a.record())" if sys.version_info >= (3, 13) else "halstream.synchronize()"
    assert remedy in done.stdout


def test_the_file_that_starts_the_command_is_no_place_of_the_program(backend: str, tmp_path: Path) -> None:
    starts = tmp_path / "bin" / "halstream"  # as pip writes it
    starts.parent.mkdir()
    starts.write_text("import sys\nfrom halstream.cli import main\nsys.exit(main())\n")
    program = tmp_path / "prog.py"
    program.write_text("import halstream as hs\nx = hs.empty(4)\nx.fill(1, hs.Stream())\nx.fill(2, hs.Stream())\n")
    command = [sys.executable, str(starts), "run", "--sanitize", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 1 and f"{program}:4 in <module>" in done.stderr, done.stdout + done.stderr
    assert str(starts) not in done.stderr


def test_the_dialect_of_a_program_without_its_frames_is_that_of_its_imports(tmp_path: Path) -> None:
    from halstream._checks.source import dialects

    path = tmp_path / "imports.py"
    path.write_text("import numpy\nfrom halstream import torch, sanitize\nimport halstream.cupyx\nfrom .x import y\n")
    assert dialects(str(path)) == {"torch", "cupy"}
    assert hs.__name__ == "halstream"


@pytest.mark.parametrize(
    ("line", "stream", "function"),
    [
        ("pool.stream.call(work, x)", "pool.stream", "work"),
        ("streams[i].call(lambda: 1)", "streams[i]", "<lambda>"),
        ("x.copy_from(y, stream=side)", "side", ""),
        ("x.copy_from(y, side_stream)", "side_stream", ""),
        ("x.copy_from(y)", "", ""),
        ("rt.memcpy_async(d, 4, h, 4, 1, s1)", "s1", ""),
        ("rt.launch_callback(f, 1, 0, s)", "s", "f"),
        ("ready = done and side.query()", "side", ""),
    ],
)
def test_names_are_read_off_the_line(tmp_path: Path, line: str, stream: str, function: str) -> None:
    from halstream._checks.source import statement

    path = tmp_path / "line.py"
    path.write_text(f"def f():\n    if True:\n        {line}\n")
    here = statement(str(path), 3)
    assert here is not None and (here.stream(), here.function()) == (stream, function)
    assert statement(str(path), 9) is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="CPython 3.10 gives the lines of calls without their columns")
@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("x.fill(1, a) or x.fill(2, b)", 4),
        ("[x.fill(i, s) for i, s in enumerate((a, b))]", 4),
        ("def fill(s):\n    x.fill(1, s)\nfill(a), fill(b)", 6),
    ],
)
def test_V10_calls_of_one_line_are_to_be_written_apart(tmp_path: Path, body: str, line: int) -> None:
    """A line cannot be put between them, and a report says so, and what to do."""
    head = "import halstream as hs\na, b = hs.Stream(), hs.Stream()\nx = hs.empty(4)\n"
    (one,) = run(tmp_path / "program.py", head + body)
    assert one.fix == ""
    advice = one.text.partition("  fix: ")[2]
    assert f"both are calls of the one line {tmp_path / 'program.py'}:{line}, " in advice
    first, second = (f"stream {access.stream}" for access in (one.first, one.second))
    assert f"and let {second} (b) wait for {first} (a) between them" in advice
