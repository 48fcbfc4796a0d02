"""NVIDIA's own clients on the look-alike driver: `make oracle-cuda` installs them and runs these tests.

The look-alike is found as libcuda.so.1, so no test could mistake it for a real driver's library.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

import pytest

# Elsewhere the clients are not installed, and libcuda.so.1 may be a real driver.
collect_ignore_glob = [] if os.environ.get("HALSTREAM_ORACLE_CUDA") else ["test_*"]


@pytest.fixture(scope="session")
def look_alike() -> ctypes.CDLL:
    """The library that the clients use."""
    library = ctypes.CDLL("libcuda.so.1")
    assert library.fakecuda_is_fake() == 1
    library.fakecuda_count.restype = ctypes.c_uint64
    return library


@pytest.fixture
def word(look_alike: ctypes.CDLL) -> Iterator[ctypes.c_uint32]:
    """A number in pinned memory that streams can wait for; it is 1 after the test in any case."""
    from cuda.bindings import driver

    code, address = driver.cuMemHostAlloc(4, 0)
    assert code == 0
    number = ctypes.c_uint32.from_address(address)
    number.value = 0
    yield number
    number.value = 1
    driver.cuCtxSynchronize()


@pytest.fixture
def device() -> Any:
    """cuda.core's device, current."""
    from cuda import core

    device = core.Device(0)
    device.set_current()
    return device


@pytest.fixture
def stream(device: Any) -> Iterator[Any]:
    """A stream of cuda.core's, beside the legacy default one's order."""
    from cuda import core

    stream = device.create_stream(options=core.StreamOptions(nonblocking=True))
    yield stream
    stream.close()
