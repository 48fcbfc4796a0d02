"""What concerns the process: refusals, forks, exits, undoing, and commands."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from conftest import Child

BOTH = "import halstream.paddle.plugin as plugin\nimport paddle\n"


def test_Y10_the_variable_of_others_is_respected(child: Child) -> None:
    done = child("import halstream.paddle.plugin", CUSTOM_DEVICE_ROOT="/others")
    assert done.returncode == 1
    assert "PluginError: CUSTOM_DEVICE_ROOT is '/others'" in done.stderr


def test_Y10_it_comes_before_paddle(child: Child) -> None:
    done = child("import paddle\nimport halstream.paddle.plugin")
    assert "PluginError: Paddle is imported already" in done.stderr


def test_Y10_another_version_is_refused(child: Child, tmp_path: Path) -> None:
    (tmp_path / "paddle" / "version").mkdir(parents=True)
    (tmp_path / "paddle" / "__init__.py").touch()
    (tmp_path / "paddle" / "version" / "__init__.py").write_text("full_version = '2.6.2'\n")
    done = child("import halstream.paddle.plugin")
    assert "PluginError: Paddle 2.6.2 is installed, and the plug-in is for 3.0 to 3.3" in done.stderr


def test_Y10_the_variable_is_gone_after_the_import(child: Child) -> None:
    done = child(BOTH + "import os; print(os.environ.get('CUSTOM_DEVICE_ROOT') or 'none')")
    assert done.stdout == "none\n", done.stderr


def test_Y10_the_type_and_the_number_of_devices_are_chosen_by_variables(child: Child) -> None:
    text = BOTH + "print(paddle.device.get_available_custom_device(), paddle.ones([2]).place)"
    done = child(text, HALSTREAM_PADDLE_DEVICE="lookalike", HALSTREAM_HOST_DEVICES="3")
    assert done.stdout == "['lookalike:0', 'lookalike:1', 'lookalike:2'] Place(lookalike:0)\n", done.stderr


FORK = """
import os, sys
x = paddle.ones([8]) * 2
paddle.device.synchronize()
stream = paddle.device.Stream()
event = stream.record_event()
pid = os.fork()
if pid == 0:
    y = x + 1
    z = paddle.to_tensor([1.0, 2.0]) * 2
    event.record(stream)
    event.synchronize()
    stream.synchronize()
    ok = y.numpy().tolist() == [3.0] * 8 and z.numpy().tolist() == [2.0, 4.0] and event.query()
    os._exit(0 if ok else 3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), (x + 1).numpy()[0])
"""


def test_Y11_a_forked_process_works_at_once(child: Child) -> None:
    done = child(BOTH + FORK)
    assert done.stdout == "0 3.0\n", done.stderr


WORKERS = """
import numpy as np
class Digits(paddle.io.Dataset):
    def __getitem__(self, i):
        return np.full([4], i, "float32")
    def __len__(self):
        return 16
