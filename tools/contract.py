"""Compares the contract with the tests that prove it, and writes both down.

Usage: python tools/contract.py [--check]

Reads the numbered clauses of hal/doc*.go, the Go cases of hal/haltest, hal/host,
hal/order, hal/stall, capi and pybuild, and the tests of tests/conformance, tests/capi, tests/ascend, tests/cuda,
tests/trust, tests/torch and tests/paddle_real;
and, for each dialect, the number of rows of its checklist, the rows that tests name
by ``pytest.mark.row``, and the rows left out with a reason. Writes docs/contract.md
and docs/coverage.md. With ``--check`` nothing is written, and a file that would
change is an error.

Fails when a clause lacks a Go case or a pytest test (a section whose heading ends
in "(Python)" or "(Go)" needs only that one), when either carries an id that the
contract does not have, and when a row has neither a test nor a
reason, has both, or has a reason that is not one of `REASONS`.
"""

from __future__ import annotations

import ast
import collections
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIALECTS = ROOT / "tests" / "dialects"

#: What a row may wait for; the first word of its reason.
REASONS = {
    "memory": "device memory and copies",
    "graphs": "capture and graphs",
    "tensors": "tensors and their operations",
    "ipc": "sharing between processes",
    "vendor": "a vendor's device or library",
    "kernels": "compiled kernels",
    "interop": "exchange with other packages",
    "real": "the real package, which runs on halstream",
}


@dataclass
class Clause:
    """One rule of the contract and the tests that carry its id."""

    ident: str
    section: str
    text: str
    go: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)


def read_clauses(text: str) -> tuple[dict[str, Clause], list[str]]:
    """Return the clauses of a package comment in order, and what is wrong with them."""
    clauses: dict[str, Clause] = {}
    wrong = []
    section, open_clause = "", None
    for line in text.splitlines():
        if heading := re.match(r"//\s+?# (.+)", line):
            section, open_clause = heading[1].strip(), None
        elif found := re.match(r"//\s+- ([A-Z]\d+): (.*)", line):
            open_clause = Clause(found[1], section, found[2].strip())
            if open_clause.ident in clauses:
                wrong.append(f"hal/doc*.go have two clauses {open_clause.ident}")
            clauses[open_clause.ident] = open_clause
        elif open_clause and (more := re.match(r"//\s{4,}(\S.*)", line)):
            open_clause.text += " " + more[1].strip()
        else:
            open_clause = None
    return clauses, wrong


#: Packages whose rules no backend has to keep: their own tests carry the ids.
OWN = (
    "hal/host",
    "hal/order",
    "hal/stall",
    "hal/touch",
    "capi",
    "pybuild",
    "libascendcl",
    "libcuda",
    "bindings/program",
)


def go_cases() -> Iterator[tuple[str, str]]:
    """Yield (id, case name) of the conformance suite in Go, and of the tests of `OWN`."""
    for path in sorted((ROOT / "hal" / "haltest").glob("*.go")):
        for name in re.findall(r'"([A-Z]\d+_\w+)"', path.read_text()):
            yield name.split("_")[0], name
    for package in OWN:
        for path in sorted((ROOT / package).glob("*_test.go")):
            for name in re.findall(r"func Test([A-Z]\d+_\w+)", path.read_text()):
                yield name.split("_")[0], name


