"""The plugin of pytest: work that one test has begun and that the next one meets."""

from __future__ import annotations

import pytest
from plugin_help import Runner

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

SHARED = """
    one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    @pytest.fixture(scope="module")
    def x(): return hs.empty(16)
    done = hs.Event()
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    return Runner(pytester)


def test_V26_work_that_a_test_leaves_counts_in_the_next_one(run: Runner) -> None:
    source = f"""
    {SHARED}
    def test_fills(x): x.fill(1, one)
    def test_copies(x):
        hs.empty(16).copy_from(x, two)
        two.synchronize()
    """
    result = run(source, "--stream-sanitize")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*unordered*", "*in test_fills*", "*in test_copies*", "FAILED *::test_copies*"])


@pytest.mark.parametrize(
    "order",
    [
        ("x.fill(1, one); one.synchronize()", ""),
        ("x.fill(1, one); done.record(one)", "done.wait(two)"),
        ("x.fill(1, one)", "one.synchronize()"),
    ],
)
def test_V26_work_that_is_ordered_is_silent(run: Runner, order: tuple[str, str]) -> None:
    first, second = order
    source = f"""
    {SHARED}
    def test_fills(x): {first}
    def test_copies(x):
        {second}
        hs.empty(16).copy_from(x, two)
        two.synchronize()
    def test_plain(): pass
    """
    run(source, "--stream-sanitize").assert_outcomes(passed=3)


def test_V26_a_test_that_failed_leaves_nothing(run: Runner) -> None:
    source = f"""
    {SHARED}
    def test_fills(x):
        x.fill(1, one)
        assert False
    def test_copies(x):
        hs.empty(16).copy_from(x, two)
        two.synchronize()
    """
    run(source, "--stream-sanitize").assert_outcomes(passed=1, failed=1)


def test_V26_each_schedule_of_a_test_begins_anew(run: Runner) -> None:
    source = f"""
    {SHARED}
    def test_fills(x): x.fill(1, one)
    def test_copies(x):
        one.synchronize()
        hs.empty(16).copy_from(x, two)
        two.synchronize()
    """
    run(source, "--stream-sanitize", "--stream-schedules=3").assert_outcomes(passed=2)
