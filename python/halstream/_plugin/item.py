"""Runs one test many times and reports it once."""

from __future__ import annotations

import os
import shlex
import warnings
from dataclasses import replace
from typing import Any

import pytest

from .. import _native
from .._checks import nearby
from .._checks.results import failing_schedule, under_schedule
from .._schedules.block import stale
from .._schedules.explain import explain, nondeterminism, sequence_of
from .._schedules.matching import marks_of
from .._schedules.replay import Replayed, replay_changed
from .._schedules.search import Found, Settings, search, used, worth_keeping
from .._schedules.token import Token
from .plan import FLAGS, ORDERS, REPLAYED, Plan
from .remembered import remember, remembered
from .runs import Outcome, Runs, Stop

__all__ = ["run_test"]

_TITLE = "stream schedule"

# What takes part when fixtures of wider scope end: the runner itself, capture,
# and what turns stray exceptions into warnings.
_TAKE_DOWN = ("runner", "capturemanager", "unraisableexception", "threadexception")


def run_test(item: pytest.Function, nextitem: pytest.Item | None, plan: Plan, wrong: str = "") -> None:
    """Run a test as planned and log one report for each phase; `wrong` fails it at once."""
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    with Runs(item, plan) as runs:
        if wrong:
            outcome = _refused(item, wrong)
        elif plan.token is not None:
            outcome = _replay(runs, plan.token)
        elif plan.ordered:
            outcome = _explore(runs, _settings(plan))
        elif plan.compiled:
            outcome = _compiled(runs)
        else:
            runs.once()
            outcome = runs.last
    of: Any = outcome.failed or outcome.reports[-1]
    if runs.suppressed:
        of.stream_suppressed = dict(runs.suppressed)
    if runs.by_library:
        of.stream_by_library = dict(runs.by_library)
    if runs.codes:
        of.stream_codes = list(runs.codes)
    if runs.some_unseen:
        of.stream_some_unseen = True
    _log(item, nextitem, outcome, runs.durations)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _refused(item: pytest.Item, why: str) -> Outcome:
    def fail() -> None:
        pytest.fail(why, pytrace=False)

    call = pytest.CallInfo.from_call(fail, "setup")
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return Outcome([report])


def _compiled(runs: Runs) -> Outcome:
    """Run the test as it is written, and once more with what torch.compile makes of it."""
    from ..torch._redirect.comparison import eagerly

    with eagerly():
        runs.once()
    if not (runs.last.failed or runs.last.failure or runs.last.skipped or runs.last.expected):
        runs.compiled = True
        runs.once()
    return runs.last


def _settings(plan: Plan) -> Settings:
    numbers = plan.schedules or 1, plan.depth, plan.seed
    settings = Settings(*numbers, prove=plan.prove, threads=plan.threads, first=plan.first)
    return settings if plan.shrink else replace(settings, shrink_runs=0)


def _explore(runs: Runs, settings: Settings) -> Outcome:
    known = remembered(runs.item)
    try:
        found, explored = search(runs, settings, known)
    except Stop:
        return runs.last
    if found is None:
        if known is not None:
            runs.last.remember = ""
        runs.last.searched = {"schedules": explored.schedules - settings.first, "used": explored.steps > 0}
        if explored.orders:
            runs.last.properties.append((ORDERS, str(explored)))
        return runs.last
    outcome: Outcome = found.execution.kept
    failure = found.execution.failure
    assert failure is not None
    keep = str(found.token) if worth_keeping(found) else None
    if failure.search and not found.difference and _debugging(runs):
        # Run the failing schedule again with the debugger.
        runs.execute(found.execution.spec, interact=True)
        if runs.last.failure == failure:
            outcome = runs.last
    outcome.remember = keep
    outcome.searched = _failed(found, settings)
    if not used(found.execution):
        return outcome  # streams have no part in it
    if found.difference:
        _attach(runs, outcome, nondeterminism(found))
    else:
        found.execution = found.execution.bare()
        _attach(runs, outcome, _text(runs, found), found)
    return outcome


def _failed(found: Found, settings: Settings) -> dict[str, object]:
    """Return what a campaign keeps of a failure."""
    token = str(found.token) if used(found.execution) and not found.difference else ""
    in_order = found.tried <= max(1, settings.first)  # it failed in the first run
    return {
        "schedules": 1 if in_order else found.tried - settings.first,
        "used": used(found.execution),
        "title": str(found.execution.failure),
        "number": 0 if in_order else found.tried - 1,
        "token": token,
    }


def _debugging(runs: Runs) -> bool:
    return bool(runs.item.config.getoption("usepdb", False))


def _text(runs: Runs, found: Found) -> str:
    assert found.execution.failure is not None
    command = _command(runs, found.token)
    if found.execution.failure.search:
        return explain(found, command)
    which = "a token remembered from an earlier run" if found.remembered else "the first that fails"
    return f"Under schedule {found.token}, {which}.\nReplay: {command}"


