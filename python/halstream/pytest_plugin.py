"""The plugin of pytest: tests of stream programs under many schedules.

It is found by itself where halstream is installed; ``-p no:halstream`` switches
it off. Loading it does not start the runtime, which begins at the first use of a
stream, and the schedules and checks are loaded, and run, only where an option, an
ini key or a marker asks for them.

- ``--stream-schedules=N``: run each test under N schedules, setup and teardown
  included; a test that uses no streams runs once.
- ``--stream-depth``, ``--stream-seed``: of the random ones.
- ``--stream-prove[=N]``: run each test in every order that can make a difference, up to N (10,000), and say
  at the end of the session whether those were all.
- ``--stream-replay=TOKEN``: run each test under the schedule of a token. Where the program has changed since, its
  operations are found again by kind and source line, and a test that passes in their order is called fixed.
- ``--stream-sanitize``: fail tests with unordered accesses. The host device runs operations in the order of the calls
  then; with ``--stream-sanitize=threads`` it stays on real threads.
- ``--stream-strict``: also tests with functions of which it is not known what they touch.
- ``--stream-pages``: also tests with accesses that nobody declares, seen by the pages of memory.
- ``--stream-compiled``: also run each test a second time, first with functions of ``torch.compile`` as they are written
  and then compiled, and fail tests where only the compiled ones lack an order.
- ``--stream-threads``: host threads take turns as the schedule says, under 50 schedules if no number is given.
- ``--stream-leaks``: fail tests that leave streams, events, memory or work.
- ``--stream-report=sarif:FILE``: write what was found as SARIF, ``json:FILE``, or ``github`` annotations.
- ``--stream-fix=diff``: print the lines that would order what was found as one patch.
- ``--stream-fix=apply``: also run the tests again with these lines, on copies of the source, under 50 schedules.
- ``--stream-torch``: let tests of the real torch use ``'cuda'`` without a GPU, all tests of the session.
- ``--stream-cuda``: give tests of CUDA programs (numba, cuda.core) the driver on the host device, likewise.

A token under which a test failed is kept in pytest's cache and tried first in later
sessions that run the test under schedules, until the test passes.

The ini keys have the same names with underscores, and ``@pytest.mark.streams``
takes them as keywords, without ``stream_``. The marker of a test goes before
the command line, and that before the ini file.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from . import _native
from ._core import _hostfunc
from ._core._assertions import collect
from ._errors import InvalidValueError
from ._notes import explanation
from ._plugin.carryover import CARRY_OVER, CarryOver
from ._plugin.plan import (
    DEFAULT_SCHEDULES,
    FLAGS,
    NUMBERS,
    ORDERS,
    PLAN,
    REPLAYED,
    RESULTS,
    STREAMS,
    TIMER,
    Plan,
    Streams,
    item_plan,
    plan_of,
)
from ._plugin.remembered import Remembered

__all__ = ["Plan", "Streams"]

_HELP = {
    "schedules": "run each test under N schedules of the host device; the first failing one is shrunk and explained",
    "depth": "how many steps must come in a certain order for a fault that the random schedules look for (3)",
    "seed": "number that the random schedules are made from (0)",
    "prove": "run each test in every order of its operations that can make a difference, up to N orders (10000)",
    "replay": "run the tests under the schedule of this token, as a failure's report gives it",
    "sanitize": "fail tests in which two operations work on the same bytes with no order between them",
    "strict": "likewise, and fail tests in which it is not known what memory a function on a stream touches",
    "pages": "likewise, and see by the pages of memory of the host device which accesses nobody declares (Linux)",
    "compiled": "likewise, and run each test twice, as it is written and as torch.compile makes it, to see lost orders",
    "threads": "let host threads run one at a time, in turns that the schedule chooses (50 schedules if not said)",
    "leaks": "fail tests that leave streams, events, memory or unfinished work",
}
#: The most orders of a proof that names no number.
_ORDERS = 10_000
_MARKER = (
    "streams(schedules=N, depth=3, seed=0, prove=0, sanitize=False, strict=False, pages=False, compiled=False, "
    "leaks=False, threads=False): run the test under N schedules of the host device (50 if the marker is bare), watch "
    "for unordered accesses and for what it leaves"
)


_THREADS = "likewise, and leave the host device on real threads instead of the order of the calls"
_CUDA = "give tests of CUDA programs the driver on the host device, without a GPU"
_SUPPRESSIONS = (
    "file with rules for findings that are left out, as HALSTREAM_SUPPRESSIONS, from the folder of the ini file"
)
_TORCH = "run CUDA programs of the real torch on the host device, without a GPU (halstream.torch.redirect)"

_GROUP = """schedules and checks of stream programs (halstream), for example

  pytest --stream-sanitize                         unordered accesses fail tests
  pytest --stream-schedules=50 test_x.py           run each test in 50 orders
  pytest test_x.py::test_y --stream-replay=TOKEN   repeat a failure
  pytest --stream-sanitize --stream-report=sarif:out.sarif
  pytest --stream-sanitize --stream-fix=diff       print the missing waits as a patch
