"""The steps of tools/gpu.py: each runs one thing with a time limit and says how it ended.

Standard library only: it runs where nothing can be installed.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PACK = ROOT / "build" / "gpu"
SUITES = ("conformance", "dialects", "interop", "process", "property", "protocols")
PASSED, FAILED, ABSENT = "passed", "failed", "absent"
SANITIZERS = ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer")
SANITIZER_FOUND = 9  # what compute-sanitizer is told to end with when it found something

Outcome = dict[str, Any]


def ended(good: bool, detail: str, **more: Any) -> Outcome:
    """Return the outcome of a step that ran."""
    return {"outcome": PASSED if good else FAILED, "detail": detail, **more}


def absent(detail: str) -> Outcome:
    """Return the outcome of a step that cannot run here."""
    return {"outcome": ABSENT, "detail": detail}


class Bench:
    """Where the steps run: the package installed into a folder, and the library under test."""

    def __init__(self, folder: Path, library: str, fake: bool, pack: Path = PACK) -> None:
        self.folder, self.library, self.fake, self.pack = folder, library, fake, pack
        self.site = folder / "site"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("HALSTREAM_")}
        environ |= {
            "HALSTREAM_BACKEND": "cuda",
            "HAL_REQUIRE": "cuda",
            "HALSTREAM_CACHE_DIR": str(folder / "cache"),
        }
        environ |= {"PYTHONPATH": os.pathsep.join((str(self.site), str(ROOT)))}
        if library:
            environ["HALSTREAM_CUDA_LIBRARY"] = library
        self.environ = environ

    def run(self, name: str, words: list[Any], limit: float, cwd: Path = ROOT) -> tuple[int | None, str]:
        """Run a command; return its exit code, None after the limit, and what it wrote.

        A command that takes too long is ended with all its children. What it
        wrote is kept below `folder`.
        """
        log = self.folder / f"{name}.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                [str(word) for word in words],
                cwd=cwd,
                env=self.environ,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = None
        return code, log.read_text(errors="replace")


def verdict(code: int | None, limit: float) -> str:
    """Say how a process ended."""
    return f"it took longer than {limit:g} s" if code is None else f"exit code {code}"


def last(text: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


def install(bench: Bench) -> Outcome:
    """Install the packed wheel into a folder, and import it from there."""
    wheels = sorted(bench.pack.glob("halstream-*.whl"))
    if len(wheels) != 1:
        return ended(
            False, f"{bench.pack} holds {len(wheels)} wheels; make gpu-pack, where Go is, puts one there"
        )
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        bench.site,
    ]
    code, text = bench.run("install", [*pip, wheels[0]], 120)
    how = "by pip"
    if code != 0:
        how = f"unpacked, as pip failed: {last(text)}"
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(bench.site)
    ask = "import halstream as hs; print(hs.__file__); print(hs.backend(), hs.device_count())"
    code, text = bench.run("import", [sys.executable, "-c", ask], 60)
    if code != 0:
        return ended(False, f"{wheels[0].name} ({how}): {last(text)}")
    lines = text.splitlines()
    good = lines[0].startswith(str(bench.site)) and lines[1].startswith("cuda ")
    return ended(good, f"{wheels[0].name} {how}; backend and devices: {lines[1]}")


def _go_counts(text: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for line in text.splitlines():
        words = line.split()
        if len(words) > 2 and words[0] == "---" and words[1] in ("PASS:", "FAIL:", "SKIP:"):
            found[words[1].rstrip(":").lower()] += 1
    return dict(found)


def _conformance(bench: Bench, name: str, before: list[str], limit: float) -> Outcome:
    binary = bench.pack / "cuda.test"
    if not binary.exists():
        return ended(False, f"{binary} is missing; make gpu-pack makes it where Go is")
    words = [*before, binary, "-test.v", "-test.run", "^TestConformance$", f"-test.timeout={limit:.0f}s"]
    code, text = bench.run(name, words, limit + 10, ROOT / "cuda")
    counts = _go_counts(text)
    errors = [line.strip() for line in text.splitlines() if "ERROR SUMMARY" in line]
    failed = [line.split()[2] for line in text.splitlines() if line.strip().startswith("--- FAIL:")]
    detail = "; ".join(f"{count} {what}" for what, count in sorted(counts.items())) or last(text)
    if code != 0:
        detail += f"; {verdict(code, limit + 10)}"
    # Without a test that ran the binary ends well, too.
    good = code == 0 and counts.get("pass", 0) > 0
    return ended(good, "; ".join([detail, *errors]), counts=counts, failed=failed)


def conformance(bench: Bench) -> Outcome:
    """The conformance suite of the Go core."""
    return _conformance(bench, "conformance", [], 300)


def sanitizer(bench: Bench) -> Outcome:
    """The same under the vendor's memory checker."""
    if bench.fake:
        return absent("the look-alike has no GPU that compute-sanitizer could watch")
    tool = next(filter(None, map(shutil.which, SANITIZERS)), None)
    if tool is None:
        return absent("compute-sanitizer is not installed")
    before = [tool, "--tool", "memcheck", "--error-exitcode", str(SANITIZER_FOUND)]
    return _conformance(bench, "sanitizer", before, 400)


def lacking(folder: Path) -> dict[str, str]:
    """Return the test files that import at their top what is not installed, and that package."""
    found = {}
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in (name.partition(".")[0] for name in names):
                ours = name in ("halstream", "corpus") or (path.parent / f"{name}.py").exists()
                if not ours and importlib.util.find_spec(name) is None:
                    found[os.path.relpath(path, ROOT)] = name
    return found


