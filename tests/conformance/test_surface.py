"""The public names of the package: all of them are there, listed, and found once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import halstream as hs
import pytest

Child = Callable[..., subprocess.CompletedProcess[str]]

LAZY = ["Array", "Kernel", "UnorderedAccessWarning", "asarray", "empty", "from_dlpack", "host_access",
        "pinned_empty", "sanitize", "testing", "zeros"]  # fmt: skip


def test_dir_shows_exactly_the_public_names() -> None:
    assert dir(hs) == sorted(hs.__all__)
    assert len(set(hs.__all__)) == len(hs.__all__)
    for name in hs.__all__:
        assert getattr(hs, name) is not None


@pytest.mark.parametrize("name", LAZY)
def test_a_name_that_is_imported_late_is_looked_up_once(name: str) -> None:
    value = getattr(hs, name)
    assert vars(hs)[name] is value


def test_importing_the_package_imports_neither_numpy_nor_a_dialect(child: Child) -> None:
    done = child(
        """
        import sys
        import halstream
        loaded = [n for n in sys.modules if n.startswith(("numpy", "halstream."))]
        assert not any(n.startswith("numpy") for n in loaded), loaded
        assert not {n.split(".")[1] for n in loaded} & {"torch", "paddle", "mindspore", "cupy", "acl"}, loaded
        """
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        hs.nonsense  # noqa: B018
