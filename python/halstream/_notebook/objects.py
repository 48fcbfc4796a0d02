"""Streams, events and findings as HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._errors import ForkError, HalError
from .markup import Markup, element, table

if TYPE_CHECKING:
    from .._checks.finding import Access, Finding
    from .._checks.report import Report
    from .._core._event import Event
    from .._core._stream import Stream

__all__ = ["event", "finding", "report", "stream"]

# What of a report is shown at once; the rest is in its text.
_SHOWN = 20


def _name(of: object) -> str:
    cls = type(of)
    return f"{cls.__module__}.{cls.__qualname__}".replace("._core._stream", "").replace("._core._event", "")


def _safe(ask: Callable[[], Any], otherwise: str) -> Any:
    """Return an answer, or a word where the object cannot be asked: a representation raises nothing."""
    try:
        return ask()
    except ForkError:
        return "of the parent process"
    except (HalError, RuntimeError, AttributeError):
        return otherwise


def stream(of: Stream) -> str:
    """Return a stream with its device, its priority and whether it has work."""
    from .._core._stream import Stream as Core

    def state() -> str:
        if Core.closed.fget(of):  # type: ignore[attr-defined]
            return "closed"
        if Core.capturing.fget(of):  # type: ignore[attr-defined]
            return "capturing"
        return "idle" if _native.stream_done(of._id) else str(_native.describe(of._id))

    rows: list[tuple[str, object]] = [
        ("state", _safe(state, "unknown")),
        ("device", _safe(lambda: f"{_native.backend()}:{of._ordinal}", "unknown")),
        ("number", _safe(lambda: Core.index.fget(of), "unknown")),  # type: ignore[attr-defined]
        ("priority", _safe(lambda: Core.priority.fget(of), "unknown")),  # type: ignore[attr-defined]
    ]
    return table(_name(of), rows)


def event(of: Event) -> str:
    """Return an event with its state."""
    from .._core._event import Event as Core

    def state() -> str:
        if Core.closed.fget(of):  # type: ignore[attr-defined]
            return "closed"
        if not Core.recorded.fget(of):  # type: ignore[attr-defined]
            return "never recorded"
        if _native.event_in_capture(of._id):
            return "recorded in a capture"  # which a query would invalidate
        return "done" if _native.event_passed(of._id) else str(_native.describe(of._id))

    def device() -> str:
        number = Core._ordinal.fget(of)  # type: ignore[attr-defined]
        return f"{_native.backend()}:{number}" if number >= 0 else "that of its first record"

    rows: list[tuple[str, object]] = [
        ("state", _safe(state, "unknown")),
        ("device", _safe(device, "unknown")),
        ("timing", _safe(lambda: "yes" if of._made_with & 1 else "no", "unknown")),
    ]
    return table(_name(of), rows)


def finding(of: Finding) -> Markup:
    """Return a finding: what, its two places, why, and the line that would order them."""
    from .._checks.remedy import remedy
    from .._checks.report import reason

    rows: list[tuple[str, object]] = [
        (f"{number}.", _access(of, access)) for number, access in enumerate((of.first, of.second), 1)
    ]
    rows.append(("why", reason(of)))
    fix = remedy(of)
    if fix.line:
        rows.append(("fix", Markup(element("code", fix.line) + element("div", f"{fix.where} {fix.place or ''}"))))
    elif fix.note:
        rows.append(("fix", fix.note))
    if of.pairs > 1:
        rows.append(("seen", f"{of.pairs:,} times"))
    whole = element("details", element("summary", "the whole report"), element("pre", of.text))
    head = of.text.partition("\n")[0]
    return element("div", table(head, rows), whole, style="border-left:3px solid #d33;padding-left:8px;margin:6px 0")


def _access(of: Finding, access: Access) -> Markup:
    from .._checks.report import described

    place = f"{access.frames[0].file}:{access.frames[0].line}" if access.frames else ""
    return Markup(element("span", described(of, access)) + element("div", element("code", place) if place else ""))


def report(of: Report) -> str:
    """Return a report: its summary, and the first findings."""
    found = of.all
    rest = [element("div", f"and {len(found) - _SHOWN} more: see print(report)")] if len(found) > _SHOWN else []
    return element(
        "div", element("strong", f"halstream: {of.summary}"), *[finding(one) for one in found[:_SHOWN]], *rest,
        class_="halstream", style="font-size:13px",
    )  # fmt: skip
