"""Fills of arrays: every type and value as in NumPy, and every way to name the stream."""

from __future__ import annotations

import math
from typing import Any

import halstream as hs
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("backend")

INTEGERS = [
    0,
    1,
    -1,
    127,
    128,
    255,
    256,
    0x0101,
    0x01010101,
    -(2**15),
    2**16 - 1,
    2**24 + 1,
    2**31,
    -(2**63),
    2**64 - 1,
]
NUMBERS = [0.0, -0.0, 1.0, -2.5, 0.1, 1e-310, 1e-50, 65504.0, 1e38, 1e300, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", [*"bhilBHILefdFD", np.longdouble, np.bool_, ">i4", ">f8"])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_M8_a_fill_is_that_of_numpy_for_every_value_and_type(dtype: Any) -> None:
    s, a = hs.Stream(), hs.zeros(3, dtype)
    hs.synchronize()
    nothing: Any = False if a.dtype.kind == "b" else 0
    a.fill(nothing, s)  # from now on the usual case may be that of C
    values = [*INTEGERS, *NUMBERS, True, np.int8(-3), np.float32(0.5), np.uint64(2**63)]
    for value in values:
        scalar, kind = np.asarray(value), np.dtype(dtype)
        if scalar.dtype.kind in "iu" and kind.kind in "iu":
            fits = np.iinfo(kind).min <= int(scalar) <= np.iinfo(kind).max
        else:
            fits = np.can_cast(scalar.dtype, kind, "same_kind")
        a.fill(nothing, s)
        if not fits:
            with pytest.raises((hs.InvalidValueError, TypeError)):
                a.fill(value, s)
            assert a.numpy(s).tobytes() == bytes(a.nbytes), value
            continue
        a.fill(value, s)
        # Bit by bit: -0.0 is no 0.0. Where a long double has no value its bytes are anything.
        got, want = a.numpy(s), np.full(3, scalar.astype(kind), kind)
        if kind.char != "g":
            assert got.tobytes() == want.tobytes(), value
        else:
            assert np.array_equal(got, want, equal_nan=True), value


def test_M8_a_fill_takes_its_stream_by_name_or_position_and_the_current_one_for_none() -> None:
    s, a = hs.Stream(), hs.zeros(4, np.int16)
    hs.synchronize()
    for value in (0, 3):
        a.fill(value, s)
        a.fill(value=value + 1, stream=s)
        assert a.numpy(s).tolist() == [value + 1] * 4
        with s:
            a.fill(value + 5)
            a.fill(value + 6, None)
            assert a.numpy(s).tolist() == [value + 6] * 4
        a.fill(value + 7)
        assert a.numpy().tolist() == [value + 7] * 4
    for wrong in ((), (1, s, 2)):
        with pytest.raises(TypeError, match="fill"):
            a.fill(*wrong)
    with pytest.raises(TypeError, match="Stream"):
        a.fill(1, 5)  # type: ignore[arg-type]
    s.close()
    with pytest.raises(hs.ClosedError):
        a.fill(1, s)


@pytest.mark.parametrize("source", [np.int32, np.float32, np.uint16])
def test_M3_arrays_are_copied_to_arrays_of_their_type_and_size_only(source: Any) -> None:
    s, a = hs.Stream(), hs.zeros(4, np.int32)
    b = hs.asarray(np.arange(4).astype(source))
    longer = hs.zeros(5, np.int32)
    hs.synchronize()
    for _ in range(3):  # the first call may be another one than the usual case in C
        if source is np.int32:
            a.copy_from(b, s)
            assert a.numpy(s).tolist() == [0, 1, 2, 3]
        else:
            with pytest.raises(hs.InvalidValueError, match="dtype"):
                a.copy_from(b, s)
        with pytest.raises(hs.InvalidValueError, match="bytes"):
            a.copy_from(longer, s)
        with pytest.raises(hs.InvalidValueError, match="overlap"):
            longer[:4].copy_from(longer[1:], s)
    b.free()
    if source is np.int32:
        with pytest.raises(hs.InvalidValueError):
            a.copy_from(b, s)
