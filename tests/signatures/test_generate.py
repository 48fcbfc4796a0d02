"""The generator of the recorded signatures reads them from Python and from docstrings."""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("generate.py")


@pytest.fixture(scope="module")
def generate() -> Any:
    spec = importlib.util.spec_from_file_location("generate", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OVERLOADED = """make(*args, **kwargs)
Overloaded function.

1. make(self: package.Place, index: int, *, pair: Tuple[int, int] = (0, 1)) -> None

2. make(self: package.Place) -> None
"""


def test_the_first_overload_of_a_docstring_is_read(generate: Any) -> None:
    documented = types.SimpleNamespace(__doc__=OVERLOADED)
    read = generate.by_docstring(documented, "make")
    assert read == [
        ["self", "POSITIONAL_OR_KEYWORD", None],
        ["index", "POSITIONAL_OR_KEYWORD", None],
        ["pair", "KEYWORD_ONLY", "(0, 1)"],
    ]


def test_a_docstring_without_a_signature_gives_none(generate: Any) -> None:
    assert generate.by_docstring(types.SimpleNamespace(__doc__="Make a place."), "make") is None


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("textwrap.dedent", {"kind": "function", "params": [["text", "POSITIONAL_OR_KEYWORD", None]]}),
        ("fractions.Fraction.numerator", {"kind": "property"}),
        ("http.client.HTTP_PORT", {"kind": "constant", "value": "80"}),
        ("json.JSONDecoder.decode", {"kind": "method"}),
    ],
)
def test_names_of_python_packages_are_described(generate: Any, name: str, entry: dict[str, Any]) -> None:
    found = generate.describe(name)
    assert {key: found[key] for key in entry} == entry


def test_a_name_that_does_not_exist_raises(generate: Any) -> None:
    with pytest.raises(AttributeError):
        generate.describe("textwrap.absent")
