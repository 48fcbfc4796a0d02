"""The sanitizer: accesses to the same bytes that nothing orders, found in one run.

Reports go to the `sanitize` that began last and has not ended. With
``HALSTREAM_SANITIZE`` in the environment there is one for the whole process.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import itertools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from .. import _native, _sites
from .._core import _hostfunc
from .._core._exit import exit_with
from .._core._hostaccess import host_access
from .._errors import ForkError, InvalidValueError, UnorderedAccessError
from .._native._constants import CHECK_IN_ORDER, CHECK_OBSERVE, CHECK_PAGES
from .._notes import add_note, point_to_page
from .._records import CheckRecord, FindingRecord, decode
from .._runtime import runtime
from . import handed as _handed
from . import kept as _kept
from . import known as _known
from . import nearby as _nearby
from . import proving as _proving
from . import seen as _seen
from .finding import Finding, Made, finding_of
from .remedy import first_option, remedy
from .report import Report, explanations
from .seen import Functions
from .suppress import Rule, Rules, rules_of
from .terminated import before_sigterm

__all__ = ["UnorderedAccessWarning", "host_access", "prepare", "sanitize"]

_MODES = ("raise", "warn", "collect")


class UnorderedAccessWarning(UserWarning):
    """Two operations on the same bytes have no order between them."""


class _Scope:
    """An open `sanitize`: it takes what is found while no later one is open."""

    def __init__(self, rules: Iterable[Rule], observe: bool, pages: bool = False, threads: bool = False) -> None:
        self.rules = Rules(rules)
        self.observe = observe or pages
        self.pages = pages
        self.threads = threads
        self.report = Report(collect, self.observe, pages, self.rules.used)
        self.watched: tuple[int, ...] = ()  # functions when it began; see _watched

    def take(self, finding: Finding, number: int) -> None:
        if not self.observe and (finding.first.observed or finding.second.observed):
            return
        if finding.category == "timing" and finding.first.host and finding.dialect == "torch.cuda":
            return  # threads of torch programs hand tensors to each other by queues, which the runtime cannot see
        rule = self.rules.suppress(finding.category, finding.stacks())
        if rule is None:
            self.report._add(finding, number)
        else:
            self.report._suppress(rule)


_lock = threading.RLock()
_scopes: list[_Scope] = runtime.keep("sanitizers that are on", [])
_numbers = itertools.count()  # of what was found since the first of them began


def _open(scope: _Scope) -> None:
    global _numbers
    importlib.import_module("halstream._memory._array")  # without it array arguments say nothing
    _native.check_found()  # loads the extension, which may begin a scope for the process
    with _lock:
        collect()  # what was found so far belongs to the scopes that are open
        flags = _flags([*_scopes, scope])
        if _scopes:
            _native.check_flags(flags)
        else:
            _native.check_start(flags)
            _numbers = itertools.count()
            _proving.begin()
            _hostfunc.keep = _kept.keep
            _seen.begin(_counts)
            _hostfunc.set_look(_seen.look)
            _sites.real_torch.sanitizing(True)
            if not _sites.real_torch.dialect:  # whose threads begin and hand over work where Python sees nothing
                _native.check_threads()
            _host_order().install()
        scope.watched = _watched()
        _scopes.append(scope)


def _host_order() -> Any:
    """Return the module with the hooks of the library's objects; it imports much that a program may not use."""
    return importlib.import_module("halstream._checks.hostorder")


def _flags(scopes: Sequence[_Scope]) -> int:
    flags = 0
    for scope in scopes:
        flags |= scope.observe * CHECK_OBSERVE | scope.pages * CHECK_PAGES
    # A step of a model on the real torch or the real Paddle takes several times as long in order.
    in_order = not (scopes[-1].threads or _sites.real_torch.works)
    return flags | in_order * CHECK_IN_ORDER


def refresh_order() -> None:
    """Choose anew between real threads and the order of the calls: the real torch or Paddle works on streams now."""
    with _lock:
        if _scopes:
            _native.check_flags(_flags(_scopes))


_sites.real_torch.changed = refresh_order


def _watched() -> tuple[int, ...]:
    """Return what was counted so far: see `Functions.compared` and the attributes behind it."""
    return *_seen.watched(decode(_native.check_stats())), _sites.real_torch.views


def _counts() -> Functions | None:
    """Return where functions are counted that are enqueued now."""
    scopes = _scopes[-1:]
    return scopes[0].report.functions if scopes else None


