"""Shows that the tests detect faults: puts one fault at a time into a copy of the tree.

Usage: python tools/mutants.py [--torch | --paddle] [--check [--fix] | --build] [--jobs N] [NAME ...]

Each entry of tools/mutants.toml names a file, a piece of its text that occurs
once, what to put in its place, and the clause of the contract that this
breaks. A test of that clause must then fail; of package ptx, which knows no
clauses, any test. First all these tests must pass
on the unchanged copy, or their failing would prove nothing.

``--check`` only verifies that every entry applies exactly once, which takes
less than a second; with ``--fix`` an entry whose text has moved to one other
file follows it. ``--build`` verifies that every entry compiles, which takes minutes;
a run without options does so, too: a fault that does not compile is never counted
as detected.

``--torch`` takes the list tools/mutants_torch.toml instead: faults in the module for the real
torch, whose tests run in the environment that `make test-torch` installs.
``--paddle`` takes tools/mutants_paddle.toml, for the plug-in for the real Paddle.

Exit code 1 when a fault is not detected, when an entry does not apply to the
text, or when there are fewer than `LISTS` says.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
import paddle_env  # noqa: E402
import torch_env  # noqa: E402
from mutant_list import ALL, HANDLES, Mutant, entries, problems  # noqa: E402
from source_files import source_files  # noqa: E402

from build_backend import find_c_compiler  # noqa: E402
from buildsupport.handles import compile_handles  # noqa: E402

#: By name: the list, and how many entries it has at least.
LISTS = {"": ("mutants.toml", 200), "torch": ("mutants_torch.toml", 20), "paddle": ("mutants_paddle.toml", 15)}
# A fault may make a test hang. The limits of the tests end it long before this one.
LIMIT = 240
PYTEST = ["-m", "pytest", "-x", "-q", "-rf", "-p", "no:cacheprovider"]
# A failure must be the test's own, not a missing module or a wrong option.
OWN_FAILURE = re.compile(r"--- FAIL|FAILED|panic: |[Ff]atal (Python )?error: |SIGSEGV|Timeout|\bERROR tests")


def torch_python() -> str:
    """Return the interpreter of the environment with the real torch."""
    return str(torch_env.folder(torch_env.PINNED) / "bin" / "python")


def paddle_python() -> str:
    """Return the interpreter of the environment with the real Paddle."""
    return str(paddle_env.interpreter(paddle_env.SUPPORTED[-1]))


def command(group: tuple[str, ...], clauses: list[str]) -> list[str]:
    """Return the command that runs the tests of some clauses in one place."""
    pythons = {"pytest": lambda: sys.executable, "torch": torch_python, "paddle": paddle_python}
    if group[0] in pythons:
        python = pythons[group[0]]()
        return [python, *PYTEST, "-k", " or ".join(f"{clause}_" for clause in clauses), *group[1:]]
    _, package, prefix = group
    if prefix == ALL:
        return ["go", "test", "-failfast", "-timeout=120s", "-v", package]
    names = f"({'|'.join(clauses)})_"
    run = f"^Test{names}" if prefix == "^" else f"{prefix}{names}"
    # Some faults show only in some orders of threads.
    return ["go", "test", "-count=3", "-failfast", "-timeout=120s", "-v", "-run", run, package]


def copy_tree(target: Path) -> None:
    """Copy what git knows or would add, what the build puts into the package, and the look-alike libraries."""
    built = [
        *(ROOT / "python").rglob("_ha*.abi3.so"),
        *(ROOT / "python" / "halstream" / "_driver").rglob("*.so*"),
        *(
            ROOT / "python" / "halstream" / name
            for name in ("_native/_constants.py", "_record_types.py", "acl/_ascendcl.py")
        ),
        *(ROOT / "build").glob("fake*/*.so"),
    ]
    for source in [*source_files(ROOT), *built]:
        copy = target / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)


def run(words: list[str], tree: Path, limit: float = LIMIT) -> tuple[int, str]:
    """Run a test in the copy; a hang is ended and counts as a failure."""
    own = {torch_python(): torch_env.settings, paddle_python(): paddle_env.settings}
    settings = own[words[0]](tree) if words[0] in own else os.environ
    env = {**settings, "PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        words,
        cwd=tree,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return 124, output
    return process.returncode, output


def unfit(mutants: list[Mutant], tree: Path) -> str:
    """Return the output of tests that do not pass, or do not exist, without any fault; '' if all do."""
    clauses: dict[tuple[str, ...], set[str]] = {}
    for mutant in mutants:
        for group in mutant.groups():
            clauses.setdefault(group, set()).add(mutant.clause)
    together: dict[tuple[str, ...], tuple[set[str], set[str]]] = {}
    for group, names in clauses.items():  # all files of Python in one run
        files, named = together.setdefault(group if group[0] == "go" else group[:1], (set(), set()))
        files.update(group[1:])
        named.update(names)
    for group, (files, named) in together.items():
        everything = group if group[0] == "go" else (*group, *sorted(files))
        words = command(everything, sorted(named))
        words = [word if word != "-q" else "-v" for word in words if word != "-x"]
        code, output = run(words, tree, limit=900)
        missing = [name for name in sorted(named) if group[-1] != ALL and not re.search(rf"{name}_\w+", output)]
        if code or missing:
            return f"{output}\nwithout any fault this fails, or runs no test of {missing}: {' '.join(words)}"
    return ""


@contextlib.contextmanager
def fault(mutant: Mutant, tree: Path) -> Iterator[str]:
    """Put a fault into the copy; give why the file does not compile with it, '' if it does."""
    path = tree / mutant.file
    original = path.read_text()
    try:
        path.write_text(mutant.apply(original))
        yield build_error(mutant, tree)
    finally:
        path.write_text(original)
        if mutant.module:
            shutil.copy2(ROOT / mutant.module, tree / mutant.module)


def build_error(mutant: Mutant, tree: Path) -> str:
    """Return why the file of a fault, or the Go package that it belongs to, does not compile; '' if it does."""
    try:
        if mutant.file.endswith(".py"):
            compile((tree / mutant.file).read_text(), mutant.file, "exec")
            return ""
        if mutant.module == HANDLES:
            compile_handles(tree, find_c_compiler(), tree / HANDLES)
            return ""
    except (SyntaxError, SystemExit) as exc:
        return str(exc)
    words = ["go", "build", "-o", os.devnull, f"./{Path(mutant.file).parent}"]
    if mutant.file.startswith("libcuda/front/"):
        words = ["make", "-s", "cuda-library"]
    if mutant.of_torch:
        words = [torch_python(), "-m", "halstream", "build-torch"]
    if mutant.of_paddle:
        words = [paddle_python(), "-W", "ignore", "-m", "halstream.paddle.plugin", "--build"]
    if mutant.module:
        words = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    code, output = run(words, tree)
    if code == 0:
        return ""
    lines = output.strip().splitlines()
    return next((line for line in lines if re.search(r"\.(go|c|h|cpp):\d+:", line)), lines[-1] if lines else str(code))


def try_build(mutant: Mutant, tree: Path) -> tuple[bool, str]:
    """Return whether the copy compiles with the fault in it, and why not."""
    try:
        with fault(mutant, tree) as error:
            return not error, f"does not compile: {error}" if error else "compiles"
    except ValueError as exc:
        return False, f"does not apply: {exc}"


def try_mutant(mutant: Mutant, tree: Path) -> tuple[bool, str]:
    """Return whether the fault was detected, and by which test or why not."""
    try:
        with fault(mutant, tree) as error:
            if error:  # without running a test: one that builds something itself would fail, too
                return False, f"does not compile: {error}"
            for group in mutant.groups():
                code, output = run(command(group, [mutant.clause]), tree)
                if code:
                    break
    except ValueError as exc:
        return False, f"does not apply: {exc}"
    if code == 0:
        return False, "not detected"
    if "[build failed]" in output or "[setup failed]" in output:
        error_lines = [line for line in output.splitlines() if re.search(r"\.(go|c|h):\d+:", line)]
        return False, f"does not compile: {error_lines[0] if error_lines else output.strip()}"
    ended = code == 124 or code < 0  # by the time limit, or by a signal: the tests pass without the fault
    if not ended and not OWN_FAILURE.search(output):
        return False, f"test did not run: {output.strip().splitlines()[-1] if output.strip() else code}"
    return True, detector(mutant, output)


def detector(mutant: Mutant, output: str) -> str:
    """Return the name of the test that failed first."""
    if failed := re.findall(r"--- FAIL: (\S+)", output):
        return str(max(failed, key=lambda name: name.count("/"))).removeprefix("TestConformance/")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE) or re.findall(
        r"=== RUN +(\S*" + mutant.clause + r"_\S+)", output
    )
    return str(failed[-1]).rpartition("::")[2] if failed else "the end of its process, or the time limit"


def try_all(
    mutants: list[Mutant], trees: list[Path], attempt_one: Callable[[Mutant, Path], tuple[bool, str]] = try_mutant
) -> list[tuple[Mutant, bool, str, float]]:
    """Try every fault, one in each copy of the tree at a time."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)
    printing = threading.Lock()

    def attempt(mutant: Mutant) -> tuple[Mutant, bool, str, float]:
        tree = free.get()
        begin = time.monotonic()
        try:
            good, words = attempt_one(mutant, tree)
        finally:
            free.put(tree)
        took = time.monotonic() - begin
        with printing:
            detected = f"detected by {words}" if attempt_one is try_mutant else words
            outcome = detected if good else words.upper()
            print(f"{mutant.clause:4} {mutant.name:60} {outcome} ({took:.1f} s)", flush=True)
        return mutant, good, words, took

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(attempt, mutants))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", action="store_const", const="torch", default="", help="take the list for torch")
    parser.add_argument("--paddle", action="store_const", const="paddle", dest="torch", help="take that for Paddle")
    parser.add_argument("--check", action="store_true", help="only verify that every entry applies")
    parser.add_argument("--fix", action="store_true", help="with --check: let entries follow text that moved")
    parser.add_argument("--build", action="store_true", help="only verify that every entry compiles")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("words", nargs="*", help="parts of the names of entries")
    options = parser.parse_args()
    name, fewest = LISTS[options.torch]
    mutants = entries(ROOT / "tools" / name)
    wrong = problems(mutants, ROOT / "tools" / name, options.fix)
    if len(mutants) < fewest:
        wrong.append(f"{len(mutants)} entries, at least {fewest} are needed")
    for problem in wrong:
        print(f"mutants: {problem}")
    if options.check:
        return 1 if wrong else 0
    chosen = [m for m in mutants if not options.words or any(word in m.name for word in options.words)]
    if options.torch == "torch":
        torch_env.environment(torch_env.PINNED)
    elif options.torch:
        paddle_env.environment(paddle_env.SUPPORTED[-1])
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [Path(folder, str(number)) for number in range(max(1, min(options.jobs, len(chosen))))]
        for tree in trees:
            copy_tree(tree)
        if options.build:
            built = try_all(chosen, trees, try_build)
            failed = sum(not compiles for _, compiles, _, _ in built)
            print(f"mutants: {len(built) - failed} of {len(built)} compile, {time.monotonic() - begin:.0f} s")
            return 1 if wrong or failed else 0
        if why := unfit(chosen, trees[0]):
            print(f"mutants: {why}")
            return 1
        print(f"without faults all pass ({time.monotonic() - begin:.0f} s)", flush=True)
        results = try_all(chosen, trees)
    detected = sum(caught for _, caught, _, _ in results)
    print(f"mutants: {detected} of {len(results)} detected in {time.monotonic() - begin:.0f} s")
    return 1 if wrong or detected < len(results) else 0


if __name__ == "__main__":
    sys.exit(main())
