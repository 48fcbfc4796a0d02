"""Writes docs/errors, a page for each kind of report, from the table that `halstream explain` prints.

Usage: python tools/error_pages.py [--check]

The table is python/halstream/_explain/pages.py. The list of the pages in mkdocs.yml is written, too. With --check
nothing is written, and a file that would change is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from halstream._explain.pages import PAGES  # noqa: E402 - the package of this tree
from halstream._explain.text import page  # noqa: E402

FOLDER = ROOT / "docs" / "errors"
SITE = ROOT / "mkdocs.yml"
INDEX = """# Reports explained

Each report, stall and refusal ends with a line such as `explain: halstream explain unordered-access`. The command
prints one of these pages, and needs no network.

| code | what it is |
|---|---|
"""
#: The entries of the pages in the navigation of the site.
ENTRIES = re.compile(r"(?m)(?:^          - (?:[\w-]+: )?errors/[\w-]+\.md\n)+")


def wanted() -> dict[Path, str]:
    """Return what each file is to have."""
    rows = "".join(f"| [{code}]({code}.md) | {found.title} |\n" for code, found in sorted(PAGES.items()))
    pages = {FOLDER / "index.md": INDEX + rows}
    pages |= {FOLDER / f"{code}.md": page(code) for code in PAGES}
    entries = ["errors/index.md", *(f"{code}: errors/{code}.md" for code in sorted(PAGES))]
    text = "".join(f"          - {entry}\n" for entry in entries)
    return {**pages, SITE: ENTRIES.sub(lambda _: text, SITE.read_text(), count=1)}


def check() -> list[str]:
    """Return what differs from the table, a line each."""
    files = wanted()
    wrong = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    wrong += [path for path in sorted(FOLDER.glob("*")) if path not in files]
    if not ENTRIES.search(SITE.read_text()):
        wrong.append(SITE)
    return [f"{path.relative_to(ROOT)} is not what tools/error_pages.py writes" for path in wrong]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; say which files would change")
    if parser.parse_args().check:
        wrong = check()
        print("\n".join(wrong) or "error pages: current")
        return int(bool(wrong))
    FOLDER.mkdir(exist_ok=True)
    files = wanted()
    for path in FOLDER.glob("*"):
        if path not in files:
            path.unlink()
    for path, text in files.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
