"""What the output of the steps of tools/gpu.py says: how many tests ended how, and which failed or hung.

Standard library only: it runs where nothing can be installed.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree


def go_results(text: str) -> tuple[dict[str, int], list[str], list[str]]:
    """Return from a verbose run of Go's tests how many ended how, which failed, and which hung."""
    ends = re.findall(r"(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)", text)
    counts = Counter(how.lower() for how, _ in ends)
    # A run that is cut off prints no ends; what failed is in the messages.
    failed = [name for how, name in ends if how == "FAIL"] + re.findall(r"(?m)^\s*Test:\s+(\S+)", text)
    running = text.partition("running tests:\n")[2].partition("\n\n")[0]
    return dict(counts), list(dict.fromkeys(failed)), re.findall(r"(?m)^\s*(\S+/\S+) \(", running)


def junit(path: Path) -> tuple[dict[str, int], list[str], dict[str, int]]:
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


def junit_texts(path: Path) -> dict[str, tuple[str, str]]:
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


def so_far(text: str) -> tuple[dict[str, int], list[str], dict[str, int]]:
    """Return what a run that was cut off had told; the last test named without an end is what hung."""
    found = re.findall(r"(?m)^(\S+::.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL)\b", text)
    counts = Counter({"ERROR": "failed"}.get(how, how.lower()) for _, how in found)
    failed = [name for name, how in found if how in ("FAILED", "ERROR")]
    lines = [line.strip() for line in text.splitlines() if "::" in line]
    if lines and (not found or not lines[-1].startswith(found[-1][0])):
        failed.append(f"{lines[-1]} (hangs)")
    return dict(counts), failed, {}
