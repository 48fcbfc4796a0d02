"""The names of streams in the line that would order two accesses."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitize_help import mended, run


def test_a_stream_given_by_its_handle_is_named(backend: str, tmp_path: Path) -> None:
    source = """
        import halstream as hs
        import numpy as np
        from halstream.cupy import cuda
        from halstream.cupy.cuda import runtime
        x, y = hs.empty(64, np.uint8), hs.empty(64, np.uint8)
        copies, compute = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
        with compute:
            runtime.memcpyAsync(x.ptr, y.ptr, 64, runtime.memcpyDeviceToDevice, copies.ptr)
            runtime.memsetAsync(x.ptr, 1, 64, compute.ptr)
        """
    (found,) = run(tmp_path / "handles.py", source)
    assert found.fix == "compute.wait_event(copies.record())"
    assert not run(tmp_path / "mended.py", mended(source, found))


def test_default_streams_of_two_devices_have_different_names(backend: str, tmp_path: Path) -> None:
    source = """
        import halstream as hs
        from halstream.torch import cuda
        x, y = hs.empty(64, device=0), hs.empty(64, device=1)
        with cuda.device(0):
            x.fill(1)
        with cuda.device(1):
            y.copy_from(x)
        """
    (found,) = run(tmp_path / "defaults.py", source)
    assert found.fix == "cuda.default_stream(1).wait_event(cuda.default_stream(0).record_event())"
    assert not run(tmp_path / "mended.py", mended(source, found))


def test_a_name_that_two_streams_share_names_none(backend: str, tmp_path: Path) -> None:
    source = """
        import halstream as hs
        x = hs.empty(64)
        def make():
            made = hs.Stream()
            return made
        def put(where):
            x.fill(1, where)
        def get(there):
            x.fill(2, there)
        put(make())
        get(make())
        """
    (found,) = run(tmp_path / "shared.py", source)
    assert found.fix == "where.synchronize()" and " (made)" not in found.text, found.text


def test_streams_of_nested_lists_are_not_named_by_a_flat_index(backend: str, tmp_path: Path) -> None:
    source = """
        import halstream as hs
        x = hs.empty(64)
        copy_streams = [[hs.Stream() for _ in range(2)] for _ in range(3)]
        x.fill(1, copy_streams[0][0])
        x.fill(2, copy_streams[2][1])
        pairs = [[hs.Stream(), hs.Stream()] for _ in range(2)]
        """
    (found,) = run(tmp_path / "nested.py", source)
    assert found.fix == "copy_streams[2][1].wait(copy_streams[0][0].record())"
    assert found.second.name == "", "copy_streams[5] does not exist"


def test_the_line_that_allocated_and_the_programs_own_calls_are_shown(backend: str, tmp_path: Path) -> None:
    depth = 30
    calls = "\n".join(f"        def level{n}(s, x):\n            level{n + 1}(s, x)" for n in range(depth))
    source = f"""
        import halstream as hs

        def level{depth}(s, x):
            x.fill(1, s)
{calls}

        def allocate():
            return hs.empty(64)

        def program():
            x = allocate()
            level0(hs.Stream(), x)
            level0(hs.Stream(), x)

        program()
        """
    path = tmp_path / "helpers.py"
    (found,) = run(path, source)
    lines = path.read_text().splitlines()
    assert (found.made_at.line, found.made_at.function) == (lines.index("    return hs.empty(64)") + 1, "allocate")
    functions = [frame.function for frame in found.second.frames]
    assert functions[: depth + 3] == [*(f"level{n}" for n in range(depth, -1, -1)), "program", "<module>"]
    # The outermost two are this test's own.
    assert f"in level{depth}\n" in found.text and f"in {functions[-1]}\n" in found.text
    assert f"... {len(functions) - 6} more calls" in found.text


def test_a_stream_of_a_package_is_called_by_its_place_there_and_named_in_the_fix(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "prefetchlib" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text(
        "import halstream as hs\n"
        "class Loader:\n"
        "    def __init__(self):\n"
        "        self.stream = hs.Stream(non_blocking=True)\n"
        "    def fill(self, x):\n"
        "        x.fill(1, self.stream)\n"
    )
    monkeypatch.syspath_prepend(str(package.parent.parent))
    source = """
        import halstream as hs
        from prefetchlib import Loader
        loader, mine = Loader(), hs.Stream(non_blocking=True)
        x, y = hs.empty(4), hs.empty(4)
        loader.fill(x)
        x.fill(2, mine)
        y.fill(3, loader.stream)
        y.fill(4, mine)
        """
    path = tmp_path / "app.py"
    first, second = run(path, source)
    lines = [line.strip() for line in first.text.splitlines()]
    number = first.first.stream
    made = f"made at prefetchlib/__init__.py:4, called from {path}:4"
    assert lines[2] == f"1. a fill of 32 bytes writes on stream {number} ({made})"
    assert f"why: stream {first.second.stream} (mine) never waited for stream {number}" in lines
    assert first.fix == "mine.wait(loader.stream.record())", "what stood for the stream there"
    assert not [one for one in run(path, mended(source, first)) if one.start == first.start]
    assert f"on stream {number} (loader.stream)" in second.text, "the program says it in its own line"
    assert "prefetchlib" not in second.text
