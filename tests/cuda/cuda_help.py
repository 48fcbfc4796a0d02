"""Where the look-alike driver is, and the type of the fixture that runs programs on it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Protocol

from fake_driver import FAKE_CUDA as FAKE

__all__ = ["FAKE", "HERE", "Program"]

HERE = Path(__file__).resolve().parent


class Program(Protocol):
    """Runs a program in a process of its own; see `run_program` in conftest.py."""

    def __call__(
        self, source: str, /, *, timeout: float = ..., exit_code: int | None = ..., **variables: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run the program and return the finished process."""
