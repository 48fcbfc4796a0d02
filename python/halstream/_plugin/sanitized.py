"""The sanitizer over one run of a test, and what its suppressions took out of a session."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._checks import nearby
from .._checks.report import LOST, LOST_BY_COMPILER, how, suppressed_lines, text
from .._checks.results import of_finding
from .._errors import NotSupportedError
from .carryover import CARRY_OVER

if TYPE_CHECKING:
    from .runs import Runs

__all__ = ["nothing", "suppressions", "watched"]


def nothing() -> str:
    """Stand for the check of a test that is not watched."""
    return ""


def watched(runs: Runs, stack: contextlib.ExitStack) -> tuple[Callable[[], str], str]:
    """Watch a run for unordered accesses until the stack is left.

    Returns
    -------
    check : function
        Returns the text of those found since its last call.
    refused : str
        Why that is not possible, '' if it is.
    """
    from .._checks.sanitize import sanitize

    test = runs.item.nodeid
    scope = sanitize(on="collect", pages=runs.plan.pages, threads=not runs.plan.in_order)
    try:
        found = stack.enter_context(runs.item.config.stash[CARRY_OVER].scope(test, scope, runs.goes_on))
    except NotSupportedError as exc:
        return nothing, str(exc)

    def ended() -> None:
        runs.suppressed.update(found.suppressed_by)
        runs.by_library.update(found.by_library)
        runs.some_unseen = runs.some_unseen or found.functions.some_unseen

    stack.callback(ended)
    seen = named = 0

    def check() -> str:
        nonlocal seen, named
        findings = list(found)[seen:]
        seen += len(findings)
        texts = [text(finding, lost=runs.compiled) for finding in findings]
        runs.codes |= dict.fromkeys(LOST if runs.compiled else finding.code for finding in findings)
        if texts and runs.compiled:
            texts.insert(0, LOST_BY_COMPILER)
        texts += filter(None, [how(findings)])
        if runs.results_wanted:
            nearby.settle(found.all)
            runs.last.results = [of_finding(finding, test, lost=runs.compiled) for finding in found.all]
        if runs.plan.strict:
            texts += filter(None, [found.functions.gaps(named)])
            named = len(found.functions.unknown) + len(found.functions.unwatched)
        return "\n\n".join(texts)

    return check, ""


def suppressions(reports: list[Any]) -> list[str]:
    """Return a line for each rule for suppressions: how many findings of a session it took out of its tests."""
    used, by_library = Counter[str](), Counter[str]()
    for report in reports:
        used.update(getattr(report, "stream_suppressed", {}))
        by_library.update(getattr(report, "stream_by_library", {}))
    words = {0: "not used", 1: "1 finding"}
    lines = [f"{rule}: {words.get(count) or f'{count} findings'}" for rule, count in used.items()]
    return [*lines, *suppressed_lines(by_library)]
