"""The plug-in in this process: what is installed before Paddle is imported, and what after."""

from __future__ import annotations

import glob
import importlib.machinery
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ... import _sites
from . import _build, _patches, _wheel
from ._errors import PluginError
from ._importing import when_imported

__all__ = ["device_type", "install", "operators", "patch", "undo"]

_ROOT = "CUSTOM_DEVICE_ROOT"


class _Process:
    """What holds once in a process."""

    wheel: _wheel.Wheel | None = None  #: the Paddle that the plug-in is for, None before `install`
    plugin: Any = None  #: the compiled modules
    operators: Any = None
    paddle: Any = None  #: the real Paddle, once it is imported
    patches: _patches.Patches | None = None
    without_operators = ""  #: why they could not be built


_process = _Process()


def device_type() -> str:
    """Return what Paddle calls the device type: HALSTREAM_PADDLE_DEVICE, or ``custom_cpu``.

    Raises
    ------
    PluginError
        If the variable holds no name that Paddle could take apart.
    """
    name = os.environ.get("HALSTREAM_PADDLE_DEVICE") or "custom_cpu"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name) or name in ("cpu", "gpu", "xpu", "ipu", "cuda"):
        raise PluginError(
            f"HALSTREAM_PADDLE_DEVICE is {name!r}; give a name of letters, digits and _ that is no type of Paddle's own"
        )
    return name


def install() -> None:
    """Let the Paddle that is imported next have halstream's devices; importing this package calls it.

    Raises
    ------
    PluginError
        If it is not possible in this process; the text says why and what to do.
    """
    if _process.wheel is not None:
        return
    if "paddle" in sys.modules:
        raise PluginError(
            "Paddle is imported already, and loads plug-ins only then: import halstream.paddle.plugin first"
        )
    device_type()
    wheel = _wheel.installed()
    if os.environ.get(_ROOT):
        raise PluginError(
            f"{_ROOT} is {os.environ[_ROOT]!r}, and Paddle loads the plug-ins of one folder only: unset it to use "
            "halstream's device, or leave out halstream.paddle.plugin to use the others"
        )
    others = glob.glob(str(wheel.folder.parent / "paddle_custom_device" / "*.so"))
    if others:
        print(f"halstream: Paddle does not load {', '.join(others)} beside halstream's device", file=sys.stderr)
    path = _build.plugin()
    _process.plugin = _loaded(_build.PLUGIN, path)
    _process.wheel = wheel
    variables = {_ROOT: str(path.parent)}
    if "GLOG_minloglevel" not in os.environ:
        variables["GLOG_minloglevel"] = "1"  # it reports each step of loading a plug-in
    when_imported(variables, _imported)


def _loaded(name: str, path: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as exc:
        raise PluginError(f"{path} cannot be loaded: {exc}") from None
    sys.modules[name] = module
    return module


def _imported(paddle: ModuleType) -> None:
    """Patch Paddle and register the operators, right after it was imported."""
    _process.paddle = paddle
    _sites.real_torch.paddle = True
    _sites.real_torch.changed()
    if device_type() not in paddle.device.get_all_custom_device_type():
        raise PluginError(f"Paddle {paddle.__version__} did not take the plug-in; GLOG_v=3 in the environment says why")
    patch()
    try:
        _process.operators = _loaded(_build.OPERATORS, _build.operators(_real()))
    except PluginError as exc:
        _process.without_operators = str(exc)
        print(f"halstream: every operator goes through Paddle's fallback, which waits: {exc}", file=sys.stderr)
    else:
        _process.operators.start(_process.plugin.shared(), device_type())


def _real() -> _wheel.Wheel:
    assert _process.wheel is not None
    return _process.wheel


def patch() -> None:
    """Patch Paddle's Python classes again after `undo`; it is done once Paddle is imported.

    Raises
    ------
    PluginError
        Before that.
    """
    if _process.paddle is None:
        raise PluginError("Paddle is not imported yet")
    if _process.patches is None:
        _process.patches = _patches.patch(_process.paddle, _process.plugin, device_type())
    if _process.operators is not None:
        _process.operators.start(_process.plugin.shared(), device_type())


def undo() -> None:
    """Give Paddle its own functions and kernels back.

    The devices stay until the process ends, with what Paddle can do through its interface alone.
    """
    if _process.patches is not None:
        _process.patches.undo()
        _process.patches = None
    if _process.operators is not None:
        _process.operators.stop()


def operators() -> dict[str, str]:
    """Return how each operator with a kernel for CPUs runs.

    Returns
    -------
    dict
        By name: ``"stream"`` for those that run asynchronously, in the order of the current stream, and
        ``"fallback"`` for those that Paddle runs on the CPU, waiting for the stream before and after.

    Raises
    ------
    PluginError
        Before Paddle is imported, or if the operators could not be built.
    """
    if _process.operators is None:
        raise PluginError(_process.without_operators or "Paddle is not imported yet")
    registered = set(_process.operators.registered())
    return {name: "stream" if name in registered else "fallback" for name in _process.operators.of_cpu()}
