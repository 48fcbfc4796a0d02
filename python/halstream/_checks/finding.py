"""What the checker found, as objects: the two operations of a report and their stacks."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

from .. import _sites
from .._native._constants import (
    CATEGORY_BY_HOST_TIMING_ONLY,
    CATEGORY_BY_QUERY_ONLY,
    CATEGORY_UNDECLARED_WRITES,
    OP_CALL,
    OP_NATIVE,
    OP_REPORT,
    WHY_HOST_DID_NOT_SYNCHRONIZE,
    WHY_HOST_SYNCHRONIZED_BEFORE_IT_WAS_ENQUEUED,
)
from .._records import AccessRecord, FindingRecord, MadeRecord, NoteRecord
from .._sites import Frame
from . import source as _source
from .decoration import found_by
from .nodes import GraphNode, InsideOf, graph_node
from .suppress import rule_of

__all__ = ["Access", "Finding", "Frame", "GraphNode", "InsideOf", "Made", "Note", "finding_of"]


@functools.lru_cache(maxsize=65536)
def _dialect(site: int) -> str:
    """Return the dialect of a call site: the one that was called, or the only one that the program imports."""
    if called := _sites.dialect_of(site):
        return called
    for frame in _sites.program_frames(site):
        imported = _source.dialects(frame.file)
        if len(imported) == 1:
            (name,) = imported
            return _sites.real_torch.dialect or name if name == "torch" else name
    if site and _sites.real_torch.paddle:
        return "paddle.device"
    return _sites.real_torch.dialect if site else ""


#: Files of packages that define a class of streams: whoever makes one gets there.
_OF_CLASSES = ("torch/cuda/streams.py", "paddle/device/__init__.py")

# What the real torch calls its operations.
_IN_MODULE = re.compile(r"(\w+::\S+(?: \(backward\))?) in (\S+)")

#: The codes of pages by category, for mistakes of kernels by the tool.
_CODES = {
    "query": "ordered-by-query",
    "timing": "ordered-by-host-timing",
    "refill": "refilled-pinned-memory",
    "undeclared": "unknown-accesses",
    "racecheck": "kernel-shared-race",
    "initcheck": "kernel-uninitialised",
    "synccheck": "kernel-barrier",
}
#: Why accesses are unordered where the host did not wait.
_OF_THE_HOST = (WHY_HOST_DID_NOT_SYNCHRONIZE, WHY_HOST_SYNCHRONIZED_BEFORE_IT_WAS_ENQUEUED)


class Access(NamedTuple):
    """One of the two operations of a report.

    Attributes
    ----------
    kind : str
        ``copy``, ``fill``, ``call``, ``native``, ``host read``, ``free``, ...
    device, stream : int
        Where it was enqueued; the device is -1 for what the host did.
    frames : tuple of Frame
        The program's call stack, innermost first.
    write, observed : bool
        What it does, and whether it did so without saying.
    nbytes : int
        What a copy or fill moves, 0 if that is not known.
    name : str
        What the program called the stream when it made it; '' if that is not known.
    operation : str
        The name that the program gave the operation, such as ``aten::addmm``; '' without one.
    reached : str
        What a function calls the memory, and how it got there without being an
        argument, such as ``captured by `step` ``; '' if that is not known.
    module : str
        The path of the ``torch.nn.Module`` that made the call, such as ``layer.3``; '' outside of one.
    """

    id: int
    kind: str
    device: int
    stream: int
    thread: int
    site: int
    token: int
    write: bool
    observed: bool
    host: bool
    unknown: bool
    nbytes: int
    name: str
    operation: str = ""
    reached: str = ""
    module: str = ""
    node: GraphNode | None = None  #: the node that made it; in a launch, `frames` are those of the launch
    named_at: tuple[Frame, ...] = ()  #: where the program gave the stream its `name`, and the calls that led there
    stream_site: int = 0  #: where the stream was made, 0 if that is not known

    @property
    def frames(self) -> tuple[Frame, ...]:
        return _sites.program_frames(self.site)

    @property
    def dialect(self) -> str:
        """The dialect that made the call, '' for the plain runtime."""
        return _dialect(self.site)

    @property
    def made_at(self) -> Frame | None:
        """The line of the program that made the stream, None if that is not known."""
        frames = _sites.program_frames(self.stream_site)
        return frames[0] if frames else None

    @property
    def made_in(self) -> str:
        """Where an installed package made the stream, and from which line of the program; '' for other streams."""
        frames = [
            frame
            for frame in _sites.installed_frames(self.stream_site)
            if _sites.installed(frame.file) not in _OF_CLASSES
        ]
        place = _sites.installed(frames[0].file) if frames else ""
        if not place:
            return ""
        caller = next((frame for frame in frames if _sites.is_program(frame.file)), None)
        return f"{place}:{frames[0].line}" + (f", called from {caller}" if caller else "")

    @property
    def backward(self) -> bool:
        """Whether it is part of a backward pass of torch: `frames` are then those of the forward call."""
        return self.operation.endswith(" (backward)")

    @property
    def function(self) -> str:
        """The function that it runs, as the program names it; '' if that is not known."""
        if self.kind not in (OP_CALL, OP_REPORT, OP_NATIVE) or not self.frames:
            return ""
        here = _source.statement(*self.frames[0][:2])
        return here.function() if here is not None else ""


class Note(NamedTuple):
    """A wait or a record."""

    id: int
    site: int
    event: int
    version: int
    device: int
    stream: int

    @property
    def frames(self) -> tuple[Frame, ...]:
        return _sites.program_frames(self.site)


class Finding(NamedTuple):
    """Two accesses to the same bytes, at least one of them a write.

    Attributes
    ----------
    category : str
        ``race``: nothing orders them. ``query``: only a query that returned
        true. ``timing``: only the time at which two host threads made their
        calls. ``refill``: pinned memory changed under a pending copy.
        ``undeclared``: it did, and a function ordered before the copy, `first`,
        may have done it without declaring what it writes. ``kernel``: a kernel,
        `first`, made a mistake of its own; `second` is none.
    first, second : Access
        In the order of the calls.
    start, nbytes : int
        Address and size of what both access.
    buffer : str
        What the program calls the memory, '' if that is not known.
    parameter : str
        The name of the parameter or buffer of a module of the real torch that it belongs to; '' for other memory.
    shared : str
        The type of the object that `halstream.shared` stands for; '' for memory.
    tool : str
        The tool of compute-sanitizer that finds such mistakes of a kernel: ``racecheck``, ``initcheck`` or
        ``synccheck``; '' in other categories.
    mistake : str
        What the kernel did, with its line, block and thread; '' in other categories.
    number, check : int
        Its place among what was found by one check of the extension, and which check that was.
    schedule : str
        The schedule of the host device that was in force: ``parallel`` for real threads. '' on a device of
        hardware.
    pairs : int
        How many pairs with these stacks there were; complete at the end of the `sanitize`.
    alike : tuple of Finding
        The first of them on other streams, which the same lines made.
    """

    category: str
    pairs: int
    start: int
    nbytes: int
    block_kind: int
    block: int
    block_nbytes: int
    block_site: int
    buffer: str
    why: str
    memory: str
    devices: bool
    first: Access
    second: Access
    wait: Note | None
    record: Note | None
    parameter: str = ""
    shared: str = ""
    number: int = -1
    check: int = 0
    alike: tuple[Finding, ...] = ()
    schedule: str = ""
    tool: str = ""
    mistake: str = ""

    @property
    def text(self) -> str:
        """The whole report: what, where, why, and the line that would order them."""
        from .report import text

        return text(self)

    @property
    def fix(self) -> str:
        """The line that would order them, '' where there is none."""
        from .remedy import remedy

        return remedy(self).line

    @property
    def code(self) -> str:
        """The code of the page that explains it: see ``halstream explain``."""
        if self.category != "race":
            return _CODES[self.tool or self.category]
        if self.memory:
            return "use-after-free"
        return "host-too-early" if self.why in _OF_THE_HOST else "unordered-access"

    @property
    def dialect(self) -> str:
        """The dialect of the program, '' for the plain runtime."""
        return self.second.dialect or self.first.dialect

    @property
    def made_at(self) -> Frame | None:
        """The line of the program that allocated the memory."""
        frames = _sites.program_frames(self.block_site)
        return frames[0] if frames else None

    @property
    def suppression(self) -> str:
        """The rule that suppresses it, for a suppression file; '' if it is not known where the calls were made."""
        return rule_of(self.category, self.stacks())

    def stacks(self) -> tuple[tuple[Frame, ...], tuple[Frame, ...]]:
        """Return the stacks of both, with frames of installed packages."""
        return _sites.installed_frames(self.first.site), _sites.installed_frames(self.second.site)

    def places(self) -> list[Frame]:
        """Return all frames of both."""
        return [*self.first.frames, *self.second.frames]

    def _repr_html_(self) -> str:
        from .._notebook.objects import finding

        return finding(self)

    def __str__(self) -> str:
        return self.text


def _frames_up_to(site: int, places: Iterable[Frame]) -> tuple[Frame, ...]:
    """Return the frames of a site, without those inside the function that contains one of the places."""
    frames = _sites.program_frames(site)
    working = {frame[::2] for frame in places}
    first = next((i for i, frame in enumerate(frames) if frame[::2] in working), 0)
    return frames[first:]


class Made:
    """Where streams and memory were made, and so what the program calls them."""

    def __init__(self, records: Iterable[MadeRecord]) -> None:
        self._sites: dict[tuple[int, int], int] = {}
        # The streams made at each site, and the sites where memory was made.
        self._streams: dict[int, list[tuple[int, int]]] = {}
        self._memory: set[int] = set()
        self._parameters: list[tuple[int, int, str]] | None = None
        for made in records:
            if made["kind"] == "memory":
                self._memory.add(made["site"])
            else:
                stream = made["device"], made["number"]
                self._sites[stream] = made["site"]
                self._streams.setdefault(made["site"], []).append(stream)
        self._stream_places, self._memory_places = _Places(self._streams), _Places(self._memory)

    def site(self, device: int, index: int) -> int:
        """Return where a stream was made, 0 if it is not known."""
        return self._sites.get((device, index), 0)

    def stream(self, device: int, index: int) -> tuple[str, tuple[Frame, ...]]:
        """Return the name that a stream got, '' if it is not known, and where, with the calls that led there."""
        site = self._sites.get((device, index), 0)
        frames = _sites.program_frames(site)
        if not frames:
            return "", ()
        places = self._stream_places.reached_from(frames)
        if len(places) > 1:  # several calls on one line
            return _name(frames, len(places), places[site])
        alike = self._streams[site]
        return _name(frames, len(alike), sorted(alike).index((device, index)))

    def memory(self, site: int, near: Iterable[Frame]) -> str:
        """Return the name that memory got in a function that one of the places is in."""
        frames = _frames_up_to(site, near)
        places = self._memory_places.reached_from(frames)
        place = places.get(site, -1) if len(places) > 1 else -1
        return _name(frames, max(1, len(places)), place)[0]

    def parameter(self, start: int, nbytes: int) -> str:
        """Return the name of the parameter or buffer of a module of the real torch in this memory, '' if none is."""
        if self._parameters is None:
            self._parameters = found_by(_sites.real_torch.parameters)
        found = (
            name for address, size, name in self._parameters if address < start + nbytes and start < address + size
        )
        return next(found, "")


class _Places:
    """Call sites by the calls that led to them."""

    def __init__(self, sites: Iterable[int]) -> None:
        self._all = sites
        self._by_frame: dict[Frame, list[int]] | None = None
        self._found: dict[tuple[Frame, ...], dict[int, int]] = {}

    def reached_from(self, frames: tuple[Frame, ...]) -> dict[int, int]:
        """Return the sites that these frames led to, and the place of each in the order of their first calls."""
        if frames and frames not in self._found:
            if self._by_frame is None:
                self._by_frame = {}
                for site in sorted(self._all):
                    for frame in dict.fromkeys(_sites.program_frames(site)):
                        self._by_frame.setdefault(frame, []).append(site)
            sites = self._by_frame.get(frames[0], ())
            led = (site for site in sites if _sites.program_frames(site)[-len(frames) :] == frames)
            self._found[frames] = {site: place for place, site in enumerate(led)}
        return self._found.get(frames, {})


def _name(frames: tuple[Frame, ...], count: int, place: int) -> tuple[str, tuple[Frame, ...]]:
    for depth, frame in enumerate(frames[:3]):
        here = _source.statement(frame.file, frame.line)
        name = here.target(count, place) if here is not None else ""
        if name:
            return name, frames[depth:]
    return "", ()


_CATEGORIES = {
    CATEGORY_BY_QUERY_ONLY: "query",
    CATEGORY_BY_HOST_TIMING_ONLY: "timing",
    CATEGORY_UNDECLARED_WRITES: "undeclared",
}


def finding_of(record: FindingRecord, made: Made) -> Finding:
    """Return a report of the checker with the names that the program uses."""
    from .seen import name_of
    from .shared import title_at

    start, nbytes = record["range"]["start"], record["range"]["size"]
    first, second = (
        one._replace(reached=name_of(one.kind, one.token, start, nbytes))
        for one in (_access(record["first"], made), _access(record["second"], made))
    )
    site = record["block_site"]
    return Finding(
        category=_CATEGORIES.get(record["category"], record["category"]),
        pairs=record["pairs"],
        start=start,
        nbytes=nbytes,
        block_kind=record["block_kind"],
        block=record["block"]["start"],
        block_nbytes=record["block"]["size"],
        block_site=site,
        buffer=made.memory(site, (*first.frames, *second.frames)) if site else "",
        why=record["why"],
        memory=record["memory"],
        devices=record["devices"],
        first=first,
        second=second,
        wait=_note(record["wait"]),
        record=_note(record["record"]),
        parameter=made.parameter(start, nbytes),
        shared=title_at(start),
        schedule=record["schedule"],
        tool=record["check"],
        mistake=record["text"],
    )


def _access(record: AccessRecord, made: Made) -> Access:
    name, named_at = ("", ()) if record["host"] else made.stream(record["device"], record["stream"])
    operation, module = record["operation"], ""
    if found := _IN_MODULE.fullmatch(operation):
        operation, module = found.groups()
    return Access(
        id=record["id"],
        kind=record["kind"],
        device=record["device"],
        stream=record["stream"],
        thread=record["thread"],
        site=record["site"],
        token=record["token"],
        write=record["write"],
        observed=record["observed"],
        host=record["host"],
        unknown=record["unknown"],
        nbytes=record["size"],
        name=name,
        named_at=named_at,
        stream_site=0 if record["host"] else made.site(record["device"], record["stream"]),
        operation=operation,
        module=module,
        node=graph_node(record["node"], made),
    )


def _note(record: NoteRecord | None) -> Note | None:
    return Note(**record) if record else None
