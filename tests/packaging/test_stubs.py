"""The stubs of the extension say what the extension has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import halstream as hs
from halstream import _halstream, _native

PACKAGE = Path(hs.__file__).parent


def test_the_extension_has_the_functions_of_its_stub_with_as_many_parameters() -> None:
    _native.version()  # loads it
    text = (PACKAGE / "_halstream.pyi").read_text()
    declared = dict(re.findall(r"^def (pybuild_\w+)\((.*)\) -> ", text, re.MULTILINE))
    assert {name for name in dir(_halstream) if name.startswith("pybuild_")} == declared.keys()
    for name, parameters in declared.items():  # gopy may rename parameters; callers depend on their number
        wanted = len([p for p in parameters.split(", ") if p not in ("", "/")])
        assert len(inspect.signature(getattr(_halstream, name)).parameters) == wanted, name
