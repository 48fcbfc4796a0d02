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
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PACK = ROOT / "build" / "gpu"
SUITES = ("conformance", "dialects", "interop", "interop_real", "process", "property", "protocols")
PASSED, FAILED, ABSENT = "passed", "failed", "absent"
HANG_S = 40.0  # for each test in Python, where pytest-timeout is installed
SUITE_S = 180.0  # for each suite in Python
FILE_S = 90.0  # for each file of the look-alike's tests on another driver
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

    def __init__(self, folder: Path, library: str, fake: bool, pack: Path = PACK, jobs: int = 1) -> None:
        self.folder, self.library, self.fake, self.pack, self.jobs = folder, library, fake, pack, jobs
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


def _go_results(text: str) -> tuple[dict[str, int], list[str], list[str]]:
    """Return from a verbose run of Go's tests how many ended how, which failed, and which hung."""
    ends = re.findall(r"(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)", text)
    counts = Counter(how.lower() for how, _ in ends)
    # A run that is cut off prints no ends; what failed is in the messages.
    failed = [name for how, name in ends if how == "FAIL"] + re.findall(r"(?m)^\s*Test:\s+(\S+)", text)
    running = text.partition("running tests:\n")[2].partition("\n\n")[0]
    return dict(counts), list(dict.fromkeys(failed)), re.findall(r"(?m)^\s*(\S+/\S+) \(", running)


