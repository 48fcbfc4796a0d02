"""The text of what the sanitizer found, and the object that holds it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import _sites
from .._native._constants import (
    MEMORY_GIVEN_OUT_AGAIN_WHILE_IN_USE,
    OP_ALLOCATE,
    OP_CALL,
    OP_COPY,
    OP_FILL,
    OP_FREE,
    OP_FREE_MEMORY,
    OP_LAUNCH_GRAPH,
    OP_NATIVE,
    OP_WRITE_VALUE,
    SCHEDULE_UNLOGGED,
    WHY_HOST_DID_NOT_SYNCHRONIZE,
    WHY_HOST_SYNCHRONIZED_BEFORE_IT_WAS_ENQUEUED,
    WHY_HOST_THREADS_WITHOUT_ORDER,
    WHY_NEVER_WAITED,
    WHY_NO_PATH_IN_THE_GRAPH,
    WHY_SOURCE_CHANGED_BEFORE_THE_COPY,
    WHY_STREAM_WITHOUT_ORDER_WITH_THE_DEFAULT_STREAM,
    WHY_WAITED_BEFORE_IT_WAS_ENQUEUED,
    WHY_WAITED_FOR_AN_EVENT_WITHOUT_A_RECORD,
    WHY_WAITED_FOR_AN_OLDER_RECORD,
    WHY_WAITED_FOR_ANOTHER_STREAM,
    WHY_WAITED_FOR_ITS_OWN_RECORD,
)
from .._notes import explanation
from . import source as _source
from .finding import Access, Finding
from .remedy import Remedy, remedy, stream_label
from .suppress import Rule

__all__ = [
    "LOST",
    "LOST_BY_COMPILER",
    "ON_THREADS",
    "Report",
    "described",
    "explanations",
    "how",
    "reason",
    "suppressed_lines",
    "text",
]

#: What is not seen on real threads; an option that sees it follows.
ON_THREADS = (
    "on real threads it is not seen what functions write without declaring it, nor that memory is dropped which a "
    "function holds that has not run yet; both are seen with"
)

#: The code of the page on findings in code that torch.compile made.
LOST = "lost-by-compiler"
#: What stands before them.
LOST_BY_COMPILER = (
    "torch.compile lost an order: the program orders these accesses, and the code that was made of it does not"
)
_FIX_COMPILED = "none in the program, which orders them; torch.compiler.disable() keeps a function as it is"

# Frames of a stack that a report shows.
_SHOWN = 6
#: How many findings of the same lines on other streams are kept with the first: its line has to order them, too.
_ALIKE = 8

_HEADS = {
    "race": "unordered access: two operations touch the same {n}, and nothing orders them",
    "query": "ordered by a query only: two operations touch the same {n}",
    "timing": "ordered by host timing only: two operations touch the same {n}",
    "refill": "pinned memory refilled: {n} changed after the call that copies them, before the host waited for it",
    "undeclared": "unknown accesses: {n} of pinned memory changed before the copy that reads them",
}


def text(f: Finding, lost: bool = False) -> str:
    """Return the text of one finding; of one that a compiler has made where the program has none, if `lost`."""
    if f.category == "kernel":
        lines = [f"{f.tool}: {f.mistake}"] + ([f"  {_where(f)}"] if f.nbytes else [])
        lines += ["  launched on " + stream_label(f, f.first), *_stack(f.first)]
        if f.pairs > 1:
            lines.append(f"  (in {f.pairs:,} launches with this stack)")
        if f.suppression:
            lines.append(f"  suppress: {f.suppression}")
        return "\n".join(lines)
    lines = [_HEADS[f.category].format(n=f"shared {f.shared}" if f.shared else _bytes(f.nbytes)), "  " + _where(f)]
    if f.category == "refill":
        copy = f"{f.first.node} of the launch" if f.first.node else "the copy,"
        lines += [f"  {copy} on " + stream_label(f, f.first, origin=True), *_stack(f.first)]
    else:
        for number, access in enumerate((f.first, f.second), 1):
            lines += [f"  {number}. {described(f, access)}", *_stack(access)]
    lines.append(f"  why: {reason(f)}")
    fix = Remedy("", "", None, note=_FIX_COMPILED) if lost else remedy(f)
    if fix.line:
        place = f" {_within(fix)}" if fix.place else ""
        if place and f.category == "refill":
            place += ", or later, before the host writes there again"
        if not fix.proven:
            place += " (not tried)"
        where = "between the two" if fix.where in ("before", "after") and not fix.place else fix.where
        lines += [f"  fix: {where}{place}", f"         {fix.line}"]
        if fix.also is not None:
            lines += [f"       and {fix.also.where} {_within(fix.also)}", f"         {fix.also.line}"]
    elif fix.note:
        lines.append(f"  fix: {fix.note}")
    if f.pairs > 1:
        lines.append(f"  (seen {f.pairs:,} times with these stacks)")
    if f.suppression:
        lines.append(f"  suppress: {f.suppression}")
    return "\n".join(lines)


def _within(fix: Remedy) -> str:
    """Return the place of a line: of several statements on one it names the one that is meant, and whose file it is."""
    assert fix.place is not None
    package = _sites.package(fix.place.file)
    place = f"{fix.place} (in the package {package}, not in the program)" if package else str(fix.place)
    here = _source.statement(fix.place.file, fix.place.line, fix.column)
    if here is None or fix.column < 0 or not here.shares_lines:
        return place
    return f"`{here.text}` in {place}"


def _bytes(n: int) -> str:
    return "1 byte" if n == 1 else f"{n} bytes"


def _where(f: Finding) -> str:
    offset = f.start - f.block
    if f.shared:
        return f"a {f.shared} that halstream.shared() stands for"
    if not f.block_nbytes or not 0 <= offset < f.block_nbytes:
        return f"at {f.start:#x}"
    end = min(offset + f.nbytes, f.block_nbytes) - 1
    part = f"byte {offset}" if end == offset else f"bytes {offset} to {end}"
    what = ("an array", "pinned memory", "device memory")[f.block_kind]
    owner = f.parameter or f.buffer
    name = f"`{owner}`, " if owner else ""
    made = f.made_at
    return f"{part} of {name}{what} of {_bytes(f.block_nbytes)}" + (f", made at {made}" if made else "")


def described(f: Finding, access: Access) -> str:
    """Return an access in words: what touches the memory, how, and on which stream."""
    does = "writes" if access.write else "reads"
    if access.observed:
        does += " (observed, not declared)"
    if access.reached:
        does += f" {access.reached},"
    on = f"on {stream_label(f, access, origin=True)}"
    if f.category == "kernel":
        return f"kernel {access.operation} {on}"
    if f.category == "undeclared" and access is f.first:
        what = "native function" if access.kind == OP_NATIVE else "function"
        return f"{what} {access.function}".rstrip() + f" {on} does not say what it writes"
    if access.node is not None:
        of = f"of the launch {does} {on}" if access.kind == OP_LAUNCH_GRAPH else f"of the graph {does}"
        return f"{access.node} {of}"
    if access.host:
        who = "the host"
        if (f.first.host and f.second.host) or f.why == WHY_HOST_THREADS_WITHOUT_ORDER:
            who += f" (thread {access.thread})"
        if access.kind == OP_FREE_MEMORY:
            return f"{who} frees the memory, by a call that waits for nothing"
        return f"{who} {does}" + (f" ({access.operation})" if access.operation else "")
    if access.kind == OP_ALLOCATE:
        return f"the memory is allocated, in the order of {stream_label(f, access)}"
    if access.kind == OP_FREE:
        return f"the memory is given back, in the order of {stream_label(f, access)}"
    if access.operation:
        where = f" in `{access.module}`" if access.module else ""
        return f"{access.operation}{where} {does} {on}" + (", for the forward call" if access.backward else "")
    names = {
        OP_COPY: f"a copy of {_bytes(access.nbytes)}" if access.nbytes else "a copy",
        OP_FILL: f"a fill of {_bytes(access.nbytes)}" if access.nbytes else "a fill",
        OP_CALL: f"function {access.function}" if access.function else "a function",
        OP_WRITE_VALUE: "the write of a value",
        OP_NATIVE: f"native function {access.function}" if access.function else "a native function",
    }
    return f"{names.get(access.kind, access.kind)} {does} {on}"


def _stack(access: Access) -> list[str]:
    lines = []
    frames = access.frames
    hidden = len(frames) - _SHOWN if len(frames) > _SHOWN + 1 else 0
    for place, frame in enumerate(frames):
        if hidden and _SHOWN - 2 <= place < _SHOWN - 2 + hidden:  # keep the outermost two: the program's own calls
            if place == _SHOWN - 2:
                lines.append(f"       ... {hidden} more calls")
            continue
        lines.append(f"       {frame} in {frame.function}")
        source = _source.source_line(frame.file, frame.line)
        if source:
            lines.append(f"         {source}")
    if not lines and access.host and access.operation:  # seen by its page, at the next call
        return ["       (no call of the program followed it)"]
    return lines or ["       (where it was called is not known)"]


def reason(f: Finding) -> str:
    """Return why nothing orders the accesses, or what a kernel did, in a phrase."""
    if f.category == "kernel":
        return f"{f.tool}: {f.mistake}"
    first, second = stream_label(f, f.first), stream_label(f, f.second)
    does = "write" if f.first.write else "read"
    wait = ""
    if f.wait is not None:
        frames = f.wait.frames
        wait = f" at {frames[0]}" if frames else ""
    why = {
        WHY_NEVER_WAITED: f"{second} never waited for {first}",
        WHY_WAITED_FOR_ANOTHER_STREAM: (
            f"{second} waited{wait} for {stream_label(f, f.wait) if f.wait else 'another stream'}, not for {first}"
        ),
        WHY_WAITED_FOR_ITS_OWN_RECORD: (
            f"{second} waited{wait} for an event that it has recorded itself, not for {first}"
        ),
        WHY_WAITED_FOR_AN_EVENT_WITHOUT_A_RECORD: (
            f"{second} waited{wait} for an event that was not recorded by then: such a wait orders nothing"
        ),
        WHY_WAITED_FOR_AN_OLDER_RECORD: f"{second} waited{wait} for a record that {first} made before the {does}",
        WHY_WAITED_BEFORE_IT_WAS_ENQUEUED: f"{second} waited for {first}{wait}, before the {does} was enqueued",
        WHY_STREAM_WITHOUT_ORDER_WITH_THE_DEFAULT_STREAM: (
            f"{first if f.second.stream == 0 else second} is non-blocking: it takes no part in the order of the "
            "default stream"
        ),
        WHY_NO_PATH_IN_THE_GRAPH: "the graph has no path of edges between the two"
        if f.first.node or f.second.node
        else f"{second} did not wait for {first} in the capture: the graph has no path between them",
        WHY_HOST_DID_NOT_SYNCHRONIZE: f"the host never waited for {first}",
        WHY_HOST_SYNCHRONIZED_BEFORE_IT_WAS_ENQUEUED: f"the host waited for {first} before the {does} was enqueued",
        WHY_HOST_THREADS_WITHOUT_ORDER: (
            "they are accesses of different host threads, between which the runtime saw no order"
        ),
        WHY_SOURCE_CHANGED_BEFORE_THE_COPY: (
            "pinned memory is read when the stream gets there, and the host changed it without waiting for that"
        ),
    }.get(f.why, f.why)
    if f.category == "undeclared":
        return (
            "the function comes before the copy and may have made the change, or the host did, which would be a "
            "refill; only what the function writes can tell"
        )
    if f.memory == MEMORY_GIVEN_OUT_AGAIN_WHILE_IN_USE:
        why = f"the memory of the first was freed and given out again, in the order of {second}, and {why}"
    if f.devices:
        why += "; streams of two devices have no order of their own"
    if f.category == "query":
        why += "; a query that returned true orders them, which it need not have done"
    elif f.category == "timing":
        why += "; only the moments at which the host threads made their calls order them"
    return why


def how(found: Iterable[Finding]) -> str:
    """Return in which order operations ran when something was found, '' where a device has an order of its own."""
    words = {"parallel": "on real threads", "fifo": _IN_ORDER, SCHEDULE_UNLOGGED: _IN_ORDER}
    ways = dict.fromkeys(words.get(f.schedule, f"under the schedule {f.schedule}") for f in found if f.schedule)
    return f"found {' and '.join(ways)}" if ways else ""


_IN_ORDER = "in the order of the calls"


def explanations(found: Iterable[Finding]) -> list[str]:
    """Return the lines that lead from findings to their pages, one for each kind."""
    return [explanation(code) for code in dict.fromkeys(f.code for f in found)]


def suppressed_lines(by_library: Mapping[str, int]) -> list[str]:
    """Return a line for each reason why findings in a library were suppressed: see `Report.by_library`."""
    return [f"{count} finding{'s' * (count != 1)} in {what}" for what, count in by_library.items()]


def _call(access: Access) -> tuple[object, ...]:
    """Return what tells the calls of a program apart: a library may read one thing in several places.

    Streams that one line makes, as in a loop, count as the same, and others not.
    """
    stream = (access.stream_site, access.stream == 0)
    return (access.frames if access.host else access.site), access.kind, access.operation, stream


_NAMES = (
    ("race", "unordered access", "unordered accesses"),
    ("refill", "refill of pinned memory", "refills of pinned memory"),
    ("kernel", "mistake of a kernel", "mistakes of kernels"),
    ("query", "pair ordered by a query only", "pairs ordered by a query only"),
    ("timing", "pair ordered by host timing only", "pairs ordered by host timing only"),
    ("undeclared", "change by unknown accesses", "changes by unknown accesses"),
)


class Report:
    """What was found; empty is false.

    Its length and its items are the races, the refills and the mistakes of kernels. What only a query
    or the timing of host threads orders is in `by_query` and
    `by_host_timing` instead, and what a function may have done that declares no
    writes in `by_unknown_accesses`: these never raise or warn.

    Attributes
    ----------
    suppressed_by : dict
        How many findings each rule for suppressions took out, by the text of the rule.
    by_library : dict
        How many findings rules for known libraries took out, by the library with its version and the reason.
    dropped : int
        How many pairs were too many to be kept, of the same two calls as others
        or beyond 10,000.
    functions : Functions
        How many functions there were, and how their accesses are known.
    """

    def __init__(
        self,
        refresh: Callable[[], object] | None = None,
        observe: bool = True,
        pages: bool = False,
        rules: Iterable[Rule] = (),
    ) -> None:
        from .seen import Functions

        self._refresh = refresh
        self._found: list[Finding] = []
        self._places: dict[tuple[object, ...], int] = {}
        self._counted: list[tuple[int, int, int]] = []  # numbers of the checker's, places in _found, pairs then
        self._lock = threading.Lock()
        self.suppressed_by: dict[str, int] = {str(rule): 0 for rule in rules if not rule.library}
        self.by_library: Counter[str] = Counter()
        self.dropped = 0
        self.functions = Functions(observe, pages)

    def _add(self, finding: Finding, number: int = -1) -> None:
        first, second = finding.first, finding.second
        key = (finding.category, *_call(first), *_call(second))
        with self._lock:
            known = self._places.setdefault(key, len(self._found))
            if known == len(self._found) or not (first.site and second.site):
                known = len(self._found)
                self._found.append(finding)
            else:
                self._more(known, finding.pairs)  # the same lines with other streams of the same origin
                found = self._found[known]
                self._found[known] = found._replace(alike=(*found.alike, finding)[:_ALIKE])
            if number >= 0:
                self._counted.append((number, known, finding.pairs))

    def _suppress(self, rule: Rule) -> None:
        """Count a finding that a rule took out."""
        if rule.library:
            self.by_library[f"{rule.library} suppressed: {rule.reason}"] += 1
        else:
            self.suppressed_by[str(rule)] += 1

    def _recount(self, counts: Sequence[int]) -> None:
        """Add how often each finding was seen since it was added."""
        with self._lock:
            for number, place, pairs in self._counted:
                self._more(place, counts[number] - pairs)
            self._counted = [(number, place, counts[number]) for number, place, _ in self._counted]

    def _more(self, place: int, pairs: int) -> None:
        if pairs:
            self._found[place] = self._found[place]._replace(pairs=self._found[place].pairs + pairs)

    def _of(self, *categories: str) -> list[Finding]:
        if self._refresh is not None:
            self._refresh()
        with self._lock:
            return [f for f in self._found if f.category in categories]

    @property
    def races(self) -> list[Finding]:
        """Pairs that nothing orders."""
        return self._of("race")

    @property
    def refills(self) -> list[Finding]:
        """Pinned memory that changed under a pending copy."""
        return self._of("refill")

    @property
    def kernels(self) -> list[Finding]:
        """Mistakes of kernels that the host device executed."""
        return self._of("kernel")

    @property
    def by_query(self) -> list[Finding]:
        """Pairs that only a query that returned true orders."""
        return self._of("query")

    @property
    def by_host_timing(self) -> list[Finding]:
        """Pairs that only the time of calls of different host threads orders."""
        return self._of("timing")

    @property
    def by_unknown_accesses(self) -> list[Finding]:
        """Changes of pinned memory that a function which declares no writes may have made before the copy."""
        return self._of("undeclared")

    @property
    def all(self) -> list[Finding]:
        """Everything."""
        return self._of(*(name[0] for name in _NAMES))

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._of("race", "refill", "kernel"))

    def __len__(self) -> int:
        return len(self._of("race", "refill", "kernel"))

    def __bool__(self) -> bool:
        return len(self) > 0

    @property
    def suppressed(self) -> int:
        """How many findings rules for suppressions took out."""
        return sum(self.suppressed_by.values()) + sum(self.by_library.values())

    @property
    def summary(self) -> str:
        """How many of what, in one line."""
        found = self.all
        parts = []
        for category, one, more in _NAMES:
            n = sum(f.category == category for f in found)
            if n:
                parts.append(f"{n} {one if n == 1 else more}")
        text = ", ".join(parts) or "no unordered access"
        counts = ((self.suppressed, "suppressed"), (self.dropped, "more not kept"))
        more = ", ".join(f"{n} {what}" for n, what in counts if n)
        return f"{text} ({more})" if more else text

    def __str__(self) -> str:
        found = self.all
        order: dict[Any, int] = {name[0]: i for i, name in enumerate(_NAMES)}
        parts = [f.text for f in sorted(found, key=lambda f: order[f.category])]
        head = ", ".join(filter(None, [f"halstream: {self.summary}", how(found)]))
        known = "\n".join(suppressed_lines(self.by_library))
        return "\n\n".join(filter(None, [head, *parts, known, self.functions.text]))

    def _repr_html_(self) -> str:
        from .._notebook.objects import report

        return report(self)

    def __repr__(self) -> str:
        return f"<halstream.Report: {self.summary}>"
