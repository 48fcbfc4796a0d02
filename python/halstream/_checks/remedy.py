"""The line that would order two accesses, in the words of the program's dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .. import _sites
from .._native._constants import (
    ACTION_SYNCHRONIZE_DEVICE,
    ACTION_SYNCHRONIZE_EVENT,
    ACTION_SYNCHRONIZE_STREAM,
    ACTION_WAIT_EVENT,
    ACTION_WAIT_STREAM,
    MEMORY_FREED_WHILE_IN_USE,
    MEMORY_GIVEN_OUT_AGAIN_WHILE_IN_USE,
    MEMORY_USED_AFTER_IT_WAS_FREED,
    WHY_NO_PATH_IN_THE_GRAPH,
    WHY_WAITED_FOR_AN_OLDER_RECORD,
)
from . import source as _source
from .finding import Access, Finding, Frame, Note
from .nodes import as_captured, edge
from .placing import means_the_same, places, places_and_calls, spelled, stands
from .proving import first_proven

__all__ = ["Remedy", "first_option", "remedy", "stream_label", "stream_name"]


class _Words(NamedTuple):
    """The code for each case in a dialect: {a} is the first stream, {b} the second, {e} an event, {x} the memory."""

    order: str = "{b}.wait_event({a}.record_event())"
    wait: str = "{b}.wait_event({e})"
    host: str = "{a}.synchronize()"
    event: str = "{e}.synchronize()"
    keep: str = ""
    default: str = "current_stream()"
    default_of: str = ""  # {d} is its device


_WORDS = {
    "": _Words(
        order="{b}.wait({a}.record())", wait="{b}.wait({e})", keep="{x}.record_stream({a})",
        default="halstream.Stream.from_handle(0)", default_of="halstream.Stream.from_handle(0, {d})",
    ),
    "torch": _Words(
        keep="{x}.record_stream({a})", default="cuda.default_stream()", default_of="cuda.default_stream({d})"
    ),
    "torch.cuda": _Words(  # the real one
        order="{b}.wait_stream({a})", keep="{x}.record_stream({a})",
        default="torch.cuda.default_stream()", default_of="torch.cuda.default_stream({d})",
    ),
    "paddle": _Words(default="device.current_stream()"),
    "paddle.device": _Words(order="{b}.wait_stream({a})", default="paddle.device.current_stream()"),  # the real one
    "mindspore": _Words(default="hal.default_stream()"),
    "cupy": _Words(order="{b}.wait_event({a}.record())", default="cuda.Stream.null"),
    "acl": _Words(
        order="rt.record_event(event, {a}); rt.stream_wait_event({b}, event)",
        wait="rt.stream_wait_event({b}, {e})",
        host="rt.synchronize_stream({a})",
        event="rt.synchronize_event({e})",
        default="0",
    ),
}  # fmt: skip


class Remedy(NamedTuple):
    """What to do: a line of code ('' for none), where it goes, and what else there is to say."""

    line: str
    where: str
    place: Frame | None
    note: str = ""
    action: str = ""  #: what the line does, for the proof; '' where that cannot be tried
    also: Remedy | None = None  #: another line that is needed in a loop, where each access comes before the other
    proven: bool = False  #: in the recorded run the finding goes away with it


def remedy(f: Finding) -> Remedy:
    """Return what would order the accesses of a finding.

    While the run is recorded it is checked with each line that may do: the first with which
    the finding goes away, and nothing waits for ever, is returned.
    """
    return first_proven(f, _listed) or Remedy("", "", None, _without_a_line(as_captured(f)))


def _without_a_line(f: Finding) -> str:
    """Return what to do where no line in front of the calls, or behind the first, orders them."""
    if f.first.frames == f.second.frames:
        # A line goes before or after a statement, and so not between two calls of one.
        for frame in f.second.frames:
            if _source.calls_several(frame.file, frame.line):
                waits, first = "the host" if f.second.host else stream_label(f, f.second), stream_label(f, f.first)
                return (
                    f"both are calls of the one line {frame}, so that no line fits between them: write them as "
                    f"statements on lines of their own, and let {waits} wait for {first} between them"
                )
    if _in_a_capture(f):
        second, first = stream_label(f, f.second), stream_label(f, f.first)
        return f"let {second} wait for {first} between the two calls, in the capture: no line here names both streams"
    return "no wait in front of these calls, or behind the first, orders them without stopping the program"


def _in_a_capture(f: Finding) -> bool:
    """Return whether a capture made both accesses nodes, so that the host cannot wait between them."""
    return f.why == WHY_NO_PATH_IN_THE_GRAPH and not f.second.node


def first_option(f: Finding) -> Remedy:
    """Return what is tried first to order the accesses of a finding."""
    return next(_spelled(f))


def _listed(f: Finding) -> list[Remedy]:
    return list(_spelled(f))


def _spelled(f: Finding) -> Iterator[Remedy]:
    made = as_captured(f)
    for one in _options(made):
        # What a capture records is not in the recorded run, so that a line in it cannot be tried there.
        yield _as_the_program_spells_it(made, one if made is f else one._replace(action=""))


def _as_the_program_spells_it(f: Finding, found: Remedy) -> Remedy:
    # As the program spells the module.
    if (
        "rt." in found.line
        and "acl.rt." not in found.line
        and any("acl.rt." in _source.source_line(*frame[:2]) for frame in f.places())
    ):
        return found._replace(line=found.line.replace("rt.", "acl.rt."))
    if f.dialect == "torch.cuda" and found.place is not None:
        here = _source.statement(found.place.file, found.place.line)
        name = here.module("torch") if here is not None else "torch"
        if name != "torch":
            return found._replace(line=found.line.replace("torch.cuda.", f"{name}.cuda."))
    return found


def _options(f: Finding) -> Iterator[Remedy]:
    """Yield what may order the accesses, where each of its names is bound: what waits least comes first."""
    found = _remedy(f)
    actions = _actions(f)
    found = found._replace(action=actions.get(found.line, ""))
    between_nodes = f.why == WHY_NO_PATH_IN_THE_GRAPH and f.second.node is not None  # nothing but an edge orders them
    if f.dialect == "torch.cuda" or found.place is None or not f.second.frames or between_nodes:
        yield found
        if f.dialect == "torch.cuda" and found.place is not None and found.action:
            for where, place in places(f):
                if where == "before":
                    yield Remedy("torch.cuda.synchronize()", where, place, action=ACTION_SYNCHRONIZE_DEVICE)
        return
    own = [one.frames[0] for one in (f.first, f.second) if one.frames and "self." in stream_name(f, one)]
    if found.where == "after":
        for name, origin in _names(f, f.first):
            line = _WORDS[f.dialect].keep.format(x=f.buffer, a=name)
            if stands(line, found.place, own) and means_the_same(name, origin, f.first.frames):
                yield found._replace(line=line)
    for line, action, names in _lines(f):
        for as_written in (line, line.replace("rt.", "acl.rt.")) if f.dialect == "acl" else (line,):
            for where, calls in places_and_calls(f):
                code = spelled(as_written, calls[0], f.dialect)
                if stands(code, calls[0], own) and all(means_the_same(*name, calls) for name in names):
                    yield Remedy(code, where, calls[0], action=action)
    if _in_a_capture(f):
        yield Remedy("", "", None, _without_a_line(f))
        return
    last = "import halstream; halstream.synchronize()"
    alone = [place for where, place in places(f) if where == "before" and stands("0", place, own)]
    for place in alone or [f.second.frames[0]]:
        yield Remedy(last, "before", place, action=ACTION_SYNCHRONIZE_DEVICE)


#: What the program calls a stream, and where it does, with the calls that lead there; nowhere for the default streams.
_Name = tuple[str, tuple[Frame, ...]]


def _lines(f: Finding) -> Iterator[tuple[str, str, tuple[_Name, ...]]]:
    """Yield lines that order the accesses, what each does, and the streams that it names."""
    words, e = _WORDS[f.dialect], _event(f)
    firsts = _names(f, f.first)
    if f.second.host:
        if e:
            yield words.event.format(e=e), ACTION_SYNCHRONIZE_EVENT, ()
    elif not (f.dialect == "acl" and f.why == WHY_WAITED_FOR_AN_OLDER_RECORD):
        # In AscendCL that event may still be set by then, and waits for it pass at once.
        seconds = _names(f, f.second)
        if e:
            for second in seconds:
                yield words.wait.format(b=second[0], e=e), "wait event", (second,)
        for first in firsts:
            for second in seconds:
                if first[0] != second[0]:
                    yield words.order.format(a=first[0], b=second[0]), ACTION_WAIT_STREAM, (first, second)
    if not f.first.host and not _in_a_capture(f):
        for first in firsts:
            yield words.host.format(a=first[0]), ACTION_SYNCHRONIZE_STREAM, (first,)


def _names(f: Finding, access: Access) -> list[_Name]:
    """Return what the program calls the stream of an access, the likeliest name first."""
    if not access.stream and not _own_name(f, access):
        return [(stream_name(f, access), ())]
    used, other = _used_name(access), f.second if access is f.first else f.first
    same_call = f.first.frames[1:] == f.second.frames[1:]
    names: list[_Name] = [(access.name, access.named_at)] if access.name else []
    if used and access.frames and (other.host or used != _used_name(other)):
        names.insert(0 if other.host or same_call or not access.name else 1, (used, access.frames))
    return names


def _actions(f: Finding) -> dict[str, str]:
    """Return what each of the lines that are suggested for a finding does."""
    words = _WORDS[f.dialect]
    a, b, e = stream_name(f, f.first), stream_name(f, f.second), _event(f)
    known = {
        words.host.format(a=a): ACTION_SYNCHRONIZE_STREAM,
        words.order.format(a=a, b=b): ACTION_WAIT_STREAM,
        f"torch.cuda.current_stream().wait_stream({a})": ACTION_WAIT_STREAM,
        "torch.cuda.synchronize()": ACTION_SYNCHRONIZE_DEVICE,
    }
    if e:
        known |= {words.event.format(e=e): ACTION_SYNCHRONIZE_EVENT, words.wait.format(b=b, e=e): ACTION_WAIT_EVENT}
    return known


def _remedy(f: Finding) -> Remedy:
    words = _WORDS[f.dialect]
    a, b, e = stream_name(f, f.first), stream_name(f, f.second), _event(f)
    host = words.event.format(e=e) if e else words.host.format(a=a)
    before = f.second.frames[0] if f.second.frames else None
    if f.category == "refill":
        # Where the host wrote is not known. The name of the stream is known at the copy, that of an event may not be.
        if e or not f.first.frames:
            return Remedy(host, "before the host writes there again", None)
        return Remedy(words.host.format(a=_used_name(f.first) or a), "after", f.first.frames[0])
    if f.category == "undeclared":
        return Remedy("", "", None, "declare what the function writes where it is enqueued: writes=[...]")
    if f.why == WHY_NO_PATH_IN_THE_GRAPH and f.first.node and f.second.node:
        line, place, note = edge(f.first.node, f.second.node)
        fits = place is not None and stands(line, place, ())
        return Remedy(line, "after", place, note) if fits else Remedy("", "", None, note)
    if f.first.host:
        return Remedy(
            "", "", None,
            "two host threads did this, and the runtime saw nothing that orders them: let one of them wait "
            "for the other (a queue, an event, a join), or make it wait for what the other enqueued",
        )  # fmt: skip
    if f.second.host:
        if f.dialect != "torch.cuda" or e or before is None:
            return Remedy(host, "before", before)
        place = _outward(f, (a,))
        # Where the stream has no name, the whole device can still be waited for.
        return Remedy(host, "before", place) if place else Remedy("torch.cuda.synchronize()", "before", before)
    freed = f.memory in (MEMORY_FREED_WHILE_IN_USE, MEMORY_GIVEN_OUT_AGAIN_WHILE_IN_USE)
    if freed and words.keep and f.buffer:
        after = f.first.frames[0] if f.first.frames else None
        if f.dialect == "torch.cuda":
            fitting = (x for x in f.first.frames if _resolves(f.buffer, x, ()) and _resolves(a, x, f.first.frames))
            after = next(fitting, None)
        if after is not None or f.dialect != "torch.cuda":
            return Remedy(words.keep.format(x=f.buffer, a=a), "after", after)
    if freed and f.dialect == "torch.cuda":
        return Remedy("", "", None, f"call record_stream({a}) on the tensor before its last reference is dropped")
    if f.memory == MEMORY_USED_AFTER_IT_WAS_FREED:
        return Remedy("", "", None, "give it back only behind its last use")
    if f.dialect == "acl" and b.startswith("<"):
        # A copy that waits, on the stream of the context, which has no handle of its own.
        return Remedy(host, "before", before)
    if _collective(f.first):
        return Remedy(f"{_work(f.first)}.wait()", "before", before)
    if _collective(f.second):  # it waits for the stream that is current when it is called
        return Remedy(f"torch.cuda.current_stream().wait_stream({a})", "before", before)
    line = words.wait.format(b=b, e=e) if e else words.order.format(a=a, b=b)
    if f.second.backward:
        known = before is None or _resolves(a, before, f.first.frames)
        return (None if known else _where_it_resolves(f, a, line)) or Remedy(line, "before the backward pass", None)
    if f.dialect == "torch.cuda" and not e and before and not _resolves(a, before, f.first.frames):
        place = _outward(f, (a, b))
        return (
            Remedy(line, "before", place) if place else _where_it_resolves(f, a, line) or Remedy(line, "before", before)
        )
    return Remedy(line, "before", before)


def _outward(f: Finding, names: tuple[str, ...]) -> Frame | None:
    """Return the innermost call that leads to the second access, and not to the first, at which names are known."""
    for frame in f.second.frames:
        if frame in f.first.frames:
            break
        if all(_resolves(name, frame, f.first.frames) for name in names):
            return frame
    return None


def _collective(access: Access) -> bool:
    return access.operation.startswith(("nccl:", "gloo:"))


def _work(access: Access) -> str:
    """Return what the program calls the work that a collective of torch.distributed gave it."""
    for frame in access.frames[:1]:
        here = _source.statement(frame.file, frame.line)
        if here is not None:
            return here.target(1, 0) or "work"
    return "work"


def _resolves(name: str, place: Frame, origin: tuple[Frame, ...]) -> bool:
    """Return whether an expression that names a stream at its origin means the same at a place."""
    here = _source.statement(place.file, place.line)
    root = name.partition(".")[0].partition("[")[0].partition("(")[0]
    if here is None or not root.isidentifier():
        return True
    if root == "self":  # the same object, if the method is one of the same class
        owner = origin[0].function.rpartition(".")[0] if origin else ""
        return bool(owner) and (origin[0].file, owner) == (place.file, place.function.rpartition(".")[0])
    return here.knows(root)


def _where_it_resolves(f: Finding, a: str, line: str) -> Remedy | None:
    """Return where the object that has the stream hands out what it enqueued; failing that, behind its own block."""
    if not f.first.frames:
        return None
    first = f.first.frames[0]
    at = _source.statement(first.file, first.line)
    if at is None or f.second.stream != 0:
        return None
    target = at.target(1, 0)
    readers = at.readers(target.removeprefix("self.")) if target.startswith("self.") and a.startswith("self.") else []
    if readers:
        place = Frame(first.file, readers[0], first.function.rpartition(".")[0])
        return Remedy(f"torch.cuda.current_stream().wait_stream({a})", "before", place)
    return Remedy(line, "after", first._replace(line=at.block_end()))


def _event(f: Finding) -> str:
    """Return the event that stands for the first access, as the program names it; '' if none does."""
    record: Note | None = f.record
    frames = (f.first if f.category == "refill" else f.second).frames
    if record is None or not record.frames or not frames:
        return ""
    there, here = record.frames[0], frames[0]
    # The name means the same only in the same function, and the record must have come before.
    if (there.file, there.function) != (here.file, here.function):
        return ""
    at = _source.statement(there.file, there.line)
    name = at.event() if at else ""
    return name if name.isidentifier() else ""


def stream_name(f: Finding, access: Access) -> str:
    """Return an expression for the stream of an access: the program's own if it is found."""
    own = _own_name(f, access)
    if own or access.stream:
        return own or f"<stream {access.stream}>"
    if access.device > 0 or len({one.device for one in (f.first, f.second) if not one.host}) > 1:
        # Without a number it is that of the current device.
        words = _WORDS[f.dialect].default_of or "<the default stream of device {d}>"
        return words.format(d=access.device)
    return _WORDS[f.dialect].default


