"""Suggested lines in random programs, applied as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_help import tried

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules"), pytest.mark.timeout(300)]


def test_V10_the_lines_for_random_programs_silence_them(tmp_path: Path) -> None:
    outcomes = tried(tmp_path, 100)
    assert len(outcomes) == 100
    wrong = [number for number, silent in enumerate(outcomes) if not silent]
    assert len(wrong) <= 2, f"programs {wrong} of {tmp_path}"
