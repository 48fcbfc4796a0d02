"""The engines that run the parts of a campaign: pytest-xdist, on this machine, and Ray."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from .child import CampaignError, session

__all__ = ["ENGINES", "Engine", "engine"]

ENGINES = ("xdist", "ray")

Slice = Mapping[str, Any]
Answer = dict[str, Any]


class Engine(Protocol):
    """Runs parts; those that are not answered have not been run, those answered ``lost`` had begun."""

    def run(self, arguments: Sequence[str], slices: Sequence[Slice]) -> Iterator[Answer]:
        """Run parts and yield the answers as they come."""

    def close(self) -> None:
        """End what it started."""


def engine(name: str, workers: int, folder: str) -> Engine:
    """Return an engine by its name.

    Raises
    ------
    CampaignError
        If there is no such engine, or what it needs is not installed or cannot be started.
    """
    if name not in ENGINES:
        raise CampaignError(f"--engine is {name!r}; give {' or '.join(ENGINES)}")
    package = {"xdist": "pytest-xdist", "ray": "ray"}[name]
    if importlib.util.find_spec(name) is None:
        raise CampaignError(f"the engine {name} needs the package {package}: pip install {package}")
    if name == "xdist":
        return _Xdist(workers, folder)
    from .ray_engine import Ray

    return Ray(workers, folder)


class _Xdist:
    def __init__(self, workers: int, folder: str) -> None:
        self._workers, self._folder = workers, folder

    def run(self, arguments: Sequence[str], slices: Sequence[Slice]) -> Iterator[Answer]:
        return session(arguments, slices, folder=self._folder, workers=min(self._workers, len(slices)))

    def close(self) -> None:
        pass
