"""Devices: ordinals, the current one, absent backends, objects of two devices."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_D1_ordinals_count_from_zero() -> None:
    count = hs.device_count()
    assert count >= 1
    assert [d.ordinal for d in hs.devices()] == list(range(count))
    for wrong in (-1, count, 2**40, -(2**70), 2**70):
        with pytest.raises(hs.InvalidDeviceError):
            hs.Stream(device=wrong)
        with pytest.raises(hs.InvalidDeviceError):
            hs.Device(wrong)
    for wrong in (1.0, b"0", True, [0]):
        with pytest.raises(TypeError):
            hs.Device(wrong)


def test_D1_the_ordinal_of_a_device_cannot_be_assigned() -> None:
    device = hs.Device(1)
    with pytest.raises(AttributeError):
        device.ordinal = 99  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del device.ordinal
    assert device.ordinal == 1
    assert copy.copy(device) == pickle.loads(pickle.dumps(device)) == device


@pytest.mark.needs("host-settings")
def test_D1_the_host_backend_has_as_many_devices_as_requested(child: Callable[..., Any]) -> None:
    for asked in ("1", "5"):
        done = child(
            "import halstream as hs; print(hs.device_count())",
            env={"HALSTREAM_HOST_DEVICES": asked},
        )
        assert (done.returncode, done.stdout.strip()) == (0, asked), done.stderr


def test_D2_each_thread_has_its_own_current_device() -> None:
    assert hs.current_device() == hs.Device(0)
    hs.set_device(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(hs.current_device().ordinal))
    thread.start()
    thread.join(LIMIT)
    assert hs.current_device() == hs.Device(1)
    assert seen == [0]
    assert hs.Stream().device == hs.Device(1)


def test_D2_a_device_context_restores_what_stood_before() -> None:
    with pytest.raises(ZeroDivisionError), hs.Device(1):
        assert hs.current_device() == hs.Device(1)
        assert hs.Stream().device == hs.Device(1)
        1 / 0  # noqa: B018
    assert hs.current_device() == hs.Device(0)


#: The environment of a machine without a vendor's library.
NO_LIBRARIES = {
    "HALSTREAM_CUDA_LIBRARY": "/nowhere/libcuda.so.1",
    "HALSTREAM_ASCEND_LIBRARY": "/nowhere/libascendcl.so",
}


@pytest.mark.parametrize("name", ["cuda", "ascend"])
def test_D3_an_absent_backend_has_a_reason(name: str, child: Callable[..., Any]) -> None:
    done = child(
        """
        import halstream as hs
        try:
            hs.Stream()
        except hs.BackendAbsentError as exc:
            print(exc)
        """,
        env={"HALSTREAM_BACKEND": name, **NO_LIBRARIES},
    )
    assert done.returncode == 0, done.stderr
    assert name in done.stdout
    assert len(done.stdout.split()) > 4


def test_D3_a_failed_choice_changes_nothing(child: Callable[..., Any]) -> None:
    done = child(
        """
        import halstream as hs
        hs.Stream().close()
        for name, error in [("cuda", hs.BackendAbsentError), ("abacus", hs.InvalidValueError)]:
            try:
                hs.use_backend(name)
            except error as exc:
                assert name in str(exc)
            else:
                raise SystemExit(f"{name} was accepted")
            assert hs.backend() == "host"
            s = hs.Stream()
            s.call(int)
            s.synchronize(timeout=10)
            s.close()
        assert hs.use_backend("host") == hs.use_backend("auto") == "host"
        s = hs.Stream()
        s.call(int)
        s.synchronize(timeout=10)
        """,
        env={"HALSTREAM_BACKEND": "host", **NO_LIBRARIES},
    )
    assert done.returncode == 0, done.stderr


def test_D3_the_backend_stays_while_anything_is_alive(child: Callable[..., Any]) -> None:
    done = child(
        """
        import halstream as hs
        s = hs.Stream()
        try:
            hs.use_backend("host")
        except hs.InvalidValueError as exc:
            assert "alive" in str(exc)
        else:
            raise SystemExit("accepted")
        s.nop()
        s.synchronize(timeout=10)
        del s
        assert hs.use_backend("host") == "host"
        """
    )
    assert done.returncode == 0, done.stderr


def test_D4_objects_of_two_devices_do_not_mix_but_for_waits(hold: Hold) -> None:
    s0, s1 = hs.Stream(device=0), hs.Stream(device=1)
    with pytest.raises(hs.WrongDeviceError):
        s0.record(hs.Event(device=1))
    gate = hold(s0)
    s1.wait(s0)
    s1.wait(s0.record())
    s1.nop()
    assert not s1.query()
    gate.open()
    s1.synchronize(timeout=LIMIT)


def test_D5_synchronizing_a_device_waits_for_its_streams_only(hold: Hold) -> None:
    s0, s1, free = hs.Stream(device=0), hs.Stream(device=1), hs.Stream(device=0, non_blocking=True)
    hold(s1)
    s0.delay(0.01)
    free.delay(0.01)
    hs.synchronize(0, timeout=LIMIT)
    assert s0.query() and free.query()
    with pytest.raises(hs.WaitTimeoutError):
        hs.synchronize(1, timeout=0.02)


@pytest.mark.needs("kernels")
def test_D6_a_device_that_fails_for_good_stays_lost_and_others_go_on(child: Callable[..., Any]) -> None:
    done = child(
        """
        import threading, halstream as hs
        # On hardware it traps; the look-alike driver fails with the code.
        program = \"\"\"
        .version 6.0
        .target sm_50
        .address_size 64
        .visible .entry fault(.param .u32 code) { trap; }
        \"\"\"
        fault = hs.Kernel(program, name="fault", signature="uint32 code")
        fault.load()
        s, other, far = hs.Stream(), hs.Stream(non_blocking=True), hs.Stream(device=1)
        gate = hs.testing.Gate(other)
        ran, ended = [], []
        other.call(ran.append, "dropped")
        e = other.record()

        def wait(target):
            try:
                target.synchronize(timeout=20)
            except hs.DeviceLostError as exc:
                ended.append(exc)

        waits = [threading.Thread(target=wait, args=(one,)) for one in (other, e, hs.Device(0))]
        for thread in waits:
            thread.start()
        s.launch(fault, 1, 1, 719)
        for thread in waits:
            thread.join(30)
        assert len(ended) == 3, ended
        for call in (s.nop, s.query, s.record, lambda: s.call(print), lambda: s.launch(fault, 1, 1, 719), hs.Stream):
            try:
                call()
            except hs.DeviceLostError as exc:
                assert exc.code == ended[0].code != 0, exc
            else:
                raise SystemExit(f"{call} was accepted")
        gate.open()
        far.call(ran.append, "far")
        far.synchronize(timeout=10)
        assert ran == ["far"], ran
        """
    )
    assert done.returncode == 0, done.stderr
