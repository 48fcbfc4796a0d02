"""Round trips with the real libraries: `make interop` installs them and runs these tests."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

# Elsewhere the libraries are not installed, and importing them takes seconds.
collect_ignore_glob = [] if os.environ.get("HALSTREAM_INTEROP") else ["test_*"]


@pytest.fixture(scope="session")
def library() -> Callable[[str], Any]:
    """Return a function that imports a library, or skips the test where it is absent."""

    def library(name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it says of itself is not tested
            try:
                found = importlib.import_module(name)
            except ImportError as exc:
                pytest.skip(f"{name} is absent: {exc}")
            if getattr(found, "__file__", None) is None:
                pytest.skip(f"{name} is absent: what is imported is a folder of that name")
            return found

    return library


@pytest.fixture
def gpu(library: Callable[[str], Any]) -> None:
    """Skip the test unless there is a GPU that this package can use."""
    import halstream as hs

    if hs.backend() != "cuda":
        pytest.skip("needs a GPU and the cuda backend")