"""
_REPORT = (
    "write what the other options find as sarif:FILE, json:FILE, html:FILE (a page with timelines), github:FILE "
    "or, its fixes, as diff:FILE; without :FILE to stdout; repeatable"
)
_FIX = (
    "diff: print the lines that would order what is found as one patch, as --stream-report=diff does; apply: also run "
    "the tests with these lines, on copies of the source, under 50 schedules or the number of --stream-schedules"
)
#: Seconds that functions on streams may take after the end of a test.
_MOMENT = 0.05
_wait = threading.Event()

#: In the stash of an item: what is wrong with its marker.
WRONG = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("streams", _GROUP)
    for name, text in _HELP.items():
        option, dest = f"--stream-{name}", f"stream_{name}"
        if name in FLAGS:
            group.addoption(option, dest=dest, action="store_true", default=None, help=text)
            parser.addini(dest, text, type="bool", default=False)
            if name == "sanitize":
                # A name of its own: as an optional value argparse would also take the path of a test that follows.
                group.addoption(f"{option}=threads", dest=dest, action="store_const", const="threads", help=_THREADS)
        else:
            metavar = "TOKEN" if name == "replay" else "N"
            # With a default for an option that is given without a value.
            more: dict[str, Any] = {"nargs": "?", "const": str(_ORDERS)} if name == "prove" else {}
            group.addoption(option, dest=dest, metavar=metavar, default=None, help=text, **more)
            parser.addini(dest, text, default="")

    group.addoption("--stream-report", metavar="FORMAT:FILE", action="append", default=None, help=_REPORT)
    parser.addini("stream_report", _REPORT, type="linelist", default=[])
    group.addoption("--stream-fix", choices=("diff", "apply"), default=None, help=_FIX)
    parser.addini("stream_suppressions", _SUPPRESSIONS, default="")
    group.addoption("--stream-torch", dest="stream_torch", action="store_true", default=None, help=_TORCH)
    parser.addini("stream_torch", _TORCH, type="bool", default=False)
    group.addoption("--stream-cuda", dest="stream_cuda", action="store_true", default=None, help=_CUDA)
    parser.addini("stream_cuda", _CUDA, type="bool", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before the first conftest: it may ask torch.cuda.is_available() when it is imported.
    given = vars(early_config.known_args_namespace)
    _redirect_torch(early_config, given.get("stream_torch"))
    _provide_driver(early_config, given.get("stream_cuda"))


def _provide_driver(config: pytest.Config, given: bool | None) -> None:
    if not (config.getini("stream_cuda") if given is None else given):
        return
    from ._driver import provide
    from ._errors import HalError

    try:
        provide()
    except HalError as exc:
        raise pytest.UsageError(f"--stream-cuda: {exc}") from None


def _redirect_torch(config: pytest.Config, given: bool | None) -> None:
    if not (config.getini("stream_torch") if given is None else given):
        return
    from ._errors import HalError
    from .torch import redirect

    try:
        redirect()
    except HalError as exc:
        raise pytest.UsageError(f"--stream-torch: {exc}") from None


def pytest_configure(config: pytest.Config) -> None:
    _redirect_torch(config, config.getoption("stream_torch"))
    _provide_driver(config, config.getoption("stream_cuda"))
    config.addinivalue_line("markers", _MARKER)
    _use_suppressions(config)
    given: dict[str, Any] = {}
    for name in _HELP:
        value, source = config.getoption(f"stream_{name}"), f"--stream-{name}"
        if value is None:
            value, source = config.getini(f"stream_{name}"), f"stream_{name} in the ini file"
        elif value == "":  # of a variable of the shell that is not set, perhaps
            raise pytest.UsageError(f"{source} is empty; give a {'token' if name == 'replay' else 'whole number'}")
        if value not in ("", False):
            given[name] = _number(value, source) if name in NUMBERS else value
    config.stash[PLAN] = plan_of(given, Plan()) if given else Plan()
    config.stash[CARRY_OVER] = CarryOver()
    if not hasattr(config, "workerinput"):  # of xdist, which sends its reports
        config.pluginmanager.register(Remembered(config), "halstream-remembered")
    wanted = list(config.getoption("stream_report") or config.getini("stream_report"))
    fix = config.getoption("stream_fix")
    if fix:
        wanted.append("diff")
    if wanted:
        # Where nobody asks for reports nothing is loaded for them.
        from ._checks.formats import target
        from ._plugin.faults import Faults
        from ._plugin.files import Files

        config.stash[RESULTS] = []
        config.pluginmanager.register(Faults(), "halstream-faults")
        try:
            targets = [target(text) for text in wanted]
            if not hasattr(config, "workerinput"):  # of xdist, which sends its results
                apply = (config.stash[PLAN].schedules or DEFAULT_SCHEDULES) if fix == "apply" else 0
                config.pluginmanager.register(
                    Files(targets, apply, sanitized=config.stash[PLAN].sanitized), "halstream-files"
                )
        except InvalidValueError as exc:
            raise pytest.UsageError(f"--stream-report: {exc}") from None


def _use_suppressions(config: pytest.Config) -> None:
    """Let the file of the ini key count, in processes that tests start as well; the variable comes first."""
    name = config.getini("stream_suppressions")
    if not name or "HALSTREAM_SUPPRESSIONS" in os.environ:
        return
    os.environ["HALSTREAM_SUPPRESSIONS"] = str((config.inipath or config.rootpath / "x").parent / name)

    def forget() -> None:
        os.environ.pop("HALSTREAM_SUPPRESSIONS", None)

    config.add_cleanup(forget)


def _number(text: str, source: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"{source} is {text!r}; give a whole number") from None


def pytest_report_header(config: pytest.Config) -> str | None:
    plan = config.stash[PLAN]
    parts = []
    if plan.token:
        parts.append(f"replay {plan.token}")
    elif plan.prove:
        parts.append(f"all orders, up to {plan.prove:,}")
    elif plan.schedules:
        parts.append(f"{plan.schedules} schedules, depth {plan.depth}, seed {plan.seed}")
    parts += [name for name in FLAGS if getattr(plan, name)]
    if plan.sanitized and not plan.ordered:
        parts.append("in the order of the calls" if plan.in_order else "on real threads")
    return "streams: " + ", ".join(parts) if parts else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for title, wanted in (("orders of streams", ORDERS), ("replayed schedules", REPLAYED)):
        lines = [
            f"{report.nodeid}: {value}"
            for report in terminalreporter.getreports("passed")
            if report.when == "call"
            for name, value in report.user_properties
            if name == wanted
        ]
        if lines:
            _section(terminalreporter, title, lines)
    plan = terminalreporter.config.stash[PLAN]
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    if plan.sanitized and not plan.ordered and any(hasattr(report, "stream_some_unseen") for report in reports):
        from ._checks.report import ON_THREADS

        _section(terminalreporter, "sanitizer of streams", [f"{ON_THREADS} --stream-schedules=1"])
    if any(hasattr(report, "stream_suppressed") or hasattr(report, "stream_by_library") for report in reports):
        from ._plugin.sanitized import suppressions

        _section(terminalreporter, "suppressed findings of streams", suppressions(reports))
    for code in dict.fromkeys(code for report in reports for code in getattr(report, "stream_codes", ())):
        terminalreporter.write_line(explanation(code))


def _section(terminalreporter: Any, title: str, lines: list[str]) -> None:
    terminalreporter.section(title)
    for line in lines:
        terminalreporter.write_line(line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("streams") is not None:
            try:
                item_plan(item)
            except pytest.UsageError as exc:
                if not hasattr(config, "workerinput"):
                    raise
                # A worker of xdist cannot refuse to work; the test fails instead.
                item.stash[WRONG] = str(exc)


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[CARRY_OVER].end()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    # What runs tests is loaded before the time limit of the first one begins: pytest has no test
    # yet that an exception of pytest-timeout would fail, and would end.
    if any(isinstance(item, pytest.Function) and _is_ours(item) for item in session.items):
        from ._plugin import item as _  # noqa: F401


def _is_ours(item: pytest.Item) -> bool:
    """Return whether a test is run by this plugin."""
    return WRONG in item.stash or not item_plan(item).idle


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    # Items that are not functions, such as doctests, cannot be run again.
    if not isinstance(item, pytest.Function):
        return None
    wrong = item.stash.get(WRONG, "")
    plan = Plan() if wrong else item_plan(item)
    if plan.idle and not wrong:
        return None
    from ._plugin.item import run_test

    run_test(item, nextitem, plan, wrong)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Fail the test with an assertion that failed in a function on a stream."""
    failed: list[AssertionError] = []
    before = _hostfunc.pending()  # of fixtures, and of tests that left them
    with collect(failed):
        outcome = yield
        if isinstance(item, pytest.Function) and outcome.excinfo is None:
            _let_functions_end(before)
    _recover(item, "call", outcome)
    if failed and outcome.excinfo is None:
        outcome.force_exception(failed[0])
    elif failed:
        text = item.repr_failure(pytest.ExceptionInfo.from_exception(failed[0]))
        item.add_report_section("call", "assertion on a stream", str(text))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    _recover(item, "teardown", outcome)


def _recover(item: pytest.Item, phase: str, outcome: Any) -> None:
    """Let devices work again that a phase has lost to an operator; fail it with errors at which it did not look."""
    if not _native.loaded():
        return
    from ._plugin.lost import recovered

    text = recovered(phase)
    if text and outcome.excinfo is None:
        outcome.force_exception(pytest.fail.Exception(text, pytrace=False))
    elif text:
        item.add_report_section(phase, "device", text)


def _let_functions_end(before: int) -> None:
    """Give the functions of a test a moment to end, without a call of the device: it may be in a capture."""
    end = time.monotonic() + _MOMENT
    while _hostfunc.pending() > before and time.monotonic() < end:
        _wait.wait(0.001)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    # Kept so that each run of a test gets the whole time (pytest-timeout).
    item.stash[TIMER] = settings


@pytest.fixture
def streams(request: pytest.FixtureRequest) -> Streams:
    """The schedule that the test runs under: `schedule`, `run`, `seed`, and `note(text)` for the report."""
    found: Streams = request.node.stash.get(STREAMS, None) or Streams()
    return found