def _conformance(bench: Bench, name: str, before: list[str], limit: float) -> Outcome:
    binary = bench.pack / "cuda.test"
    if not binary.exists():
        return ended(False, f"{binary} is missing; make gpu-pack makes it where Go is")
    words = [*before, binary, "-test.v", "-test.run", "^TestConformance$", f"-test.timeout={limit:.0f}s"]
    code, text = bench.run(name, words, limit + 10, ROOT / "cuda")
    counts, failed, hung = _go_results(text)
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
                folders = (path.parent, ROOT / "tests")
                ours = name in ("halstream", "corpus") or any((at / f"{name}.py").exists() for at in folders)
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
    """The suites in Python, each in a process of its own: one that hangs costs only itself."""
    for name in ("pytest", "numpy"):
        if importlib.util.find_spec(name) is None:
            return absent(f"{name} is not installed for {sys.executable}")
    words = [sys.executable, "-m", "pytest", f"--backend={'cuda-fake' if bench.fake else 'cuda'}"]
    words += ["-v", "--tb=short", "-p", "no:cacheprovider", "--durations=10"]
    words += [f"--timeout={HANG_S:.0f}"] if _has_timeout() else ["-c", str(_settings(bench)), f"--rootdir={ROOT}"]
    if bench.jobs > 1 and importlib.util.find_spec("xdist") is not None:
        words += ["-n", str(max(1, bench.jobs // 2)), "--dist=loadfile"]
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


def _junit_texts(path: Path) -> dict[str, tuple[str, str]]:
    """Return how each test ended, and for one that failed or was skipped the lines that say why."""
    results = {}
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag: child for child in case}
        name, how, why = f"{case.get('classname')}::{case.get('name')}", "passed", ""
        for kind in ("failure", "error"):
            if kind in kinds:
                lines = re.findall(r"(?m)^(?:E  .*|\S+:\d+: .*|>  .*)", kinds[kind].text or "")
                how, why = "failed", "\n".join(lines[:12])
        if "skipped" in kinds:
            how, why = "skipped", kinds["skipped"].get("message") or ""
        results[name] = how, why
    return results


def _has_timeout() -> bool:
    return importlib.util.find_spec("pytest_timeout") is not None


def _suite(bench: Bench, words: list[str], suite: str) -> Outcome:
    """Run one suite."""
    folder = ROOT / "tests" / suite
    without, junit = lacking(folder), bench.folder / f"{suite}.xml"
    more = [f"--junitxml={junit}", *(f"--ignore={path}" for path in without), folder]
    code, text = bench.run(f"pytest-{suite}", [*words, *more], SUITE_S)
    counts, failed, skipped = _junit(junit) if junit.exists() else _so_far(text)
    how = "ended well" if code == 0 else f"{verdict(code, SUITE_S)}: {last(text)}"
    print(f"        pytest {suite}: {counts}; {how}", flush=True)
    # Five: nothing was collected, as every file was left out.
    good = code == 0 or (code == 5 and bool(without))
    more_data = {"failed": failed, "skipped": skipped, "left out": without}
    return {"good": good, "how": how, "counts": counts, **more_data}


def _so_far(text: str) -> tuple[dict[str, int], list[str], dict[str, int]]:
    """Return what a run that was cut off had told; the last test named without an end is what hung."""
    found = re.findall(r"(?m)^(\S+::.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL)\b", text)
    counts = Counter({"ERROR": "failed"}.get(how, how.lower()) for _, how in found)
    failed = [name for name, how in found if how in ("FAILED", "ERROR")]
    lines = [line.strip() for line in text.splitlines() if "::" in line]
    if lines and (not found or not lines[-1].startswith(found[-1][0])):
        failed.append(f"{lines[-1]} (hangs)")
    return dict(counts), failed, {}


def _settings(bench: Bench) -> Path:
    """Write the project's settings without the option of pytest-timeout, which is an error without it."""
    text = (ROOT / "pyproject.toml").read_text().partition("markers = [")[2].partition("\n]")[0]
    markers = [line.strip().rstrip(",").strip('"') for line in text.splitlines() if line.strip()]
    path = bench.folder / "pytest.ini"
    lines = ["[pytest]", "addopts = --strict-markers -ra -p pytester -p no:asyncio -p no:randomly"]
    lines += ["xfail_strict = true", "filterwarnings = error", "faulthandler_timeout = 60"]
    path.write_text("\n    ".join(["\n".join([*lines, "markers ="]), *markers]) + "\n")
    return path


def look_alike(bench: Bench) -> Outcome:
    """The tests of the look-alike driver, asked of the driver itself: what fails shows where they differ."""
    if bench.fake:
        return absent("the driver is the look-alike")
    words = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short", "-ra"]
    driver = {"HALSTREAM_TEST_DRIVER": bench.library or "libcuda.so.1", "CUDA_DEVICE_MAX_CONNECTIONS": "32"}
    driver["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    words += (
        ["-p", "pytest_timeout", "--timeout=20"] if _has_timeout() else ["-c", _settings(bench), f"--rootdir={ROOT}"]
    )

    def take_file(path: Path) -> dict[str, tuple[str, str]]:
        """Return what became of each test of a file, and why."""
        name = f"look-alike-{path.stem}"
        code, text = bench.run(name, [*words, f"--junitxml={bench.folder / name}.xml", path], FILE_S, more=driver)
        if (bench.folder / f"{name}.xml").exists():
            found = _junit_texts(bench.folder / f"{name}.xml")
            for number, test in enumerate([test for test, (how, _) in found.items() if how == "failed"]):
                # An earlier test may have broken the driver's state: what counts is how one ends alone.
                xml = bench.folder / f"{name}-{number}.xml"
                one = f"{path}::{test.partition('::')[2]}"
                code, _ = bench.run(f"{name}-{number}", [*words, f"--junitxml={xml}", one], FILE_S, more=driver)
                alone = _junit_texts(xml) if xml.exists() else {test: ("failed", verdict(code, FILE_S))}
                found |= alone
            return found
        counts, failed, _ = _so_far(text)
        found = {test: ("failed", f"{path.name}: {verdict(code, FILE_S)}") for test in failed}
        return found | {f"{path.name}: {how}": (how, "") for how, count in counts.items() for _ in range(count)}

    results: dict[str, tuple[str, str]] = {}
    with ThreadPoolExecutor(bench.jobs) as pool:
        for found in pool.map(take_file, sorted((ROOT / "tests" / "fakecuda").glob("test_*.py"))):
            results |= found
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
