"""Accesses that nobody declares, seen by the pages of memory; each case with a right twin."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import halstream as hs
import numpy as np
import pytest

pytestmark = pytest.mark.needs("schedules")  # memory of host devices

STRLEN = ctypes.cast(ctypes.CDLL(None).strlen, ctypes.c_void_p).value
SIZE = 4000


@pytest.fixture(autouse=True)
def watchable(backend: str) -> None:
    try:
        with hs.sanitize(on="collect", pages=True):
            pass
    except hs.NotSupportedError as exc:
        pytest.skip(str(exc))


def found(body: Callable[[bool], None], ordered: bool) -> list[str]:
    """Run a program and return the categories of what was found."""
    with hs.sanitize(on="collect", pages=True) as report:
        body(ordered)
        hs.synchronize()
    return [finding.category for finding in report]


def after_fill(function: Callable[[np.ndarray], object], ordered: bool, pick: Callable[[hs.Array], np.ndarray]) -> None:
    """Fill an array on one stream, and call a function that hides it on another one."""
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(SIZE, "f4")
    hidden = {"view": [pick(x)]}
    x.fill(1, stream=one)
    if ordered:
        two.wait(one.record())
    two.call(lambda: function(hidden["view"][0]))
    hs.synchronize()


def reads_a_view(ordered: bool) -> None:
    after_fill(lambda view: view.sum(), ordered, np.asarray)


def writes_a_part_of_a_view(ordered: bool) -> None:
    after_fill(lambda view: view[7:900].fill(3), ordered, np.asarray)


def reads_what_dlpack_lent(ordered: bool) -> None:
    after_fill(lambda view: view[2000:].sum(), ordered, np.from_dlpack)


kept: list[np.ndarray] = []


def reads_a_global(ordered: bool) -> None:
    kept.clear()
    after_fill(lambda _: kept[0].max(), ordered, lambda x: kept.append(np.asarray(x)) or kept[0])
    kept.clear()


def native_function_reads(ordered: bool) -> None:
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(SIZE, "u1")
    np.asarray(x)[:] = 0
    x.fill(0, stream=one)
    if ordered:
        two.wait(one.record())
    two.call_native(STRLEN, x.ptr)
    hs.synchronize()


def host_writes_the_source_of_a_copy(ordered: bool) -> None:
    stream, pinned, x = hs.Stream(), hs.pinned_empty(SIZE, "u1"), hs.empty(SIZE, "u1")
    pinned[:] = 1
    x.copy_from(pinned, stream)
    if ordered:
        stream.synchronize()
    pinned[5] = 2


def host_reads_the_target_of_a_copy(ordered: bool) -> None:
    stream, pinned, x = hs.Stream(), hs.pinned_empty(SIZE, "u1"), hs.empty(SIZE, "u1")
    x.copy_to(pinned, stream)
    if ordered:
        stream.synchronize()
    pinned.sum()


def a_file_is_read_into_the_source_of_a_copy(ordered: bool) -> None:
    stream, pinned, x = hs.Stream(), hs.pinned_empty(SIZE, "u1"), hs.empty(SIZE, "u1")
    x.copy_from(pinned, stream)
    if ordered:
        stream.synchronize()
    with open("/dev/zero", "rb", buffering=0) as file:
        assert file.readinto(memoryview(pinned)) == SIZE


def another_thread_writes_the_source_of_a_copy(ordered: bool) -> None:
    stream, pinned, x = hs.Stream(), hs.pinned_empty(SIZE, "u1"), hs.empty(SIZE, "u1")
    x.copy_from(pinned, stream)
    if ordered:
        stream.synchronize()
    thread = threading.Thread(target=lambda: pinned.fill(3))
    thread.start()
    thread.join(10)


BODIES = (
    reads_a_view, writes_a_part_of_a_view, reads_what_dlpack_lent, reads_a_global, native_function_reads,
    host_writes_the_source_of_a_copy, host_reads_the_target_of_a_copy, a_file_is_read_into_the_source_of_a_copy,
    another_thread_writes_the_source_of_a_copy,
)  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_V23_an_undeclared_access_without_a_wait_is_reported(body: Callable[[bool], None]) -> None:
    assert "race" in found(body, False)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_V23_an_undeclared_access_behind_a_wait_is_not(body: Callable[[bool], None]) -> None:
    assert found(body, True) == []


def test_V23_two_arrays_and_two_parts_of_one_do_not_conflict() -> None:
    with hs.sanitize(pages=True):
        one, two = hs.Stream(), hs.Stream()
        x, y, z = (hs.empty(8, "u1") for _ in range(3))
        assert len({a.ptr // 4096 for a in (x, y, z)}) == 3
        view, other, rest = np.asarray(x), np.asarray(y), np.asarray(z)
        one.call(lambda: (view.fill(1), rest[:4].fill(1)))
        two.call(lambda: (other.fill(1), rest[4:].fill(1)))
        hs.synchronize()


def test_V24_the_report_counts_functions_that_touched_nothing() -> None:
    with hs.sanitize(pages=True, strict=True) as report:
        stream, x = hs.Stream(), hs.empty(8)
        view, out = np.asarray(x), []
        stream.call(lambda: out.append(view.sum()))
        stream.call(out.append, 1)
        hs.synchronize()
    assert (report.functions.paged, report.functions.untouched) == (2, 1)
    assert "1 of 2 functions touched no known memory" in str(report)


def test_V24_what_the_main_thread_reads_has_the_line_of_the_read() -> None:
    with hs.sanitize(on="collect", pages=True) as report:
        stream, x, pinned = hs.Stream(), hs.empty(SIZE, "f4"), hs.pinned_empty(SIZE, "f4")
        x.copy_to(pinned, stream)
        line = sys._getframe().f_lineno + 1
        pinned.sum()  # NumPy gives Python's lock up, and Python looks for signals when it is back
        str(report)
        hs.synchronize()
    (found,) = report
    assert found.second.frames[0][:2] == (__file__, line), str(report)
    assert "the host reads (seen by its page, in this line or before it)" in found.text
    assert "fix: before" not in found.text, "the access may be in front of that"


def test_V24_what_the_next_call_notices_first_has_its_line() -> None:
    with hs.sanitize(on="collect", pages=True) as report:
        stream, x, pinned = hs.Stream(), hs.empty(SIZE, "f4"), hs.pinned_empty(SIZE, "f4")
        x.copy_to(pinned, stream)
        thread = threading.Thread(target=lambda: (pinned.sum(), stream.synchronize()))
        thread.start()  # only the main thread looks for signals
        thread.join(10)
        hs.synchronize()
    (found,) = report
    assert "the host reads (seen by its page, before this call)" in found.text


CHILD = """
import os
import halstream as hs, numpy as np
p = hs.pinned_empty(8192, "u1")
p[:] = 1
pid = os.fork()
if pid == 0:
    p[4096] += int(p[0])
    os._exit(int(p[4096]))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert (status, int(p[4096])) == (2, 1), (status, p[4096])
