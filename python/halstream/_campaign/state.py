"""What a campaign has to do, what it has done, and the file that keeps both."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TextIO

from .child import CampaignError

__all__ = ["Settings", "State", "Test"]

_FORMAT = 1
_HEAD = "halstream campaign"


@dataclass(frozen=True)
class Settings:
    """What a campaign is: two with equal settings and tests run the same schedules.

    Attributes
    ----------
    arguments : list of str
        For pytest.
    schedules : int
        Of each test.
    slice : int
        How many of them a worker runs in one go.
    depth, seed : int
        Of the schedules.
    """

    arguments: list[str]
    schedules: int
    slice: int
    depth: int
    seed: int


@dataclass
class Test:
    """What is known of a test.

    Attributes
    ----------
    done : dict
        How many schedules were run in each part, by the number of the part's first schedule.
    failure : dict or None
        ``title``, ``number`` of the schedule, ``token``, and ``text`` once it was made small: of the failing schedule
        with the lowest number.
    """

    name: str
    done: dict[int, int] = field(default_factory=dict)
    failure: dict[str, Any] | None = None
    skipped: bool = False
    unused: bool = False  #: it uses no streams
    shrunk: bool = False

    @property
    def schedules(self) -> int:
        """How many schedules were run."""
        return sum(self.done.values())

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to find out."""
        return self.failure is not None or self.skipped or self.unused

    def add(self, answer: Mapping[str, Any]) -> bool:
        """Count a part; return False for one that is counted already."""
        first = int(answer["first"])
        if first in self.done:
            return False
        self.done[first] = int(answer["schedules"])
        if "title" in answer:
            if self.failure is None or answer["number"] < self.failure["number"]:
                self.failure = {name: answer[name] for name in ("title", "number", "token")}
        else:
            self.skipped = self.skipped or bool(answer["skipped"])
            self.unused = self.unused or not (answer["used"] or answer["skipped"])
        return True


class State:
    """A campaign's file, open and locked: a line for what it is, then one for each answer that counts.

    Parameters
    ----------
    path : str
    resume : bool
        Continue the campaign of the file; otherwise a new one begins, in place of one that is finished.

    Raises
    ------
    CampaignError
        If the file cannot be opened or read, belongs to something else, or does not fit `resume`.
    """

    def __init__(self, path: str, resume: bool) -> None:
        self.path = path
        self.settings: Settings | None = None
        self.tests: dict[str, Test] = {}
        self.finished = False
        if resume and not os.path.exists(path):
            raise CampaignError(f"there is no campaign to resume: {path} does not exist")
        try:
            self._file: TextIO = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        except OSError as exc:
            raise CampaignError(f"the state file {path} cannot be written: {exc.strerror}") from None
        try:
            self._lock()
            self._read(resume)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CampaignError(f"another campaign is running with the state file {self.path}") from None
        except OSError:
            pass  # a file system without locks

    def _read(self, resume: bool) -> None:
        self._file.seek(0)
        try:
            text = self._file.read()
            *lines, last = text.split("\n")
            head = json.loads(lines[0]) if lines else {}
            if text and (not isinstance(head, dict) or head.get(_HEAD) != _FORMAT):
                raise ValueError
            if lines:
                self.settings = Settings(**{one.name: head[one.name] for one in fields(Settings)})
                self.tests = {name: Test(name) for name in head["tests"]}
            for line in lines[1:]:
                self._apply(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CampaignError(f"{self.path} is no state file of a campaign, or is damaged") from None
        if not resume and lines and not self.finished:
            raise CampaignError(
                f"{self.path} holds a campaign that is not finished: --resume continues it, --state FILE takes "
                "another file"
            )
        if resume and not lines:
            raise CampaignError(f"there is no campaign to resume in {self.path}")
        if not resume:
            self._file.truncate(0)
            self.settings, self.tests, self.finished = None, {}, False
        elif last:
            self._file.truncate(len(text.encode()) - len(last.encode()))  # of a line that was being written

    def _apply(self, answer: Mapping[str, Any]) -> bool:
        kind = answer["kind"]
        if kind == "finished":
            self.finished = True
            return True
        test = self.tests[answer["test"]]
        if kind == "shrunk":
            test.shrunk = True
            if answer.get("token") and test.failure is not None:
                test.failure |= {"token": answer["token"], "text": answer.get("text", "")}
            return True
        return test.add(answer)

    def begin(self, settings: Settings, tests: list[str]) -> None:
        """Begin a campaign, or compare it with the one that is resumed.

        Raises
        ------
        CampaignError
            If they differ.
        """
        if self.settings is None:
            self.settings, self.tests = settings, {name: Test(name) for name in tests}
            self._write({_HEAD: _FORMAT, **asdict(settings), "tests": tests})
            return
        for name, value in asdict(settings).items():
            known = getattr(self.settings, name)
            if known != value:
                raise CampaignError(f"{self.path} is of another campaign: {name} is {known!r} there, {value!r} here")
        if tests != list(self.tests):
            changed = sorted({*tests} ^ {*self.tests}) or ["their order"]
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            raise CampaignError(
                f"{self.path} is of another campaign: the tests have changed ({', '.join(changed[:3])}{more})"
            )

    def add(self, answer: Mapping[str, Any]) -> bool:
        """Count an answer and keep it in the file; return False for one that is counted already."""
        if not self._apply(answer):
            return False
        self._write(answer)
        return True

    def finish(self) -> None:
        """Note that nothing is left to do."""
        if not self.finished:
            self.add({"kind": "finished"})

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        except OSError as exc:
            raise CampaignError(f"the state file {self.path} cannot be written: {exc.strerror}") from None

    def close(self) -> None:
        """Close the file; a new one that got no campaign is removed."""
        if self.settings is None and os.path.exists(self.path) and os.path.getsize(self.path) == 0:
            os.unlink(self.path)
        self._file.close()
