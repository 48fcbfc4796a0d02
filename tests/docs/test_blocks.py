"""What README.md and docs/ show is run, and what they name exists."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRST = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
#: Pages of the site that tools/site_pages.py makes of what the programs say.
GENERATED = {ROOT / "docs" / "reference" / name for name in ("commands.md", "pytest.md")}
PAGES = [*FIRST, *sorted((ROOT / "docs").rglob("*.md"))]

Child = Callable[..., "subprocess.CompletedProcess[str]"]


class Block(NamedTuple):
    """A fenced block: its language, its text, and where it is."""

    language: str
    text: str
    where: str


def blocks() -> list[Block]:
    """Return the fenced blocks of all pages."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(r"(?ms)^```(\w*)\n(.*?)^```$", text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(match[1], match[2], f"{page.relative_to(ROOT)}:{line}"))
    return found


BLOCKS = blocks()
SHELL = [(b.where, line) for b in BLOCKS if b.language == "bash" for line in b.text.splitlines()]


def of(language: str) -> list[object]:
    """Return the blocks in a language as parameters."""
    # What imports the real torch or Paddle is run by tests/torch and tests/paddle_real, where they are installed, what
    # imports numba by tools/oracle_libcuda.py, and what imports another file of its page by test_tutorial.
    elsewhere = re.compile(r"(?m)^(import (?:torch|paddle)|from numba import cuda|from stage import .*)$")
    return [pytest.param(b, id=b.where) for b in BLOCKS if b.language == language and not elsewhere.search(b.text)]


def prose() -> list[tuple[str, str]]:
    """Return (page, what stands in backquotes) for text outside blocks."""
    found = []
    for page in PAGES:
        text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
        found += [(str(page.relative_to(ROOT)), quoted) for quoted in re.findall(r"`([^`\n]+)`", text)]
    return found


def test_every_block_has_a_language_that_is_checked() -> None:
    languages = {"python", "bash", "go", "text", "c", "yaml", "toml"}  # tests/capi and tests/ascend run those in C
    assert {b.where: b.language for b in BLOCKS if b.language not in languages} == {}
    assert {b.where.partition(":")[0] for b in BLOCKS if b.language == "c"} == {
        "docs/capi.md",
        "docs/ascend.md",
        "docs/tasks.md",
    }
    # test_ci runs their commands.
    assert {b.where.partition(":")[0] for b in BLOCKS if b.language == "yaml"} == {"docs/ci.md"}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="CPython 3.10 has no reader of TOML")
def test_settings_name_options_that_exist() -> None:
    import tomllib

    given = [tomllib.loads(b.text) for b in BLOCKS if b.language == "toml"]
    tests = [table["tool"]["pytest"]["ini_options"] for table in given if "tool" in table]
    plugin = (ROOT / "python" / "halstream" / "pytest_plugin.py").read_text()
    for name in {name for table in tests for name in table}:
        assert f'"{name.removeprefix("stream_")}"' in plugin, name
    assert tests


def test_readme_shows_two_dialects() -> None:
    shown = [b.text for b in BLOCKS if b.where.startswith("README.md") and b.language == "python"]
    assert len({name for text in shown for name in re.findall(r"from halstream\.(\w+) import", text)} - {"testing"}) > 1


def test_readme_has_the_figures_of_the_page_that_is_measured() -> None:
    table = (ROOT / "docs" / "trust.md").read_text()
    (measured,) = re.findall(r"\*\*all reported\*\* \| (\d+) \| \d+ \| (\d+) \|", table)  # on threads, as torch runs
    (repaired,) = re.findall(r"\*\*repaired programs reported\*\* \| (\d+) \| \d+ \| 0 \|", table)
    text = " ".join((ROOT / "README.md").read_text().split())
    sentence = r"Of (\d+) programs after public bug reports .* it \[reports (\d+)\].*? none of the (\d+) repaired"
    shown = re.search(sentence, text)
    assert shown is not None and shown.groups() == (*measured, repaired)


