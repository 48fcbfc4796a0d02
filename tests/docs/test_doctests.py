"""The examples in the docstrings of the package are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import halstream
import pytest


def modules() -> list[str]:
    """Return the names of all modules of the package that are written in Python."""
    names = [m.name for m in pkgutil.walk_packages(halstream.__path__, "halstream.")]
    names.remove("halstream.torch.cuda_on_host")  # its import takes over the real torch
    names.remove("halstream.paddle.plugin")  # and this one needs the real Paddle
    names = [name for name in names if not name.startswith("halstream.torch._standins.")]  # they need the real torch
    return ["halstream", *(name for name in names if not name.endswith("._halstream"))]


def examples(module: ModuleType) -> list[doctest.DocTest]:
    """Return the docstrings of a module that have examples."""
    return [found for found in doctest.DocTestFinder().find(module) if found.examples]


@pytest.mark.needs("host")
@pytest.mark.usefixtures("backend")
def test_examples_in_docstrings() -> None:
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    seen = 0
    for name in modules():
        for found in examples(importlib.import_module(name)):
            seen += 1
            runner.run(found)
    assert seen >= 3, "the finder finds no examples any more"
    assert runner.failures == 0, "see the output"