def _close(scope: _Scope) -> None:
    with _lock:
        if scope not in _scopes:
            return
        try:
            collect(finish=len(_scopes) == 1)
            scope.report._recount(decode(_native.check_counts()))
            _proving.settle(scope.report._found, first_option, remedy)
            _nearby.settle(scope.report._found)
        finally:
            scope.report.functions._watched(a - b for a, b in zip(_watched(), scope.watched, strict=True))
            _scopes.remove(scope)
            scope.report._refresh = None
            if _scopes:
                _native.check_flags(_flags(_scopes))
            else:
                counts: CheckRecord = decode(_native.check_stats())
                scope.report.dropped = counts["dropped"]
                _host_order().remove()
                _native.check_stop()
                _proving.end()
                _hostfunc.keep = None
                _hostfunc.set_look(None)
                _seen.forget()
                _sites.real_torch.sanitizing(False)
                _kept.forget()


def collect(finish: bool = False) -> None:
    """Give what was found to the scope it belongs to."""
    with _lock:
        if not _scopes:
            return
        found: list[FindingRecord] = decode(_native.check_take(int(finish)))
        if found:
            made = Made(decode(_native.check_made()))
            for record in found:
                number = next(_numbers)
                finding = finding_of(record, made)._replace(number=number, check=_proving.current())
                _scopes[-1].take(finding, number)


class sanitize(contextlib.ContextDecorator):
    """Find accesses to the same bytes that nothing orders, in what the block does.

    One run is enough: the calls are looked at, not the moments at which work
    runs, so a missing wait is found also where the work happened to come in
    the right order.

    Parameters
    ----------
    on : {'raise', 'warn', 'collect'}
        What happens at the end when there are races or refills: an
        `UnorderedAccessError` with all of them, an `UnorderedAccessWarning`
        for each, or nothing. An exception of the block is not replaced: the
        reports become a note of it.
    suppressions : path, iterable of rules, or None
        A file with a rule on each line, or the rules themselves:
        ``race:loader.py:42``, ``race:loader.py:Loader.fill``, ``any:vendor/*``.
        Those of the file that ``HALSTREAM_SUPPRESSIONS`` names count as well, and those
        for known libraries that ship with the package.
    observe : bool
        Under a deterministic schedule of the host device, compare the memory of
        the devices, and what functions were given or can reach, before and
        after each function, and count what changed as written.
    strict : bool
        Report, as an `UnorderedAccessError` or a warning, also functions whose
        accesses are not known: see `Report.functions`.
    pages : bool
        See, by their pages, all accesses to memory of host devices and to pinned
        memory that is allocated in the block, whoever makes them. Linux only.
    threads : bool
        Leave the host device on real threads. Otherwise it runs operations in the
        order of the calls while this block is the one that began last: the reports
        are the same in each run then, and more accesses are seen. It stays as it
        is under a schedule, with the real torch or the real Paddle, and where
        work is pending when the block begins and does not end.

    Returns
    -------
    Report
        From ``with sanitize() as report``; it can be looked at in the block.

    Raises
    ------
    InvalidValueError
        For another `on`, or suppressions that cannot be read.
    NotSupportedError
        With `pages`, where the system or the backend cannot.

    Notes
    -----
    Operations before the block are not known. Blocks may be nested, and be
    open on several threads: what is found goes to the one that began last.
    Refills are found when the copies run, so synchronize within the block.
    NumPy arrays that functions work on are kept for a while.

    Examples
    --------
    >>> import halstream as hs
    >>> with hs.sanitize(on="collect") as report:
    ...     a, b, x = hs.Stream(), hs.Stream(), hs.empty(4)
    ...     x.fill(1, stream=a)
    ...     x.fill(2, stream=b)
    >>> report.races[0].fix
    'b.wait(a.record())'
    """

    def __init__(
        self,
        on: str = "raise",
        suppressions: str | os.PathLike[str] | Iterable[str] | None = None,
        observe: bool = True,
        strict: bool = False,
        pages: bool = False,
        threads: bool = False,
    ) -> None:
        if on not in _MODES:
            raise InvalidValueError(f"on= is 'raise', 'warn' or 'collect', not {on!r}")
        self._on = on
        self._rules = [*rules_of(suppressions), *_known.in_force()]
        self._observe = bool(observe)
        self._strict = bool(strict)
        self._pages = bool(pages)
        self._threads = bool(threads)
        self._scope: _Scope | None = None

    def _recreate_cm(self) -> sanitize:
        return sanitize(self._on, (), self._observe, self._strict, self._pages, self._threads)._with(self._rules)

    def _with(self, rules: list[Rule]) -> sanitize:
        self._rules = rules
        return self

    def __enter__(self) -> Report:
        if self._scope is not None:
            raise RuntimeError("this sanitize() was used already; make another one")
        self._scope = _Scope(self._rules, self._observe, self._pages, self._threads)
        _open(self._scope)
        return self._scope.report

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._scope is None:
            raise RuntimeError("this sanitize() was not entered; write `with sanitize():`")
        _close(self._scope)
        report = self._scope.report
        gaps = report.functions.gaps() if self._strict else ""
        if not (report or gaps) or self._on == "collect":
            return
        if gaps and not report:
            if exc is not None:
                add_note(exc, gaps)
            elif self._on == "raise":
                raise _error(report, gaps)
            else:
                warnings.warn(gaps, UnorderedAccessWarning, stacklevel=2)
            return
        if exc is not None:
            add_note(exc, "\n".join([str(report), *explanations(report.all)]))
        elif self._on == "raise":
            raise _error(report)
        else:
            for finding in report:
                _warn(finding)


