"""What reports show of operations that C code enqueues: names, sites, and ranges of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream.testing import Trace

LIMIT = 10.0
READ, WRITE = 1, 2

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture
def block(backend: str) -> hs.Array:
    array = hs.empty(1 << 16, "uint8")
    hs.synchronize(0, timeout=LIMIT)
    return array


def two_streams() -> tuple[hs.Stream, hs.Stream]:
    return hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)


def test_C4_a_finding_names_operation_and_site(cases: Any, block: hs.Array) -> None:
    a, b = two_streams()
    line = cases.site_new(__file__, 17, "forward")
    with hs.sanitize(on="collect") as report:
        assert cases.listening()
        cases.enqueue(a._id, "aten::addmm", line, [(block.ptr, 64, 0, 0, WRITE)])
        cases.enqueue(b._id, "aten::relu", cases.site_new(__file__, 18, "forward"), [(block.ptr, 8, 0, 0, READ)])
        hs.synchronize(0, timeout=LIMIT)
    (found,) = report
    assert (found.first.operation, found.second.operation) == ("aten::addmm", "aten::relu")
    assert [frame.line for frame in (found.first.frames[0], found.second.frames[0])] == [17, 18]
    assert found.first.frames[0].function == "forward"
    text = str(report)
    assert "aten::addmm writes" in text
    assert "aten::relu reads" in text
    assert not cases.listening()


def test_C4_operations_of_one_place_with_different_names_are_two_findings(cases: Any, block: hs.Array) -> None:
    a, b = two_streams()
    with hs.sanitize(on="collect") as report:
        for name, offset in (("aten::add", 0), ("aten::mul", 64), ("aten::add", 128)):
            cases.enqueue(a._id, name, 0, [(block.ptr + offset, 64, 0, 0, WRITE)])
        cases.enqueue(b._id, "aten::sum", 0, [(block.ptr, 192, 0, 0, READ)])
        hs.synchronize(0, timeout=LIMIT)
    assert sorted(f.first.operation for f in report) == ["aten::add", "aten::mul"]


@pytest.mark.parametrize("handed", [(32, 0), (33, 1)])
def test_C12_a_function_hands_in_what_it_accesses(cases: Any, block: hs.Array, handed: tuple[int, int]) -> None:
    size, races = handed
    a, b = two_streams()
    with hs.sanitize(on="collect") as report:
        assert cases.enqueue_handing_in(a._id, True, block.ptr, 64, 0, size) == (0, "")
        assert cases.enqueue_handing_in(b._id, True, block.ptr, 64, 32, 32) == (0, "")
        hs.synchronize(0, timeout=LIMIT)
        assert cases.handed_in() == 0
    assert len(report) == races, str(report)
    assert [(found.start - block.ptr, found.nbytes) for found in report] == [(32, 1)][:races]


def test_C12_only_a_function_with_the_flag_hands_in_while_it_runs(cases: Any, block: hs.Array) -> None:
    code, text = cases.hand_in()
    assert code == 2 and "HALSTREAM_HANDS_IN" in text
    a, _ = two_streams()
    assert cases.enqueue_handing_in(a._id, False, block.ptr, 64, 0, 8) == (0, "")
    hs.synchronize(0, timeout=LIMIT)
    assert cases.handed_in() == 2


def test_C4_rows_are_exact(cases: Any, block: hs.Array) -> None:
    """Columns of one matrix, which touch no common byte, have nothing to do with each other."""
    a, b = two_streams()
    with hs.sanitize(on="collect") as report:
        cases.enqueue(a._id, "left", 0, [(block.ptr, 8, 1000, 16, WRITE)])
        cases.enqueue(b._id, "right", 0, [(block.ptr + 8, 8, 1000, 16, WRITE)])
        hs.synchronize(0, timeout=LIMIT)
    assert list(report) == []
    with hs.sanitize(on="collect") as report:
        cases.enqueue(a._id, "left", 0, [(block.ptr, 8, 1000, 16, WRITE)])
        cases.enqueue(b._id, "cell", 0, [(block.ptr + 999 * 16 + 7, 1, 0, 0, WRITE)])
        hs.synchronize(0, timeout=LIMIT)
    (found,) = report
    assert (found.start, found.nbytes) == (block.ptr + 999 * 16 + 7, 1)


def test_C4_accesses_of_the_host_are_seen(cases: Any, block: hs.Array) -> None:
    a = hs.Stream(non_blocking=True)
    pinned = hs.pinned_empty(64, "uint8")
    with hs.sanitize(on="collect") as report:
        cases.enqueue(a._id, "aten::copy_", 0, [(pinned.ctypes.data, 64, 0, 0, WRITE)])
        assert cases.host_access(pinned.ctypes.data, 8, READ) == (0, "")
        hs.synchronize(0, timeout=LIMIT)
    (found,) = report
    assert found.second.host
    assert found.first.operation == "aten::copy_"


def test_C4_a_call_has_the_site_of_pythons_stack(cases: Any, block: hs.Array) -> None:
    a, b = two_streams()
    with hs.sanitize(on="collect") as report:
        cases.enqueue(a._id, "first", 0, [(block.ptr, 8, 0, 0, WRITE)])
        site = cases.site_here()
        assert site != 0
        cases.enqueue(b._id, "second", site, [(block.ptr, 8, 0, 0, WRITE)])
        hs.synchronize(0, timeout=LIMIT)
    (found,) = report
    assert found.first.frames[0].file == __file__
    assert found.second.frames[0].file == __file__
    assert found.second.frames[0].line == found.first.frames[0].line + 1


def test_C4_traces_show_names(cases: Any, block: hs.Array) -> None:
    stream = hs.Stream(non_blocking=True)
    with Trace() as trace:
        cases.enqueue(stream._id, "aten::addmm", 0, [(block.ptr, 8, 4, 16, WRITE)])
        stream.synchronize(timeout=LIMIT)
    (seen,) = trace.operations
    assert (seen.kind, seen.name) == ("native", "aten::addmm")
    assert seen.writes == tuple((block.ptr + 16 * i, 8) for i in range(4))


@pytest.mark.needs("stalls")
def test_C4_the_description_of_a_stream_names_the_operation(cases: Any, hold: Callable[[Any], Any]) -> None:
    a, b = two_streams()
    gate = hold(a)
    b.wait_stream(a)
    cases.enqueue(a._id, "aten::addmm", 0, [])
    code, text = cases.synchronize(b._id, 1_000_000)
    assert code == 1
    assert "gate" in text
    gate.open()
    hs.synchronize(0, timeout=LIMIT)