paddle.ones([4]) + 1
loader = paddle.io.DataLoader(Digits(), batch_size=4, num_workers=2, shuffle=False)
print([float((batch[0] if isinstance(batch, (list, tuple)) else batch).sum()) for batch in loader])
"""


def test_Y11_workers_of_a_data_loader_work(child: Child) -> None:
    done = child(BOTH + WORKERS)
    assert done.stdout == "[24.0, 88.0, 152.0, 216.0]\n", done.stderr


def test_Y12_a_process_ends_with_work_pending(child: Child) -> None:
    text = """
    import halstream as hs
    stream = paddle.device.Stream()
    hs.Stream.from_handle(stream.stream_base.raw_stream).delay(0.2)
    with paddle.device.stream_guard(stream):
        x = paddle.ones([1 << 16])
        for _ in range(20):
            x = x + 1
    event = stream.record_event()
    raise SystemExit(7)
    """
    done = child(BOTH + re.sub(r"(?m)^    ", "", text))
    assert done.returncode == 7, done.stderr
    assert done.stderr == ""


def test_Y13_undoing_gives_paddle_its_own_functions(child: Child) -> None:
    text = """
    before = vars(paddle.device.Event)["__init__"]
    plugin.undo()
    assert vars(paddle.device.Event)["__init__"] is not before
    assert not hasattr(paddle.base.core.CustomDeviceEvent, "elapsed_time")
    assert set(plugin.operators().values()) == {"fallback"}
    assert (paddle.ones([2]) + 1).numpy().tolist() == [2, 2]
    plugin.patch()
    assert plugin.operators()["add"] == "stream"
    stream, other = paddle.device.Stream(), paddle.device.Stream()
    stream.wait_stream(other)
    assert (paddle.ones([2]) + 1).numpy().tolist() == [2, 2]
    """
    done = child(BOTH + re.sub(r"(?m)^    ", "", text))
    assert done.returncode == 0, done.stderr


def test_Y14_the_operators_are_listed_by_a_command(child: Child) -> None:
    done = child("", "-m", "halstream.paddle.plugin", "--operators")
    # The program's file is an argument too many; the command says so.
    assert done.returncode == 2
    words = [os.sys.executable, "-W", "ignore", "-m", "halstream.paddle.plugin", "--operators"]  # type: ignore[attr-defined]
    listed = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert "stream    add\n" in listed.stdout and "fallback  nonzero\n" in listed.stdout, listed.stderr
    assert re.search(r"(?m)^2\d\d of \d+ operators run in stream order", listed.stdout)


PREFETCH = """
import paddle
loader = paddle.device.Stream()
weight = paddle.ones([1024])
for step in range(3):
    with paddle.device.stream_guard(loader):
        inputs = paddle.full([1024], float(step)) * 2
    paddle.device.current_stream().wait_stream(loader)
    print(step, float((weight * inputs).mean()))
"""


def run(child: Child, text: str, *options: str) -> Any:
    return child(text, "-m", "halstream", "run", "--paddle", *options)


def test_Y15_the_command_runs_a_program_of_paddle(child: Child) -> None:
    done = run(child, PREFETCH)
    assert done.stdout == "0 0.0\n1 2.0\n2 4.0\n", done.stderr


def test_Y15_the_sanitizer_reports_a_missing_wait(child: Child) -> None:
    whole = run(child, PREFETCH, "--sanitize")
    assert whole.returncode == 0, whole.stderr
    lines = [line for line in PREFETCH.splitlines() if "wait_stream" not in line]
    done = run(child, "\n".join(lines), "--sanitize")
    assert done.returncode == 1
    report = done.stdout + done.stderr
    assert "unordered access" in report
    assert "paddle::" in report and "program.py:7" in report


@pytest.mark.skipif(sysconfig.get_platform() != "linux-x86_64", reason="offsets are compared on x86_64")
def test_Y16_the_interface_is_that_of_the_installed_header(imported: Any, tmp_path: Path) -> None:
    from halstream.paddle.plugin import _sources, _wheel

    ours = (_sources.sources() / "interface.h").read_text()
    names = re.findall(r"int \(\*(\w+)\)\(", ours)
    checks = "\n".join(
        f'static_assert(offsetof(C_DeviceInterface, {name}) == offsetof(paddle_hooks, {name}), "{name}");'
        for name in names
    )
    text = f"""
    #include <paddle/phi/backends/device_ext.h>
    #include "interface.h"
    {checks}
    static_assert(sizeof(paddle_hooks) <= sizeof(C_DeviceInterface), "size");
    static_assert(offsetof(CustomRuntimeParams, sub_device_type) == offsetof(paddle_parameters, sub_device_type), "");
    static_assert(C_SUCCESS == PADDLE_SUCCESS && C_FAILED == PADDLE_FAILED, "results");
    """
    path = tmp_path / "check.cpp"
    path.write_text(text)
    include = [f"-I{_wheel.installed().include}", f"-I{_sources.sources()}"]
    done = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", *include, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(names) >= 36
