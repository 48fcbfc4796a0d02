"""The command `verify`, and what it prints."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Annotated

import typer

from .terminal import fail, put, say
from .verifying import Document, Finding, Wanted
from .verifying import verify as _verify

__all__ = ["EXAMPLES", "SCHEMA", "verify"]

EXAMPLES = """Examples:

halstream verify

halstream verify tests/test_loader.py --json

halstream verify --base origin/main --torch"""

#: The file with the form of the document.
SCHEMA = "verify.schema.json"
#: Exit codes by the verdict.
_CODES = {"pass": 0, "nothing": 0, "fail": 1, "error": 2}


def verify(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATHS]...",
            help="Test files, folders or tests; without them those that changed, and those that import what changed.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
    base: Annotated[
        str, typer.Option(metavar="COMMIT", help="What the change is compared with.", show_default="the trunk")
    ] = "",
    schedules: Annotated[int, typer.Option(metavar="N", help="Run each test under N schedules.")] = 50,
    torch: Annotated[
        bool, typer.Option("--torch", help="Let tests of the real torch use 'cuda' on the host device, without a GPU.")
    ] = False,
    cuda: Annotated[
        bool, typer.Option("--cuda", help="Give tests of CUDA programs (numba, cuda.core) the host device's driver.")
    ] = False,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long all of it may take.")] = 600.0,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the document and stop.")] = False,
) -> None:
    """Run the tests of a change under the sanitizer and under schedules, and try the fixes that are suggested.

    No file is changed. The exit code is 0 if nothing is wrong, also where there is nothing to run, 1 if something was
    found or a test failed, 2 if the tests could not be run.
    """
    if schema:
        put(files(__package__).joinpath(SCHEMA).read_text(encoding="utf-8").rstrip())
        return
    if schedules < 1:
        fail(f"--schedules is {schedules}; give a whole number above 0")
    if not timeout > 0:
        fail(f"--timeout is {timeout:g}; give a number of seconds above 0")
    document = _verify(Wanted(paths or (), base, schedules, torch, cuda, timeout), say)
    if as_json:
        put(json.dumps(document, indent=2))
    elif document["verdict"] == "error" and not document["failures"]:
        say(document["message"])
    else:
        put(_summary(document))
    raise typer.Exit(_CODES[document["verdict"]])


def _summary(document: Document) -> str:
    parts = [f"{document['verdict']}: {document['message']}"]
    parts += [_finding(one) for one in document["findings"]]
    parts += [f"{one['test']} fails:\n{_indented(one['text'])}" for one in document["failures"]]
    for patch in document["patches"]:
        tests = ", ".join(patch["tests"])
        head = f"proven patch: with it, {tests} stays silent and passes under {patch['schedules']} schedules"
        parts.append(f"{head}\n{patch['diff'].rstrip()}")
    parts += [f"no proven patch for {one['test']}: {one['why']}" for one in document["unproven"]]
    return "\n\n".join(parts)


def _finding(one: Finding) -> str:
    lines = [f"{one['level']} in {', '.join(one['tests'])}", _indented(one["text"])]
    lines += [f"  replay: {one['replay']}"] * bool(one["replay"])
    return "\n".join([*lines, f"  explain: {one['explain']}"])


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.strip().splitlines())
