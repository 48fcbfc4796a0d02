"""cuda.core's devices: one object in each thread, what is current, and what they say of themselves."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from cuda_help import device
from halstream.cuda import core
from halstream.cuda.core._utils.cuda_utils import CUDAError

pytestmark = pytest.mark.usefixtures("backend")

LIMIT = 10.0


@pytest.fixture
def dev() -> core.Device:
    return device()


def on_a_thread(function: Callable[[], Any]) -> Any:
    """Return what a function returns on a thread of its own."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join(LIMIT)
    return found[0]


def test_a_device_is_one_object_in_each_thread(dev: core.Device) -> None:
    assert core.Device(0) is dev and core.Device() is dev and core.Device(dev) is dev
    assert on_a_thread(lambda: core.Device(0)) is not dev
    assert pickle.loads(pickle.dumps(dev)) is dev
    assert core.Device.get_all_devices() == tuple(core.Device(i) for i in range(hs.device_count()))
    assert int(dev) == dev.device_id == 0 and dev == core.Device(0) and (dev == 0) is False


def test_devices_that_do_not_exist(dev: core.Device) -> None:
    count = hs.device_count()
    with pytest.raises(ValueError, match=rf"^device_id must be within \[0, {count}\), got {count}$"):
        core.Device(count)
    with pytest.raises(ValueError, match=r"^device_id must be >= 0, got -1$"):
        core.Device(-1)
    with pytest.raises(TypeError):
        core.Device("0")


def test_a_thread_makes_a_device_current_before_it_makes_anything() -> None:
    def errors() -> list[str]:
        fresh, texts = core.Device(0), []
        uses: list[Callable[[], object]] = [
            fresh.create_stream,
            fresh.create_event,
            fresh.create_graph_builder,
            fresh.sync,
            lambda: fresh.context,
            lambda: fresh.allocate(4, stream=None),
            lambda: fresh.default_stream,
            core.LEGACY_DEFAULT_STREAM.sync,
        ]
        for use in uses:
            try:
                use()
            except CUDAError as exc:
                texts.append(str(exc))
        fresh.set_current()
        fresh.create_stream().sync()
        core.LEGACY_DEFAULT_STREAM.sync()
        return texts

    device()
    texts = on_a_thread(errors)
    said = "Device 0 is not yet initialized, perhaps you forgot to call .set_current() first?"
    assert texts[:6] == [said] * 6
    assert len(texts) == 8 and all(text.startswith("CUDA_ERROR_INVALID_CONTEXT: ") for text in texts[6:])


def test_the_current_device_is_the_threads() -> None:
    def number() -> tuple[int, int]:
        before = core.Device().device_id
        core.Device(1).set_current()
        return before, core.Device().device_id

    device(0)
    assert on_a_thread(number) == (0, 1)
    assert core.Device().device_id == 0
    assert hs.Device().ordinal == 0


def test_set_current_takes_a_context() -> None:
    first, second = device(0), device(1)
    try:
        assert first.set_current(first.context) == second.context
        assert core.Device() is first
        with pytest.raises(RuntimeError, match=r"which is different from the target id=0"):
            first.set_current(second.context)
        with pytest.raises(TypeError, match=r"^Argument 'ctx' has incorrect type"):
            first.set_current(5)  # type: ignore[arg-type]
    finally:
        first.set_current()


def test_what_a_device_says_of_itself(dev: core.Device) -> None:
    facts = hs.Device(0)
    assert dev.name == facts.name and dev.name in repr(dev)
    assert dev.arch == "".join(map(str, dev.compute_capability))
    assert len(dev.uuid) == 36
    assert dev.can_access_peer(dev) and dev.can_access_peer(0)
    with pytest.raises(ValueError, match=r"device_id must be within"):
        dev.can_access_peer(99)


@pytest.mark.needs("cuda-driver")
def test_the_address_of_a_device_on_the_bus(dev: core.Device) -> None:
    assert dev.pci_bus_id.count(":") == 2 and not dev.pci_bus_id.startswith("ffff:")


@pytest.mark.needs("host")
def test_a_host_device_lies_on_no_bus(dev: core.Device) -> None:
    assert dev.pci_bus_id == "ffff:00:00.0"


@pytest.mark.needs("host")
def test_the_properties_of_a_host_device(dev: core.Device) -> None:
    properties = dev.properties
    assert properties.compute_capability_major == 8
    assert (properties.max_threads_per_block, properties.warp_size) == (1024, 32)
    assert properties.unified_addressing is True and properties.tcc_driver is False
    assert not hasattr(properties, "no_such_property")


@pytest.mark.parametrize("name", ["create_context", "to_system_device", "create_opaque_array"])
def test_methods_that_are_not_built_say_so(dev: core.Device, name: str) -> None:
    with pytest.raises(hs.NotSupportedError, match=rf"(?m)^cuda\.core\.Device\.{name} is not built yet$"):
        getattr(dev, name)()


def test_attributes_that_are_not_built_are_absent(dev: core.Device) -> None:
    for thing, name in ((dev, "resources"), (dev.context, "handle"), (dev.create_stream(), "resources")):
        assert not hasattr(thing, name)
        with pytest.raises(AttributeError, match=rf"\.{name} is not built yet"):
            getattr(thing, name)


def test_sync_waits_for_the_device(dev: core.Device, hold: Callable[[Any], Any]) -> None:
    stream = dev.create_stream()
    gate = hold(stream)
    with pytest.raises(hs.WaitTimeoutError):
        dev.sync(timeout=0.01)
    gate.open()
    dev.sync(timeout=LIMIT)
