"""Suggested lines tried on the recorded run: with the right one the finding goes away, and nothing waits for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .. import _native, _sites
from .._native._constants import ACTION_SYNCHRONIZE_EVENT, ACTION_WAIT_EVENT
from .._records import CheckRecord, FixRecord, decode, encode
from .._runtime import State, runtime
from . import source as _source
from . import variables
from .finding import Finding, Frame

if TYPE_CHECKING:
    from .remedy import Remedy

__all__ = ["begin", "current", "end", "first_proven", "name_of", "settle", "verdicts"]

#: How many recorded operations may be checked again for the findings of one check, together.
_BUDGET = 400_000
#: How many lines are tried for each finding.
_TRIED = 12
_KEPT = 10_000


class _Run(State):
    """The run that the extension records, and what was found out about it."""

    def __init__(self) -> None:
        self.check = 0  # the number of the check that is on or was the last one
        self.on = False
        self.budget = 0
        self.length = -1  # operations when `sites` were asked for
        self.sites: dict[Frame, set[int]] = {}
        self.settled: dict[tuple[int, int], Remedy | None] = {}  # by check and number
        self.names: dict[tuple[int, int], dict[bool, str]] = {}  # of the streams of the first and the second access


_run = runtime.add("the run on which suggested lines are tried", _Run())


def begin() -> None:
    """Say that a check began, which records the run."""
    _run.check += 1
    _run.on, _run.budget, _run.length = True, _BUDGET, -1
    variables.begin()


def end() -> None:
    """Say that the check ended: the run is no longer known."""
    _run.on = False
    variables.end()
    _run.sites = {}


def current() -> int:
    """Return the number of the check that began last."""
    return _run.check


def name_of(f: Finding, first: bool, found: Callable[[], str]) -> str:
    """Return the name of the stream of an access: what it stood for is known until the next check begins."""
    if f.number < 0:
        return found()
    key = f.check, f.number
    names = _run.names.setdefault(key, {})
    if first not in names or (f.check == _run.check and key not in _run.settled):
        names[first] = found() if f.check == _run.check else ""
    return names[first]


def first_proven(f: Finding, options: Callable[[Finding], Sequence[Remedy]]) -> Remedy | None:
    """Return the first option with which a finding goes away, None if there is none.

    An option that cannot be tried is taken as it is.
    """
    key = f.check, f.number
    if f.number >= 0 and key in _run.settled:
        return _run.settled[key]
    for option, tried in _same_lines([f, *f.alike], options):
        found = set(verdicts(tried))
        if found <= {"silent", ""}:
            return option._replace(proven=found == {"silent"})
        if found <= {"silent", "", "reversed"} and (more := _reversed(tried, options)):
            return option._replace(also=more, proven=more.proven)
    return None


def _same_lines(
    findings: Sequence[Finding], options: Callable[[Finding], Sequence[Remedy]]
) -> Iterator[tuple[Remedy, list[tuple[Finding, Remedy]]]]:
    """Yield options of the first of some findings that are options of all of them, each with its own."""
    first, *others = (options(f)[:_TRIED] for f in findings)
    for option in first:
        same = [option, *(one for its in others for one in list(filter(option.is_same_line, its))[:1])]
        if len(same) == len(findings):
            yield option, list(zip(findings, same, strict=True))


def _reversed(tried: Sequence[tuple[Finding, Remedy]], options: Callable[[Finding], Sequence[Remedy]]) -> Remedy | None:
    """Return what orders the accesses of a loop the other way round, too."""
    back = [f._replace(first=f.second, second=f.first, wait=None, record=None) for f, _ in tried]
    if any(f.first.host for f in back):
        return None
    for more, others in _same_lines(back, options):
        found = set(verdicts([*tried, *others])[: len(tried)]) if more.line else {"reported"}
        if found <= {"silent", ""}:
            return more._replace(proven=found == {"silent"})
    return None


def settle(
    findings: Iterable[Finding], first_option: Callable[[Finding], Remedy], remedy: Callable[[Finding], Remedy]
) -> None:
    """Decide on the lines for findings while the run is known, by the functions of the module that suggests them."""
    mine = [f for f in findings if f.check == _run.check and f.number >= 0]
    if not mine or not _run.on:
        return
    for f in mine:
        _run.settled.pop((f.check, f.number), None)  # decided when less of the run was known
    while len(_run.settled) + len(mine) > _KEPT and _run.settled:
        del _run.settled[next(iter(_run.settled))]
    while len(_run.names) + len(mine) > _KEPT and _run.names:
        del _run.names[next(iter(_run.names))]
    together: dict[int, Remedy] = {}
    if len(mine) * _length() > _BUDGET // 2:  # too many to be tried one by one
        firsts = [(f, first_option(f)) for f in mine]
        answers = verdicts(firsts)
        silent = {f.number for (f, _), answer in zip(firsts, answers, strict=True) if answer == "silent"}
        together = {f.number: one._replace(proven=True) for f, one in firsts if f.number in silent and not f.alike}
    for f in mine:
        _run.settled[f.check, f.number] = together.get(f.number) or remedy(f)


def verdicts(pairs: Sequence[tuple[Finding, Remedy]]) -> list[str]:
    """Return for findings what the run would be with a line for each of them, all at once.

    ``silent``: the finding does not occur. ``reported``: it does. ``stuck``: something may wait
    for ever. '' where that cannot be tried.
    """
    found = [""] * len(pairs)
    if not _run.on:
        return found
    length = _length()
    places, fixes = [], []
    for place, (f, option) in enumerate(pairs):
        if f.check == _run.check and f.number >= 0 and option.action and option.place is not None:
            fix = _fix(f, option, length)
            if fix["sites"]:  # a statement that enqueues nothing cannot be found in the record
                places.append(place)
                fixes.append(fix)
    _run.budget -= length if fixes else 0
    if not fixes or _run.budget < 0:
        return found
    answers: list[str] = decode(_native.check_prove(encode(fixes)))
    for place, answer in zip(places, answers, strict=True):
        found[place] = answer
    return found


def _length() -> int:
    counts: CheckRecord = decode(_native.check_stats())
    return counts["operations"]


def _fix(f: Finding, option: Remedy, length: int) -> FixRecord:
    assert option.place is not None
    place = option.tried or option.place
    leaving = place is not option.place and option.where == "after"  # behind a block, in front of what ends it
    event = (
        f.record.event if f.record is not None and option.action in (ACTION_WAIT_EVENT, ACTION_SYNCHRONIZE_EVENT) else 0
    )
    return {
        "finding": f.number,
        "action": option.action,
        "first": (f.first.device, f.first.stream),
        "second": (f.second.device, f.second.stream) if not f.second.host else (0, 0),
        "event": event,
        "sites": _sites_of(place, leaving, option.column, length),
        "after": option.where == "after" and not leaving,
        "early": option.early,
    }


def _sites_of(place: Frame, leaving: bool, column: int, length: int) -> list[int]:
    """Return the call sites that the statement at a place led to, or that leaving its block did."""
    if _run.length != length:
        _run.length, _run.sites = length, {}
        for site in decode(_native.check_sites()):
            for frame in _sites.program_frames(site):
                _run.sites.setdefault(frame, set()).add(site)
    here = _source.statement(place.file, place.line)
    several = _source.statement(place.file, place.line, column) if here is None or here.shares_lines else None
    here = several or here
    first, last = here.extent[:2] if here is not None else (place.line, place.line)
    lines = (place._replace(line=line) for line in range(first, last + 1))
    return sorted({
        site
        for frame in lines
        for site in _run.sites.get(frame, ())
        if variables.leaves(site, frame) is leaving
        and (several is None or several.covers(*variables.position(site, frame)))
    })  # fmt: skip
