"""Arguments that launches usually have take a short way, which must lead to the same place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._kernel import _launch, _packing
from halstream._kernel._signature import Wrong, parse, scalar

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("any-kernels")]

NUMBERS: list[Any] = [
    *(0, 1, -1, 7, 127, 128, -129, 255, 256, 2**31, 2**32 - 1, 2**53, 2**53 + 1, -(2**63), 2**64 - 1, 2**64),
    *(0.0, -0.0, 0.1, 1.5, 65504.0, 65520.0, 3.4028235e38, 1e39, math.inf, -math.inf, math.nan),
    *(True, False, 1j, "1", None, [1]),
    *(np.float32(0.1), np.float64(0.1), np.int8(-3), np.uint32(9), np.bool_(True), np.array(2, np.int16)),
]
TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32")


@pytest.mark.parametrize("dtype", [*TYPES, "float64", "complex64", "complex128"])
def test_a_scalar_is_packed_as_the_general_path_packs_it_or_not_at_all(dtype: str) -> None:
    kernel = hs.Kernel(host=print, signature=f"{dtype} a")
    taken = 0
    for number in NUMBERS:
        packed = _packing.Packer(kernel.parameters).pack((number,))
        if packed is None:
            continue
        taken += 1
        assert packed == _launch._cell(kernel, 0, scalar(kernel.parameters[0], number)), repr(number)
    assert taken > 1 or dtype.startswith("complex")


@pytest.mark.parametrize("size", [1, 16, 17, 40])
def test_a_struct_is_packed_as_the_general_path_packs_it(size: int) -> None:
    kernel, value = hs.Kernel(host=print, signature=f"bytes{size} a"), bytes(range(size))
    packed = kernel._packer.pack((value,))
    assert packed == _launch._cell(kernel, 0, scalar(kernel.parameters[0], value))
    assert packed == value + bytes(-size % 16) and len(kernel._packer.modes) == len(packed) // 16
    assert kernel._packer.pack((value[1:],)) is None and kernel._packer.pack((bytearray(value),)) is None


@pytest.mark.parametrize("dtype", TYPES)
def test_other_values_are_left_to_the_general_path(dtype: str) -> None:
    parameters = parse(f"{dtype} a")
    refused = 0
    for number in NUMBERS:
        try:
            scalar(parameters[0], number)
        except Wrong:
            refused += 1
            assert _packing.Packer(parameters).pack((number,)) is None, repr(number)
    assert refused > 5


def test_an_array_is_packed_as_address_and_size_with_a_letter_for_its_access() -> None:
    x, pinned = hs.empty(6, np.float32), hs.pinned_empty(3, np.float32)
    packer = _packing.Packer(parse("in float32 *a, out void *b, inout float32 *c, in int8 *d, uint8 e"))
    assert packer.modes == b"rwbr-"
    packed = packer.pack((x[2:], pinned, x, None, 5))
    assert packed is not None
    numbers = np.frombuffer(packed, np.uint64).tolist()
    address = pinned.__array_interface__["data"][0]
    assert numbers == [x.ptr + 8, 16, address, 12, x.ptr, 24, 0, 0, 5, 0]


def fixed(array: Any) -> Any:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("signature", "make"),
    [
        ("in float32 *x", lambda: hs.empty(4, np.float64)),
        ("in float32 *x", lambda: hs.empty(0, np.float32)),
        ("in float32 *x", lambda: hs.pinned_empty(8, np.float32)[::2]),
        ("out float32 *x", lambda: fixed(hs.pinned_empty(8, np.float32))),
        ("in float32 *x", lambda: [1.0]),
        ("in float32 *x", lambda: 5),
    ],
)
def test_an_unusual_array_is_left_to_the_general_path(signature: str, make: Callable[[], Any]) -> None:
    assert _packing.Packer(parse(signature)).pack((make(),)) is None


def test_a_freed_array_is_left_to_the_general_path() -> None:
    x = hs.empty(4, np.float32)
    packer = _packing.Packer(parse("in float32 *x"))
    assert packer.pack((x,)) is not None
    x._memory.free()
    assert packer.pack((x,)) is None


def test_a_cached_launch_size_is_not_used_for_values_that_only_equal_it() -> None:
    assert _packing.shape_of("k", 1, (1, 2)) is _packing.shape_of("k", 1, (1, 2))
    for grid, block in ((1.0, 1), (1, (1.0, 2)), (1, (1, 2.0))):
        with pytest.raises(hs.KernelArgumentError, match="is one to three integers"):
            _packing.shape_of("k", grid, block)
    assert _packing.shape_of("k", np.int64(1), [1, 2]) == _packing.shape_of("k", 1, (1, 2))


FILL = """.version 6.0
.target sm_50
.address_size 64
.visible .entry fill_u32(.param .u64 x, .param .u32 v, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<7>;
	.reg .b64 %d<5>;
	ld.param.u64 %d1, [x];
	ld.param.u32 %r1, [v];
	ld.param.u32 %r2, [n];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.u32 %r6, %r3, %r4, %r5;
	setp.ge.u32 %p1, %r6, %r2;
	@%p1 bra END;
	cvta.to.global.u64 %d2, %d1;
	mul.wide.u32 %d3, %r6, 4;
	add.u64 %d4, %d2, %d3;
	st.global.u32 [%d4], %r1;
END:
	ret;
}
"""


def host_fill(grid: Any, block: Any, x: Any, v: Any, n: Any) -> None:
    x[:n] = v


@pytest.fixture
def fill() -> hs.Kernel:
    return hs.Kernel(FILL, host_fill, name="fill_u32", signature="inout uint32 *x, uint32 v, uint32 n")


@pytest.mark.parametrize("again", [False, True], ids=["first launch", "later launch"])
def test_memory_that_the_stream_cannot_use_is_named_at_each_launch(fill: hs.Kernel, again: bool) -> None:
    s, near, far = hs.Stream(0), hs.empty(8, np.uint32, device=0), hs.empty(8, np.uint32, device=1)
    if again:
        s.launch(fill, 1, 8, near, 1, 8)
    with pytest.raises(hs.WrongDeviceError, match=r"argument 1 .* device 1, the stream on 0"):
        s.launch(fill, 1, 8, far, 2, 8)
    with pytest.raises(hs.KernelArgumentError, match=r"argument 1 .* pageable"):
        s.launch(fill, 1, 8, np.ones(8, np.uint32), 2, 8)
    beyond = hs.Array(near._memory, near.ptr, (2**20,), near.dtype)
    with pytest.raises(hs.InvalidValueError, match=r"argument 1 .* end behind their block"):
        s.launch(fill, 1, 8, beyond, 2, 8)
    s.launch(fill, 1, 8, near, 3, 8)
    assert near.numpy(s).tolist() == [3] * 8


def test_M11_usual_launches_keep_their_memory_until_they_have_run(fill: hs.Kernel, hold: Hold) -> None:
    s, x, pinned = hs.Stream(), hs.empty(8, np.uint32), hs.pinned_empty(8, np.uint32)
    s.launch(fill, 1, 8, x, 1, 8)
    s.synchronize(timeout=LIMIT)
    gate = hold(s)
    s.launch(fill, 1, 8, x, 2, 8)
    address = x.ptr
    del x
    others = [hs.empty(8, np.uint32) for _ in range(4)]
    assert address not in [other.ptr for other in others]
    s.launch(fill, 1, 8, pinned, 3, 8)
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert pinned.tolist() == [3] * 8
