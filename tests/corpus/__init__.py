"""Small programs rebuilt from failures that people reported, each with a fixed twin.

Each module has `broken` and `fixed`, which differ in the line that was missing
and check their own result. `broken` passes where operations run in the order of
the calls; that it does on real threads is luck, and each module says whose.
`stuck` has programs that never end, `slow` their twins that do.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple

__all__ = ["PROGRAMS", "Program"]


class Program(NamedTuple):
    """A program of this package.

    Attributes
    ----------
    name : str
        Of the module.
    dialect : str
        Whose words it is written in; ``core`` is halstream's own.
    kind : str
        What is wrong with it.
    schedule : bool
        True if `broken` passes on real threads and under ``fifo``, and fails
        under some other schedule.
    sanitize : bool
        True if the sanitizer must report `broken`.
    """

    name: str
    dialect: str
    kind: str
    schedule: bool = True
    sanitize: bool = True

    def load(self) -> ModuleType:
        """Return the module."""
        return importlib.import_module(f"{__name__}.{self.name}")

    def broken(self) -> None:
        """Run the program as it was."""
        self.load().broken()

    def fixed(self) -> None:
        """Run its twin."""
        self.load().fixed()


PROGRAMS: tuple[Program, ...] = (
    Program("war_overlap", "torch", "write after read"),
    Program("argument_buffer", "core", "write after read"),
    Program("pinned_refill", "acl", "pinned buffer refilled"),
    Program("staging_scope", "cupy", "pinned buffer refilled"),
    Program("recycled_block", "torch", "block recycled"),
    Program("pool_recycled", "cupy", "block recycled"),
    Program("legacy_copy", "cupy", "blocking copy"),
    Program("lone_copy", "acl", "blocking copy"),
    Program("stream_not_passed", "cupy", "stream not passed on"),
    Program("zeroed_late", "cupy", "stream not passed on"),
    Program("offload_stream", "mindspore", "stream not passed on"),
    Program("rare_edge", "cupy", "missing edge"),
    Program("stale_store", "torch", "missing edge"),
    Program("transfer_consumer", "torch", "missing edge"),
    Program("event_pool", "cupy", "event pooled across devices"),
    Program("foreign_stream", "paddle", "foreign stream"),
    Program("bucket_streams", "torch", "foreign stream"),
    Program("stale_current", "torch", "foreign stream"),
    Program("hook_stream", "torch", "foreign stream"),
    Program("overlapping_views", "torch", "overlapping views"),
    Program("host_early_read", "torch", "host reads early"),
    Program("host_function", "cupy", "host function"),
    Program("short_ring", "mindspore", "one slot short"),
    Program("rerecorded_event", "paddle", "event recorded again"),
    Program("event_chain", "cupy", "event recorded again"),
    Program("sticky_event", "acl", "event recorded again"),
    Program("wrong_stream_free", "cupy", "free on the wrong stream"),
    Program("cross_device", "torch", "cross-device copy"),
    Program("wait_before_record", "torch", "wait before the record"),
    Program("snapshot_too_early", "torch", "wait before the record"),
)
