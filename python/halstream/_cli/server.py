"""`halstream mcp`: `verify`, `explain` and `replay` as tools of a Model Context Protocol server over stdio."""

from __future__ import annotations

import functools
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from .. import __version__
from .._explain.text import UnknownCodeError, overview, page
from .terminal import say
from .verifying import Wanted, verify

__all__ = ["MissingExtraError", "serve", "server"]

R = TypeVar("R")

_INSTRUCTIONS = (
    "halstream finds missing waits between device streams, without a GPU. After a change of code that uses streams, "
    "events, pinned memory or non-blocking copies call verify; it runs the tests that the change is about. Apply a "
    "patch of its answer with `git apply`, call explain with the code of a finding to learn what it means, and replay "
    "with its token to see it again."
)
#: Lines that are given of what a replayed program prints.
_MOST = 300


class MissingExtraError(Exception):
    """The package for the protocol is not installed; the text says how to install it."""


async def _in_thread(call: Callable[[], R]) -> R:
    """Make a call that takes long while the server answers others."""
    to_thread: Any = importlib.import_module("anyio.to_thread")
    result: R = await to_thread.run_sync(call, abandon_on_cancel=True)
    return result


async def _verify(
    paths: list[str] | None = None,
    folder: str = ".",
    base: str = "",
    schedules: int = 50,
    torch: bool = False,
    cuda: bool = False,
    timeout: float = 600.0,
) -> dict[str, Any]:
    """Run tests under the sanitizer and under schedules, and try the suggested fixes on copies. No file is changed.

    Args:
        paths: Test files, folders, or tests such as tests/test_x.py::test_y. Without them the tests that changed since
            the branch was begun, and those that import what changed.
        folder: The project, in which pytest is started.
        base: A commit or branch that the change is compared with; the trunk if empty.
        schedules: Under how many orders of the device each test runs.
        torch: Let tests of the real PyTorch use 'cuda' on the host device.
        cuda: Give tests of CUDA programs (numba, cuda.core) the driver on the host device.
        timeout: Seconds for all of it.

    Returns:
        A document with verdict (pass, fail, error or nothing), message, findings, failures, patches that were proven,
        and unproven. A finding has its accesses with file, line, stream and operation, why nothing orders them, and a
        token.
    """
    wanted = Wanted(paths or (), base, max(1, schedules), torch, cuda, timeout, folder)
    return dict(await _in_thread(functools.partial(verify, wanted, say)))


async def _explain(code: str = "") -> str:
    """Say what a kind of finding means, with three usual repairs and a small example.

    Args:
        code: As a finding has it, such as unordered-access. Without it all codes are listed.
    """
    try:
        return page(code) if code else overview()
    except UnknownCodeError as exc:
        return str(exc)


async def _replay(
    token: str,
    target: str,
    args: list[str] | None = None,
    folder: str = ".",
    sanitize: bool = True,
    torch: bool = False,
    cuda: bool = False,
    timeout: float = 120.0,
) -> dict[str, Any]:
    """Run a test or a program again under the schedule of a token, to see a failure again.

    Args:
        token: As verify or a report gives it.
        target: A test such as tests/test_x.py::test_y, or a Python program.
        args: Arguments of the program.
        folder: Where it is started.
        sanitize: Look for unordered accesses, too.
        torch: Let the real PyTorch use 'cuda' on the host device.
        cuda: Give CUDA programs (numba, cuda.core) the driver on the host device.
        timeout: Seconds that it may take.

    Returns:
        The exit code (0: it passes, 1: it fails, 2: the token is damaged or of another program; null: it took too
        long) and what it printed.
    """
    flags = ["--sanitize"] * sanitize + ["--torch"] * torch + ["--cuda"] * cuda
    words = [sys.executable, "-m", "halstream", "replay", *flags, token, target, *(args or ())]
    return await _in_thread(functools.partial(_run, words, folder, timeout))


def _run(words: list[str], folder: str, timeout: float) -> dict[str, Any]:
    process = subprocess.Popen(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # ended with all that it started
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        code = None
    return {"exit_code": code, "output": "\n".join(output.splitlines()[-_MOST:])}


def server() -> Any:
    """Return the server, an `MCPServer` of the package `mcp`.

    Raises
    ------
    MissingExtraError
        If that is not installed, or an older one.
    """
    try:
        package: Any = importlib.import_module("mcp.server")
        made = package.MCPServer("halstream", instructions=_INSTRUCTIONS, version=__version__)
    except (ImportError, AttributeError) as exc:
        raise MissingExtraError(
            f"the server needs the package of an extra, mcp 2 or later ({exc}); say pip install 'halstream[mcp]'"
        ) from None
    for function in (_verify, _explain, _replay):
        made.tool(name=function.__name__[1:])(function)
    return made


def serve() -> None:
    """Answer on stdin and stdout until stdin ends; see `server` for what it raises."""
    server().run("stdio")
