"""The engine that runs the parts of a campaign: pytest-xdist, on this machine."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from .child import CampaignError, session

__all__ = ["Engine", "engine"]

Slice = Mapping[str, Any]
Answer = dict[str, Any]


class Engine(Protocol):
    """Runs parts; those that are not answered have not been run, those answered ``lost`` had begun."""

    def run(self, arguments: Sequence[str], slices: Sequence[Slice]) -> Iterator[Answer]:
        """Run parts and yield the answers as they come."""

    def close(self) -> None:
        """End what it started."""


def engine(workers: int, folder: str) -> Engine:
    """Return an engine.

    Raises
    ------
    CampaignError
        If what it needs is not installed.
    """
    if importlib.util.find_spec("xdist") is None:
        raise CampaignError("a campaign needs the package pytest-xdist: pip install pytest-xdist")
    return _Xdist(workers, folder)


class _Xdist:
    def __init__(self, workers: int, folder: str) -> None:
        self._workers, self._folder = workers, folder

    def run(self, arguments: Sequence[str], slices: Sequence[Slice]) -> Iterator[Answer]:
        return session(arguments, slices, folder=self._folder, workers=min(self._workers, len(slices)))

    def close(self) -> None:
        pass
