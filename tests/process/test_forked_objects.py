"""A forked child: objects of the parent can be printed, and every dialect names what to do instead."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Child = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("host")]

OBJECTS = """
    import os
    import halstream as hs
    from halstream.torch import Event, Stream, cuda
    from halstream.cupy import cuda as cupy
    from halstream.paddle import device
    from halstream.paddle.base import core as base
    from halstream.mindspore import hal, runtime

    objects = [
        hs.Stream(), hs.Event(), hs.Device(1), hs.empty(3), hs.Device(0).default_stream,
        Stream("cuda"), Event("cuda"), cuda.Stream(), cuda.Event(),
        cupy.Stream(), cupy.Event(), cupy.Stream.null, cupy.Device(0),
        device.Stream("custom_cpu"), device.Event("custom_cpu"),
        base.CustomDeviceStream("custom_cpu", 0),
        hal.Stream(), hal.Event(), runtime.Stream(),
    ]
    child = os.fork()
"""


def test_objects_can_be_printed_in_a_forked_child(child: Child) -> None:
    done = child(
        OBJECTS
        + """
    if child == 0:
        code = 1
        try:
            for object in objects:
                text = repr(object)
                assert type(object).__name__ in text and "\\n" not in text, text
                assert str(object)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    print("done")
    """
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(
    ("dialect", "first"),
    [
        ("hs.Stream", ""),
        ("cuda.Stream", "Cannot re-initialize CUDA in forked subprocess"),
        ("cupy.Stream", "cudaErrorInitializationError: initialization error"),
        ("lambda: device.Stream('custom_cpu')", ""),
        ("hal.Stream", ""),
        ("objects[0].synchronize", ""),
        ("objects[7].synchronize", "Cannot re-initialize CUDA in forked subprocess"),
        ("objects[9].synchronize", "cudaErrorInitializationError: initialization error"),
        ("objects[13].synchronize", ""),
        ("objects[16].synchronize", ""),
    ],
)
def test_the_error_of_a_forked_child_names_spawn_after_the_vendors_words(
    child: Child, dialect: str, first: str
) -> None:
    done = child(
        OBJECTS
        + f"""
    if child == 0:
        code = 1
        try:
            ({dialect})()
        except hs.ForkError as exc:
            text = str(exc)
            print(text, flush=True)
            code = 0 if text.startswith({first!r}) and "spawn" in text and "multiprocessing" in text else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    """
    )
    assert done.returncode == 0, done.stdout + done.stderr
