"""Schedules in words and as tokens: what to run, short enough to paste.

A *spec* is what the runtime takes, for example ``pct 7 3 240``. A *token* is a
spec with the fingerprint of the program it was seen with and two check digits,
for example ``hs1-pct-7.3.240-1a2b3c4d-95``. Before the fingerprint may stand what
the operations that it names are recognised by in a program that has changed.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import NamedTuple

from .._errors import ScheduleError
from .turns import STAY, Turn, join, parse_turns, split, strategy, turns_text

__all__ = ["FORMS", "VERSION", "Hold", "Token", "parse_spec", "spec_text"]

VERSION = "hs1"

#: Parameters of each kind of schedule: name, least and greatest value.
KINDS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "fifo": (),
    "earliest": (),
    "latest": (),
    "random": (("seed", 0, 2**63 - 1),),
    "pct": (("seed", 0, 2**63 - 1), ("depth", 1, 64), ("steps", 1, 2**31 - 1)),
    "starve": (("stream", 1, 2**31 - 1),),
}

#: The forms that a program may give, for messages.
FORMS = "fifo, earliest, latest, random(seed), pct(seed, depth), starve(stream), or a token"

# The number of steps assumed for a program that has not run yet.
_STEPS = 100
_MOST_HOLDS = 4096
_MOST = 2**31 - 1

# The check digits are the value of the text as a polynomial at 6 modulo 251,
# of which 6 is a primitive root: no single other character and no two that
# changed places leave it as it is.
_PRIME, _ROOT = 251, 6

_HOLD = re.compile(r"(\d+)\.(\d+)>(?:h(\d+)|(\d+)\.(\d+))")
_SPEC = re.compile(r"\s*([a-z]+)\s*(?:\(\s*(.*?)\s*\)|\s(.*?))?\s*")


class Hold(NamedTuple):
    """An operation that does not run before something else has happened.

    Streams, their operations and the calls of the host are numbered from 1, in
    the order of a run.
    """

    stream: int
    number: int
    until: int  #: stream of the operation that must be done, 0 for a call of the host
    after: int  #: number of that operation, or of the call that must have begun

    def __str__(self) -> str:
        end = f"{self.until}.{self.after}" if self.until else f"h{self.after}"
        return f"{self.stream}.{self.number}>{end}"


Parameters = tuple[int, ...] | tuple[Hold, ...]


def spec_text(kind: str, parameters: Parameters) -> str:
    """Return the form that the runtime takes."""
    separator = "," if kind == "holds" else " "
    return f"{kind} {separator.join(map(str, parameters))}".rstrip()


def parse_spec(text: str) -> tuple[str, Parameters]:
    """Parse a schedule that a program or a user gave.

    Parameters
    ----------
    text : str
        For example ``"latest"``, ``"pct 7 3 240"`` or ``"pct(7, 3)"``.

    Raises
    ------
    ScheduleError
        If there is no such schedule or a parameter is out of range.
    """
    text, threads = split(text)
    if threads:
        strategy(threads)
    found = _SPEC.fullmatch(text)
    kind = found[1] if found else ""
    inner = (found[2] or found[3] or "") if found else ""
    if kind == "holds":
        return kind, _holds_of(inner)
    if kind not in KINDS:
        raise ScheduleError(f"there is no schedule {_short(text)}; give {FORMS}")
    words = inner.replace(",", " ").split()
    if not all(re.fullmatch("[0-9]{1,20}", word) for word in words):
        raise ScheduleError(f"{kind} takes whole numbers, not {_short(inner)}")
    numbers = tuple(map(int, words))
    if kind == "pct" and len(numbers) == 2:
        numbers = (*numbers, _STEPS)
    return kind, _in_range(kind, numbers)


def _in_range(kind: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
    wanted = KINDS[kind]
    if len(numbers) != len(wanted):
        if not wanted:
            raise ScheduleError(f"{kind} takes no numbers")
        form = f"{kind}({', '.join(name for name, _, _ in wanted)})"
        raise ScheduleError(
            f"the schedule is written {form}: numbers in parentheses, {len(wanted)} and not {len(numbers)}"
        )
    for number, (name, least, most) in zip(numbers, wanted, strict=True):
        if not least <= number <= most:
            raise ScheduleError(f"{name} of {kind} is {number}; it goes from {least} to {most}")
    return numbers


def _holds_of(text: str) -> tuple[Hold, ...]:
    holds = []
    for part in text.replace(" ", "").split(","):
        found = _HOLD.fullmatch(part)
        if found is None:
            raise ScheduleError(f"{_short(part)} is no hold; give for example 1.2>h3 or 1.2>2.1")
        stream, number, call, until, after = found.groups()
        holds.append(Hold(int(stream), int(number), int(until or 0), int(call or after)))
    return _holds_in_range(tuple(holds))


def _holds_in_range(holds: tuple[Hold, ...]) -> tuple[Hold, ...]:
    if not 0 < len(holds) <= _MOST_HOLDS:
        raise ScheduleError(f"there are {len(holds)} holds; there may be 1 to {_MOST_HOLDS}")
    for hold in holds:
        if min(hold.stream, hold.number, hold.after) < 1 or max(hold) > _MOST:
            raise ScheduleError(f"hold {hold} has a number that is not from 1 to {_MOST}")
        if hold.until == hold.stream:
            raise ScheduleError(f"hold {hold} is of a stream for itself")
    return holds


@dataclass(frozen=True)
class Token:
    """A schedule and the program it belongs to.

    Attributes
    ----------
    kind : str
        ``fifo``, ``earliest``, ``latest``, ``random``, ``pct``, ``starve`` or ``holds``.
    parameters : tuple
        Numbers, or the holds.
    fingerprint : str
        The first 8 hexadecimal digits of that of the run's operations.
    marks : tuple of int
        What the operations that it names are recognised by in a program that has
        changed; see `matching`. None in tokens of runs without a trace.
    threads : str
        The strategy by which host threads take turns, see `turns`; '' if they are not controlled.
    controlled : bool
        False if a thread of the run waited where the control did not see it: another
        run may differ.

    Examples
    --------
    >>> token = Token("pct", (7, 3, 240), "1a2b3c4d")
    >>> str(token)
    'hs1-pct-7.3.240-1a2b3c4d-95'
    >>> Token.parse(str(token)) == token
    True
    >>> token.spec
    'pct 7 3 240'
    """

    kind: str
    parameters: Parameters
    fingerprint: str
    marks: tuple[int, ...] = ()
    threads: str = ""
    controlled: bool = True

    @classmethod
    def of(cls, spec: str, fingerprint: str, marks: tuple[int, ...] = (), controlled: bool = True) -> Token:
        """Return the token of a run: its spec, the fingerprint that the runtime gave, and its marks."""
        kind, parameters = parse_spec(spec)
        return cls(kind, parameters, fingerprint[:8], marks, split(spec)[1], controlled)

    @property
    def spec(self) -> str:
        """The form that the runtime takes."""
        return join(spec_text(self.kind, self.parameters), self.threads)

    def __str__(self) -> str:
        if self.kind == "holds":
            packed = _pack([number for hold in self.parameters for number in hold])  # type: ignore[union-attr]
        else:
            packed = ".".join(map(str, self.parameters))
        threads = f"+{'' if self.controlled else 'u'}{_pack_threads(self.threads)}" if self.threads else ""
        parts = [VERSION, self.kind + threads, packed, _pack(list(self.marks)), self.fingerprint]
        body = "-".join(filter(None, parts))
        return f"{body}-{_check(body)}"

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read a token.

        Raises
        ------
        ScheduleError
            If it is none, of another version, damaged, or names a schedule
            that does not exist or a parameter out of range.
        """
        text = text.strip()
        parts = text.split("-")
        if not re.fullmatch(r"hs\d+", parts[0]) or len(parts) < 2:
            raise ScheduleError(f"{_short(text)} is not a token; one begins with {VERSION}-")
        if parts[0] != VERSION:
            raise ScheduleError(
                f"{_short(text)} is a token of version {parts[0]}, this halstream reads {VERSION}; make a new one"
            )
        body = text.rpartition("-")[0]
        if _check(body) != parts[-1]:
            raise ScheduleError(f"token {_short(text)} is damaged: its check digits do not fit; copy it again")
        kind, threaded, packed = parts[1].partition("+")
        if kind != "holds" and kind not in KINDS:
            raise ScheduleError(f"token {_short(text)} has a schedule {kind!r}, which is unknown")
        bare = kind in KINDS and not KINDS[kind]
        marked = len(parts) == 6 - bare
        if len(parts) - marked != 5 - bare or not re.fullmatch("[0-9a-f]{8}", parts[-2]):
            raise ScheduleError(f"token {_short(text)} is damaged: a part is missing")
        try:
            parameters = _parameters(kind, "" if bare else parts[2])
            threads = _threads(packed.removeprefix("u")) if threaded else ""
            marks = _marks(parts[-3]) if marked else ()
            return cls(kind, parameters, parts[-2], marks, threads, not packed.startswith("u"))
        except ScheduleError as exc:
            raise ScheduleError(f"token {_short(text)}: {exc}") from None


