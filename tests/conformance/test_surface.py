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


def test_dir_of_every_public_module_has_its_names_from_the_start(child: Child) -> None:
    done = child(
        """
        import importlib, pkgutil
        import halstream
        names = [found.name for found in pkgutil.walk_packages(halstream.__path__, "halstream.")]
        names = [name for name in names if not any(part.startswith("_") for part in name.split("."))]
        names.remove("halstream.torch.cuda_on_host")  # its import takes over the real torch
        names.remove("halstream.paddle.plugin")  # and this one needs the real Paddle
        lacking = {}
        for name in ["halstream", *names]:
            module = importlib.import_module(name)
            if missing := set(getattr(module, "__all__", ())) - set(dir(module)):
                lacking[name] = sorted(missing)
        print(len(names) > 30, lacking)
        """
    )
    assert (done.returncode, done.stdout) == (0, "True {}\n"), done.stdout + done.stderr
