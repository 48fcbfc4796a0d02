"""Runs torch's own tests of streams, events, memory and graphs on halstream's device, and says what became of each.

Usage: python tools/oracle_torch.py [--torch VERSION] [--source REPOSITORY[@COMMIT]] [--file FILE] [PYTEST ARGUMENTS]

torch's wheel has not got its tests. They are taken from a git repository of torch, which --source names once: the
files of FILES are copied, unchanged, into build/oracle-torch/VERSION for the next runs, where VERSION is that of the
repository's version.txt. Best is the tag of the installed torch; the tests of another version run as well, and their
results are kept apart. Of the copies that are there, that of the installed version is taken, or the newest.

The tests run in the environment of tools/torch_env.py under `halstream run --torch`, two processes at a time. Each
has a time limit, and one that ends its process fails alone. A test that fails otherwise than it is listed runs once
more, by itself.
tools/oracle_torch.toml lists for each pair of versions how many tests of each file pass, are skipped and fail, and
those that fail, with a part of their output and why. Any other failure is an error, and so are a listed test that
passes or is not there, and another number: this is how a new version shows what moved. `--file` runs one file. With
other arguments only those tests run, for example `-k record_stream`, and numbers are not compared.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import tomllib
import torch_env
from oracle import Group, Outcome, judge

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "oracle-torch"
EXPECTED = ROOT / "tools" / "oracle_torch.toml"
#: What the tests import beside what the environment has.
PACKAGES = ("psutil==7.2.2",)
#: Seconds for a test, and for a file.
ALONE, LIMIT = 120, 900


class File(NamedTuple):
    """A file of tests: which of them are asked for, and what else of the repository they import."""

    words: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


#: Tests of tensors of 4 GB and more and of many large operators, minutes each on a CPU, and one that compares times.
TOO_LARGE = " and ".join(
    f"not {part}"
    for part in (
        "overflow", "large", "huge", "fuzz", "multiple_threads", "cache_disabled_allow", "graph_concurrent_replay",
    )
)  # fmt: skip

#: The files, by their names in the folder test of the repository. One that a version has not got is left out.
FILES = {
    "test_cuda.py": File(("-k", TOO_LARGE)),
    "test_cuda_multigpu.py": File(),
    "test_cuda_sanitizer.py": File(),
    "test_cuda_trace.py": File(),
    "test_cuda_primary_ctx.py": File(),
    # Which of its two errors comes first is a race in reentrant_parent_error.
    "test_autograd.py": File(
        ("-k", "(AutogradDeviceType or MultipleDispatch or MultithreadAutograd) and not reentrant_parent_error"),
        ("autograd/test_complex.py", "autograd/test_functional.py", "autograd/test_logging.py"),
    ),
    "test_accelerator.py": File(),
    "dynamo/test_streams.py": File(),
}


class Suite(NamedTuple):
    """Copied tests: their version and their folder."""

    version: str
    folder: Path


def copied(source: str) -> None:
    """Copy the tests of a repository, which may be one without a work tree."""
    repository, _, commit = source.partition("@")

    def text(path: str) -> bytes | None:
        done = subprocess.run(["git", "-C", repository, "show", f"{commit or 'HEAD'}:{path}"], capture_output=True)
        return None if done.returncode else done.stdout

    version = text("version.txt")
    if version is None:
        raise SystemExit(f"oracle-torch: {source} is no git repository of torch: it has no version.txt")
    folder = FOLDER / version.decode().strip()
    for name in {name for file, given in FILES.items() for name in (file, *given.needs)}:
        content = text(f"test/{name}")
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def suite(torch: str) -> Suite:
    """Return the copied tests of a version of torch, or the newest there are."""
    found = {path.name: path for path in FOLDER.glob("[0-9]*.[0-9]*") if (path / "test_cuda.py").exists()}
    if not found:
        raise SystemExit(
            "oracle-torch: no tests are here; name a git repository of torch, for example --source ../pytorch@v2.15.0"
        )
    newest = max(found, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])
    version = torch if torch in found else newest
    return Suite(version, found[version])


def packages(python: Path) -> Path:
    """Return the folder with what the tests import, installed if it is not there."""
    folder = FOLDER / "packages"
    done, wanted = folder / "installed", "\n".join(PACKAGES)
    if not done.exists() or done.read_text() != wanted:
        pip = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--upgrade", "--target", folder]
        if subprocess.run([*pip, *PACKAGES]).returncode:
            raise SystemExit("oracle-torch: pip could not install what the tests import, see above")
        done.write_text(wanted)
    return folder


def plugin() -> Path:
    """Return a folder with the plugin alone: tools/ has modules with names of others."""
    folder = FOLDER / "plugin"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "tools" / "oracle_torch_plugin.py", folder)
    return folder


def run(python: Path, tests: Suite, report: Path, words: list[str]) -> Outcome:
    """Run pytest in the folder of the tests; the last of the words is a file or a test."""
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    # Programs that a test starts are redirected, too.
    command = [python, "-m", "halstream", "run", "--torch", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, "-p", "halstream.pytest_plugin", "-p", "oracle_torch_plugin"]
    command += [f"--rootdir={tests.folder}", f"--junitxml={report}", f"--timeout={ALONE}", "--timeout-method=thread"]
    env = torch_env.settings()
    env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(packages(python)), str(plugin())])
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cuda"}
    with report.with_suffix(".txt").open("wb") as log:
        try:
            done = subprocess.run([*command, *words], cwd=tests.folder, env=env, stdout=log, stderr=log, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return Outcome(0, 0, {words[-1]: f"not done after {LIMIT} s"})
    if done.returncode == 5:  # none of the tests is asked for
        return Outcome(0, 0, {})
    if not report.exists():
        return Outcome(0, 0, {words[-1]: report.with_suffix(".txt").read_text(errors="replace")})
    return counted(report)


def counted(report: Path) -> Outcome:
    """Read a report; tests have the names by which pytest runs them."""
    counts: Counter[str] = Counter()
    failed: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        texts = [f"{part.get('message')}\n{part.text}" for part in case if part.tag in ("failure", "error")]
        if texts:
            module, _, inside = (case.get("classname") or "").rpartition(".")
            name = f"{module.replace('.', '/')}.py::{inside}::{case.get('name')}"
            failed[name] = "\n".join([failed.get(name, ""), *texts])  # it may fail in the end, too
        else:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
    return Outcome(counts["passed"], counts["skipped"], failed)


def report(name: str) -> Path:
    """Return where the report of a file or a test is."""
    return FOLDER / "reports" / (re.sub(r"\W+", "_", name) + ".xml")


def judged(python: Path, tests: Suite, file: str, words: list[str], expected: dict[str, Group]) -> Outcome:
    """Run a file, and each test that fails otherwise than it is listed once more."""
    first = run(python, tests, report(file), ["-n", "2", *FILES[file].words, *words, file])
    failed, passed = dict(first.failed), first.passed
    for test in sorted(first.failed):
        if test in expected and expected[test].text in first.failed[test]:
            continue
        alone = run(python, tests, report(test), [test])
        del failed[test]
        failed |= alone.failed
        passed += alone.passed
    return Outcome(passed, first.skipped, failed)


def listed(versions: str, file: str) -> dict[str, Group]:
    """Return the tests of a file that are listed as failing with a pair of versions."""
    groups = [group for group in tomllib.loads(EXPECTED.read_text())["group"] if versions in group["versions"]]
    tests = {test: Group(group["text"], group["reason"]) for group in groups for test in group["tests"]}
    return {test: group for test, group in tests.items() if test.partition("::")[0] == file}


def numbers(versions: str, file: str) -> list[int]:
    """Return how many tests of a file are listed as passed, skipped and failed with a pair of versions."""
    return tomllib.loads(EXPECTED.read_text())["numbers"].get(versions, {}).get(file, [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", default=torch_env.PINNED, choices=torch_env.SUPPORTED)
    parser.add_argument("--source")
    parser.add_argument("--file", choices=FILES, action="append")
    given, words = parser.parse_known_args()
    if given.source:
        copied(given.source)
    tests = suite(given.torch)
    python = torch_env.environment(given.torch)
    torch_env.built(python)
    versions = f"torch {given.torch}, tests of {tests.version}"
    problems, passed = [], 0
    for file in given.file or FILES:
        if not (tests.folder / file).exists():
            print(f"oracle-torch: {file}: is not among the tests of {tests.version}", flush=True)
            continue
        expected = listed(versions, file)
        found = judged(python, tests, file, words, expected)
        counts = [found.passed, found.skipped, len(found.failed)]
        print(f"oracle-torch: {file}: {counts[0]} passed, {counts[1]} skipped, {counts[2]} failed", flush=True)
        differences = judge(found, expected, FOLDER.relative_to(ROOT).as_posix() + "/reports")
        if words:  # only some of the tests
            differences = [line for line in differences if "take it off" not in line]
        elif counts != numbers(versions, file):
            differences.append(
                f"{file}: {counts} passed, skipped and failed, where {numbers(versions, file)} are listed"
            )
        for reason, count in Counter(expected[name].reason for name in found.failed if name in expected).most_common():
            print(f"oracle-torch: {count}: {reason}")
        problems += differences
        passed += found.passed
    for line in problems:
        print(f"oracle-torch: {versions}: {line}")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
