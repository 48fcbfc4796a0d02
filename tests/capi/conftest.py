"""Fixtures of the tests of halstream.h: the module of cases, compiled once in a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import capi_help
import halstream as hs
import pytest


@pytest.fixture(scope="session")
def cases_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled module, for tests that load it in a process of their own."""
    folder = tmp_path_factory.mktemp("capi")
    sources = sorted(capi_help.HERE.glob("cases*.c"))
    return capi_help.build(
        sources[0], folder / "capi_cases.so", "-shared", "-fvisibility=hidden", *map(str, sources[1:])
    )


@pytest.fixture(scope="session")
def loaded_cases(cases_file: Path) -> Any:
    return capi_help.load(cases_file)


@pytest.fixture
def cases(loaded_cases: Any, backend: str) -> Any:
    """The functions of cases.c, which use the table of the backend under test."""
    loaded_cases.use(hs.get_api())
    return loaded_cases
