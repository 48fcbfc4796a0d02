"""The line that would order two accesses, in the words of the program's dialect."""

from __future__ import annotations

import re
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
from . import variables
from .finding import Access, Finding, Frame, Note
from .nodes import as_captured, edge
from .placing import Calls, behind, places, several, spelled, stands
from .proving import first_proven, name_of
from .syntax import body_of

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
    "cuda": _Words(
        order="{b}.wait({a})", wait="{b}.wait({e})", host="{a}.sync()", event="{e}.sync()",
        default="core.LEGACY_DEFAULT_STREAM",
    ),
    "acl": _Words(
        order="done, _ = rt.create_event(); rt.record_event(done, {a}); rt.stream_wait_event({b}, done)",
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
    tried: Frame | None = None  #: the call in front of which, or behind which, the line runs; None: that at `place`
    column: int = -1  #: of what is called there, to tell statements of one line apart; -1 if that is not known
    early: bool = False  #: that call leads to the one that was seen, and may have begun long before it

    def is_same_line(self, other: Remedy) -> bool:
        """Return whether both are one change of the source."""
        return (self.line, self.where, self.place) == (other.line, other.where, other.place)


def remedy(f: Finding) -> Remedy:
    """Return what would order the accesses of a finding.

    While the run is recorded it is checked with each line that may do: the first with which
    the finding goes away, and nothing waits for ever, is returned.
    """
    for access in (f.first, f.second):
        _own_name(f, access)  # what variables stood for is known now
    return first_proven(f, _listed) or Remedy("", "", None, _without_a_line(as_captured(f)))


def _without_a_line(f: Finding) -> str:
    """Return what to do where no line in front of the calls, or behind the first, orders them."""
    if f.second.backward:  # its lines are those of the forward call
        return f"let {_nameless(f.second)} wait for {_nameless(f.first)} in the backward pass, before it gets there"
    second, first = "the host" if f.second.host else stream_label(f, f.second), stream_label(f, f.first)
    if f.first.frames == f.second.frames:
        # A line goes before or after a statement, and so not between two calls of one.
        for frame in f.second.frames:
            if _source.calls_several(frame.file, frame.line):
                return (
                    f"both are calls of the one line {frame}, so that no line fits between them: write them as "
                    f"statements on lines of their own, and let {second} wait for {first} between them"
                )
    if _in_a_capture(f):
        return f"let {second} wait for {first} between the two calls, in the capture: no line here names both streams"
    second, first = ("the host" if f.second.host else _nameless(f.second)), _nameless(f.first)
    return (
        f"let {second} wait for {first} between the two calls; no line in front of them, or behind the first, does it "
        "without stopping the program"
    )


def _in_a_capture(f: Finding) -> bool:
    """Return whether a capture made both accesses nodes, so that the host cannot wait between them."""
    return f.why == WHY_NO_PATH_IN_THE_GRAPH and not f.second.node


def first_option(f: Finding) -> Remedy:
    """Return what is tried first to order the accesses of a finding."""
    return next(_spelled(f), Remedy("", "", None))


def _listed(f: Finding) -> list[Remedy]:
    return list(_spelled(f))


def _spelled(f: Finding) -> Iterator[Remedy]:
    made = as_captured(f)
    for one in _options(made):
        # What a capture records is not in the recorded run, so that a line in it cannot be tried there.
        yield one if made is f else one._replace(action="")


def _options(f: Finding) -> Iterator[Remedy]:
    """Yield what may order the accesses, the least wait first; names are those that were seen to stand for it."""
    alone = _without_waits(f)
    if alone is not None:
        yield alone
        return
    if f.category == "refill":
        yield from _before_a_refill(f)
        return
    if f.memory in (MEMORY_FREED_WHILE_IN_USE, MEMORY_GIVEN_OUT_AGAIN_WHILE_IN_USE):
        yield from _keeping(f)
    yield from _waits(f)
    yield from _last(f)


def _without_waits(f: Finding) -> Remedy | None:
    """Return what to do where no wait between the two calls is the answer."""
    if f.category == "kernel":
        return Remedy("", "", None, "")
    if f.category == "undeclared":
        return Remedy("", "", None, "declare what the function writes where it is enqueued: writes=[...]")
    if f.why == WHY_NO_PATH_IN_THE_GRAPH and f.first.node and f.second.node:
        line, place, note = edge(f.first.node, f.second.node)
        fits = place is not None and stands(line, _source.statement(place.file, place.line))
        return Remedy(line, "after", place, note) if fits else Remedy("", "", None, note)
    if f.first.host:
        return Remedy(
            "", "", None,
            "two host threads did this, and the runtime saw nothing that orders them: let one of them wait "
            "for the other (a queue, an event, a join), or make it wait for what the other enqueued",
        )  # fmt: skip
    if f.memory == MEMORY_USED_AFTER_IT_WAS_FREED:
        return Remedy("", "", None, "give it back only behind its last use")
    if not f.second.host and _collective(f.first):
        return _wait_for_work(f)
    return None


def _wait_for_work(f: Finding) -> Remedy:
    """Return the wait for a collective of torch.distributed, by what the program calls the work that it gave."""
    work = _work(f.first)
    for where, calls in places(f):
        if (
            work
            and where == "before"
            and stands(f"{work}.wait()", calls.statement)
            and calls.same(work, f.first.frames)
        ):
            return Remedy(f"{work}.wait()", where, calls.frame)
    made = f" at {f.first.frames[0]}" if f.first.frames else ""
    return Remedy("", "", None, f"call wait() of the work that the collective{made} returns, before the second access")


def _before_a_refill(f: Finding) -> Iterator[Remedy]:
    """Yield waits behind the copy: where the host wrote is not known."""
    words = _WORDS[f.dialect]
    if f.record is not None:
        for calls in _behind(f, f.record):
            for name in _events(f, calls):
                yield _line(f, words.event.format(e=name), calls, ACTION_SYNCHRONIZE_EVENT)
    for calls in _behind(f, f.first):
        for name in _names(f, f.first, calls):
            yield _line(f, words.host.format(a=name), calls, ACTION_SYNCHRONIZE_STREAM)
    if f.record is not None:
        for calls in _behind(f, f.record):
            for name in _events(f, calls)[:1]:
                yield Remedy(words.event.format(e=name), "before the host writes there again", None)
    yield Remedy("", "", None, f"let the host wait for {_nameless(f.first)} before it writes there again")


def _behind(f: Finding, one: Access | Note) -> Iterator[Calls]:
    """Yield the places behind a call, from the inside on."""
    return (calls for calls in behind(one) if not f.first.backward)


def _keeping(f: Finding) -> Iterator[Remedy]:
    """Yield calls that let a freed block wait for its user."""
    keep = _WORDS[f.dialect].keep
    if not keep:
        return
    if f.dialect != "torch.cuda":  # its own objects are asked, and a line may be tried
        for calls in _behind(f, f.first):
            yield from _keeping_at(f, calls)
            break
        return
    for calls in behind(f.first):  # of a use in a backward pass behind its forward call, from which the block is in use
        yield from _keeping_at(f, calls)
    made = f" made at {f.made_at}" if f.made_at else ""
    yield Remedy(
        "", "", None,
        f"call record_stream with {_nameless(f.first)} on the tensor{made} before its last reference is dropped",
    )  # fmt: skip


def _keeping_at(f: Finding, calls: Calls) -> Iterator[Remedy]:
    names = variables.memory_within(calls.frame, f.block or f.start, max(f.block_nbytes, 1))
    for memory in sorted(names, key=lambda name: (name != f.buffer, _length(name)))[:1]:
        for name in _names(f, f.first, calls)[:1]:
            yield _line(f, _WORDS[f.dialect].keep.format(x=memory, a=name), calls, "")


def _waits(f: Finding) -> Iterator[Remedy]:
    """Yield waits between the two calls: for an event that exists, for a stream, and of the host at last."""
    words, there = _WORDS[f.dialect], list(places(f))
    # In AscendCL that event may still be set by then, and waits for it pass at once.
    old = f.dialect == "acl" and f.why == WHY_WAITED_FOR_AN_OLDER_RECORD
    if f.second.host:
        for where, calls in there:
            for e in _events(f, calls):
                yield _line(f, words.event.format(e=e), calls, ACTION_SYNCHRONIZE_EVENT, where)
    elif not old:
        for where, calls in there:
            for e in _events(f, calls):
                for b in _names(f, f.second, calls):
                    yield _line(f, words.wait.format(b=b, e=e), calls, ACTION_WAIT_EVENT, where)
        for where, calls in there:
            if _collective(f.second) and where == "before":  # it waits for what is current when it is called
                seconds = [variables.CURRENT] if calls.innermost else []
            else:
                seconds = _names(f, f.second, calls)
            for a in _names(f, f.first, calls):
                for b in seconds:
                    if a != b:
                        yield _line(f, words.order.format(a=a, b=b), calls, ACTION_WAIT_STREAM, where)
    if not _in_a_capture(f):
        for where, calls in there:
            for a in _names(f, f.first, calls):
                yield _line(f, words.host.format(a=a), calls, ACTION_SYNCHRONIZE_STREAM, where)


def _last(f: Finding) -> Iterator[Remedy]:
    """Yield what orders them without a name."""
    if _in_a_capture(f) or f.second.backward:
        return
    line = "torch.cuda.synchronize()" if f.dialect == "torch.cuda" else "halstream.synchronize()"
    for where, calls in places(f):
        if where == "before" and stands("0", calls.statement):
            yield _line(f, line, calls, ACTION_SYNCHRONIZE_DEVICE, where)
    if f.second.frames and _source.statement(*f.second.frames[0][:2]) is None and not several(f.second.frames[0]):
        alone = f"import {line.partition('.')[0]}; {line}"
        yield Remedy(alone, "before", f.second.frames[0], action=ACTION_SYNCHRONIZE_DEVICE)


def _line(f: Finding, code: str, calls: Calls, action: str, where: str = "after") -> Remedy:
    if f.dialect == "acl" and (name := _acl_module(calls.statement)) != "rt":
        code = code.replace("rt.", f"{name}.")
    code = spelled(code, calls.statement, f.dialect)
    for module in ("torch", "halstream"):
        if re.search(rf"(?<![\w.]){module}\.", code) and not stands(module, calls.statement) and "import " not in code:
            code = f"import {module}; {code}"
    return Remedy(
        code,
        where,
        calls.shown or calls.frame,
        action=action,
        tried=calls.frame,
        early=not calls.innermost and where == "before",
        column=-1 if calls.shown else variables.position(calls.of.site, calls.frame)[1],
    )


def _acl_module(here: _source.Statement | None) -> str:
    """Return what a file calls the module of AscendCL's runtime."""
    return "rt" if here is None or here.knows("rt") else "acl.rt"


#: How many names of one object are tried at a place.
_NAMES = 2


def _names(f: Finding, access: Access, calls: Calls) -> list[str]:
    """Return what stands at a place for the stream of an access, the likeliest name first."""
    key = variables.stream_key(access.device, access.stream)
    used = [one for one in (_used_name(access), access.name) if one]
    if _sites.real_torch.paddle:  # of whose objects nothing is known
        origins = (
            (used_name, access.frames if number == 0 else access.named_at) for number, used_name in enumerate(used)
        )
        return [one for one, origin in origins if stands(one, calls.statement) and calls.same(one, origin)] + _default(
            f, access
        )
    seen = variables.at(calls.frame)
    found = seen.of(key) if seen else []
    if seen:
        for name in seen.of(key, varying=True):
            if name not in found and (calls.of is access or calls.same(name, access.frames)):
                found.append(name)
    found = [name for name in found if stands(name, calls.statement, evaluated=True)]
    here = calls.statement
    if here is not None and body_of(here.path[-1]):  # its head may make another stream current, as that of `with`
        found = [name for name in found if name != variables.CURRENT]
    ranked = sorted(found, key=lambda name: (name == variables.CURRENT, name not in used, _length(name)))
    if not access.stream:
        default = [one for one in _default(f, access) if stands(one, calls.statement) or _imported(one)]
        ranked = [name for name in ranked if name in used] + default + [name for name in ranked if name not in used]
    return ranked[:_NAMES]


def _imported(expression: str) -> bool:
    """Return whether a line can import what an expression begins with."""
    return expression.startswith(("torch.cuda.", "halstream."))


def _length(name: str) -> int:
    return name.count(".") + name.count("[")


def _default(f: Finding, access: Access) -> list[str]:
    """Return the expression for a default stream."""
    if access.stream:
        return []
    if access.device > 0 or len({one.device for one in (f.first, f.second) if not one.host}) > 1:
        words = _WORDS[f.dialect].default_of  # without a number it is that of the current device
        return [words.format(d=access.device)] if words else []
    return [_WORDS[f.dialect].default]


def _events(f: Finding, calls: Calls) -> list[str]:
    """Return what stands at a place for the event that was recorded behind the first access."""
    seen = variables.at(calls.frame)
    if f.record is None or seen is None:
        return []
    key = variables.event_key(f.record.event)
    found = seen.of(key)
    for name in seen.of(key, varying=True):
        if name not in found and calls.same(name, f.record.frames):
            found.append(name)
    found = [name for name in found if stands(name, calls.statement, evaluated=True)]
    here = calls.statement
    if calls.of is f.record and calls.innermost and here is not None:
        made = here.event()  # by the record: the name stands for it from then on
        if made and made not in found and variables.stood_for(made, key):
            found.append(made)
    return sorted(found, key=_length)[:_NAMES]


def _nameless(access: Access) -> str:
    """Return a stream in words that are true everywhere."""
    if not access.stream:
        return "the default stream"
    made = access.made_in or access.made_at
    return f"stream {access.stream}" + (f", made at {made}," if made else "")


def _collective(access: Access) -> bool:
    return access.operation.startswith(("nccl:", "gloo:"))


def _work(access: Access) -> str:
    """Return what the program calls the work that a collective of torch.distributed gave it, '' if unknown."""
    for frame in access.frames[:1]:
        here = _source.statement(frame.file, frame.line)
        if here is not None:
            return here.target(1, 0)
    return ""


def stream_name(f: Finding, access: Access) -> str:
    """Return an expression for the stream of an access: the program's own if it is found."""
    own = _own_name(f, access)
    if own or access.stream:
        return own or f"<stream {access.stream}>"
    return next(iter(_default(f, access)), f"<the default stream of device {access.device}>")


def _own_name(f: Finding, access: Access) -> str:
    """Return what the program calls the stream of an access, '' if that is not known or names the other stream."""
    return name_of(f, access is f.first, lambda: _distinct_name(f, access))


def _distinct_name(f: Finding, access: Access) -> str:
    name = _found_name(f, access)
    other = f.second if access is f.first else f.first
    different = not other.host and (other.device, other.stream) != (access.device, access.stream)
    return "" if different and name == _found_name(f, other) else name


def _found_name(f: Finding, access: Access) -> str:
    """Return a name that stood for the stream: the one in the line of the call, or the one where it was made."""
    key = variables.stream_key(access.device, access.stream)
    used, made, others = _used_name(access), access.name, list[str]()
    if not _sites.real_torch.paddle:  # of whose objects nothing is known
        seen = variables.at(access.frames[0]) if access.frames else None
        others = [one for one in seen.of(key, varying=True) if one != variables.CURRENT] if seen is not None else []
        used = used if used in others else ""
        made = made if made and variables.stood_for(made, key) else ""
    other = f.second if access is f.first else f.first
    # A name that both sides use is one function's name for different streams.
    if used and not other.host and used == _used_name(other):
        return made
    one, two = f.first.frames, f.second.frames
    # In one call of one function.
    same = bool(one and two) and one[0][::2] == two[0][::2] and one[1:] == two[1:]
    # A package has its streams for itself: what the program has made may hold one, but is another thing.
    holds = "" if access.made_in else min(others, key=_length, default="")
    return (used if same else made or used) or made or holds


def _used_name(access: Access) -> str:
    for frame in access.frames[:1]:
        here = _source.statement(frame.file, *variables.position(access.site, frame))
        if here is None:
            return ""
        # An operator of torch names no stream: it goes to the current one.
        return here.current() if access.dialect == "torch.cuda" else here.stream()
    return ""


def stream_label(f: Finding, access: Access | Note, origin: bool = False) -> str:
    """Return how a report calls a stream; `origin` says of one without a name which package made it, and where."""
    if access.stream == 0:
        label = "the default stream"
    else:
        label = f"stream {access.stream}"
        name = _own_name(f, access) if isinstance(access, Access) else ""
        if name:
            label += f" ({name})"
        elif origin and isinstance(access, Access) and access.made_in:
            label += f" (made at {access.made_in})"
    other = {f.first.device, f.second.device} - {-1}
    return f"{label} of {_sites.real_torch.device(access.device)}" if other != {0} else label
