"""Random programs of copies and fills, against an oracle of the vendor's synchronous behaviour; names of fills."""

from __future__ import annotations

import halstream as hs
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


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8", "c16"])
def test_O1_a_fill_of_large_elements_is_reported_as_a_fill(dtype: str) -> None:
    """Elements of more than 4 bytes are copied from memory of the runtime's own."""
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(4, dtype)
    hs.synchronize()
    with hs.sanitize(on="collect") as report:
        x.fill(1, one)
        x.fill(2, two)
        hs.synchronize()
    (found,) = report
    assert [found.first.kind, found.second.kind] == ["fill", "fill"]
    assert found.nbytes == x.nbytes
