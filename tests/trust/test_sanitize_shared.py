"""Python objects that functions share, and that the program has wrapped so that their accesses count."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from reach_help import LIMIT


def _program(one: Any, two: Any, ordered: bool = False) -> Any:
    """Run two functions on two streams under the sanitizer, on real threads."""
    with hs.sanitize(on="collect") as report:
        a, b = (hs.Stream(non_blocking=True) for _ in range(2))
        a.call(*one) if isinstance(one, tuple) else a.call(one)
        if ordered:
            b.wait(a.record())
        b.call(*two) if isinstance(two, tuple) else b.call(two)
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)
    return report


def _store(s: Any) -> Any:
    def step() -> None:
        s["a"] = 1

    return step


def _add(s: Any) -> Any:
    results = s

    def step() -> None:
        nonlocal results
        results += [2]

    return step


def _delete(s: Any) -> Any:
    def step() -> None:
        del s["b"]

    return step


WRITES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "method": (list, lambda s: (s.append, 1)),
    "in a closure": (list, lambda s: lambda: s.append(1)),
    "as an argument": (list, lambda s: (lambda results: results.append(1), s)),
    "item": (dict, _store),
    "deleted item": (lambda: {"b": 1}, _delete),
    "in place": (list, _add),
    "deque": (deque, lambda s: s.appendleft and (lambda: s.appendleft(1))),
    "file": (io.StringIO, lambda s: lambda: s.write("line")),
    "file given to a function": (io.StringIO, lambda s: lambda: print("line", file=s)),
}


@pytest.mark.parametrize("case", WRITES)
def test_V22_changes_of_a_shared_object_are_found(backend: str, case: str) -> None:
    make, use = WRITES[case]

    def second(s: Any) -> Any:
        return (lambda: "b" in s) if case == "deleted item" else use(s)

    s = hs.shared(make())
    (found,) = _program(use(s), second(s)).races
    assert found.shared == type(s.value).__name__ and found.first.write
    assert f"touch the same shared {found.shared}, and nothing orders them" in found.text
    s = hs.shared(make())
    assert not _program(use(s), second(s), ordered=True).all


def test_V22_reads_of_a_shared_object_do_not_conflict(backend: str) -> None:
    s = hs.shared({"a": 1})
    assert not _program(lambda: s["a"], lambda: s.get("a")).all
    assert not _program(lambda: len(s), lambda: [key for key in s]).all
    (found,) = _program(lambda: s["a"], lambda: s.update(b=2)).races
    assert (found.first.write, found.second.write) == (False, True)
    plain: list[int] = []
    assert not _program((plain.append, 1), (plain.append, 2)).all


def test_V22_the_host_takes_part(backend: str) -> None:
    for use in (lambda s: s[:], lambda s: s.append(2), len, list, bool, lambda s: 1 in s, lambda s: s == [1]):
        s = hs.shared([])
        with hs.sanitize(on="collect") as report:
            a = hs.Stream(non_blocking=True)
            a.call(s.append, 1)
            use(s)
            a.synchronize(timeout=LIMIT)
            use(s)
        assert len(report.races) == 1, "the second use is ordered by the wait"
        assert report.races[0].second.host


def test_V22_a_shared_object_can_be_declared(backend: str) -> None:
    s = hs.shared(bytearray(4))
    with hs.sanitize(on="collect") as report:
        a, b = (hs.Stream(non_blocking=True) for _ in range(2))
        raw = s.value
        a.call(lambda: raw.__setitem__(0, 1), writes=[s])
        b.call(hs.accesses(lambda: raw[0], reads=[s]))
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)
    assert len(report.races) == 1 and raw[0] == 1


def test_a_shared_object_is_used_as_the_object(backend: str) -> None:
    s = hs.shared([3, 1])
    s.append(2)
    s += [5]
    s[0] = 4
    del s[1]
    assert list(s) == [4, 2, 5] == s.value and s == [4, 2, 5] and s == hs.shared([4, 2, 5])
    assert len(s) == 3 and 2 in s and s and hs.shared(s) is s
    assert repr(s) == "<shared list>" and sorted(s) == [2, 4, 5]
    with pytest.raises(AttributeError, match="nothing"):
        s.nothing  # noqa: B018
    with pytest.raises(TypeError, match="counts anyway"):
        hs.shared(np.zeros(3))
    with pytest.raises(TypeError, match="counts anyway"):
        hs.shared(hs.zeros(3))