def _error(report: Report, text: str = "") -> UnorderedAccessError:
    error = UnorderedAccessError(text or str(report), operation="sanitize")
    error.report = report  # type: ignore[attr-defined]
    for code in dict.fromkeys(finding.code for finding in report.all):
        point_to_page(error, code)
    return error


def _warn(finding: Finding) -> None:
    """Warn at the line of the second access; once, as each finding is one."""
    access = finding.first if finding.category in ("refill", "kernel") else finding.second
    file, line, _ = access.frames[0] if access.frames else ("<unknown>", 1, "")
    warnings.warn_explicit(finding.text, UnorderedAccessWarning, file, line)


def _forked() -> None:
    """Forget everything in a forked child, which has no part in the runtime."""
    global _lock
    _lock = threading.RLock()
    if _scopes:
        _host_order().remove()
    _scopes.clear()
    _hostfunc.keep = _hostfunc.look = _Process.scope = None


# -- the whole process ----------------------------------------------------


class _Process:
    """The scope of ``HALSTREAM_SANITIZE``, None without it."""

    scope: _Scope | None = None
    mode = ""
    raised: int = 0


os.register_at_fork(after_in_child=_forked)


def prepare(value: str) -> Callable[[], None]:
    """Return what begins as ``HALSTREAM_SANITIZE`` asks; it is called when the extension is loaded.

    ``1``: what was found is on stderr at the end of the process. ``warn``: as
    warnings there. ``raise``: `UnorderedAccessError` from the next wait of the
    host, where the program can be looked at; what is found after the last one
    is on stderr. ``threads`` and ``pages`` stand for ``1,threads`` and ``1,pages``: with
    such words behind a mode it is `sanitize` with `threads` or `pages`. In each
    case a process whose own exit code is 0 ends with 66
    where there are races or refills, but for those whose exception it caught.

    Raises
    ------
    InvalidValueError
        For another value, or a damaged file of suppressions.
    """
    words = value.split(",")
    mode = words.pop(0) if words[0] in ("1", "warn", "raise") else "1"
    if not set(words) <= {"pages", "threads"} or len(set(words)) < len(words):
        raise InvalidValueError(
            f"HALSTREAM_SANITIZE is {value!r}; give 1, warn, raise, or 0 for nothing; 'threads' or '1,threads' leaves "
            "the host device on real threads, '1,pages' watches pages, too"
        )
    return functools.partial(
        _begin, mode, _Scope([*rules_of(None), *_known.in_force()], True, "pages" in words, "threads" in words)
    )


def _begin(value: str, scope: _Scope) -> None:
    if _Process.scope is not None:
        return
    _Process.mode, _Process.scope = value, scope
    _open(scope)
    if value == "raise":
        for name in ("stream_sync", "event_sync", "device_sync"):
            _native.replace(name, functools.partial(_wait_and_raise, _native.named(name)))
    atexit.register(_at_exit)
    before_sigterm(_at_exit)


def _wait_and_raise(wait: Any, *args: Any) -> Any:
    """Wait for a stream, an event or a device, and raise what was found by then."""
    done = wait(*args)
    scope = _Process.scope
    if scope is not None and _native.check_found() and _scopes[-1:] == [scope]:
        report = scope.report
        found = list(report)
        if len(found) > _Process.raised:
            fresh = Report()
            for finding in found[_Process.raised :]:
                fresh._add(finding)
            _Process.raised = len(found)
            _handed.hand_over(report)  # now: the process may be killed before it ends
            raise _error(fresh)
    return done


def _at_exit() -> None:
    scope, _Process.scope = _Process.scope, None
    if scope is None:
        return
    # Pending work runs first, so that its accesses are checked.
    atexit.unregister(_hostfunc._at_exit)
    _hostfunc._at_exit()
    try:
        _close(scope)
    except ForkError:
        return  # a forked child has no part in the parent's work
    report = scope.report
    if not report.all:
        if report.by_library:
            print(report, file=sys.stderr)
        return
    unhandled = len(report) > _Process.raised
    if unhandled:
        exit_with()
    if _handed.hand_over(report):
        return
    if _Process.mode == "warn":
        for finding in report:
            try:
                _warn(finding)
            except UnorderedAccessWarning as exc:  # warnings are errors, but at exit nothing catches one
                print(exc, file=sys.stderr)
    elif unhandled or _Process.mode == "1":
        print(report, *explanations(report.all), sep="\n", file=sys.stderr)