def _parameters(kind: str, text: str) -> Parameters:
    if kind == "holds":
        numbers = _unpack(text)
        if len(numbers) % 4:
            raise ScheduleError("the list of holds ends within one")
        return _holds_in_range(tuple(Hold(*numbers[i : i + 4]) for i in range(0, len(numbers), 4)))
    return parse_spec(f"{kind} {text.replace('.', ' ')}")[1]


def _pack_threads(text: str) -> str:
    """Return the strategy of host threads in the form of a token: a letter and numbers."""
    kind, _, rest = text.partition(" ")
    if kind == "turns":
        return "t" + _pack([number for turn in parse_turns(text) for number in turn])
    return kind[0] + rest.replace(" ", ".")


def _threads(packed: str) -> str:
    if packed == "s":
        return STAY
    if packed[:1] == "t":
        numbers = _unpack(packed[1:])
        if not numbers or len(numbers) % 3:
            raise ScheduleError("its list of turns ends within one")
        return turns_text([Turn(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)])
    kind = {"r": "random", "p": "pct"}.get(packed[:1], "unknown")
    text = f"{kind} {packed[1:].replace('.', ' ')}"
    strategy(text)
    return text


def _marks(text: str) -> tuple[int, ...]:
    try:
        return tuple(_unpack(text))
    except ScheduleError:
        raise ScheduleError("a part is missing, or cannot be read") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _check(body: str) -> str:
    value = 0
    for character in body:
        value = (value * _ROOT + ord(character)) % _PRIME
    return f"{value:02x}"


def _pack(numbers: list[int]) -> str:
    """Return numbers as text: seven bits to a byte, three bytes to four characters."""
    data = bytearray()
    for number in numbers:
        while number > 0x7F:
            data.append(number & 0x7F | 0x80)
            number >>= 7
        data.append(number)
    # No dash: it separates the parts of a token.
    return base64.b64encode(data, b"._").decode().rstrip("=")


def _unpack(text: str) -> list[int]:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), b"._", validate=True)
    except (binascii.Error, ValueError):
        raise ScheduleError("its list of holds cannot be read") from None
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
        elif shift > 35:
            raise ScheduleError("its list of holds has a number out of range")
    if shift:
        raise ScheduleError("the list of holds ends within a number")
    return numbers
