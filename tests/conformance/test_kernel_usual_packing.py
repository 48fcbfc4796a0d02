"""What the usual launch of a kernel checks and packs in C, Python's code takes as well, with the same bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._core import _handles
from halstream._kernel import _launch, _packing
from halstream._kernel._signature import Wrong, parse, scalar
from test_kernel_packing import NUMBERS, TYPES

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("any-kernels")]


def loaded(signature: str, threads: int = 1024) -> _launch.Loaded:
    """Return a kernel as a device has it, which no device has."""
    packer = _packing.Packer(parse(signature))
    return _launch.Loaded(1, threads, 0, object(), packer.modes, packer.types)


def arguments(signature: str, *values: Any) -> bytes | None:
    """Return the arguments as the class in C packs them, None if it leaves them to Python's code."""
    packed = _handles.packed(loaded(signature), 1, 1, *values)
    return None if packed is None else packed[1]


def general(signature: str, value: Any) -> bytes | None:
    """Return what the general path makes of a scalar, None if it refuses that."""
    kernel = hs.Kernel(host=print, signature=signature)
    try:
        return _launch._cell(kernel, 0, scalar(kernel.parameters[0], value))
    except Wrong:
        return None


# -- numbers ----------------------------------------------------------------

#: Around the limits of every type.
EDGES = [
    sign * 2**bits + more for bits in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for sign in (1, -1) for more in (-1, 0, 1)
]
SCALARS = [np.dtype(name).type(value) for name in TYPES for value in (0, 1, 77)]
SIGNED = [np.int8(-1), np.int16(-2), np.int32(-(2**31)), np.int64(-(2**63)), np.uint64(2**64 - 1), np.float32(1e30)]


@pytest.mark.parametrize("dtype", [*TYPES, "float64", "complex64", "complex128"])
def test_K1_a_number_that_C_packs_has_the_bytes_of_the_general_path(dtype: str) -> None:
    taken = 0
    for value in [*NUMBERS, *EDGES, *SCALARS, *SIGNED, -0.0, float("-nan"), 2.0**-1074]:
        packed = arguments(f"{dtype} a", value)
        if packed is not None:
            taken += 1
            assert packed == general(f"{dtype} a", value), repr(value)
    assert taken > 1 or dtype.startswith("complex")


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("bool", [True, False, np.bool_(True)]),
        ("int8", [-128, 127, np.int8(-5)]),
        ("uint8", [0, 255, np.uint8(200)]),
        ("int32", [-(2**31), 2**31 - 1, np.int32(-5)]),
        ("uint32", [0, 2**32 - 1, np.uint32(2**32 - 1)]),
        ("int64", [-(2**63), 2**63 - 1, np.int64(-5)]),
        ("uint64", [0, 2**63 - 1, np.uint64(5)]),
        ("float32", [1.5, -1, 3.4028235e38, float("inf"), np.float32(0.1)]),
        ("float64", [1e300, -1, float("inf"), np.float64(0.1)]),
    ],
)
def test_K1_usual_numbers_are_packed_in_C(dtype: str, values: list[Any]) -> None:
    for value in values:
        assert arguments(f"{dtype} a", value) == general(f"{dtype} a", value) is not None, repr(value)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("uint32", [-1, 2**32, True, 1.0, np.int32(1), np.int64(1), None, "1"]),
        ("int8", [128, -129, False, np.uint8(1)]),
        ("float32", [1e39, True, np.float64(0.5), np.int32(1), 1j]),
        ("float64", [False, np.float32(0.5), 1j]),
        ("bool", [0, 1, 1.0, None, np.int8(1)]),
    ],
)
def test_K1_numbers_that_do_not_fit_are_left_to_the_general_path(dtype: str, values: list[Any]) -> None:
    for value in values:
        assert arguments(f"{dtype} a", value) is None, repr(value)


class Number(int):
    """Another class, whose conversions the program may have changed."""


@pytest.mark.parametrize("value", [Number(1), np.array(1, np.uint32), type("Real", (float,), {})(1.0)])
def test_K1_numbers_of_other_classes_are_left_to_the_general_path(value: Any) -> None:
    assert arguments("uint32 a", value) is None
    assert arguments("float32 a", value) is None


# -- arrays -----------------------------------------------------------------


def test_M11_an_array_is_packed_in_C_as_Python_packs_it() -> None:
    signature = "in float32 *a, out void *b, inout float32 *c, in int8 *d, uint8 e, in void *f"
    x, pinned, wide = hs.empty((2, 3), np.float32), hs.pinned_empty((3, 2), np.float32), hs.empty((2, 2, 2), np.float64)
    given = (x[1:], pinned, x, None, 5, wide)
    packed = arguments(signature, *given)
    assert packed == _packing.Packer(parse(signature)).pack(given)
    assert packed is not None
    address = pinned.__array_interface__["data"][0]
    expected = [x.ptr + 12, 12, address, 24, x.ptr, 24, 0, 0, 5, 0, wide.ptr, 64]
    assert np.frombuffer(packed, np.uint64).tolist() == expected


