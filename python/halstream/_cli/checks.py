"""The commands that run no program: `doctor`, `explain` and `lint`."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from .terminal import fail, put

__all__ = ["doctor", "explain", "lint"]

_STYLES = {"ok": "green", "missing": "dim", "differs": "yellow", "broken": "bold red"}

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def doctor(
    as_json: Json = False,
    imports: Annotated[
        bool, typer.Option("--imports/--no-imports", help="Try to import the packages that dialects mirror.")
    ] = True,
) -> None:
    """Say what is installed, what of it works, and what to do where it does not.

    The exit code is 1 if something that is needed does not work, else 0.
    """
    from .doctor import gather

    checks = gather(imports)
    broken = [check for check in checks if check.broken]
    if as_json:
        put(json.dumps({"ok": not broken, "checks": [check._asdict() for check in checks]}, indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
        width = max(len(check.name) for check in checks)
        for check in checks:
            console.print(
                Text.assemble((f"{check.state:8}", _STYLES[check.state]), f"{check.name:{width}}  {check.text}")
            )
        console.print(
            f"\n{len(broken)} of {len(checks)} checks need attention"
            if broken
            else "\nnothing that is needed is missing"
        )
    raise typer.Exit(1 if broken else 0)


def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE]", help="As the last line of a report gives it; without it all are listed."),
    ] = None,
) -> None:
    """Say what a kind of report means, with three usual repairs and a small example.

    The exit code is 2 if there is no such kind, else 0.
    """
    from .._explain.text import UnknownCodeError, overview, page

    try:
        put(overview() if code is None else page(code).rstrip())
    except UnknownCodeError as exc:
        fail(str(exc))


def lint(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH...", help="Python files, or folders of them.", show_default=False),
    ] = None,
    as_json: Json = False,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Report only this rule, or those that begin so; may be repeated."),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and stop.")] = False,
) -> None:
    """Find stream code that the real torch, paddle, mindspore, cupy or pyACL does not take, or takes otherwise.

    Nothing is run or imported. A comment such as # noqa: HS101, or # halstream:
    ignore, silences a line. The exit code is 1 if something was found, 2 if a
    path or a rule does not exist.
    """
    from .._lint.finding import RULES
    from .._lint.run import check_file, files

    if rules:
        for rule, text in RULES.items():
            put(f"{rule}  {text}")
        raise typer.Exit(0)
    wanted = tuple(start.upper() for start in select or ("HS",))
    for start in wanted:
        if not any(rule.startswith(start) for rule in RULES):
            fail(f"no rule begins with {start}; see --rules")
    if not paths:
        fail("lint: name a file or a folder")
    try:
        listed = list(dict.fromkeys(files(paths)))
    except FileNotFoundError as exc:
        fail(str(exc))
    found = [one for path in listed for one in check_file(path) if one.rule.startswith(wanted)]
    if as_json:
        put(json.dumps({"files": len(listed), "findings": [one._asdict() for one in found]}, indent=2))
    else:
        for one in found:
            put(str(one))
        put(f"{len(found)} finding(s) in {len(listed)} file(s)")
    raise typer.Exit(1 if found else 0)