@pytest.mark.needs("host")  # which the pages start with, and whose memory they show
@pytest.mark.parametrize("block", of("python"))
def test_python_block_runs(block: Block, child: Child) -> None:
    done = child(block.text)
    assert done.returncode == 0, f"{block.where}\n{done.stdout}{done.stderr}"


def packages() -> dict[str, str]:
    """Return the Go text of each package, without its tests."""
    folders = {"hal": "hal", "driver": "hal/driver", "host": "hal/host", "haltest": "hal/haltest"}
    return {
        name: "\n".join(p.read_text() for p in sorted((ROOT / folder).glob("*.go")) if not p.name.endswith("_test.go"))
        for name, folder in folders.items()
    }


def test_go_names_exist() -> None:
    text = [(b.where, b.text) for b in BLOCKS if b.language == "go"] + prose()
    source = packages()
    used = {
        (where, package, name)
        for where, words in text
        if where != "docs/port.md"  # whose hal is mindspore's
        for package, name in re.findall(r"\b(hal|driver|host|haltest)\.([A-Z]\w*)", words)
    }
    missing = [
        f"{where}: {package}.{name}"
        for where, package, name in sorted(used)
        if not re.search(rf"(?m)^(func|type|var|const|\t) ?(\([^)]*\) )?{name}\b", source[package])
    ]
    assert used and missing == []


@pytest.mark.parametrize(("where", "line"), SHELL, ids=[where for where, _ in SHELL])
def test_command_exists(where: str, line: str) -> None:
    words = re.sub(r"#.*|^\w+=\S+ ", "", line).split()
    if words[0] == "make":
        targets = re.findall(r"(?m)^([\w-]+)\s*:(?!=)", (ROOT / "Makefile").read_text())
        assert set(words[1:]) <= set(targets), f"{where}: the Makefile has no {line!r}"
    else:
        assert words[0] in {"gcc", "go", "halstream", "pip", "python", "pytest", "./sum"}, f"{where}: {line!r}"


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        outside = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
        for target in re.findall(r"\]\(([^)]+)\)", outside):
            path = (page.parent / target.partition("#")[0]).resolve()
            if not re.match(r"https?:|#", target) and not path.exists() and path not in GENERATED:
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_named_files_exist() -> None:
    """Paths from the root, and the names of the Python package's own files."""
    folders = (
        "hal/",
        "ptx/",
        "ascend/",
        "libascendcl/",
        "libcuda/",
        "bindings/",
        "capi/",
        "pybuild/",
        "buildsupport/",
        "tests/",
    )
    folders += ("docs/", "examples/", "python/", "tools/", "benchmarks/")
    missing = []
    for page, quoted in prose():
        word = quoted.removeprefix("python ").split()[0]
        path = ROOT / word
        if re.fullmatch(r"(_?\w+/)*_\w+\.py", word) and not word.startswith(folders):
            path = ROOT / "python" / "halstream" / word
        elif not word.startswith(folders):
            continue
        if not path.exists():
            missing.append(f"{page}: {word}")
    assert missing == []


def test_named_environment_variables_are_read() -> None:
    folders = ("hal", "bindings", "capi", "pybuild", "libascendcl", "libcuda", "cuda", "ascend")
    sources = (p for folder in folders for p in (ROOT / folder).rglob("*.go"))
    code = [p for p in sources if not p.name.endswith("_test.go")]
    code += (ROOT / "python" / "halstream").rglob("*.py")
    read = {name for path in code for name in re.findall(r'"(HALSTREAM_\w+)"', path.read_text())}
    named = {name for page in PAGES for name in re.findall(r"\bHALSTREAM_\w+", page.read_text())}
    in_c = set(re.findall(r"\bHALSTREAM_\w+", (ROOT / "python" / "halstream" / "include" / "halstream.h").read_text()))
    assert named - in_c <= read
    listed = set(re.findall(r"(?m)^\| `(HALSTREAM_\w+)`", (ROOT / "docs" / "environment.md").read_text()))
    assert read == listed, "docs/environment.md lists them all"
