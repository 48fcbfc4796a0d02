"""Files with what the tools found: SARIF 2.1.0, JSON, annotations of GitHub's workflows, patches, a page."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from .._errors import InvalidValueError
from . import nearby
from .page import page
from .patch import unified
from .results import CALLER, RULES, Place, Result

__all__ = ["FORMATS", "Target", "fingerprint", "target", "write"]

_ROOT = "SRCROOT"
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class Target(NamedTuple):
    """Where results go; without a path to stdout."""

    format: str
    path: str

    def __str__(self) -> str:
        return f"{self.format}:{self.path}" if self.path else self.format


def target(text: str) -> Target:
    """Parse ``sarif:out.sarif``, and make sure that the file can be written.

    Raises
    ------
    InvalidValueError
        For another format, or a file that cannot be written; what is in it stays until the end.
    """
    name, colon, path = text.partition(":")
    if name not in FORMATS or (colon and not path):
        known = ", ".join(f"{one}:FILE" for one in FORMATS)
        raise InvalidValueError(f"there is no report {text!r}; give {known}, or {', '.join(FORMATS)} for stdout")
    if path:
        try:
            with open(path, "ab"):
                pass
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
            raise InvalidValueError(f"the report {text!r} cannot be written: {why}") from None
    if name == "html":
        nearby.want()
    return Target(name, os.path.abspath(path) if path else "")


def write(
    targets: Iterable[Target],
    results: Sequence[Result],
    root: str | os.PathLike[str],
    out: Callable[[str], object],
) -> None:
    """Write results to each target, or to `out`; places are relative to `root` where they are in there.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    for one in targets:
        text = FORMATS[one.format](results, os.path.abspath(root))
        if one.path:
            Path(one.path).write_text(text, encoding="utf-8")
        else:
            out("\n" + text if text else "")  # a workflow command begins a line


def _relative(file: str, root: str) -> str:
    """Return a file's path from the root with slashes, '' if it is elsewhere."""
    path = os.path.abspath(file)
    return path[len(root) + 1 :].replace(os.sep, "/") if path.startswith(root + os.sep) else ""


# -- JSON ---------------------------------------------------------------------


def _json(results: Sequence[Result], root: str) -> str:
    document = {"tool": "halstream", "version": __version__, "root": root, "results": list(results)}
    return json.dumps(document, indent=2) + "\n"


# -- SARIF --------------------------------------------------------------------


def _sarif(results: Sequence[Result], root: str) -> str:
    used = [rule for rule in RULES if any(one["rule"] == rule for one in results)]
    run = {
        "tool": {
            "driver": {
                "name": "halstream",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(name) for name in used],
            }
        },
        "originalUriBaseIds": {_ROOT: {"uri": Path(root).as_uri() + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, used.index(one["rule"]), root) for one in results],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(name: str) -> dict[str, Any]:
    rule = RULES[name]
    return {
        "id": f"halstream/{name}",
        "name": rule.name,
        "shortDescription": {"text": rule.text},
        "defaultConfiguration": {"level": rule.level},
    }


def _result(one: Result, index: int, root: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": f"halstream/{one['rule']}",
        "ruleIndex": index,
        "level": one["level"],
        "message": {"text": one["text"]},
        "locations": [_location(one["place"], root)] if one["place"] else [],
        "relatedLocations": [{"id": i, **_location(place, root)} for i, place in enumerate(one["others"], 1)],
        "occurrenceCount": max(1, one["count"]),
        "partialFingerprints": {"halstreamPlaces/v1": fingerprint(one, root)},
        "properties": {key: one[key] for key in ("code", "test", "token", "suppression") if one[key]},
    }
    return found


def _location(place: Place, root: str) -> dict[str, Any]:
    relative = _relative(place["file"], root)
    artifact: dict[str, Any] = {"uri": _quoted(relative), "uriBaseId": _ROOT}
    if not relative:
        absolute = os.path.abspath(place["file"])
        artifact = {"uri": Path(absolute).as_uri()}
    return {
        "physicalLocation": {"artifactLocation": artifact, "region": {"startLine": max(1, place["line"])}},
        "logicalLocations": [{"fullyQualifiedName": place["function"] or "<module>", "kind": "function"}],
        "message": {"text": place["text"]},
    }


def _quoted(relative: str) -> str:
    """Return a relative path as part of an address."""
    return Path("/", relative).as_uri()[len("file:///") :]


def fingerprint(one: Result, root: str) -> str:
    """Return what stays the same when lines are added elsewhere, and streams are numbered otherwise."""
    parts = [one["rule"]]
    for place in (one["place"], *one["others"]):
        if place and place["text"] != CALLER:
            text = re.sub(r"\d+", "", place["text"])
            parts.append(f"{_relative(place['file'], root) or place['file']}:{place['function']}:{text}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


# -- GitHub -------------------------------------------------------------------


def _github(results: Sequence[Result], root: str) -> str:
    """Return a workflow command for each result; GitHub shows them beside the lines of a change."""
    lines = []
    for one in results:
        command = {"error": "error", "warning": "warning", "note": "notice"}[one["level"]]
        properties = [f"title={_escaped(RULES[one['rule']].name, ',:')}"]
        place = one["place"]
        if place:
            file = _relative(place["file"], root) or place["file"]
            properties = [f"file={_escaped(file, ',:')}", f"line={place['line']}", *properties]
        lines.append(f"::{command} {','.join(properties)}::{_escaped(one['text'])}\n")
    return "".join(lines)


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


#: Writers by the names of their formats.
FORMATS: dict[str, Callable[[Sequence[Result], str], str]] = {
    "sarif": _sarif,
    "json": _json,
    "github": _github,
    "diff": unified,
    "html": page,
}