def _replay(runs: Runs, token: Token) -> Outcome:
    changed: Replayed | None = None
    try:
        execution = runs(token.spec, trace=True)
        if used(execution) and stale(token, execution.fingerprint):
            # Later runs use the caches and pools that the first run of a process fills.
            execution = runs(token.spec, trace=True)
        if used(execution) and stale(token, execution.fingerprint):
            changed = replay_changed(runs, token)
    except Stop:
        return runs.last
    outcome: Outcome = execution.kept
    if not used(execution):
        return outcome
    why = stale(token, execution.fingerprint)
    fifo = execution
    if changed is not None:
        execution, fifo, why = changed
        outcome = execution.kept
    if execution.failure is None:
        if why and changed is None:
            _fail(outcome, why)
        else:
            outcome.properties.append((REPLAYED, why or f"token {token}: fixed: the test passes in its order"))
        return outcome
    found = Found(execution.bare(), fifo.bare(), original=execution.spec, tried=0)
    found.marks = marks_of(execution, _native.position_text)
    _attach(runs, outcome, f"{why}\n\n{_text(runs, found)}" if why else _text(runs, found), found)
    return outcome


def _fail(outcome: Outcome, why: str) -> None:
    """Make a passed test fail: it did not run under the requested schedule."""
    report = outcome.report("call")
    if report is not None and report.passed and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = why


def _attach(runs: Runs, outcome: Outcome, text: str, found: Found | None = None) -> None:
    """Add a text to the end of what is shown of the failure, and the token to its properties."""
    token = found.token if found is not None else None
    if found is not None and outcome.failure is not None and outcome.failure.search:
        runs.codes["schedule-failure"] = None
    report = outcome.failed
    if report is None:
        # A subtest failed, which has a report of its own.
        report = next((report for report in outcome.others if report.failed), None)
    notes = "".join(f"\nnote: {note}" for note in outcome.streams.notes)
    if report is not None:
        report.sections.append((_TITLE, text + notes))
    if token is not None:
        outcome.properties.append(("stream_token", str(token)))
    for one in outcome.results:
        one["token"] = one["token"] or str(token or "")
    if runs.results_wanted and outcome.failure is not None and not outcome.results:
        title = str(outcome.failure)
        timeline = sequence_of(found) if found is not None and nearby.wanted() else None
        where = str(token or ""), timeline
        if outcome.faults:
            outcome.faults[:1] = [under_schedule(outcome.faults[0], text, *where)]
        else:
            outcome.results.append(failing_schedule(title, f"{title}\n\n{text}", runs.place, runs.item.nodeid, *where))


def _command(runs: Runs, token: Token) -> str:
    """Return what a user types where pytest was started to run the test under a token."""
    item = runs.item
    config = item.config
    path, _, rest = item.nodeid.partition("::")
    if config.invocation_params.dir != config.rootpath:
        path = os.path.relpath(config.rootpath / path, config.invocation_params.dir)
    words = ["pytest", f"{path}::{rest}" if rest else path, f"--stream-replay={token}"]
    for name in FLAGS:
        if getattr(runs.plan, name) and not config.getini(f"stream_{name}"):
            words.append(f"--stream-{name}")
    return shlex.join(words)


def _log(item: pytest.Function, nextitem: pytest.Item | None, outcome: Outcome, durations: dict[str, float]) -> None:
    """Log the reports of the run that counts, and take down what the next test does not need."""
    for message in outcome.warned:
        warnings.showwarning(message.message, message.category, message.filename, message.lineno)
    for report in outcome.reports:
        missing = (pair for pair in outcome.properties if pair not in report.user_properties)
        report.user_properties = [*report.user_properties, *missing]
        report.duration = durations.get(report.when, report.duration)
    if outcome.results or outcome.faults:
        of = outcome.failed or outcome.reports[-1]
        of.stream_results = [*outcome.results, *outcome.faults]  # type: ignore[attr-defined]
    if outcome.searched is not None:
        of = outcome.failed or outcome.reports[-1]
        of.stream_searched = outcome.searched  # type: ignore[attr-defined]
    if outcome.remember is not None:
        remember(outcome.failed or outcome.reports[-1], outcome.remember)
    last = outcome.report("teardown")
    before = [report for report in outcome.reports if report is not last]
    for report in [*before[:1], *outcome.others, *before[1:]]:
        item.ihook.pytest_runtest_logreport(report=report)
    if item.session.shouldfail or item.session.shouldstop:
        nextitem = None
    final = _take_down(item, nextitem)
    if last is None or (last.passed and final.failed):
        if last is not None:
            final.sections[:0] = last.sections
            final.user_properties = last.user_properties
            final.duration += last.duration
        last = final
    elif final.failed:
        last.sections.append(("teardown of wider fixtures", final.longreprtext))
    else:
        last.sections.extend(final.sections)
        last.duration += final.duration
    item.ihook.pytest_runtest_logreport(report=last)


def _take_down(item: pytest.Function, nextitem: pytest.Item | None) -> pytest.TestReport:
    """End the fixtures of wider scope that the next test does not use."""
    item._report_sections.clear()
    manager = item.config.pluginmanager
    # The test's own teardown has been; most plugins expect one.
    wanted = [manager.get_plugin(name) for name in _TAKE_DOWN]
    others = [plugin for plugin in manager.get_plugins() if plugin not in wanted]
    teardown = manager.subset_hook_caller("pytest_runtest_teardown", others)
    call = pytest.CallInfo.from_call(
        lambda: teardown(item=item, nextitem=nextitem), "teardown", (pytest.exit.Exception, KeyboardInterrupt)
    )
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return report
