"""The usual launch of a kernel is checked, packed and enqueued in C: what it takes, Python's code takes, with the same bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._core import _handles
from halstream._core._work import Work
from halstream._kernel import _launch, _packing
from halstream._kernel._signature import Wrong, parse, scalar
from test_kernel_packing import FILL, NUMBERS, TYPES

LIMIT = 10.0

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
EDGES = [sign * 2**bits + more for bits in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for sign in (1, -1) for more in (-1, 0, 1)]
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
    *(0, -1, 1025, 2**31, 2**64, True, 1.0, "1", None, np.int64(1), [1, 2], (), (1, 1, 1, 1), (1, 1.0), (1, True), (0, 1)),
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


# -- launches ---------------------------------------------------------------


@pytest.fixture
def fill() -> hs.Kernel:
    kernel = hs.Kernel(FILL, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
    kernel.load(0)
    return kernel


@pytest.fixture
def general_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets the arguments of each launch which Python's code makes."""
    calls: list[Any] = []
    original = Work._launch

    def _launch(self: Any, *args: Any, **keywords: Any) -> None:
        calls.append(args)
        original(self, *args, **keywords)

    monkeypatch.setattr(Work, "_launch", _launch)
    return calls


def outcome(call: Callable[..., None], x: hs.Array, s: hs.Stream, *args: Any, **options: Any) -> Any:
    """Return what a launch does to an array, or how it fails."""
    x.fill(0, s)
    try:
        call(*args, **options)
    except Exception as exc:
        return type(exc), str(exc)
    return x.numpy(s).tolist()


@pytest.mark.needs("kernels")
@pytest.mark.parametrize(
    ("usual", "grid", "block", "values", "options"),
    [
        (True, 1, 8, (7, 8), {}),
        (True, (2, 1), (4, 1, 1), (np.uint32(7), np.uint32(5)), {}),
        (True, 1, 8, (2**32 - 1, 3), {}),
        (False, 1, 8, (7, 8), {"shared": 16}),
        (False, 1, 8, (7, 8), {"shared": -1}),
        (False, 1, 8, (7, 8), {"cooperative": 2}),
        (False, 1, 8, (7, 8), {"cluster": 0}),
        (False, 1, 8, (7, 8), {"other": 0}),
        (False, 1, 8, (7,), {}),
        (False, 1, 8, (7, 8, 9), {}),
        (False, 1, 8, (-1, 8), {}),
        (False, 1, 8, (2**32, 8), {}),
        (False, 1, 8, (7.0, 8), {}),
        (False, 1, 8, (True, 8), {}),
        (False, 1, 8, (np.int64(7), 8), {}),
        (False, np.int64(1), [8], (7, 8), {}),
        (False, 0, 8, (7, 8), {}),
        (False, (1, 65536), 8, (7, 8), {}),
        (False, 1, (32, 33), (7, 8), {}),
        (False, 1, (1, 1, 65), (7, 8), {}),
        (False, 1, (), (7, 8), {}),
        (False, 1.0, 8, (7, 8), {}),
    ],
)
def test_K1_a_launch_does_what_the_general_one_does(
    fill: hs.Kernel, general_calls: list[Any], usual: bool, grid: Any, block: Any, values: Any, options: Any
) -> None:
    s, x = hs.Stream(), hs.empty(8, np.uint32)
    found = outcome(s.launch, x, s, fill, grid, block, x, *values, **options)
    assert len(general_calls) == (not usual)
    assert found == outcome(s._launch, x, s, fill, grid, block, x, *values, **options)
    assert (type(found) is list and 0 < sum(found)) or found[0] in (hs.KernelArgumentError, TypeError), found


