"""Pages of the documentation's site that are made from other files; a hook of mkdocs (see mkdocs.yml).

README.md, which is the first page, and the other pages for readers in the root of the repository are shown
with their links turned round. The pages on the command line and on pytest's options are made from what the
programs themselves say.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import halstream.pytest_plugin as plugin
import typer
from halstream._cli.commands import app
from mkdocs.structure.files import File, Files

__all__ = ["on_files", "on_page_markdown"]

ROOT = Path(__file__).resolve().parents[1]

#: File in the root -> its page.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
#: What a link may lead to that is no page; it is then shown as text.
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def page_of(path: str) -> str:
    """Return the page of a path from the root of the repository; '' if it has none."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, "")


def turned(text: str, below: str) -> str:
    """Return a page with its links leading from `below`, a folder of the site with a slash or ''."""

    def link(found: re.Match[str]) -> str:
        shown, target, anchor = found.groups(default="")
        page = page_of(target)
        if re.match(r"https?:|mailto:", target):
            return found[0]
        return f"[{shown}]({below}{page}{anchor})" if page else shown

    return _LINK.sub(link, text)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are no files of docs/."""
    made = {page: turned((ROOT / name).read_text(), "") for name, page in PAGES.items()}
    made |= {"reference/commands.md": commands(), "reference/pytest.md": options()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let pages of docs/ link to the files of the root, as they do on a Git host."""

    def link(found: re.Match[str]) -> str:
        shown, target, anchor = found.groups(default="")
        up = target.count("../")
        name = target.removeprefix("../" * up)
        if up and up == page.file.src_uri.count("/") + 1:  # it leaves docs/
            return f"[{shown}]({'../' * (up - 1)}{PAGES[name]}{anchor})" if name in PAGES else shown
        return found[0]

    return _LINK.sub(link, markdown)


def commands() -> str:
    """Return the page on the command line."""
    group: Any = typer.main.get_command(app)
    lines = ["# Command line", "", "`pip install 'halstream[cli]'` installs what the command line needs.", ""]
    lines += ["`python -m halstream` is the same as `halstream`.", ""]
    for name, command in group.commands.items():
        context = click.Context(command, info_name=f"halstream {name}")
        usage = " ".join(command.collect_usage_pieces(context))
        usage = usage.replace("{SCRIPT}", "SCRIPT").replace("[[ARGS]...]...", "[ARGS]...")
        lines += [f"## halstream {name}", "", "```text", f"halstream {name} {usage}", "```", ""]
        # A single line break within a paragraph is none in the terminal either.
        lines += [(command.help or "").replace("\b", "").strip(), "", "| option | meaning |", "|---|---|"]
        for parameter in command.params:
            found = parameter.get_help_record(context)
            if found is not None:
                shown = re.sub(r" <[\w\[\]]+>$", "", found[0])  # the type, which the meaning says
                meaning = cell(found[1]).replace("[", "\\[")
                lines.append(f"| `{cell(shown)}` | {meaning} |")
        lines.append("")
    return "\n".join(lines)


class _Options:
    """Takes down what the plug-in adds to pytest's parser."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def getgroup(self, *_: object) -> _Options:
        return self

    def addoption(self, name: str, *, help: str, metavar: str = "", choices: Any = (), **_: object) -> None:
        value = metavar or "|".join(choices)
        self.lines.append(f"| `{cell(name + ('=' + value if value else ''))}` | {cell(help)} |")

    def addini(self, *_: object, **__: object) -> None:
        """Ini keys have the names of the options, with underscores."""


def options() -> str:
    """Return the page on the options of pytest."""
    found: Any = _Options()
    plugin.pytest_addoption(found)
    lines = ["# Options of pytest", ""]
    lines += [
        "The plug-in is installed with the package, and does nothing until an option, an ini key or a marker asks.",
        "",
    ]
    lines += ["| option | meaning |", "|---|---|", *found.lines, ""]
    lines += [
        "Each option is an ini key too, with underscores and without the dashes in front: `stream_sanitize = true`.",
        "",
    ]
    lines += [
        "## The marker",
        "",
        "`@pytest.mark.streams(schedules=50, sanitize=True)` asks for one test; its keywords are those",
        "of the options.",
    ]
    lines += [
        "Exit codes are pytest's own, such as 4 for a damaged token: see [in CI](../ci.md#exit-codes).",
        "",
    ]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
