"""Streams handed over through ``__cuda_stream__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream._core import _interop

LIMIT = 10.0
Library = Callable[[str], Any]

pytestmark = pytest.mark.usefixtures("backend")


def driver_of_others() -> bool:
    """True where handles of host streams must not leave: a CUDA driver would take them."""
    return hs.backend() != "cuda" and _interop.cuda_driver_loadable()


def test_cupy_imports_a_stream_and_exports_the_same_one(library: Library) -> None:
    cupy = library("cupy")
    s = hs.Stream(non_blocking=True)
    if driver_of_others():
        with pytest.raises(hs.NotSupportedError):
            cupy.cuda.Stream.from_external(s)
        return
    theirs = cupy.cuda.Stream.from_external(s)
    assert theirs.ptr == s.handle
    back = hs.Stream.from_cuda_stream(theirs)
    assert back == s
    gate = hs.testing.Gate(s)
    waiter = hs.Stream(non_blocking=True)
    waiter.wait(theirs)
    waiter.nop()
    assert not waiter.query()
    gate.open()
    waiter.synchronize(timeout=LIMIT)


def test_the_mirror_of_cupy_takes_the_same_objects(library: Library) -> None:
    cupy = library("cupy")
    from halstream import cupy as mirror

    if driver_of_others():
        pytest.skip("a CUDA driver is loadable: host streams stay inside")
    for s in (hs.Stream(), mirror.cuda.Stream()):
        assert cupy.cuda.Stream.from_external(s).ptr == mirror.cuda.Stream.from_external(s).ptr
    for module in (cupy, mirror):
        with pytest.raises(TypeError) as caught:
            module.cuda.Stream.from_external(object())
        assert "__cuda_stream__" in str(caught.value)


@pytest.mark.parametrize("kind", ["Stream", "ExternalStream"])
def test_torch_and_halstream_streams_on_a_gpu(gpu: None, library: Library, kind: str) -> None:
    torch = library("torch")
    if kind == "Stream":
        theirs = torch.cuda.Stream()
        assert hs.Stream.from_cuda_stream(theirs).handle == theirs.cuda_stream
    else:
        s = hs.Stream()
        assert torch.cuda.ExternalStream(s.handle).cuda_stream == s.handle


def test_numba_and_halstream_streams_on_a_gpu(gpu: None, library: Library) -> None:
    cuda = library("numba.cuda")
    s = hs.Stream()
    theirs = cuda.external_stream(s.handle).handle
    assert int(getattr(theirs, "value", theirs)) == s.handle
