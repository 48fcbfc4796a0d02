"""The steps of tools/gpu.py: each runs one thing with a time limit and says how it ended.

Standard library only: it runs where nothing can be installed.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import _gpu_reports as reports

ROOT = Path(__file__).resolve().parent.parent
PACK = ROOT / "build" / "gpu"
SUITES = ("conformance", "dialects", "interop", "interop_real", "process", "property", "protocols")
PASSED, FAILED, ABSENT = "passed", "failed", "absent"
HANG_S = 20.0  # for each test in Python, where pytest-timeout is installed
SUITE_S = 600.0  # for each suite in Python, unless the call says otherwise
TEST_S = 30.0  # for each test of the look-alike on another driver
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

    def __init__(
        self, folder: Path, library: str, fake: bool, pack: Path = PACK, jobs: int = 1, suite_s: float = SUITE_S
    ) -> None:
        self.folder, self.library, self.fake, self.pack = folder, library, fake, pack
        self.jobs, self.suite_s = jobs, suite_s
        self.site = folder / "site"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("HALSTREAM_")}
        environ |= {
            "HALSTREAM_BACKEND": "cuda",
            "HAL_REQUIRE": "cuda",
            "HALSTREAM_INTEROP": "1",
            "HALSTREAM_CACHE_DIR": str(folder / "cache"),
        }
        environ |= {"PYTHONPATH": os.pathsep.join((str(self.site), str(ROOT)))}
        if library:
            environ["HALSTREAM_CUDA_LIBRARY"] = library
        self.environ = environ

    def run(
        self, name: str, words: list[Any], limit: float, cwd: Path = ROOT, more: dict[str, str] | None = None
    ) -> tuple[int | None, str]:
        """Run a command with `more` variables; return its exit code, None after the limit, and what it wrote.

        A command that takes too long is ended with all its children. What it
        wrote is kept below `folder`.
        """
        log = self.folder / f"{name}.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                [str(word) for word in words],
                cwd=cwd,
                env=self.environ | (more or {}),
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
        return ended(False, f"{bench.pack} holds {len(wheels)} wheels; make gpu-pack, where Go is, puts one there")
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


def _conformance(bench: Bench, name: str, before: list[str], limit: float) -> Outcome:
    binary = bench.pack / "cuda.test"
    if not binary.exists():
        return ended(False, f"{binary} is missing; make gpu-pack makes it where Go is")
    words = [*before, binary, "-test.v", "-test.run", "^TestConformance$", f"-test.timeout={limit:.0f}s"]
    code, text = bench.run(name, words, limit + 10, ROOT / "cuda")
    counts, failed, hung = reports.go_results(text)
    parts = [f"{count} {what}" for what, count in sorted(counts.items())] or [last(text)]
    if code != 0:
        parts = (
            [verdict(code, limit + 10), *(f"{test} hangs" for test in hung)]
            if hung
            else [*parts, verdict(code, limit + 10)]
        )
    parts += [line.strip() for line in text.splitlines() if "ERROR SUMMARY" in line]
    # Without a test that ran the binary ends well, too.
    good = code == 0 and counts.get("pass", 0) > 0
    return ended(good, "; ".join(parts), counts=counts, failed=failed, hung=hung)


def conformance(bench: Bench) -> Outcome:
    """The conformance suite of the Go core."""
    return _conformance(bench, "conformance", [], 180)


def sanitizer(bench: Bench) -> Outcome:
    """The same under the vendor's memory checker."""
    if bench.fake:
        return absent("the look-alike has no GPU that compute-sanitizer could watch")
    tool = next(filter(None, map(shutil.which, SANITIZERS)), None)
    if tool is None:
        return absent("compute-sanitizer is not installed")
    # Codes of calls are no errors: the suite asks for many of them, and checks each.
    before = [tool, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", str(SANITIZER_FOUND)]
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
                folders = (path.parent, ROOT / "tests")
                ours = name in ("halstream", "corpus", "races") or any((at / f"{name}.py").exists() for at in folders)
                if not ours and importlib.util.find_spec(name) is None:
                    found[os.path.relpath(path, ROOT)] = name
    return found


def pytest(bench: Bench) -> Outcome:
    """The suites in Python, each in a process of its own: one that hangs costs only itself."""
    for name in ("pytest", "numpy"):
        if importlib.util.find_spec(name) is None:
            return absent(f"{name} is not installed for {sys.executable}")
    words = [sys.executable, "-m", "pytest", f"--backend={'cuda-fake' if bench.fake else 'cuda'}"]
    words += ["-v", "--tb=short", "-p", "no:cacheprovider", "--durations=10"]
    words += [f"--timeout={HANG_S:.0f}"] if _has_timeout() else []
    if bench.jobs > 1 and importlib.util.find_spec("xdist") is not None:
        # pytest-benchmark warns beside xdist, and warnings are errors here.
        words += ["-n", str(max(1, bench.jobs // 2)), "--dist=loadfile", "-p", "no:benchmark"]
    with ThreadPoolExecutor(bench.jobs) as pool:
        data = dict(zip(SUITES, pool.map(lambda suite: _suite(bench, words, suite), SUITES), strict=True))
    counts, good = Counter[str](), all(found["good"] for found in data.values())
    for found in data.values():
        counts.update(found["counts"])
    detail = [f"{count} {what}" for what, count in sorted(counts.items())]
    detail += [f"{suite}: {found['how']}" for suite, found in data.items() if found["how"] != "ended well"]
    wants = sorted({name for found in data.values() for name in found["left out"].values()})
    detail += [f"files left out for want of {', '.join(wants)}"] if wants else []
    return ended(good and counts["passed"] > 0, "; ".join(detail), counts=dict(counts), data=data)


def _has_timeout() -> bool:
    return importlib.util.find_spec("pytest_timeout") is not None


def _suite(bench: Bench, words: list[str], suite: str) -> Outcome:
    """Run one suite."""
    folder = ROOT / "tests" / suite
    without, junit = lacking(folder), bench.folder / f"{suite}.xml"
    more = [f"--junitxml={junit}", *(f"--ignore={path}" for path in without), folder]
    code, text = bench.run(f"pytest-{suite}", [*words, *more], bench.suite_s)
    counts, failed, skipped = reports.junit(junit) if junit.exists() else reports.so_far(text)
    how = "ended well" if code == 0 else f"{verdict(code, bench.suite_s)}: {last(text)}"
    print(f"        pytest {suite}: {counts}; {how}", flush=True)
    # Five: nothing was collected, as every file was left out.
    good = code == 0 or (code == 5 and bool(without))
    more_data = {"failed": failed, "skipped": skipped, "left out": without}
    return {"good": good, "how": how, "counts": counts, **more_data}


def look_alike(bench: Bench) -> Outcome:
    """The tests of the look-alike driver, asked of the driver itself: what fails shows where they differ."""
    if bench.fake:
        return absent("the driver is the look-alike")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short"]
    driver = {"FAKECUDA_REAL_DRIVER": bench.library or "libcuda.so.1", "CUDA_DEVICE_MAX_CONNECTIONS": "32"}
    driver["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    words += ["-p", "pytest_timeout", "--timeout=20"] if _has_timeout() else []
    folder = ROOT / "tests" / "fakecuda"
    code, text = bench.run("look-alike", [*words, "--collect-only", "-q", folder], 60, more=driver)
    names = re.findall(r"(?m)^\S+::.*$", text)
    if not names:
        return ended(False, f"{verdict(code, 60)}: {last(text)}")

    def take_one(numbered: tuple[int, str]) -> tuple[str, str]:
        """Return how a test ended and why. It has a process of its own, as it may break the driver's state."""
        number, name = numbered
        xml = bench.folder / f"look-alike-{number}.xml"
        code, _ = bench.run(f"look-alike-{number}", [*words, f"--junitxml={xml}", name], TEST_S, more=driver)
        found = list(reports.junit_texts(xml).values()) if xml.exists() else []
        return found[0] if found else ("failed", verdict(code, TEST_S))

    with ThreadPoolExecutor(bench.jobs) as pool:
        results = dict(zip(names, pool.map(take_one, enumerate(names)), strict=True))
    counts = Counter(how for how, _ in results.values())
    differs = {name: why for name, (how, why) in results.items() if how == "failed"}
    skipped = Counter(why for how, why in results.values() if how == "skipped")
    detail = "; ".join(f"{count} {how}" for how, count in sorted(counts.items()))
    more = {"counts": dict(counts), "differs": differs, "skipped": dict(skipped)}
    return ended(not differs and counts["passed"] > 0, detail, **more)


def examples(bench: Bench) -> Outcome:
    """Every example, as a user runs it."""

    def take_one(path: Path) -> str:
        code, text = bench.run(f"example-{path.stem}", [sys.executable, path], 120)
        return "ok" if code == 0 else f"{verdict(code, 120)}: {last(text)}"

    paths = sorted((ROOT / "examples").glob("[!_]*.py"))
    with ThreadPoolExecutor(bench.jobs) as pool:
        results = {path.stem: how for path, how in zip(paths, pool.map(take_one, paths), strict=True)}
    bad = [f"{name}: {text}" for name, text in results.items() if text != "ok"]
    good = len(results) - len(bad)
    return ended(not bad and bool(results), "; ".join([f"{good} of {len(results)} ended well", *bad]), data=results)


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
        slow = [f"{d} {o}" for d, rows in outcome["data"]["times"].items() for o, r in rows.items() if not r["enough"]]
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
    "look-alike": look_alike,
    "examples": examples,
    "measures": measures,
    "calls": calls,
    "probes": probes,
}


#: Steps that measure nothing: several of them can run beside each other.
TOGETHER = ("conformance", "sanitizer", "pytest", "look-alike", "examples")


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