"""


def test_V25_a_forked_child_has_the_memory_to_itself() -> None:
    env = dict(os.environ, HALSTREAM_SANITIZE="1,pages", HALSTREAM_BACKEND="host")
    done = subprocess.run([sys.executable, "-c", CHILD], env=env, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["raise SystemExit(3)", "os.kill(os.getpid(), 9)"])
def test_V25_no_access_holds_the_end_of_the_process_up(how: str) -> None:
    code = f"import os, halstream as hs\np = hs.pinned_empty(8, 'u1')\np[0] = 1\n{how}"
    env = dict(os.environ, HALSTREAM_SANITIZE="1,pages", HALSTREAM_BACKEND="host")
    done = subprocess.run([sys.executable, "-c", code], env=env, timeout=60, capture_output=True, text=True)
    assert done.returncode == (3 if "Exit" in how else -signal.SIGKILL), done.stderr


def small(count: int, stream: hs.Stream) -> list[hs.Array]:
    """Return small arrays that a pool takes out of one large block, as that of torch does."""
    del [hs.empty(1 << 16, "u1", stream=stream)][0]
    stream.synchronize()
    return [hs.empty(16, "u1", stream=stream) for _ in range(count)]


def test_V23_blocks_of_a_pool_that_share_pages_are_counted() -> None:
    stream = hs.Stream()
    with hs.sanitize(on="collect", pages=True) as report:
        arrays = small(5, stream)
        alone = [hs.empty(16, "u1") for _ in range(3)]
        hs.synchronize()
    pages = [array.ptr // 4096 for array in arrays]
    assert report.functions.sharing == sum(pages.count(page) > 1 for page in pages) >= 2
    assert f"seen: {report.functions.sharing} blocks of memory share pages with others, and" in str(report)
    with hs.sanitize(on="collect", pages=True) as report:
        alone += [hs.empty(16, "u1") for _ in range(3)]
        stream.call(lambda: None)
        hs.synchronize()
    assert (report.functions.sharing, report.functions.hidden) == (0, 0)
    assert "share pages" not in str(report) and "not watched" not in str(report)


KEPT = """
import halstream as hs
stream = hs.Stream()
with hs.sanitize(on="collect"):
    before = hs.empty(16, "u1", stream=stream)
del before
with hs.sanitize(on="collect", pages=True) as report:
    kept = hs.empty(16, "u1", stream=stream)
    stream.call(lambda: None)
    hs.synchronize()
print(report.functions.hidden, report)
"""


def test_V23_blocks_that_a_pool_kept_from_before_are_counted() -> None:
    # In a process of its own: the pool of this one has memory that was watched.
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("1 halstream: no unordered access")
    assert "; 1 block of memory that was allocated before, and kept by a pool, is not watched" in done.stdout