def tests_of(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield (pytest node id without the file, function) of a file's tests."""

    def walk(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                yield from walk(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
                yield prefix + node.name, node  # type: ignore[misc]

    yield from walk(ast.parse(path.read_text()).body, "")


def python_tests() -> Iterator[tuple[str, str]]:
    """Yield (id, test name) of the conformance suite in Python."""
    folders = (
        ROOT / "tests" / folder
        for folder in ("conformance", "capi", "ascend", "cuda", "libcuda", "trust", "torch", "paddle_real")
    )
    for path in sorted(path for folder in folders for path in folder.rglob("test_*.py")):
        for name, _ in tests_of(path):
            if found := re.search(r"test_([A-Z]\d+)_", name):
                yield found[1], name


def contract() -> tuple[str, list[str]]:
    """Return the text of docs/contract.md and what is wrong."""
    clauses, wrong = read_clauses("\n".join(path.read_text() for path in sorted((ROOT / "hal").glob("doc*.go"))))
    for ident, name in go_cases():
        if ident in clauses:
            clauses[ident].go.append(name)
        else:
            wrong.append(f"Go case {name}: hal/doc*.go have no clause {ident}")
    for ident, name in python_tests():
        if ident in clauses:
            clauses[ident].python.append(name)
        else:
            wrong.append(f"pytest test {name}: hal/doc*.go have no clause {ident}")
    for clause in clauses.values():
        # Rules that only one side can break say so in their heading.
        if not clause.go and not clause.section.endswith("(Python)"):
            wrong.append(f"{clause.ident} has no Go case in hal/haltest ({clause.text})")
        if not clause.python and not clause.section.endswith("(Go)"):
            wrong.append(f"{clause.ident} has no test_{clause.ident}_... in tests/conformance ({clause.text})")
    if not clauses:
        wrong.append("hal/doc.go has no clauses")

    lines = [
        "# The contract",
        "",
        "Generated by `make contract` from `hal/doc.go` and `hal/doc_interfaces.go`; do not edit. Every clause is",
        "proved by a case of the Go conformance suite (`hal/haltest`), which every backend runs, and by a test",
        "through the Python core (`tests/conformance`). The rules of schedules and of the checker have",
        "their Go tests in `hal/host`, `hal/order` and `hal/stall`, and more Python tests in `tests/trust`.",
    ]
    section = None
    for clause in clauses.values():
        if clause.section != section:
            section = clause.section
            lines += ["", f"## {section}", "", "| id | rule | Go | pytest |", "|---|---|---|---|"]
        cells = [", ".join(f"`{name}`" for name in names) for names in (clause.go, clause.python)]
        rule = clause.text.replace("|", "\\|")
        lines.append(f"| {clause.ident} | {rule} | {cells[0]} | {cells[1]} |")
    lines += ["", f"{len(clauses)} clauses.", ""]
    return "\n".join(lines), wrong


def marks(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield each ``pytest.mark.<name>`` below a node (with its call, if called)."""
    called = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Call) and ast.unparse(child.func) == f"pytest.mark.{name}":
            called.add(child.func)
            yield child
        elif isinstance(child, ast.Attribute) and child not in called and ast.unparse(child) == f"pytest.mark.{name}":
            yield child


def never_passes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the test is skipped or expected to fail whatever happens."""
    names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
    calls = [s.value.func for s in function.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    names += [ast.unparse(call) for call in calls]
    return not {"pytest.mark.skip", "pytest.mark.xfail", "pytest.skip", "pytest.xfail"}.isdisjoint(names)


def rows_of(path: Path) -> tuple[dict[int, list[str]], list[str]]:
    """Return the rows that a file's tests name, and what is wrong with its marks."""
    rows: dict[int, list[str]] = collections.defaultdict(list)
    wrong, seen = [], set()
    for name, function in tests_of(path):
        for mark in marks(function, "row"):
            seen.add(mark.lineno)
            numbers = [a.value for a in getattr(mark, "args", []) if isinstance(a, ast.Constant)]
            if not numbers or len(numbers) != len(mark.args) or not all(type(n) is int for n in numbers):  # type: ignore[attr-defined]
                wrong.append(f"{path.name}:{mark.lineno}: row() takes plain numbers")
                continue
            if never_passes(function):
                wrong.append(f"{path.name}: {name} is skipped or expected to fail, but claims row {numbers}")
            for number in numbers:
                if name not in rows[number]:
                    rows[number].append(name)
    tree = ast.parse(path.read_text())
    for mark in marks(tree, "row"):
        if mark.lineno not in seen:
            wrong.append(f"{path.name}:{mark.lineno}: a row is claimed outside a test function")
    return rows, wrong


def dialect_rows(dialect: str, count: int) -> tuple[list[str], list[str], collections.Counter[str]]:
    """Return a dialect's table, what is wrong, and totals ('test' or a reason's word)."""
    tested: dict[int, list[str]] = collections.defaultdict(list)
    wrong = []
    for path in sorted(DIALECTS.glob(f"test_{dialect}_*.py")):
        rows, bad = rows_of(path)
        wrong += bad
        for number, names in rows.items():
            tested[number] += [f"{path.name}::{name}" for name in names]
    left_path = DIALECTS / f"left_{dialect}.json"
    left: dict[str, str] = json.loads(left_path.read_text()) if left_path.exists() else {}
    for key in [*left, *map(str, tested)]:
        if not (key.isdecimal() and 1 <= int(key) <= count):
            wrong.append(f"{dialect} row {key}: the checklist has rows 1 to {count}")
    lines, totals = [], collections.Counter[str]()
    for number in range(1, count + 1):
        names, reason = tested.get(number), left.get(str(number))
        word = reason.split(":")[0].split()[0] if reason and reason.split(":")[0].split() else ""
        if names and reason:
            wrong.append(f"{dialect} row {number} has a test ({names[0]}) and a reason to have none")
        elif not names and not reason:
            wrong.append(f"{dialect} row {number} has neither a test nor a reason in {left_path.name}")
        elif reason and (word not in REASONS or ":" not in reason or not reason.partition(":")[2].strip()):
            wrong.append(f"{dialect} row {number}: a reason is '<word>: <why>' with one of {', '.join(REASONS)}")
        if names:
            totals["test"] += 1
            lines.append(f"| {number} | {'<br>'.join(f'`{name}`' for name in names)} |")
        else:
            totals[word or "nothing"] += 1
            lines.append(f"| {number} | {(reason or 'nothing').replace('|', chr(92) + '|')} |")
    return lines, wrong, totals


def coverage() -> tuple[str, list[str]]:
    """Return the text of docs/coverage.md and what is wrong."""
    counts: dict[str, int] = json.loads((DIALECTS / "checklists.json").read_text())
    tables, wrong, total = [], [], collections.Counter[str]()
    summary = []
    for dialect, count in counts.items():
        lines, bad, totals = dialect_rows(dialect, count)
        wrong += bad
        total += totals
        waits = ", ".join(f"{totals[word]} {word}" for word in REASONS if totals[word])
        summary.append(f"| {dialect} | {count} | {totals['test']} | {count - totals['test']} | {waits} |")
        tables += ["", f"## {dialect}", "", "| row | test, or what it waits for |", "|---|---|", *lines]
    every = sum(counts.values())
    waits = ", ".join(f"{total[word]} {word}" for word in REASONS if total[word])
    summary.append(f"| **all** | {every} | {total['test']} | {every - total['test']} | {waits} |")
    head = [
        "# Coverage of the checklists",
        "",
        "Generated by `make contract` from the marks of the tests; do not edit. Each dialect has a",
        "numbered list of behaviours that programs rely on. A row has a test that names it, or it",
        "waits for what another part brings: "
        + "; ".join(f"*{word}* ({meaning})" for word, meaning in REASONS.items())
        + ".",
        "",
        "| dialect | rows | with a test | left | waiting for |",
        "|---|---|---|---|---|",
        *summary,
    ]
    return "\n".join([*head, *tables, ""]), wrong


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        raise SystemExit("usage: contract.py [--check]")
    problems = []
    for name, (text, wrong) in {"contract.md": contract(), "coverage.md": coverage()}.items():
        problems += wrong
        path = ROOT / "docs" / name
        if arguments:
            if not path.exists() or path.read_text() != text:
                problems.append(f"docs/{name} is out of date: run make contract")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    for problem in problems:
        print(f"contract: {problem}", file=sys.stderr)
    print(f"contract: {'failed, ' + str(len(problems)) + ' problems' if problems else 'kept'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
