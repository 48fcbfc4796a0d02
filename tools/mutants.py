"""Proves that the tests bite: puts one fault at a time into a copy of the tree.

Usage: python tools/mutants.py [part of a name ...]

Each entry of tools/mutants.toml names a file, a piece of its text that occurs
once, what to put in its place, and the clause of the contract that this
breaks. A test of that clause must then fail. First all these tests must pass
on the unchanged copy, or their failing would prove nothing.

Exit code 1 when a fault survives, when an entry does not fit the text any
more, or when there are fewer than `FEWEST`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # CPython 3.10; pytest brings it
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parent.parent
FEWEST = 75
# A fault may make a test hang. Its own limits end it long before this one.
LIMIT = 240


@dataclass
class Mutant:
    """One entry: the fault, and the clause whose test must notice."""

    name: str
    file: str
    old: str
    new: str
    clause: str
    test: str = ""  # default: the clause's Go case for Go files, its pytest test for others
    after: str = ""  # `old` is looked for behind this text only

    def command(self) -> list[str]:
        """Return the test command; it must run tests of the clause and no others."""
        if self.test:
            return ["bash", "-c", self.test]
        own = {"X": "./hal/host", "V": "./hal/order", "W": "./hal/host"}.get(self.clause[0])
        if own and self.file.endswith(".go"):
            run = f"^Test{self.clause}_"
            return ["go", "test", "-count=1", "-timeout=120s", "-v", "-run", run, own]
        if self.file.startswith("cuda/"):
            run = f"LookAlike/^{self.clause}_"
            return ["go", "test", "-count=1", "-timeout=120s", "-v", "-run", run, "./cuda"]
        if self.file.endswith(".go"):
            return [
                "go",
                "test",
                "-count=1",
                "-timeout=120s",
                "-v",
                "-run",
                f"Conformance/^{self.clause}_",
                "./hal/host",
            ]
        where = ["-k", f"{self.clause}_", "tests/conformance", "tests/trust"]
        return [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *where]

    def apply(self, text: str) -> str:
        """Return the text with the fault in it."""
        head, mark, tail = text.partition(self.after) if self.after else ("", "", text)
        if self.after and not mark:
            raise ValueError(f"{self.file} has no {self.after!r}")
        found = tail.count(self.old)
        if found != 1 and not (found and self.after):
            raise ValueError(f"{self.file} has {self.old!r} {found} times, not once")
        return head + mark + tail.replace(self.old, self.new, 1)


def copy_tree(target: Path) -> None:
    """Copy what git knows or would add, the built extension and the look-alike driver."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    built = [*(ROOT / "python").rglob("_halstream*.so"), *(ROOT / "build" / "fakecuda").glob("*.so")]
    names += [str(p.relative_to(ROOT)) for p in built]
    for name in filter(None, names):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def run(command: list[str], tree: Path) -> tuple[int, str]:
    """Run a test in the copy; a hang is ended and counts as a failure."""
    env = {**os.environ, "PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return 124, output
    return process.returncode, output


def compiles(mutant: Mutant, tree: Path) -> str:
    """Return why the changed file is no program at all, '' if it is one."""
    if mutant.file.endswith((".go", ".c")):
        done = subprocess.run(["go", "build", "./hal/...", "./cuda/..."], cwd=tree, capture_output=True, text=True)
        return done.stderr if done.returncode else ""
    try:
        compile((tree / mutant.file).read_text(), mutant.file, "exec")
    except SyntaxError as exc:
        return str(exc)
    return ""


def try_mutant(mutant: Mutant, tree: Path) -> str:
    """Return 'caught', 'survived' or why the entry is of no use."""
    path = tree / mutant.file
    original = path.read_text()
    try:
        path.write_text(mutant.apply(original))
    except ValueError as exc:
        return f"does not apply: {exc}"
    try:
        if why := compiles(mutant, tree):
            return f"does not compile: {why.strip().splitlines()[-1]}"
        code, output = run(mutant.command(), tree)
    finally:
        path.write_text(original)
    if code == 0:
        return "survived"
    # A failure must be the test's own, not a missing module or a wrong option.
    own = r"--- FAIL|FAILED|panic: |[Ff]atal (Python )?error: |SIGSEGV|Timeout|\bERROR tests"
    if code != 124 and not re.search(own, output):
        return f"test did not run: {output.strip().splitlines()[-1] if output.strip() else code}"
    return "caught"


def main(words: list[str]) -> int:
    entries = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text())["mutant"]
    mutants = [Mutant(**entry) for entry in entries]
    chosen = [m for m in mutants if not words or any(word in m.name for word in words)]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        for command in {tuple(m.command()): m for m in chosen}.items():
            code, output = run(list(command[0]), tree)
            if code != 0 or not re.search(rf"{command[1].clause}_\w+|\d+ passed", output):
                print(f"{output}\nmutants: without any fault this fails, or runs nothing: {' '.join(command[0])}")
                return 1
        for number, mutant in enumerate(chosen, 1):
            begin = time.monotonic()
            outcome = try_mutant(mutant, tree)
            bad += outcome != "caught"
            took = time.monotonic() - begin
            print(f"{number:3} {mutant.clause:4} {mutant.name:58} {outcome} ({took:.1f} s)", flush=True)
    print(f"mutants: {len(chosen) - bad} of {len(chosen)} caught")
    if not words and len(mutants) < FEWEST:
        print(f"mutants: {len(mutants)} entries, at least {FEWEST} are needed")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
