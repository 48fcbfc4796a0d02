"""Rules for reports that libraries cause by design: they ship with the package.

A rule is for the versions of a library in which somebody has looked at the code and found that what is reported
changes no result. A missing wait of a library is no such case: it is reported.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from typing import NamedTuple

from .suppress import Rule, parse

__all__ = ["KNOWN", "Known", "in_force"]


class Known(NamedTuple):
    """A rule for a library."""

    library: str  #: the name that it is installed under
    first: str  #: the first version that the rule is for
    before: str  #: the first version behind it that the rule is not for
    rule: str
    reason: str  #: why what is reported changes no result


#: No rule for torch: each report that its own modules caused was of a missing wait.
KNOWN: tuple[Known, ...] = (
    Known(
        "fla-core", "0.6.0", "0.6.1", "kernel:fla/ops/gla/chunk.py:chunk_gla_fwd_o_gk",
        "the kernel loads whole tiles of A, of which only the lower triangle was written, and uses no other part",
    ),
)  # fmt: skip


def in_force() -> list[Rule]:
    """Return the rules for the libraries as they are installed; none where ``HALSTREAM_KNOWN_LIBRARIES`` is 0."""
    if os.environ.get("HALSTREAM_KNOWN_LIBRARIES") == "0":
        return []
    rules = []
    for known in KNOWN:
        try:
            version = importlib.metadata.version(known.library)
        except importlib.metadata.PackageNotFoundError:
            continue
        if _numbers(known.first) <= _numbers(version) < _numbers(known.before):
            rule = parse(known.rule, f"the rules for {known.library}")
            assert rule is not None
            rules.append(rule._replace(library=f"{known.library} {version}", reason=known.reason))
    return rules


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with, which order releases."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
