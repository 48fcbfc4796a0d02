"""A pytest plugin for Triton's tests: of each test function it runs only some of the parametrizations."""

from __future__ import annotations

import zlib
from collections import defaultdict

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--per-function", type=int, default=0, help="parametrizations of each test function; 0 for all")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the same ones in each run: those whose names have the smallest checksums."""
    count = config.getoption("--per-function")
    if not count:
        return
    functions: dict[str, list[str]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item.nodeid)
    kept = {name for names in functions.values() for name in sorted(names, key=checksum)[:count]}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def checksum(name: str) -> int:
    return zlib.crc32(name.encode())