def _junit(path: Path) -> tuple[dict[str, int], list[str], dict[str, int]]:
    counts, failed, skipped = Counter[str](), [], Counter[str]()
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag: child for child in case}
        name = f"{case.get('classname')}::{case.get('name')}"
        if "failure" in kinds or "error" in kinds:
            counts["failed"] += 1
            failed.append(name)
        elif "skipped" in kinds:
            counts["skipped"] += 1
            skipped[kinds["skipped"].get("message") or ""] += 1
        else:
            counts["passed"] += 1
    return dict(counts), failed, dict(skipped)


def pytest(bench: Bench) -> Outcome:
    """The suites in Python."""
    for name in ("pytest", "numpy"):
        if importlib.util.find_spec(name) is None:
            return absent(f"{name} is not installed for {sys.executable}")
    folders = [folder for folder in (ROOT / "tests" / name for name in SUITES) if folder.is_dir()]
    without = {path: name for folder in folders for path, name in lacking(folder).items()}
    junit = bench.folder / "junit.xml"
    words = [
        sys.executable,
        "-m",
        "pytest",
        f"--backend={'cuda-fake' if bench.fake else 'cuda'}",
        "-q",
        "--tb=short",
    ]
    words += ["-p", "no:cacheprovider", f"--junitxml={junit}", *(f"--ignore={path}" for path in without)]
    if importlib.util.find_spec("pytest_timeout") is None:
        words += ["-c", str(_settings(bench)), f"--rootdir={ROOT}"]
    limit = 540.0
    code, text = bench.run("pytest", [*words, *folders], limit)
    if not junit.exists():
        return ended(False, f"{verdict(code, limit)}: {last(text)}")
    counts, failed, skipped = _junit(junit)
    detail = "; ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    if code:
        detail += f"; {verdict(code, limit)}"
    if without:
        detail += f"; {len(without)} files left out for want of {', '.join(sorted(set(without.values())))}"
    more = {"counts": counts, "failed": failed, "skipped": skipped, "left out": without}
    return ended(code == 0 and counts.get("passed", 0) > 0, detail, **more)


def _settings(bench: Bench) -> Path:
    """Write the project's settings without the option of pytest-timeout, which is an error without it."""
    text = (ROOT / "pyproject.toml").read_text().partition("markers = [")[2].partition("\n]")[0]
    markers = [line.strip().rstrip(",").strip('"') for line in text.splitlines() if line.strip()]
    path = bench.folder / "pytest.ini"
    lines = ["[pytest]", "addopts = --strict-markers -ra -p pytester -p no:asyncio -p no:randomly"]
    lines += ["xfail_strict = true", "filterwarnings = error", "faulthandler_timeout = 60"]
    path.write_text("\n    ".join(["\n".join([*lines, "markers ="]), *markers]) + "\n")
    return path


def examples(bench: Bench) -> Outcome:
    """Every example, as a user runs it."""
    results = {}
    for path in sorted((ROOT / "examples").glob("[!_]*.py")):
        code, text = bench.run(f"example-{path.stem}", [sys.executable, path], 120)
        results[path.stem] = "ok" if code == 0 else f"{verdict(code, 120)}: {last(text)}"
    bad = [f"{name}: {text}" for name, text in results.items() if text != "ok"]
    good = len(results) - len(bad)
    return ended(
        not bad and bool(results), "; ".join([f"{good} of {len(results)} ended well", *bad]), data=results
    )


def _module(bench: Bench, name: str, words: list[str], limit: float) -> Outcome:
    output = bench.folder / f"{name}.json"
    module = [sys.executable, "-m", *words, "--output", str(output)]
    if bench.library:
        module += ["--library", bench.library]
    code, text = bench.run(name, module, limit)
    data = json.loads(output.read_text()) if output.exists() else None
    return ended(code == 0, "done" if code == 0 else f"{verdict(code, limit)}: {last(text)}", data=data)


def measures(bench: Bench) -> Outcome:
    """Calls beside the peers' in one process."""
    return _module(bench, "measures", ["benchmarks.gpu.run"], 300)


def calls(bench: Bench) -> Outcome:
    """What Python adds to a raw call; on the look-alike also how many calls there are."""
    if not (bench.pack / "rawcall").exists():
        return ended(False, f"{bench.pack / 'rawcall'} is missing; make gpu-pack makes it where Go is")
    words = ["benchmarks.calls", "--time", *(["--count"] if bench.fake else ["--library", "libcuda.so.1"])]
    outcome = _module(bench, "calls", words, 120)
    if outcome["data"]:  # slower than asked is a figure, not a failure: the machine may be busy
        slow = [
            f"{d} {o}"
            for d, rows in outcome["data"]["times"].items()
            for o, r in rows.items()
            if not r["enough"]
        ]
        outcome |= ended(True, f"more than asked: {', '.join(slow)}" if slow else "all within what is asked")
    return outcome


def probes(bench: Bench) -> Outcome:
    """What the driver's documentation leaves open."""
    return _module(bench, "probes", ["benchmarks.gpu.probes"], 300)


STEPS: dict[str, Callable[[Bench], Outcome]] = {
    "install": install,
    "conformance": conformance,
    "sanitizer": sanitizer,
    "pytest": pytest,
    "examples": examples,
    "measures": measures,
    "calls": calls,
    "probes": probes,
}


def take(name: str, step: Callable[[Bench], Outcome], bench: Bench) -> Outcome:
    """Run one step; whatever it raises is its outcome."""
    begin = time.monotonic()
    try:
        outcome = step(bench)
    except Exception as exc:
        outcome = ended(False, f"the step itself: {type(exc).__name__}: {exc}")
    outcome["seconds"] = round(time.monotonic() - begin, 1)
    print(f"{outcome['outcome']:7} {name} ({outcome['seconds']} s): {outcome['detail']}", flush=True)
    return outcome
