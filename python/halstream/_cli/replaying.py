"""A test again under the schedule of a token, by pytest."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Sequence

__all__ = ["is_test", "replay"]

#: The codes of pytest for tests that passed, and for some that failed.
_RAN = (0, 1)


def is_test(name: str) -> bool:
    """Return whether a name is that of a test, such as ``tests/test_x.py::test_y``."""
    return re.match(r"[^:]+\.py::", name) is not None


def replay(token: str, test: str, flags: Sequence[str]) -> int:
    """Run a test under the schedule of a token, on this process's terminal.

    Parameters
    ----------
    token, test : str
    flags : sequence of str
        Options of pytest, without ``--stream-`` in front.

    Returns
    -------
    int
        0 if it passes, 1 if it fails, 2 if it could not be run.
    """
    if importlib.util.find_spec("pytest") is None:
        print("halstream: pytest is not installed, which runs the tests; say pip install pytest", file=sys.stderr)
        return 2
    words = [sys.executable, "-m", "pytest", "-q", test, f"--stream-replay={token}"]
    process = subprocess.Popen([*words, *(f"--stream-{flag}" for flag in flags)])
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reached it as well
        raise
    return code if code in _RAN else 2