@pytest.mark.needs("kernels")
@pytest.mark.parametrize("array", ["freed", "of another device", "pageable", "too long", "of another dtype", "no array"])
def test_D4_memory_that_the_stream_cannot_use_fails_as_in_the_general_launch(fill: hs.Kernel, array: str) -> None:
    s, x = hs.Stream(0), hs.empty(8, np.uint32, device=0)
    gone = hs.empty(8, np.uint32, device=0)
    gone.free()
    others = [hs.empty(8, np.uint32, device=0) for _ in range(4)]  # one may have the address of what was freed
    wrong: Any = {
        "freed": gone,
        "of another device": hs.empty(8, np.uint32, device=1),
        "pageable": np.zeros(8, np.uint32),
        "too long": hs.Array(x._memory, x.ptr, (2**20,), x.dtype),
        "of another dtype": hs.empty(8, np.int32, device=0),
        "no array": 5,
    }[array]
    found = outcome(s.launch, x, s, fill, 1, 8, wrong, 1, 8)
    assert issubclass(found[0], hs.HalError), found
    assert found == outcome(s._launch, x, s, fill, 1, 8, wrong, 1, 8)
    del others


@pytest.mark.needs("kernels")
def test_K1_a_closed_stream_and_one_of_a_dialect_fail_as_in_the_general_launch(fill: hs.Kernel) -> None:
    from halstream.cupy import cuda as cupy

    x = hs.empty(8, np.uint32)
    for cls in (hs.Stream, cupy.Stream):
        s, other = cls(), hs.Stream()
        s.launch(fill, 1, 8, x, 1, 8)
        s.synchronize()
        hs._native.close(s._id)
        found = outcome(s.launch, x, other, fill, 1, 8, x, 1, 8)
        assert "closed" in found[1]
        assert found == outcome(s._launch, x, other, fill, 1, 8, x, 1, 8)


@pytest.mark.needs("kernels")
def test_K2_a_kernel_is_loaded_on_each_device_and_again_after_its_programs_were_unloaded(
    fill: hs.Kernel, general_calls: list[Any]
) -> None:
    for device in (0, 1):
        s, x = hs.Stream(device), hs.empty(8, np.uint32, device=device)
        s.launch(fill, 1, 8, x, 3 + device, 8)
        assert x.numpy(s).tolist() == [3 + device] * 8
    assert len(general_calls) == 1, "device 1 did not have it"
    _launch.forget()
    for device in (0, 1):
        s, x = hs.Stream(device), hs.empty(8, np.uint32, device=device)
        s.launch(fill, 1, 8, x, 5, 8)
        s.launch(fill, 1, 8, x, 6, 4)
        assert x.numpy(s).tolist() == [6] * 4 + [5] * 4
    assert len(general_calls) == 3


@pytest.mark.needs("kernels")
def test_K1_what_is_no_kernel_is_refused_by_name() -> None:
    s = hs.Stream()
    for call in (s.launch, s._launch):
        with pytest.raises(TypeError, match=r"launch\(\) takes a Kernel, not int"):
            call(5, 1, 8)
        with pytest.raises(TypeError, match="missing"):
            call()


@pytest.mark.needs("kernels", "graphs")
def test_G5_usual_launches_become_nodes_that_keep_their_arguments(fill: hs.Kernel, general_calls: list[Any]) -> None:
    s, arrays = hs.Stream(), [hs.zeros(4, np.uint32) for _ in range(12)]
    with hs.capture(s) as graph:
        for i, x in enumerate(arrays):
            s.launch(fill, 1, 4, x, i + 1, 4)
    assert not general_calls
    assert [node.kind for node in graph.nodes] == ["kernel"] * 12
    assert arrays[3].numpy(s).tolist() == [0] * 4
    graph.instantiate().launch(s)
    assert [x.numpy(s).tolist() for x in arrays] == [[i + 1] * 4 for i in range(12)]


@pytest.mark.needs("kernels")
def test_M11_a_usual_launch_keeps_its_memory_until_it_has_run(fill: hs.Kernel, hold: Callable[[Any], Any]) -> None:
    s, x = hs.Stream(), hs.empty(8, np.uint32)
    s.launch(fill, 1, 8, x, 1, 8)
    s.synchronize(timeout=LIMIT)
    gate = hold(s)
    s.launch(fill, 1, 8, x, 2, 8)
    address = x.ptr
    del x
    assert address not in [hs.empty(8, np.uint32).ptr for _ in range(4)]
    gate.open()
    s.synchronize(timeout=LIMIT)
