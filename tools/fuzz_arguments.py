"""Random arguments for tools/fuzz.py: wrong values of every kind, and plausible ones by a parameter's name."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy

#: Values that parameters with such names usually take.
LIKELY: list[tuple[tuple[str, ...], list[Any]]] = [
    (("size", "count", "nbytes", "num", "length", "width", "height", "pitch"), [0, 1, 4, 16, 100, 4096, -1, 2**63]),
    (("device", "ordinal", "place"), [0, 1, "cpu", "cuda:0", "gpu:1", -1, 99, None]),
    (("shape", "dims"), [(), 3, (2, 3), [4], (0,), (-1, 2), (2**40, 2**40)]),
    (("dtype",), ["float32", "int8", "<u2", float, None, "O"]),
    (("ptr", "src", "dst", "addr", "handle"), [0, 1, 4096, 2**47, 2**63, 2**64 - 1, -1]),
    (("flag", "kind", "mode", "value", "priority", "limit", "timeout"), [0, 1, 2, 3, 7, -1, 255, 0.001]),
]


class Bad:
    """An argument whose every conversion fails."""

    def __index__(self) -> int:
        raise ValueError("no number")

    __int__ = __float__ = __len__ = __bool__ = __index__

    def __eq__(self, other: object) -> bool:
        raise ValueError("no comparison")

    __hash__ = object.__hash__


class Deep(int):
    """A number that calls the runtime when it is asked for its value."""

    def __index__(self) -> int:
        import halstream as hs

        hs.Stream().nop()
        return 1


PLAIN: list[Callable[[random.Random], Any]] = [
    lambda r: None,
    lambda r: r.choice([True, False]),
    lambda r: r.choice([0, 1, 2, 3, 7, 64, 255, 1000, -1, -7]),
    lambda r: r.choice([2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**100, -(2**63)]),
    lambda r: r.choice([0.0, -1.0, 0.5, 1e300, float("inf"), float("nan"), 1j]),
    lambda r: r.choice(["", "a", "cpu", "cuda", "cuda:1", "gpu:0", "npu:9", "cuda:-1", "\0", "é" * 9, "\ud800"]),
    lambda r: r.choice([b"", b"x" * 17, bytearray(9), memoryview(b"abc")]),
    lambda r: r.choice([(), (1, 2), [3], [None, "x"], {}, {"a": 1}, {1}, range(3), (2**40, 2**40), (-1,), [[1], [2]]]),
    lambda r: r.choice([int, object, object(), Ellipsis, NotImplemented, Bad(), Deep(1), ValueError("x"), slice(None)]),
    lambda r: r.choice([lambda: None, lambda *a, **k: 1 / 0, len, print.__class__, iter([])]),
    lambda r: r.choice(["float32", "int8", "<f4", "O", "V3", "b", "no such dtype"]),
]  # fmt: skip


def numpy_values() -> list[Callable[[random.Random], Any]]:
    """Return makers of arrays and of NumPy's numbers."""
    np = numpy
    read_only = np.zeros(8, np.uint8)
    read_only.flags.writeable = False
    return [
        lambda r: np.zeros(r.choice([0, 1, 8, (2, 3), (0, 4)]), r.choice(["u1", "f4", "i8", "c8"])),
        lambda r: r.choice([np.arange(20)[::3], np.zeros((4, 4)).T, read_only, np.array([None, 1]), np.float32(1)]),
        lambda r: r.choice([np.int64(-1), np.uint64(2**64 - 1), np.dtype("f4"), np.bool_(True), np.datetime64("NaT")]),
    ]
