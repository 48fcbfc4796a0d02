"""What tests may need, which backends lack it, and which tests are left out for that.

A plugin of pytest, which tests/conftest.py registers.
"""

from __future__ import annotations

from pathlib import Path

import fake_driver
import pytest
import queues

#: What a test may need that not every backend has: ability -> what it is.
ABILITIES = {
    "abort": "dropping work that is pending",
    "any-kernels": "kernels in any form",
    "cuda-driver": "the functions of a CUDA driver",
    "engines": "a number of engines that the test chooses, which run operations one by one",
    "every-stream": "all of the streams that a device has",
    "exact-memory": "free memory to the byte, right after a block is given back",
    "graphs": "captures and graphs",
    "held-streams": "any number of streams that are held at once",
    "host": "devices whose memory the host sees: NumPy views, native functions on arrays",
    "host-kernels": "kernels in their Python or native host form",
    "host-settings": "the variables HALSTREAM_HOST_*",
    "kernels": "CUDA programs",
    "memory-size": "devices as small as the test chooses",
    "priorities": "priorities that always decide which stream runs first",
    "processes": "memory and events that other processes have",
    "reasons": "texts that name what the first operation of a stream waits for",
    "schedules": "deterministic schedules",
    "silicon": "a device that is no imitation",
    "stalls": "waits that end when nothing can end them any more",
    "times": "the times at which operations ran",
    "unknown-handles": "an error for a number that is no handle",
    "vendor-memory": "devices whose memory the host does not see",
}

_CUDA = {
    "abort": "the driver cannot take work back",
    "engines": "the device has the engines that it has",
    "exact-memory": "the driver gives memory back in pieces of its own",
    "host": "the host cannot see a device's memory",
    "host-kernels": "kernels run in their CUDA form there",
    "host-settings": "they are for host devices",
    "priorities": "to the driver a priority is a hint",
    "processes": "not built yet for drivers",
    "reasons": "the driver does not tell what an operation waits for",
    "schedules": "the driver decides what runs when",
    "stalls": "the driver does not tell who waits for what",
    "times": "the driver does not tell when an operation ran",
}

_ASCEND = {
    **_CUDA,
    "any-kernels": "an NPU's kernels are no part of AscendCL's runtime",
    "cuda-driver": "an NPU has no CUDA driver",
    "every-stream": "the backend has streams of its own on the device",
    "graphs": "the backend makes no graphs of AscendCL",
    "kernels": "an NPU runs no CUDA programs",
}

_SHARED = {"held-streams": f"the streams of a priority share {queues.CONNECTIONS} hardware queues"}

#: Backend -> ability that it lacks -> why.
LACKS = {
    "host": {
        "cuda-driver": "the host device has no driver",
        "silicon": "it is no device of a vendor",
        "vendor-memory": "the host sees the memory of its own devices",
    },
    "cuda": {
        **_CUDA,
        **_SHARED,
        "memory-size": "the device has the memory that it has",
        "unknown-handles": "the driver may crash on one",
    },
    "cuda-fake": {
        **_CUDA,
        **(_SHARED if queues.SHARED else {}),
        "silicon": "the driver is an imitation",
    },
    "ascend": {**_ASCEND, "memory-size": "the device has the memory that it has"},
    "ascend-fake": {**_ASCEND, "silicon": "the library is an imitation"},
}


def ascend_differs() -> dict[str, str]:
    """Return why tests are left out on Ascend NPUs, by their names."""
    lines = (Path(__file__).parent / "ascend_differs.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if not line.startswith("#"))


def needing_second_device() -> frozenset[str]:
    """Return the names of the tests that use two devices."""
    lines = (Path(__file__).parent / "second_device.txt").read_text().splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def one_device() -> bool:
    """Return whether the backend under test has one device only."""
    import halstream as hs

    try:
        return hs.device_count() == 1
    except hs.BackendAbsentError:
        return False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    name = config.getoption("--backend")
    lacks = LACKS[name]
    if name in fake_driver.LIBRARIES and (reason := fake_driver.unavailable(name)):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))
        return
    differs = ascend_differs() if name.startswith("ascend") else {}
    second = needing_second_device() if name.startswith("cuda") and one_device() else frozenset()
    for item in items:
        if item.nodeid in second:
            item.add_marker(pytest.mark.skip(reason="needs a second device: this machine has one"))
            continue
        if reason := differs.get(item.nodeid) or differs.get(item.nodeid.partition("[")[0]):
            item.add_marker(pytest.mark.skip(reason=reason))
            continue
        needed = [ability for mark in item.iter_markers("needs") for ability in mark.args]
        unknown = [ability for ability in needed if ability not in ABILITIES]
        if unknown:
            known = ", ".join(ABILITIES)
            raise pytest.UsageError(f"{item.nodeid}: needs({unknown[0]!r}) is no ability; there are {known}")
        for ability in needed:
            if ability in lacks:
                item.add_marker(pytest.mark.skip(reason=f"needs {ABILITIES[ability]}: {lacks[ability]}"))
                break