def _own_name(f: Finding, access: Access) -> str:
    """Return what the program calls the stream of an access, '' if that is not known or names the other stream."""
    name = _found_name(f, access)
    other = f.second if access is f.first else f.first
    different = not other.host and (other.device, other.stream) != (access.device, access.stream)
    return "" if different and name == _found_name(f, other) else name


def _found_name(f: Finding, access: Access) -> str:
    used = _used_name(access)
    if not used:
        return access.name
    other = f.second if access is f.first else f.first
    # A name that both sides use is one function's name for different streams.
    if not other.host and used == _used_name(other):
        return access.name
    one, two = f.first.frames, f.second.frames
    # In one call of one function.
    same = bool(one and two) and one[0][::2] == two[0][::2] and one[1:] == two[1:]
    return used if same else access.name or used


def _used_name(access: Access) -> str:
    for frame in access.frames[:1]:
        here = _source.statement(frame.file, frame.line)
        if here is None:
            return ""
        # An operator of torch names no stream: it goes to the current one.
        return here.current() if access.dialect == "torch.cuda" else here.stream()
    return ""


def stream_label(f: Finding, access: Access | Note) -> str:
    """Return how a report calls a stream."""
    if access.stream == 0:
        label = "the default stream"
    else:
        label = f"stream {access.stream}"
        name = _own_name(f, access) if isinstance(access, Access) else ""
        if name:
            label += f" ({name})"
    other = {f.first.device, f.second.device} - {-1}
    return f"{label} of {_sites.real_torch.device(access.device)}" if other != {0} else label