def fixed(array: Any) -> Any:
    array.flags.writeable = False
    return array


def freed() -> hs.Array:
    array = hs.empty(4, np.float32)
    array.free()
    return array


def changed(**attributes: Any) -> hs.Array:
    """Return an array whose attributes the program has set."""
    array = hs.empty(4, np.float32)
    for name, value in attributes.items():
        setattr(array, name, value)
    return array


def of_another_library() -> Any:
    return hs.from_dlpack(np.ones(4, np.float32))


class Derived(hs.Array):
    """A subclass, which may say something else of its memory."""


def derived() -> hs.Array:
    array = hs.empty(4, np.float32)
    return Derived(array._memory, array.ptr, array.shape, array.dtype)


@pytest.mark.parametrize(
    ("signature", "make"),
    [
        ("in float32 *x", lambda: hs.empty(4, np.float64)),
        ("in float32 *x", lambda: hs.empty(4, np.int32)),
        ("in float32 *x", lambda: hs.empty(0, np.float32)),
        ("in float32 *x", lambda: hs.empty((3, 0), np.float32)),
        ("in void *x", lambda: hs.empty(0, np.float32)),
        ("in float32 *x", freed),
        ("in void *x", freed),
        ("in float32 *x", derived),
        ("in float32 *x", lambda: changed(shape=[4])),
        ("in float32 *x", lambda: changed(shape=(4.0,))),
        ("in float32 *x", lambda: changed(shape=(-4,))),
        ("in float32 *x", lambda: changed(shape=(2**40, 2**40))),
        ("in float32 *x", lambda: hs.empty(4, np.float32)._memory),
        ("in float32 *x", lambda: hs.pinned_empty(8, np.float32)[::2]),
        ("in float32 *x", lambda: hs.pinned_empty((2, 3), np.float32).T),
        ("in float32 *x", lambda: hs.pinned_empty(8, np.int32)),
        ("in float32 *x", lambda: hs.pinned_empty(8, np.float32).astype(">f4")),
        ("in void *x", lambda: hs.pinned_empty(0, np.float32)),
        ("out float32 *x", lambda: fixed(hs.pinned_empty(8, np.float32))),
        ("inout void *x", lambda: fixed(hs.pinned_empty(8, np.float32))),
        ("in float32 *x", lambda: [1.0]),
        ("in float32 *x", lambda: 5),
    ],
)
def test_M11_an_unusual_array_is_left_to_the_general_path(signature: str, make: Callable[[], Any]) -> None:
    usual = hs.empty(4, np.float32)
    assert arguments(signature, usual) is not None
    assert arguments(signature, make()) is None


@pytest.mark.needs("host")
def test_M11_memory_of_another_library_is_left_to_the_general_path() -> None:
    assert arguments("in float32 *x", of_another_library()) is None


# -- sizes ------------------------------------------------------------------

WHOLE = [1, 2, 1024, 65535, 2**31 - 1]
SIZES = [
    *(
        0,
        -1,
        1025,
        2**31,
        2**64,
        True,
        1.0,
        "1",
        None,
        np.int64(1),
        [1, 2],
        (),
        (1, 1, 1, 1),
        (1, 1.0),
        (1, True),
        (0, 1),
    ),
    *WHOLE,
    *[(n,) for n in WHOLE],
    *itertools.product([1, 7, 65535, 65536], repeat=2),
    *itertools.product([1, 8, 64, 65, 1024], repeat=3),
]


@pytest.mark.parametrize("place", ["grid", "block"])
def test_K1_a_size_that_C_packs_has_the_bytes_of_the_general_path(place: str) -> None:
    one, taken = loaded(""), 0
    for size in SIZES:
        given = (size, (2, 2)) if place == "grid" else ((3, 4, 5), size)
        packed = _handles.packed(one, *given)
        if packed is not None:
            taken += 1
            assert packed == (_packing.shape_of("k", *given).packed, b""), repr(size)
    assert taken > 20


def test_K1_usual_sizes_are_packed_in_C() -> None:
    one = loaded("")
    for size in (1, 1024, (1024,), (32, 32), (16, 16, 4), (1, 1, 64)):
        assert _handles.packed(one, size, size) is not None, repr(size)
    assert _handles.packed(one, (2**31 - 1, 65535, 65535), 1) is not None


def test_K1_a_block_with_more_threads_than_the_kernel_may_have_is_left_to_the_general_path() -> None:
    few = loaded("", threads=96)
    assert _handles.packed(few, 1, (32, 3)) is not None
    assert _handles.packed(few, 1, 97) is None
    assert _handles.packed(loaded("", threads=2048), 1, (64, 32)) is None


def test_K1_another_number_of_arguments_is_left_to_the_general_path() -> None:
    one = loaded("uint32 a, uint32 b")
    assert _handles.packed(one, 1, 1, 2, 3) is not None
    assert _handles.packed(one, 1, 1, 2) is None
    assert _handles.packed(one, 1, 1, 2, 3, 4) is None
    many = loaded(", ".join(f"uint8 a{i}" for i in range(65)))
    assert _handles.packed(many, 1, 1, *range(65)) is None
