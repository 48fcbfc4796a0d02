"""Strict mode: guards of paddle and mindspore hold for the process, as in the real packages."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Child = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("host")]

GUARDS = {
    "paddle.device.stream_guard": "from halstream.paddle import device\nguard = device.stream_guard",
    "paddle.device.cuda": "from halstream.paddle.device.cuda import _guard as guard",
    "mindspore.hal.StreamCtx": "from halstream.mindspore import hal\nguard = hal.StreamCtx",
}


@pytest.mark.parametrize("strict", ["1", "0", ""], ids=["strict", "0", "unset"])
@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS.keys())
def test_T4_in_strict_mode_a_guard_applies_to_other_threads(child: Child, guard: str, strict: str) -> None:
    done = child(
        guard
        + f"""
import threading
import halstream as hs

def elsewhere():
    found = []
    thread = threading.Thread(target=lambda: found.append(hs.current_stream(0)))
    thread.start()
    thread.join(10)
    return found[0]

strict = {strict == "1"}
default = hs.Device(0).default_stream
outer, inner, chosen = hs.Stream(0), hs.Stream(0), hs.Stream(0)
seen = (lambda s: s) if strict else (lambda s: default)
with guard(outer):
    assert hs.current_stream() is outer
    assert elsewhere() == seen(outer)
    with guard(inner):
        assert hs.current_stream() is inner
        assert elsewhere() == seen(inner)
    assert hs.current_stream() is outer
    assert elsewhere() == seen(outer)
assert hs.current_stream() == elsewhere() == default
twice = guard(outer)
if "_guard" not in {guard!r}:
    with twice:
        with twice:
            assert hs.current_stream() is outer
        assert hs.current_stream() is outer
    assert hs.current_stream() == default
print("done")
""",
        env={"HALSTREAM_STRICT": strict},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
