"""The operations that a token names, found again in a program that has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream._schedules import explore as exploring
from halstream._schedules.isolation import RunIsolation
from halstream._schedules.replay import Replayed, replay_changed
from halstream._schedules.search import Settings, search
from halstream._schedules.token import Hold, Token

pytestmark = pytest.mark.needs("schedules")


def program(before: int = 0, inserted: int = 0, ordered: bool = False, rounds: int = 3, moved: bool = False) -> None:
    """Fill and copy in rounds; only the last copy must come after its fill, and does if `ordered`."""
    for _ in range(before):
        hs.Stream(non_blocking=True).nop()
    one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    source, target = hs.zeros(4), hs.zeros(4)
    for number in range(1, rounds + 1):
        for _ in range(inserted):
            one.nop()
            two.nop()
        source.fill(number, one)
        if number < rounds or ordered:
            two.wait(one.record())
        target.copy_from(source, one if moved else two)
        if number < rounds:
            one.wait(two.record())
    assert target.numpy(one if moved else two).tolist() == [rounds] * 4
    one.synchronize(timeout=10)


def under(function: Callable[[], None], use: Callable[[Any], Any]) -> Any:
    with RunIsolation() as isolation:
        return use(exploring._Program(function, isolation, sanitize=False))


@pytest.fixture(scope="module")
def token(backend: str) -> Token:
    """The token of the program without the last wait."""
    found, _ = under(program, lambda run: search(run, Settings(10)))
    made: Token = found.token
    assert made.kind == "holds" and made.marks
    return made


def replayed(token: Token, **changes: Any) -> Replayed | None:
    found: Replayed | None = under(lambda: program(**changes), lambda run: replay_changed(run, token))
    return found


def test_a_token_with_marks_reads_back(token: Token) -> None:
    assert Token.parse(str(token)) == token
    assert len(str(token)) < 60


def test_X2_in_the_same_program_it_is_the_same_schedule(token: Token) -> None:
    found = replayed(token)
    assert found is not None and found.execution.failure is not None
    assert found.execution.spec == token.spec


@pytest.mark.parametrize("changes", [{"before": 2}, {"inserted": 1}, {"inserted": 3, "before": 1}])
def test_X2_operations_are_found_whatever_is_in_front_of_them(token: Token, changes: dict[str, int]) -> None:
    found = replayed(token, **changes)
    assert found is not None and found.execution.spec != token.spec
    assert found.execution.failure is not None, found.verdict
    assert " still fails in the order of the token, matched for 1 of 1 " in found.verdict
    fixed = replayed(token, **changes, ordered=True)
    assert fixed is not None and fixed.execution.failure is None
    assert ": fixed: " in fixed.verdict and "matched for 1 of 1 " in fixed.verdict


def test_X2_an_order_that_is_impossible_now_is_said_to_be_that(token: Token) -> None:
    found = replayed(token, moved=True)
    assert found is not None and found.execution.failure is None
    assert "matched for 0 of 1 held operation(s); the others cannot come in it any more" in found.verdict


def test_X2_in_another_program_nothing_is_found(token: Token) -> None:
    def other() -> None:
        lane = hs.Stream(non_blocking=True)
        hs.zeros(4).copy_from(hs.zeros(4), lane)
        lane.synchronize(timeout=10)

    assert under(other, lambda run: replay_changed(run, token)) is None


def test_random_schedules_and_tokens_without_marks_are_not_matched(token: Token) -> None:
    for one in (Token("random", (3,), "00000000"), Token("holds", (Hold(1, 1, 2, 1),), "00000000")):
        assert under(program, lambda run, one=one: replay_changed(run, one)) is None
