"""What a sanitizer has seen of the functions on streams, and of which it does not know what they touch."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .. import _native, _sites
from .._core._declared import Declared
from .._records import CheckRecord
from .._runtime import runtime
from .reach import Reach, Reached, reach_of, title

__all__ = ["Functions", "Unknown", "begin", "forget", "look", "name_of", "watched"]

# How many functions are remembered with what they can reach, for the names in reports.
_KEPT = 1 << 16
# Functions of unknown accesses that a report lists.
_LISTED = 10
# In an account: the function works on nothing else.
_COMPLETE = "c"
_BY_PAGES = "were seen by the pages of memory"
_WRITES = "what it writes to its arrays is seen under a deterministic schedule only"
_ADVICE = (
    "  say what they touch: reads=[...] and writes=[...] of the call, or "
    "halstream.accesses(function, reads=[...], writes=[...])"
)


class Unknown(NamedTuple):
    """A function of which it is not known what it touches.

    Attributes
    ----------
    function : str
        Its name.
    frame : Frame or None
        The line of the program that enqueued it.
    why : tuple of str
        What could not be seen.
    """

    function: str
    frame: _sites.Frame | None
    why: tuple[str, ...]

    def __str__(self) -> str:
        place = f" at {self.frame}" if self.frame else ""
        return f"{self.function}{place}: {'; '.join(self.why)}"


class Functions:
    """How many functions there were, and how their accesses are known.

    Attributes
    ----------
    total : int
        Functions that were enqueued: Python's, native ones by address, host forms of kernels.
    declared : int
        Those that declare what they read and write.
    seen : int
        Those that work on arrays which they are given or reach.
    nothing : int
        Those that touch no known memory.
    compared, partly : int
        Those around which the memory of the devices was compared, under a
        deterministic schedule, and for how many of them the largest blocks
        were left out.
    paged, untouched, beside : int
        Those that were seen by the pages of memory, how many of them touched
        none that the runtime knows, and how many ran at the same time as
        another one: what that one had touched may not be seen of them.
    unclaimed : int
        Accesses that were seen by pages, of threads that did not call the
        runtime afterwards, or beyond what is kept.
    sharing, hidden : int
        Blocks that were allocated while pages were watched: those that share a
        page with another one, where an access to one hides a later one to the other,
        and those in memory that a pool kept from before, of which no access is seen.
    views : int
        Views of memory that streams copy from or to, which the real torch handed to NumPy
        and others: what the host does through them is seen by the pages of memory only.
    """

    def __init__(self, observe: bool = True, pages: bool = False) -> None:
        self.total = self.declared = self.seen = self.nothing = self.compared = self.partly = 0
        self.paged = self.untouched = self.beside = self.unclaimed = self.sharing = self.hidden = self.views = 0
        self._pages = pages
        self._observe = observe
        self._unknown: dict[Unknown, int] = {}
        self._unwatched: dict[Unknown, int] = {}
        self._order: list[Unknown] = []  # in which they were found

    @property
    def unknown(self) -> list[Unknown]:
        """Those that may touch memory that nobody has named, each call of the program once."""
        return list(self._unknown)

    @property
    def unwatched(self) -> list[Unknown]:
        """Those that work on arrays, and of which it is not known whether they write to them."""
        return list(self._unwatched)

    @property
    def some_unseen(self) -> bool:
        """Whether there are any of which it is not known what they touch, or whether they write."""
        return bool(self._unknown or self._unwatched)

    def _watched(self, counts: Iterable[int]) -> None:
        self.compared, self.partly, self.paged, self.untouched, self.beside, self.unclaimed, *blocks, views = counts
        self.views = 0 if self._pages else views
        self.sharing, self.hidden = blocks if self._pages else (0, 0)

    def _count(self, reach: Reach | None, function: str) -> None:
        self.total += 1
        if reach is None:
            self.declared += 1
            return
        if self._pages:
            self.seen += 1
        elif reach.unknown:
            one = Unknown(function, _frame(), reach.unknown)
            self._note(one, self._unknown)
        elif reach.found:
            self.seen += 1
            if not (self._observe and _native.schedule_get() != "parallel"):
                one = Unknown(function, _frame(), (_WRITES,))
                self._note(one, self._unwatched)
        else:
            self.nothing += 1

    def _note(self, one: Unknown, where: dict[Unknown, int]) -> None:
        if one not in where:
            self._order.append(one)
        where[one] = where.get(one, 0) + 1

    def gaps(self, known: int = 0) -> str:
        """Return what strict checks say, '' if the accesses of every function are known.

        Parameters
        ----------
        known : int
            How many functions were named before and are left out.
        """
        gaps = sorted((*self._unknown, *self._unwatched), key=self._order.index)[known:]
        if not gaps:
            return ""
        lines = [f"the accesses of {_functions(len(gaps))} are not known"]
        lines += [f"  {one}" for one in gaps[:_LISTED]]
        if len(gaps) > _LISTED:
            lines.append(f"  (and {len(gaps) - _LISTED} more)")
        return "\n".join([*lines, _ADVICE])

    def _unseen(self) -> str:
        """Return what is not seen of blocks by their pages, and of views without these."""
        parts = []
        if self.views:
            parts.append(
                f"{_number(self.views, 'view')} of memory that streams copy from or to "
                f"{'was' if self.views == 1 else 'were'} handed out, as by `Tensor.numpy`, and what the host does by "
                "such a view is seen by the pages of memory only"
            )
        if self.sharing:
            parts.append(
                f"{self.sharing} blocks of memory share pages with others, and of accesses to one page that follow "
                "each other only the first may be seen"
            )
        if self.hidden:
            parts.append(
                f"{_number(self.hidden, 'block')} of memory that was allocated before, and kept by a pool, "
                f"{'is' if self.hidden == 1 else 'are'} not watched"
            )
        return "; ".join(parts)

    @property
    def text(self) -> str:
        """What was seen and how, in a line, and a line for each function of unknown accesses; '' without functions."""
        if not self.total:
            return f"seen: {unseen}" if (unseen := self._unseen()) else ""
        unknown = sum(self._unknown.values())
        parts = [
            f"{n} {what}"
            for n, what in (
                (self.declared, "declared what they touch"),
                (self.seen, _BY_PAGES if self._pages else "have their arguments and captured arrays taken as read"),
                (self.nothing, "touched no known memory"),
                (unknown, "may touch memory that is not known"),
            )
            if n
        ]
        lines = [f"seen: {_functions(self.total)}: {', '.join(parts)}"]
        if self._unwatched:
            lines[0] += (
                f"; what {sum(self._unwatched.values())} of them write is seen only under a deterministic schedule, "
                "or where it is declared (writes=)"
            )
        if self.compared:
            left_out = f" ({self.partly} times without the largest blocks)" if self.partly else ""
            lines[0] += f"; memory was compared around {self.compared}{left_out}"
        if self.paged:
            lines[0] += f"; {self.untouched} of {_functions(self.paged)} touched no known memory"
        if self.beside:
            lines[0] += f"; {self.beside} ran at the same time as others, and what these had touched may be missed"
        if self.unclaimed:
            lines[0] += f"; who made {self.unclaimed} accesses is not known"
        if unseen := self._unseen():
            lines[0] += f"; {unseen}"
        if unknown:
            lines += [f"  {one}" for one in self.unknown[:_LISTED]]
            if len(self._unknown) > _LISTED:
                lines.append(f"  (and {len(self._unknown) - _LISTED} more)")
            lines.append(_ADVICE)
        return "\n".join(lines)


def watched(counts: CheckRecord) -> tuple[int, ...]:
    """Return the counts of the extension that `Functions` takes over, in the order of its attributes."""
    functions = counts["compared"], counts["partly"], counts["paged"], counts["untouched"], counts["beside"]
    return *functions, counts["unclaimed"], counts["sharing"], counts["unwatched"]


def _functions(n: int) -> str:
    return _number(n, "function")


def _number(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _frame() -> _sites.Frame | None:
    """Return the line of the program that is calling."""
    frame = sys._getframe(1)
    while not _sites.is_program(frame.f_code.co_filename):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    code = frame.f_code
    return _sites.Frame(code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name))


# Stands for the arrays among the arguments.
_GIVEN = (Reached("", "", (), True),)


class _Kept:
    """What functions can reach, by their kind and number, for as long as reports may name them."""

    reaches: dict[tuple[str, int], Reach] = runtime.keep("what functions on streams reach", {})
    lock = threading.Lock()
    #: Returns where the functions of the sanitizer that is on are counted, None if none is.
    counts: Callable[[], Functions | None] = staticmethod(lambda: None)


def look(
    function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], account: str, declared: bool
) -> tuple[str, Callable[[str, int], None] | None]:
    """Return what a function is to be enqueued with, and what is to be called with its kind and number.

    Parameters
    ----------
    function : callable
    args, kwargs : tuple, dict
        What it is given.
    account : str
        Of its array arguments, or of what it declares.
    declared : bool
        Whether it declares what it works on.
    """
    counts = _Kept.counts()
    if declared or isinstance(function, Declared):
        if counts is not None:
            counts._count(None, "")
        return f"{account} {_COMPLETE}", None
    reach = reach_of(function, args, kwargs)
    if counts is not None:
        given = reach if not account or reach.found else reach._replace(found=_GIVEN)
        counts._count(given, title(function))
    if not reach.found:
        return account, None

    def note(kind: str, number: int) -> None:
        with _Kept.lock:
            _Kept.reaches[kind, number] = reach
            if len(_Kept.reaches) > _KEPT:
                del _Kept.reaches[next(iter(_Kept.reaches))]

    return f"{account} {reach.account}", note


def name_of(kind: str, number: int, start: int, nbytes: int) -> str:
    """Return what a function calls the memory that it reached, and in which way; '' if that is not known."""
    reach = _Kept.reaches.get((kind, number))
    if reach is None:
        return ""
    return next((str(one) for one in reach.found if one.holds(start, nbytes)), "")


def begin(counts: Callable[[], Functions | None]) -> None:
    """Begin to count functions where `counts` says."""
    _Kept.counts = staticmethod(counts)


def forget() -> None:
    """Forget what functions reached: the last sanitizer has ended."""
    with _Kept.lock:
        _Kept.reaches.clear()
    _Kept.counts = staticmethod(lambda: None)
