"""Runs one pytest test repeatedly: setup, call and teardown, each time from the same state."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest

from .. import _native
from .._checks.results import Result, left
from .._core._assertions import collect
from .._errors import HalError, ScheduleError
from .._schedules.block import Schedule, pending
from .._schedules.execution import Execution, Failure
from .._schedules.explore import Operations, failure_of, traced
from .._schedules.isolation import RunIsolation
from .._sites import Frame
from .faults import take
from .fixtures import Contents
from .late import Late
from .plan import RESULTS, STREAMS, TIMER, Plan, Streams
from .sanitized import nothing, watched
from .state import HeldBack, forget_instance, forget_subtests, is_skip

__all__ = ["Outcome", "Runs", "Stop"]

When = Literal["setup", "call", "teardown"]

#: Seconds that work which a passed test leaves may take.
_LEFT = 1.0
_AGAIN = 0.01


class Stop(Exception):
    """The test is not to be run under more schedules: it was skipped, or failed as expected."""


@dataclass
class Outcome:
    """What one run of a test gave."""

    reports: list[pytest.TestReport] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)  #: reports that plugins logged meanwhile (subtests)
    warned: list[warnings.WarningMessage] = field(default_factory=list)
    failure: Failure | None = None
    expected: bool = False  #: it failed as it should (xfail)
    skipped: bool = False
    final: bool = False  #: the failure does not depend on the schedule
    streams: Streams = field(default_factory=Streams)
    results: list[Result] = field(default_factory=list)  #: for files, where these were asked for
    faults: list[Result] = field(default_factory=list)  #: likewise, what the failure itself is
    properties: list[tuple[str, object]] = field(default_factory=list)
    remember: str | None = None  #: the token to keep for later sessions; '' drops the one that is kept
    searched: dict[str, object] | None = None  #: what a part of the schedules gave, under a campaign

    def report(self, when: When) -> pytest.TestReport | None:
        """Return the report of a phase."""
        return next((report for report in self.reports if report.when == when), None)

    @property
    def failed(self) -> pytest.TestReport | None:
        """The report of the phase that failed first."""
        return next((report for report in self.reports if report.failed), None)


class Runs:
    """A context in which a test can be run any number of times.

    Fixtures of wider scope than the test stay. What their setup does with
    streams is no part of a run: a run in which that happened is done again.
    """

    def __init__(self, item: pytest.Function, plan: Plan) -> None:
        self.item = item
        self.plan = plan
        self.count = 0
        self.durations: dict[str, float] = {}
        self.last = Outcome()
        self.begun = 0.0
        self._isolation = RunIsolation()
        self._contents = Contents()
        self._stack = contextlib.ExitStack()
        self._wider = False
        self._ran = False
        self._left = _LEFT
        self._properties = len(item.user_properties)
        self._leaks: Any = None
        self._block: Schedule | None = None
        #: How many findings each rule for suppressions took out, in all runs.
        self.suppressed = Counter[str]()
        #: And how many those for known libraries took out: see `Report.by_library`.
        self.by_library = Counter[str]()
        #: The codes of the pages that explain what was found in all runs, each once.
        self.codes: dict[str, None] = {}
        self.some_unseen = False  #: the sanitizer does not know what some function touches
        self.compiled = False  #: the test has passed without torch.compile
        self.results_wanted = RESULTS in item.config.stash

    def __enter__(self) -> Runs:
        manager = self.item.config.pluginmanager
        manager.register(self, name="halstream-runs")
        self._stack.callback(manager.unregister, self)
        if self.plan.ordered:
            self._stack.enter_context(self._isolation)
        self._stack.enter_context(self._reports_held_back())
        info = getattr(self.item, "_fixtureinfo", None)
        for definitions in info.name2fixturedefs.values() if info is not None else ():
            for one in definitions:  # set up for an earlier test
                if one.scope != "function":
                    self._keep_contents(one)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # Hooks, while the context lasts.

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            yield
            return
        before = self._steps()
        yield
        self._wider = self._wider or self._steps() != before
        self._isolation.keep()
        self._keep_contents(fixturedef)
        if self.plan.leaks:
            self._leaks = self._leaks_snapshot()

    def _leaks_snapshot(self) -> Any:
        from .._stalls import leaks as _leaks

        if _leaks.tracking():
            self._stack.callback(_leaks.stop)
        return _leaks.snapshot()

    def _keep_contents(self, fixturedef: Any) -> None:
        """Keep what the arrays of a fixture hold once its own work is done; not if that does not end."""
        given = fixturedef.cached_result
        if not self.plan.ordered or given is None or given[2] is not None:
            return
        with contextlib.suppress(HalError):
            if _native.loaded() and not pending(_LEFT):
                self._contents.keep(fixturedef.argname, given[0])

    def _steps(self) -> int:
        begun = self._block is not None and self._block.begun
        return int(_native.schedule_steps()) if begun else 0

    @contextlib.contextmanager
    def _reports_held_back(self) -> Iterator[None]:
        # Plugins log the reports of subtests at once; only those of one run may be.
        session = self.item.session
        proxy = session.gethookproxy

        def held_back(path: Any) -> Any:
            return HeldBack(proxy(path), self.last.others)

        session.gethookproxy = held_back  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            del session.gethookproxy

    # Runs.

    def __call__(self, spec: str, trace: bool = False) -> Execution:
        """Run the test under a schedule, for `search`."""
        execution = self.execute(spec, trace)
        if self._wider and not self.last.final:
            self._wider = False
            execution = self.execute(spec, trace)
        if self.last.expected or (self.last.skipped and not self._ran):
            raise Stop
        self._ran = True
        return execution

    def execute(self, spec: str, trace: bool = False, interact: bool = False) -> Execution:
        """Run the test once; `last` has what it gave."""
        self._isolation.begin()
        self._contents.restore()
        try:
            with contextlib.ExitStack() as stack:
                lines = stack.enter_context(traced()) if trace else Operations()
                self._block = block = Schedule(spec)
                block.lean = not trace
                # In case of an exception that ends the session.
                stack.callback(block.finish, drop=True)
                self._run(block, interact)
            ran = block.execution if block.begun else Execution(spec)
            return replace(
                ran, failure=self.last.failure, trace=tuple(lines), declared=frozenset(lines.declared), kept=self.last
            )
        finally:
            self._block = None
            self._isolation.end()

    def once(self) -> None:
        """Run the test as always, with what else the plan asks for."""
        self._run(None, interact=True)

    def _run(self, block: Schedule | None, interact: bool) -> None:
        self._reset(block)
        calls: list[tuple[pytest.CallInfo[None], pytest.TestReport]] = []
        with contextlib.ExitStack() as stack:
            warned = stack.enter_context(warnings.catch_warnings(record=True))
            self.last.warned = warned if warned is not None else []
            self._phases(block, calls, stack, interact)
        self._judge(calls)
        self.last.properties = self.item.user_properties[self._properties :]
        for call, _ in calls:
            self.durations[call.when] = self.durations.get(call.when, 0.0) + call.duration

    def _reset(self, block: Schedule | None) -> None:
        item = self.item
        self.last = Outcome()
        self.count += 1
        if self.count > 1:
            self._restart_timer()
        item._report_sections.clear()
        del item.user_properties[self._properties :]
        forget_subtests(item)
        forget_instance(item)  # each run gets one of its own
        if not item._request:
            item._initrequest()
        spec = block.spec if block is not None else "fifo" if self.plan.in_order else "parallel"
        self.last.streams = item.stash[STREAMS] = Streams(spec, self.count, self.plan.seed)
        if self.plan.leaks:
            self._leaks = self._leaks_snapshot()

    def _restart_timer(self) -> None:
        settings = self.item.stash.get(TIMER, None)
        if settings is not None and not settings.func_only:
            hook: Any = self.item.config.pluginmanager.hook
            hook.pytest_timeout_cancel_timer(item=self.item)
            hook.pytest_timeout_set_timer(item=self.item, settings=settings)

    def _phases(self, block: Schedule | None, calls: list[Any], stack: contextlib.ExitStack, interact: bool) -> None:
        item, hook = self.item, self.item.ihook
        watch, unwatched = watched(self, stack) if self.plan.sanitized else (nothing, "")
        # Node.listchain() of the copy ends with another object than this
        # test: with it as the next test, pytest tears down this test only.
        after = copy.copy(item)
        # It keeps no object of the test's class alive.
        after.__dict__.pop("_instance", None)
        after.__dict__.pop("_obj", None)

        def setup() -> None:
            refused = unwatched or ("" if block is None else _refusal(block))
            if refused:
                pytest.fail(refused, pytrace=False)
            hook.pytest_runtest_setup(item=item)

        def call() -> None:
            hook.pytest_runtest_call(item=item)
            self._fail(watch())

        def teardown() -> None:
            hook.pytest_runtest_teardown(item=item, nextitem=after)
            failed = any(report.failed for report in (*self.last.others, *(report for _, report in calls)))
            late.add(watch())
            if block is not None:
                late.add(self._finish(block, failed))
            if self.plan.leaks and not failed:
                # What a test that failed made is still in its frames.
                item.funcargs.clear()
                forget_instance(item)
                late.add(self._left_over())

        late = Late(item)
        stack.enter_context(collect(late.assertions))
        try:
            first = self._phase("setup", setup, calls, interact)
            if first.passed and not item.config.getoption("setuponly", False):
                self._phase("call", call, calls, interact)
            if not unwatched and (block is None or block.begun):
                self._phase("teardown", teardown, calls, interact)
            self.last.failure = late.conclude([report for _, report in calls])
            self.last.final = self.last.final or late.final
            self.last.faults = [one for _, report in calls for one in take(report)] or late.results
        finally:
            item._request = False  # type: ignore[assignment]
            item.funcargs = None  # type: ignore[assignment]

    def _finish(self, block: Schedule, failed: bool) -> str:
        """End the schedule; return what is wrong with that."""
        try:
            # What fixtures of wider scope have begun may not be dropped silently.
            strict = self._wider or self.plan.leaks
            if not block.finish(failed, self._left, strict):
                self._left = _AGAIN  # the next run leaves the same
        except ScheduleError as exc:
            return block.abandon() or str(exc)
        except HalError as exc:
            return str(exc)
        return ""

    def _fail(self, why: str) -> None:
        """Fail the phase with a text instead of a traceback; '' leaves it as it is."""
        if why:
            self.last.final = True
            pytest.fail(why, pytrace=False)

    def goes_on(self) -> bool:
        """Whether what the test has begun counts in the next one."""
        return not self.plan.ordered and self.last.failed is None and self.last.failure is None

    def _left_over(self) -> str:
        from .._stalls import leaks as _leaks

        pending(_LEFT)  # only work that does not end by itself is left
        lines = [f"the test leaves {line}" for line in _leaks.report(self._leaks)]
        if lines:
            self.codes["leak"] = None
        if self.results_wanted:
            self.last.results += [left(line, self.place, self.item.nodeid) for line in lines]
        return "\n".join(lines)

    @property
    def place(self) -> Frame:
        """Where the test is defined."""
        file, line, name = self.item.location
        return Frame(str(self.item.config.rootpath / file), (line or 0) + 1, name)

    def _phase(self, when: When, function: Callable[[], None], calls: list[Any], interact: bool) -> pytest.TestReport:
        item = self.item
        reraise: tuple[type[BaseException], ...] = (pytest.exit.Exception,)
        if not item.config.getoption("usepdb", False):
            reraise += (KeyboardInterrupt,)
        call = pytest.CallInfo.from_call(function, when, reraise)
        report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
        calls.append((call, report))
        self.last.reports.append(report)
        raised = None if call.excinfo is None else call.excinfo.value
        if interact and raised is not None and not is_skip(raised) and not hasattr(report, "wasxfail"):
            item.ihook.pytest_exception_interact(node=item, call=call, report=report)
        return report

    def _judge(self, calls: list[tuple[pytest.CallInfo[None], pytest.TestReport]]) -> None:
        last = self.last
        for call, report in calls:
            if call.excinfo is None:
                continue
            if is_skip(call.excinfo.value):
                last.skipped = True
            elif hasattr(report, "wasxfail"):
                last.expected = True
            elif last.failure is None:
                last.failure = failure_of(call.excinfo.value, search=not last.final)
        for report in last.others:
            if last.failure is None and report.failed:
                crash = getattr(report.longrepr, "reprcrash", None)
                place = f"{crash.path}:{crash.lineno}" if crash else ""
                last.failure = Failure("subtest", place, crash.message if crash else "")


def _refusal(block: Schedule) -> str:
    """Begin a block; return why it cannot begin, '' if it did."""
    try:
        block.__enter__()
    except HalError as exc:
        return str(exc)
    return ""
