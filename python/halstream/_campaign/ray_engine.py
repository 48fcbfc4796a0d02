"""Ray as the engine of a campaign: an actor for each worker, on this machine or on those of a cluster."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .child import CampaignError, session

__all__ = ["Ray"]

Slice = Mapping[str, Any]
Answer = dict[str, Any]

#: Seconds in which the cluster must have started an actor.
_START = 120.0


class _Worker:
    """Runs parts in one session of pytest; Ray makes an actor of it, with a process of its own."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def ready(self) -> bool:
        return True

    def run(self, arguments: Sequence[str], slices: Sequence[Slice]) -> Iterator[Answer]:
        begun: tuple[str, int] | None = None
        try:
            for answer in session(arguments, slices, folder=self._folder):
                if answer["kind"] == "begun":
                    begun = answer["test"], answer["first"]
                elif answer["kind"] == "done":
                    begun = None
                yield answer
        except CampaignError as exc:
            yield {"kind": "error", "text": str(exc)}
            return
        if begun is not None:  # the test has ended its process
            yield {"kind": "lost", "test": begun[0], "first": begun[1]}


class Ray:
    """Actors of a cluster: of the one that ``RAY_ADDRESS`` names, otherwise of one that is started on this machine.

    Parameters
    ----------
    workers : int
    folder : str
        Where pytest is started, on each machine of the cluster.

    Raises
    ------
    CampaignError
        If there is no such cluster, or it starts no worker within two minutes.
    """

    def __init__(self, workers: int, folder: str) -> None:
        self._folder = folder
        # Few have it, and this module must be importable without it.
        self._ray: Any = importlib.import_module("ray")
        self._own = not self._ray.is_initialized()
        if self._own:
            # Without an address Ray would join a cluster that it finds on this machine.
            elsewhere = "RAY_ADDRESS" in os.environ
            place: dict[str, Any] = {} if elsewhere else {"address": "local", "num_cpus": workers}
            try:
                self._ray.init(log_to_driver=False, logging_level=logging.ERROR, **place)
            except (ConnectionError, ValueError, RuntimeError) as exc:
                raise CampaignError(f"the Ray cluster cannot be reached: {exc}") from None
        try:
            self._actors = [self._actor() for _ in range(workers)]
        except BaseException:
            self.close()
            raise

    def _actor(self) -> Any:
        actor = self._ray.remote(num_cpus=1, max_restarts=0)(_Worker).remote(self._folder)
        try:
            self._ray.get(actor.ready.remote(), timeout=_START)
        except self._ray.exceptions.GetTimeoutError:
            raise CampaignError(
                f"the Ray cluster started no worker within {_START:.0f} s: it has too few free processors; --workers N "
                "asks for fewer"
            ) from None
        except self._ray.exceptions.RayError as exc:
            raise CampaignError(f"the Ray cluster cannot start a worker: {exc}") from None
        return actor

    def run(self, arguments: Sequence[str], slices: Sequence[Slice]) -> Iterator[Answer]:
        """Run parts and yield the answers as they come; the actor of a process that ended is replaced."""
        count = min(len(self._actors), len(slices))
        running: dict[Any, int] = {}
        begun: dict[int, tuple[str, int]] = {}
        for index in range(count):
            method = self._actors[index].run.options(num_returns="streaming")
            running[method.remote(list(arguments), [dict(one) for one in slices[index::count]])] = index
        while running:
            (ready,), _ = self._ray.wait(list(running), num_returns=1, fetch_local=False)
            index = running[ready]
            try:
                answer = self._ray.get(next(ready))
            except StopIteration:
                del running[ready]
                continue
            except self._ray.exceptions.RayActorError:
                del running[ready]
                self._actors[index] = self._actor()
                if index in begun:
                    test, first = begun[index]
                    yield {"kind": "lost", "test": test, "first": first}
                continue
            if answer["kind"] == "error":
                raise CampaignError(answer["text"])
            if answer["kind"] == "begun":
                begun[index] = answer["test"], answer["first"]
            else:
                begun.pop(index, None)
            yield answer

    def close(self) -> None:
        """End the actors, and the cluster if this has started it."""
        for actor in getattr(self, "_actors", ()):
            with contextlib.suppress(Exception):
                self._ray.kill(actor)
        if self._own:
            self._ray.shutdown()
