"""Random programs of copies and fills, against an oracle of the vendor's table of synchronous behaviour."""

from __future__ import annotations

import pytest
from copies_help import racy, random_program, reported

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

PROGRAMS = 200


def test_V8_V9_a_race_is_reported_if_and_only_if_the_vendors_table_has_one() -> None:
    races = 0
    for seed in range(PROGRAMS):
        program = random_program(seed)
        assert reported(program) is racy(program), (seed, program)
        races += racy(program)
    assert PROGRAMS / 10 < races < PROGRAMS / 2
